//! Tables as relations: their columns, the place of each row, and reads by key.

use std::ops::ControlFlow;

use cdc_core::{Length, SqlType};
use cdc_fake::{FakeDatabase, KeyBounds, ReadOptions, SqlResult, TableInfo, Value};

use crate::{
    kind::Kind,
    relation::{Bound, Comparison, ROW_LOCATION, Relation, RelationColumn, Row, Rows, Scan},
    scalar,
};

/// A table.
pub(super) struct BaseTable {
    database: FakeDatabase,
    info: TableInfo,
    reading: ReadOptions,
    columns: Vec<RelationColumn>,
    /// The slots of the columns in stored rows.
    slots: Vec<usize>,
    /// The leading key columns whose order the statement shares.
    order: Vec<usize>,
}

impl BaseTable {
    pub(super) fn new(database: &FakeDatabase, info: TableInfo, reading: ReadOptions) -> Self {
        let mut columns: Vec<_> = info.columns.iter().map(relation_column).collect();
        let place = SqlType::VarBinary(Length::Limited(8000));
        let mut location = RelationColumn::new(ROW_LOCATION, Kind::new(place, false));
        location.hidden = true;
        columns.push(location);
        let slot = |id: i32| usize::try_from(id).unwrap_or(0).wrapping_sub(1);
        let slots = info.columns.iter().map(|column| slot(column.column.id)).collect();
        let order = info.key.iter().copied().take_while(|at| {
            info.columns.get(*at).is_some_and(|column| !is_text(&column.column.sql_type))
        });
        let order = order.collect();
        Self { database: database.clone(), info, reading, columns, slots, order }
    }

    /// The bounds of a scan that the table's key can seek: equalities on leading key columns, then
    /// one range.
    fn bounds(&self, scan: &Scan) -> KeyBounds {
        let on = |column: usize, wanted: &[Comparison]| {
            let found = scan
                .bounds
                .iter()
                .find(|bound| bound.column == column && wanted.contains(&bound.comparison));
            found.map(|bound: &Bound| (bound.value.clone(), bound.comparison))
        };
        let mut equal = Vec::new();
        let mut bounds = KeyBounds::default();
        for column in &self.order {
            if let Some((value, _)) = on(*column, &[Comparison::Equal]) {
                equal.push(value);
                continue;
            }
            let above = on(*column, &[Comparison::Greater, Comparison::GreaterOrEqual]);
            let below = on(*column, &[Comparison::Less, Comparison::LessOrEqual]);
            let with = |value| equal.iter().cloned().chain([value]).collect::<Vec<Value>>();
            bounds.from = above
                .map(|(value, comparison)| (with(value), comparison == Comparison::GreaterOrEqual));
            bounds.to = below
                .map(|(value, comparison)| (with(value), comparison == Comparison::LessOrEqual));
            break;
        }
        if !equal.is_empty() {
            bounds.from.get_or_insert((equal.clone(), true));
            bounds.to.get_or_insert((equal, true));
        }
        bounds
    }
}

impl Relation for BaseTable {
    fn columns(&self) -> &[RelationColumn] {
        &self.columns
    }

    fn scan<'a>(&'a self, scan: &Scan) -> SqlResult<Rows<'a>> {
        let mut reading = self.reading.clone();
        reading.skip_held = scan.skip_held;
        reading.locking = scan.locking;
        if scan.uncommitted {
            reading.isolation = cdc_fake::Isolation::ReadUncommitted;
        }
        let rows = self.database.read_table(&self.info.name, &self.bounds(scan), reading)?;
        Ok(Box::new(rows.map(|found| {
            let (place, row) = found?;
            let cell = |slot: &usize| row.get(*slot).cloned().unwrap_or(Value::Null);
            // Of known length, so that a row is one allocation.
            let cells = self.slots.iter().map(cell).chain(std::iter::once(place.to_value()));
            Ok(cells.collect::<Row>())
        })))
    }

    fn order(&self) -> &[usize] {
        &self.order
    }
}

/// True for a type whose order a collation decides.
fn is_text(sql_type: &SqlType) -> bool {
    use SqlType as T;
    matches!(
        sql_type,
        T::Char(_) | T::VarChar(_) | T::NChar(_) | T::NVarChar(_) | T::Text | T::NText | T::Xml
    )
}

/// A table's column as a relation's.
pub(super) fn relation_column(column: &cdc_fake::ColumnInfo) -> RelationColumn {
    let core = &column.column;
    let mut kind = Kind::new(core.sql_type.clone(), core.nullable);
    if is_text(&core.sql_type) {
        kind.collation = column.collation.as_deref().and_then(scalar::collation);
    }
    RelationColumn {
        name: core.name.clone(),
        kind,
        identity: column.identity.is_some(),
        computed: core.computed,
        hidden: false,
    }
}

/// Rows that were made beforehand.
pub(super) struct Listed {
    pub(super) columns: Vec<RelationColumn>,
    pub(super) rows: Vec<Row>,
}

impl Relation for Listed {
    fn columns(&self) -> &[RelationColumn] {
        &self.columns
    }

    fn scan<'a>(&'a self, _: &Scan) -> SqlResult<Rows<'a>> {
        Ok(Box::new(self.rows.iter().cloned().map(Ok)))
    }
}

/// Whether to go on, as a result.
pub(super) const fn goes_on(flow: ControlFlow<()>) -> bool {
    matches!(flow, ControlFlow::Continue(()))
}

//! Rows of the table itself, and ranges of its keys.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use cdc_core::{
    Column, ErrorKind, Length, SqlType, TableName,
    change::row_schema,
    port::{KeyRange, KeyTuple, RowRequest, Source},
};

use super::{
    SourceHarness, Statement, needs,
    scene::{self, Scene, columns, delete, insert, orders, rename},
};
use crate::{
    cell::{Cell, array},
    outcome::{CaseResult, Failure, Outcome, check, names, refused, same},
};

type Cells = BTreeMap<String, Cell>;

pub(super) async fn rows_are_what_the_table_holds_now(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let many = [insert(1, "a"), insert(2, "b"), rename(1, "c"), delete(2), insert(-7, "d")];
    // Rows do not wait for capture.
    harness.transact(&many).await?;
    let all = Keyed::new(&scene, orders(), columns(), &["id"]);
    let told: Vec<_> = all
        .read(KeyRange::default(), 10)
        .await?
        .into_iter()
        .map(|cells| (cells.get("id").cloned(), cells.get("Name").cloned()))
        .collect();
    let row = |id, name: &str| (Some(Cell::Int(id)), Some(Cell::text(name)));
    let expected = vec![row(-7, "d"), row(1, "c"), row(1000, "first")];
    same("the rows", told, expected)?;
    same("their count", all.count(&KeyRange::default()).await?, 3)?;
    Ok(Outcome::Passed)
}

pub(super) async fn rows_hold_computed_values_and_large_objects(
    harness: &dyn SourceHarness,
) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().computes, "create computed columns") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    let table = TableName::new("dbo", "notes");
    let columns = vec![
        Column::new("id", 1, SqlType::Int, false),
        Column { computed: true, ..Column::new("twice", 2, SqlType::Int, true) },
        Column::new("body", 3, SqlType::NVarChar(Length::Max), true),
    ];
    harness.create_table(&table, &columns, &["id"]).await?;
    let row = vec![Cell::Int(21), Cell::text("body")];
    harness.transact(&[Statement::Insert(table.clone(), row)]).await?;
    let notes = Keyed::new(&scene, table, columns, &["id"]);
    let read = notes.read(KeyRange::default(), 10).await?;
    let expected = [("id", Cell::Int(21)), ("twice", Cell::Int(42)), ("body", Cell::text("body"))];
    let expected: Cells = expected.map(|(name, cell)| (name.to_owned(), cell)).into();
    same("the row", read, vec![expected])?;
    Ok(Outcome::Passed)
}

pub(super) async fn a_record_batch_has_at_most_the_rows_asked(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = filled(harness).await?;
    let all = Keyed::new(&scene, orders(), columns(), &["id"]);
    let whole = all.read(KeyRange::default(), 1000).await?;
    // The reader below fails for a batch that is larger.
    for batch_rows in [1, 2, 7, 23, 24] {
        let read = all.read(KeyRange::default(), batch_rows).await?;
        same("the rows whatever the batch size", &read, &whole)?;
    }
    let mut turned = columns();
    turned.reverse();
    let other = Keyed::new(&scene, orders(), turned, &[]);
    same("columns in another order", other.read(KeyRange::default(), 5).await?, whole)?;
    Ok(Outcome::Passed)
}

pub(super) async fn an_empty_table_has_no_key_extent(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::bare(harness).await?;
    let all = Keyed::new(&scene, orders(), columns(), &["id"]);
    same("the extent", all.extent().await?, None)?;
    same("the rows", all.read(KeyRange::default(), 10).await?, Vec::new())?;
    same("the count", all.count(&KeyRange::default()).await?, 0)?;
    same("a bound", all.bound(&KeyRange::default(), 1).await?, None)?;
    Ok(Outcome::Passed)
}

pub(super) async fn the_key_extent_is_the_least_and_the_greatest_key(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = filled(harness).await?;
    let all = Keyed::new(&scene, orders(), columns(), &["id"]);
    let extent = all.extent().await?;
    let expected = (vec![Cell::Int(-30)], vec![Cell::Int(1000)]);
    same("the extent", extent, Some(expected))?;
    Ok(Outcome::Passed)
}

pub(super) async fn ranges_between_bounds_tile_the_table(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = filled(harness).await?;
    let all = Keyed::new(&scene, orders(), columns(), &["id"]);
    for rows in [1, 4, 22, 23, 24] {
        all.tiles(rows).await?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn ranges_over_a_composite_key_tile_the_table(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let table = TableName::new("dbo", "lines");
    let columns = vec![
        Column::new("shop", 1, SqlType::NVarChar(Length::Limited(10)), false),
        Column::new("day", 2, SqlType::Date, false),
        Column::new("line", 3, SqlType::Int, false),
        Column::new("amount", 4, SqlType::Int, true),
    ];
    let key = ["shop", "day", "line"];
    harness.create_table(&table, &columns, &key).await?;
    let mut rows = Vec::new();
    for shop in ["b", "a", "c"] {
        for day in [-1, 0, 1] {
            for line in [2, -1, 1] {
                let row = [Cell::text(shop), Cell::Date(day), Cell::Int(line), Cell::Int(9)];
                rows.push(Statement::Insert(table.clone(), row.to_vec()));
            }
        }
    }
    harness.transact(&rows).await?;
    let lines = Keyed::new(&scene, table, columns, &key);
    for rows in [1, 2, 5, 9, 26, 27] {
        lines.tiles(rows).await?;
    }
    let first = vec![Cell::text("a"), Cell::Date(-1), Cell::Int(-1)];
    let last = vec![Cell::text("c"), Cell::Date(1), Cell::Int(2)];
    same("the extent", lines.extent().await?, Some((first, last)))?;
    Ok(Outcome::Passed)
}

pub(super) async fn null_sorts_first_in_a_range(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let table = TableName::new("dbo", "heap");
    let columns =
        vec![Column::new("grp", 1, SqlType::Int, true), Column::new("n", 2, SqlType::Int, true)];
    harness.create_table(&table, &columns, &[]).await?;
    let groups = [Cell::Int(-5), Cell::Null, Cell::Int(0), Cell::Null, Cell::Int(3)];
    let row = |(n, grp)| Statement::Insert(table.clone(), vec![grp, Cell::Int(n)]);
    let rows: Vec<_> = (0..).zip(groups).map(row).collect();
    harness.transact(&rows).await?;
    let heap = Keyed::new(&scene, table.clone(), columns, &["grp"]);
    let extent = heap.extent().await?;
    same("the extent", extent, Some((vec![Cell::Null], vec![Cell::Int(3)])))?;
    let from = |cell| heap.key(&[cell]).map(Some);
    for (from, to, rows) in [
        (None, from(Cell::Int(-5))?, 2),
        (from(Cell::Null)?, from(Cell::Int(0))?, 3),
        (from(Cell::Int(-5))?, None, 3),
        (from(Cell::Null)?, None, 5),
        (None, from(Cell::Null)?, 0),
    ] {
        let range = KeyRange { from, to };
        same("rows of a range", heap.count(&range).await?, rows)?;
        let read = heap.read(range, 10).await?.len();
        same("rows read", u64::try_from(read).ok(), Some(rows))?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn a_range_is_half_open(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::bare(harness).await?;
    let rows: Vec<_> = (1..=5).map(|id| insert(id, "n")).collect();
    scene.commit(&rows).await?;
    let all = Keyed::new(&scene, orders(), columns(), &["id"]);
    for from in 0..=6 {
        for to in 0..=6 {
            let range = KeyRange {
                from: Some(all.key(&[Cell::Int(from)])?),
                to: Some(all.key(&[Cell::Int(to)])?),
            };
            let expected: Vec<_> = (1..=5).filter(|id| from <= *id && *id < to).collect();
            let count = u64::try_from(expected.len()).unwrap_or(u64::MAX);
            same("rows counted", all.count(&range).await?, count)?;
            let read = all.read(range, 10).await?;
            let ids: Vec<_> = read.iter().map(|cells| cells.get("id").cloned()).collect();
            let expected: Vec<_> = expected.into_iter().map(|id| Some(Cell::Int(id))).collect();
            same("rows read", ids, expected)?;
        }
    }
    Ok(Outcome::Passed)
}

pub(super) async fn a_bound_leaves_that_many_rows_below(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::bare(harness).await?;
    let rows: Vec<_> = (1..=5).map(|id| insert(id * 10, "n")).collect();
    scene.commit(&rows).await?;
    let all = Keyed::new(&scene, orders(), columns(), &["id"]);
    let open = KeyRange::default();
    for (rows, id) in [(1, 20), (4, 50)] {
        same("a bound", all.bound(&open, rows).await?, Some(vec![Cell::Int(id)]))?;
    }
    same("no bound at the end", all.bound(&open, 5).await?, None)?;
    same("no bound behind the end", all.bound(&open, u64::MAX).await?, None)?;
    let inner =
        KeyRange { from: Some(all.key(&[Cell::Int(20)])?), to: Some(all.key(&[Cell::Int(50)])?) };
    same("a bound of a range", all.bound(&inner, 2).await?, Some(vec![Cell::Int(40)]))?;
    same("none inside a range", all.bound(&inner, 3).await?, None)?;
    Ok(Outcome::Passed)
}

pub(super) async fn an_unknown_table_or_key_is_refused(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let table = TableName::new("dbo", "no_such_table");
    let key = ["id".to_owned()];
    let result = scene.source.key_extent(&table, &key).await;
    let error = refused("an unknown table", result, ErrorKind::Config)?;
    names(&error, "no_such_table")?;
    let open = KeyRange::default();
    let result = scene.source.count(&table, &key, &open).await;
    refused("the count of an unknown table", result, ErrorKind::Config)?;
    let key = ["no_such_column".to_owned()];
    let result = scene.source.key_extent(&orders(), &key).await;
    let error = refused("an unknown key column", result, ErrorKind::Config)?;
    names(&error, "no_such_column")?;
    let result = scene.source.key_bound(&orders(), &key, &open, 1).await;
    refused("a bound of an unknown key column", result, ErrorKind::Config)?;
    Ok(Outcome::Passed)
}

/// A scene whose table has 23 rows with gaps between their keys.
async fn filled(harness: &dyn SourceHarness) -> Result<Scene<'_>, Failure> {
    let scene = Scene::open(harness).await?;
    let rows: Vec<_> = (0..22).map(|n| insert(n * 3 - 30, "n")).collect();
    scene.commit(&rows).await?;
    Ok(scene)
}

/// A table, the columns to read, and a key.
struct Keyed {
    source: Arc<dyn Source>,
    table: TableName,
    columns: Vec<Column>,
    key: Vec<String>,
}

impl Keyed {
    fn new(scene: &Scene<'_>, table: TableName, columns: Vec<Column>, key: &[&str]) -> Self {
        Self {
            source: Arc::clone(&scene.source),
            table,
            columns,
            key: key.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// The key with these values.
    fn key(&self, cells: &[Cell]) -> Result<KeyTuple, Failure> {
        let own = |name: &String| self.columns.iter().find(|column| &column.name == name);
        let columns: Vec<_> = self.key.iter().filter_map(own).cloned().collect();
        let schema = row_schema(&columns)?;
        let arrays = schema
            .fields()
            .iter()
            .zip(cells)
            .map(|(field, cell)| array(field.data_type(), std::slice::from_ref(cell)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(KeyTuple(RecordBatch::try_new(schema, arrays)?))
    }

    /// The rows of a range in the order of their cells. Checks schema and batch sizes.
    async fn read(&self, range: KeyRange, batch_rows: usize) -> Result<Vec<Cells>, Failure> {
        let schema = row_schema(&self.columns)?;
        let request = RowRequest {
            table: self.table.clone(),
            columns: self.columns.clone(),
            key: self.key.clone(),
            range,
            batch_rows,
        };
        let mut rows = Vec::new();
        for batch in scene::whole(self.source.rows(request).await?).await? {
            same("the schema of rows", batch.schema().fields(), schema.fields())?;
            check(
                batch.num_rows() <= batch_rows,
                format!("{} rows in a batch of {batch_rows}", batch.num_rows()),
            )?;
            rows.extend(scene::cells(&batch, 0)?);
        }
        let place = |cells: &Cells| -> Vec<Option<Cell>> {
            let names = self.columns.iter().map(|column| &column.name);
            let mut names: Vec<_> = names.collect();
            names.sort();
            names.into_iter().rev().map(|name| cells.get(name).cloned()).collect()
        };
        rows.sort_by_key(place);
        Ok(rows)
    }

    async fn count(&self, range: &KeyRange) -> Result<u64, Failure> {
        Ok(self.source.count(&self.table, &self.key, range).await?)
    }

    async fn bound(&self, range: &KeyRange, rows: u64) -> Result<Option<Vec<Cell>>, Failure> {
        let bound = self.source.key_bound(&self.table, &self.key, range, rows).await?;
        bound.as_ref().map(|key| self.values(key)).transpose()
    }

    async fn extent(&self) -> Result<Option<(Vec<Cell>, Vec<Cell>)>, Failure> {
        match self.source.key_extent(&self.table, &self.key).await? {
            None => Ok(None),
            Some((least, greatest)) => Ok(Some((self.values(&least)?, self.values(&greatest)?))),
        }
    }

    /// The values of a key, which must be one row of the key columns in their order.
    fn values(&self, key: &KeyTuple) -> Result<Vec<Cell>, Failure> {
        same("rows of a key", key.0.num_rows(), 1)?;
        let schema = key.0.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
        same("columns of a key", &names, &self.key)?;
        let columns = key.0.columns().iter();
        columns.map(|column| Cell::of(column.as_ref(), 0)).collect()
    }

    /// Cuts the table into ranges of `rows` rows by bounds; together they hold each row once.
    async fn tiles(&self, rows: u64) -> Result<(), Failure> {
        let whole = self.read(KeyRange::default(), 1000).await?;
        let mut from = None;
        let mut read = Vec::new();
        for _ in 0..=whole.len() {
            let rest = KeyRange { from: from.clone(), to: None };
            let bound = self.source.key_bound(&self.table, &self.key, &rest, rows).await?;
            let piece = KeyRange { from, to: bound.clone() };
            let count = self.count(&piece).await?;
            let some = self.read(piece, 1000).await?;
            same("rows counted and read", u64::try_from(some.len()).ok(), Some(count))?;
            check(
                if bound.is_some() { count == rows } else { (1..=rows).contains(&count) },
                format!("a range of {rows} rows has {count}"),
            )?;
            read.extend(some);
            from = bound;
            if from.is_none() {
                break;
            }
        }
        let order = |rows: Vec<Cells>| {
            let mut rows: Vec<Vec<_>> = rows.into_iter().map(Vec::from_iter).collect();
            rows.sort();
            rows
        };
        same("the rows of all ranges", order(read), order(whole))
    }
}

//! A piece of a batch: rows in the form they are sent in, reduced to one row a key.
//!
//! Of several changes of a key the one with the greatest position stays. What it does not say (a
//! computed column, a large object that a before image leaves out, a column that its capture
//! instance lacks) it takes from the row it replaces; what no row of the piece says is marked as
//! unknown, and the target keeps what it has.

use std::{collections::HashMap, ops::Range};

use arrow_array::Array;
use cdc_core::{
    Error, ErrorKind, Origin, Position, Result, TableBatch,
    change::{ChangeColumns, ChangeOrder, Operation, field},
    position::sqlserver::write_change,
    table::NullMeaning,
};

use crate::{
    binary::{self, Refusal},
    cells::{Cells, Written},
    config::NulInText,
    layout::Layout,
    row::{Fields, bits, canonical, value},
};

/// Most bytes of one row. The server keeps rows below 1 GiB.
const ROW_BYTES_MAX: usize = (1 << 30) - (1 << 16);

/// Bytes that a row takes besides those that are sent: its places, its key, the key's place.
const ROW_OVERHEAD: usize = 160;

/// What a NULL in each column of a layout says in a change row.
pub(crate) type Meanings = Vec<NullMeaning>;

/// Rows of one table on their way to the server: at most one a key.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// Every row that was written, those that were replaced as well.
    bytes: Vec<u8>,
    rows: Vec<Row>,
    /// The place in `rows` of each key.
    keys: HashMap<Vec<u8>, usize>,
    /// The columns that some row says nothing about.
    unknown: Vec<bool>,
    /// How many U+0000 were replaced.
    replaced: u64,
}

#[derive(Clone, Debug)]
struct Row {
    /// The row in the bytes, without its count of fields.
    range: Range<usize>,
    /// The position's text in the bytes.
    position: Range<usize>,
    deleted: bool,
}

impl Piece {
    /// No rows yet of a target with so many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Self { unknown: vec![false; columns], ..Self::default() }
    }

    /// True without a row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many keys it has rows of.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes in memory, about.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + self.rows.len() * ROW_OVERHEAD
    }

    /// The columns that some row says nothing about, as places in the layout.
    pub(crate) fn unknown(&self) -> Vec<usize> {
        let places = self.unknown.iter().enumerate();
        places.filter(|(_, unknown)| **unknown).map(|(place, _)| place).collect()
    }

    /// How many U+0000 were replaced.
    pub(crate) const fn replaced(&self) -> u64 {
        self.replaced
    }

    /// The rows, each a list of fields in the binary form: the layout's columns, whether the row
    /// is deleted, its position, and the bits of what it does not say. They come in the order of
    /// their keys, so that the server goes through its index once.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let mut keys: Vec<(&[u8], usize)> =
            self.keys.iter().map(|(key, place)| (key.as_slice(), *place)).collect();
        keys.sort_unstable();
        keys.into_iter().filter_map(|(_, place)| {
            let row = self.rows.get(place)?;
            self.bytes.get(row.range.clone())
        })
    }

    /// Takes the rows of a batch.
    ///
    /// # Errors
    /// `SchemaChanged` for a column that the target lacks or whose type it does not take;
    /// `InvalidData` for a value that its type does not allow, naming table, column, type and
    /// position; `Unsupported` for a position that no key holds.
    pub(crate) fn take(
        &mut self,
        table: &str,
        layout: &Layout,
        meanings: &Meanings,
        nul: NulInText,
        batch: &TableBatch,
    ) -> Result<()> {
        let cells = match_columns(table, layout, nul, batch)?;
        let mut taking = Taking { piece: self, table, layout, meanings, cells, key: Vec::new() };
        match &batch.origin {
            Origin::Changes => {
                let changes = ChangeColumns::of(&batch.records)?;
                taking.changes(&changes)
            }
            Origin::Snapshot(stamp) | Origin::Chunk { stamp, .. } => {
                taking.snapshot(stamp.position, batch.records.num_rows())
            }
        }
    }
}

/// The cells of each column of the layout.
fn match_columns<'a>(
    table: &str,
    layout: &Layout,
    nul: NulInText,
    batch: &'a TableBatch,
) -> Result<Vec<Cells<'a>>> {
    let skip = if batch.origin == Origin::Changes { field::COUNT } else { 0 };
    let mut cells: Vec<Cells<'a>> = layout.columns.iter().map(|_| Cells::Missing).collect();
    let schema = batch.records.schema_ref();
    for (given, array) in schema.fields().iter().zip(batch.records.columns()).skip(skip) {
        let wrong = |kind, message: &str| {
            Error::new(kind, message).with("table", table).with("column", given.name())
        };
        let place = layout.place(given.name());
        let found = place.and_then(|place| Some((layout.columns.get(place)?, place)));
        let Some((own, place)) = found else {
            let message = "the target lacks a column of the rows";
            return Err(wrong(ErrorKind::SchemaChanged, message));
        };
        // A text with U+0000 in a key could become another row's key.
        let nul = if layout.key.contains(&place) { NulInText::Refuse } else { nul };
        let array: &dyn Array = array.as_ref();
        let Some(of) = Cells::of(array, &own.column_type, nul) else {
            let message = "the target's column cannot take the rows' type";
            return Err(wrong(ErrorKind::SchemaChanged, message)
                .with("target_type", &own.column_type)
                .with("found_type", array.data_type()));
        };
        match cells.get_mut(place) {
            Some(slot @ Cells::Missing) => *slot = of,
            _ => return Err(wrong(ErrorKind::InvalidData, "two columns differ only in case")),
        }
    }
    let lacks = layout.key.iter().find(|place| matches!(cells.get(**place), Some(Cells::Missing)));
    match lacks.and_then(|place| layout.columns.get(*place)) {
        None => Ok(cells),
        Some(column) => {
            Err(Error::new(ErrorKind::SchemaChanged, "the rows lack a column of the target's key")
                .with("table", table)
                .with("column", &column.name))
        }
    }
}

/// A batch that a piece is taking.
struct Taking<'a> {
    piece: &'a mut Piece,
    table: &'a str,
    layout: &'a Layout,
    meanings: &'a Meanings,
    cells: Vec<Cells<'a>>,
    /// The key of the row at hand.
    key: Vec<u8>,
}

impl Taking<'_> {
    fn changes(&mut self, changes: &ChangeColumns<'_>) -> Result<()> {
        let mut position = Vec::new();
        for row in 0..changes.len() {
            let order = changes.order(row);
            let operation = Operation::from_code(order.operation)?;
            self.read_key(row, &order)?;
            if operation == Operation::UpdateBefore && self.after_follows(changes, row, &order)? {
                continue;
            }
            position.clear();
            write_change(&order, &mut position).map_err(|error| {
                Error::new(ErrorKind::Unsupported, "a position has no guard key")
                    .with("table", self.table)
                    .caused_by(error)
            })?;
            self.put(row, operation, &position, &order)?;
        }
        Ok(())
    }

    fn snapshot(&mut self, stamp: Position, rows: usize) -> Result<()> {
        let order = ChangeOrder {
            commit: stamp.as_bytes(),
            command: None,
            sequence: None,
            operation: Operation::Read.code(),
        };
        let mut position = Vec::new();
        write_change(&order, &mut position)
            .map_err(|error| Error::bug("a stamp has no guard key").caused_by(error))?;
        for row in 0..rows {
            self.read_key(row, &order)?;
            self.put(row, Operation::Read, &position, &order)?;
        }
        Ok(())
    }

    /// True when the update that this before image opens leaves its row under the same key: then
    /// the after image says everything.
    fn after_follows(
        &mut self,
        changes: &ChangeColumns<'_>,
        row: usize,
        before: &ChangeOrder<&[u8]>,
    ) -> Result<bool> {
        let own = std::mem::take(&mut self.key);
        let mut found = false;
        for later in row + 1..changes.len() {
            let order = changes.order(later);
            let alike = order.commit == before.commit
                && order.command == before.command
                && order.sequence == before.sequence;
            if !alike || found {
                break;
            }
            if order.operation == Operation::UpdateAfter.code() {
                self.read_key(later, &order)?;
                found = self.key == own;
            }
        }
        self.key = own;
        Ok(found)
    }

    /// Puts the key of a row, in a form that is equal exactly where the server's equality is.
    fn read_key(&mut self, row: usize, order: &ChangeOrder<&[u8]>) -> Result<()> {
        self.key.clear();
        for place in &self.layout.key {
            let (Some(cells), Some(column)) =
                (self.cells.get(*place), self.layout.columns.get(*place))
            else {
                return Err(Error::bug("a key column has no place").with("table", self.table));
            };
            let start = self.key.len();
            let written = cells.write(row, &mut self.key);
            let written = written.map_err(|why| self.refused(*place, order, why))?;
            if written == Written::Null && column.required {
                return Err(Error::new(ErrorKind::InvalidData, "a key is NULL")
                    .with("table", self.table)
                    .with("column", &column.name)
                    .with("position", hex(order.commit)));
            }
            if let Some(field) = self.key.get_mut(start..) {
                canonical(&column.column_type, field);
            }
        }
        Ok(())
    }

    /// Writes a row, unless a newer one of its key is there.
    fn put(
        &mut self,
        row: usize,
        operation: Operation,
        position: &[u8],
        order: &ChangeOrder<&[u8]>,
    ) -> Result<()> {
        let known = self.piece.keys.get(&self.key).copied();
        let old = known.and_then(|place| self.piece.rows.get(place)).cloned();
        if let Some(old) = &old
            && self.piece.bytes.get(old.position.clone()).is_some_and(|own| own >= position)
        {
            return Ok(());
        }
        let deleted = matches!(operation, Operation::Delete | Operation::UpdateBefore);
        let start = self.piece.bytes.len();
        let unknown = self.write_cells(row, operation, old.as_ref(), order)?;
        binary::fixed([u8::from(deleted)], &mut self.piece.bytes);
        let from = self.piece.bytes.len() + size_of::<i32>();
        let refused = |_| Error::bug("a position is too large");
        binary::raw(position, &mut self.piece.bytes).map_err(refused)?;
        let written = from..self.piece.bytes.len();
        if unknown.is_empty() {
            binary::null(&mut self.piece.bytes);
        } else {
            binary::raw(&bits(&unknown, self.layout.columns.len()), &mut self.piece.bytes)
                .map_err(refused)?;
        }
        let range = start..self.piece.bytes.len();
        if range.len() > ROW_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::InvalidData,
                "a row is larger than PostgreSQL stores",
            )
            .with("table", self.table)
            .with("position", hex(order.commit)));
        }
        let made = Row { range, position: written, deleted };
        match known.and_then(|place| self.piece.rows.get_mut(place)) {
            Some(slot) => *slot = made,
            None => {
                self.piece.keys.insert(self.key.clone(), self.piece.rows.len());
                self.piece.rows.push(made);
            }
        }
        Ok(())
    }

    /// Writes the cells of a row, and tells which say nothing.
    fn write_cells(
        &mut self,
        row: usize,
        operation: Operation,
        old: Option<&Row>,
        order: &ChangeOrder<&[u8]>,
    ) -> Result<Vec<usize>> {
        let mut unknown = Vec::new();
        // What a deleted row held, a new row of its key does not have.
        let mut old_fields: Option<OldRow> = None;
        for place in 0..self.layout.columns.len() {
            let Some(cells) = self.cells.get(place) else {
                return Err(Error::bug("a column has no cells").with("table", self.table));
            };
            let meaning = self.meanings.get(place).copied().unwrap_or(NullMeaning::Null);
            let silent = match cells {
                Cells::Missing => true,
                cells => cells.is_null(row) && says_nothing(meaning, operation),
            };
            if !silent {
                let written = cells.write(row, &mut self.piece.bytes);
                match written.map_err(|why| self.refused(place, order, why))? {
                    Written::Replaced(count) => self.piece.replaced += count,
                    Written::Null | Written::Value => {}
                }
                continue;
            }
            match old {
                None => {
                    binary::null(&mut self.piece.bytes);
                    unknown.push(place);
                }
                Some(old) if old.deleted => binary::null(&mut self.piece.bytes),
                Some(old) => {
                    let fields = old_fields.get_or_insert_with(|| {
                        OldRow::read(&self.piece.bytes, old, self.layout.columns.len())
                    });
                    let field = fields.fields.get(place).cloned().unwrap_or_default();
                    self.piece.bytes.extend_from_within(field);
                    if fields.unknown.contains(&place) {
                        unknown.push(place);
                    }
                }
            }
        }
        for place in &unknown {
            if let Some(flag) = self.piece.unknown.get_mut(*place) {
                *flag = true;
            }
        }
        Ok(unknown)
    }

    fn refused(&self, place: usize, order: &ChangeOrder<&[u8]>, why: Refusal) -> Error {
        let error = Error::new(ErrorKind::InvalidData, why.message())
            .with("table", self.table)
            .with("position", hex(order.commit));
        let error = match self.layout.columns.get(place) {
            Some(column) => error.with("column", &column.name).with("type", &column.column_type),
            None => error,
        };
        match why {
            Refusal::Nul if self.layout.key.contains(&place) => {
                error.remedy("remove U+0000 from the key at the source")
            }
            Refusal::Nul => error.remedy(
                "remove U+0000 at the source, or set nul_in_text = \"replace\" to have U+FFFD \
                 instead",
            ),
            _ => error,
        }
    }
}

/// The fields of a row that was written before.
struct OldRow {
    fields: Vec<Range<usize>>,
    unknown: Vec<usize>,
}

impl OldRow {
    fn read(bytes: &[u8], row: &Row, columns: usize) -> Self {
        let mut fields = Fields::from(bytes, row.range.start);
        let captured: Vec<_> = (0..columns).filter_map(|_| fields.next()).collect();
        // Behind them: the flag, the position, and the bits.
        let bits = fields.nth(2).and_then(|field| value(bytes.get(field)?));
        let set = |place: &usize| {
            let byte = bits.and_then(|bits| bits.get(place / 8));
            byte.is_some_and(|byte| byte & (1 << (place % 8)) != 0)
        };
        Self { fields: captured, unknown: (0..columns).filter(set).collect() }
    }
}

/// True when a NULL in a change row says nothing about the row.
fn says_nothing(meaning: NullMeaning, operation: Operation) -> bool {
    use Operation as O;
    match meaning {
        NullMeaning::Null => false,
        // Rows of snapshots are read from the table itself.
        NullMeaning::Unknown => operation != O::Read,
        NullMeaning::UnknownBefore => matches!(operation, O::Delete | O::UpdateBefore),
        NullMeaning::UnknownUnchanged => operation == O::UpdateBefore,
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("0x{digits}")
}

#[cfg(test)]
mod tests;

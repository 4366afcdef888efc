//! The description of a result's columns, and its rows.

use cdc_fake::Value;
use cdc_tsql::talk::ResultColumn;

use crate::{
    cell::Misfit,
    column::{ColumnFormat, Dialect},
    fault::{Fault, Read},
    token,
};

/// The bits of a column's description.
mod flag {
    pub(super) const NULLABLE: u16 = 0x0001;
    pub(super) const CASE_SENSITIVE: u16 = 0x0002;
    /// It is not said whether the column can be written.
    pub(super) const PERHAPS_WRITABLE: u16 = 0x0008;
    pub(super) const IDENTITY: u16 = 0x0010;
    pub(super) const COMPUTED: u16 = 0x0020;
}

/// Writes the rows of one result.
#[derive(Debug)]
pub(crate) struct RowEncoder {
    columns: Box<[(ColumnFormat, usize)]>,
    bitmap_bytes: usize,
    names: Box<[String]>,
}

/// A row that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowFault {
    /// The column's name; empty when the row has too many or too few.
    pub(crate) column: String,
    /// What the row holds there.
    pub(crate) found: &'static str,
}

impl RowEncoder {
    /// Appends the description of `columns`, and gives what writes their rows.
    pub(crate) fn begin(
        columns: &[ResultColumn],
        dialect: Dialect,
        out: &mut Vec<u8>,
    ) -> Read<Self> {
        let formats = columns
            .iter()
            .map(|column| ColumnFormat::of(&column.kind, dialect))
            .collect::<Read<Vec<_>>>()?;
        let count = u16::try_from(columns.len())
            .ok()
            .filter(|count| *count < u16::MAX)
            .ok_or_else(|| Fault::Unsupported("a result of more than 65,534 columns".into()))?;
        out.push(token::COLUMNS);
        out.extend_from_slice(&count.to_le_bytes());
        for (column, format) in columns.iter().zip(&formats) {
            out.extend_from_slice(&format.user_type().to_le_bytes());
            out.extend_from_slice(&flags(column, format, dialect).to_le_bytes());
            format.describe(out);
            if format.names_table() {
                // One part, which is empty: a result does not know where its columns came from.
                out.extend_from_slice(&[1, 0, 0]);
            }
            token::short_text(&column.name, out);
        }
        let bitmap_bytes = columns.len().div_ceil(8);
        let columns_of = formats.into_iter().map(|format| {
            let null_bytes = format.null_bytes();
            (format, null_bytes)
        });
        Ok(Self {
            columns: columns_of.collect(),
            bitmap_bytes,
            names: columns.iter().map(|column| column.name.clone()).collect(),
        })
    }

    /// Appends a row, with a null bitmap when that is shorter. Nothing is appended on an error.
    #[inline]
    pub(crate) fn row(&self, row: &[Value], out: &mut Vec<u8>) -> Result<(), RowFault> {
        if row.len() != self.columns.len() {
            let found = "another number of values than columns";
            return Err(RowFault { column: String::new(), found });
        }
        let start = out.len();
        let mut saved = 0_usize;
        for ((_, null_bytes), value) in self.columns.iter().zip(row) {
            if value.is_null() {
                saved = saved.saturating_add(*null_bytes);
            }
        }
        let written = if saved > self.bitmap_bytes {
            self.with_bitmap(row, out)
        } else {
            self.plain(row, out)
        };
        written.map_err(|(at, misfit)| {
            out.truncate(start);
            let column = self.names.get(at).cloned().unwrap_or_default();
            RowFault { column, found: misfit.0 }
        })
    }

    fn plain(&self, row: &[Value], out: &mut Vec<u8>) -> Result<(), (usize, Misfit)> {
        out.push(token::ROW);
        for (at, ((format, _), value)) in self.columns.iter().zip(row).enumerate() {
            let written = match value {
                Value::Null => format.write_null(out),
                value => format.write(value, out),
            };
            written.map_err(|misfit| (at, misfit))?;
        }
        Ok(())
    }

    fn with_bitmap(&self, row: &[Value], out: &mut Vec<u8>) -> Result<(), (usize, Misfit)> {
        out.push(token::ROW_WITH_BITMAP);
        for values in row.chunks(8) {
            let bits = values
                .iter()
                .rev()
                .fold(0_u8, |bits, value| (bits << 1) | u8::from(value.is_null()));
            out.push(bits);
        }
        for (at, ((format, null_bytes), value)) in self.columns.iter().zip(row).enumerate() {
            match value {
                // The bitmap says it, unless the column says that there is none.
                Value::Null if *null_bytes > 0 => Ok(()),
                Value::Null => format.write_null(out),
                value => format.write(value, out),
            }
            .map_err(|misfit| (at, misfit))?;
        }
        Ok(())
    }
}

fn flags(column: &ResultColumn, format: &ColumnFormat, dialect: Dialect) -> u16 {
    let when = |condition, flag| if condition { flag } else { 0 };
    when(column.kind.nullable, flag::NULLABLE)
        | when(format.is_case_sensitive(dialect), flag::CASE_SENSITIVE)
        | when(!column.computed && !column.identity, flag::PERHAPS_WRITABLE)
        | when(column.identity, flag::IDENTITY)
        | when(column.computed, flag::COMPUTED)
}

#[cfg(test)]
mod tests;

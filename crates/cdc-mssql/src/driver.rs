//! The one seam below the source: a statement with its parameters in, record batches out. A driver
//! that implements [`Driver`] replaces another without a change above.

#[cfg(feature = "mssql-tds")]
pub(crate) mod bulk;
pub(crate) mod cell;
pub(crate) mod column;
pub(crate) mod connection;
pub(crate) mod moment;
pub(crate) mod pool;
mod pooled;
pub(crate) mod reading;
pub(crate) mod refusal;
pub(crate) mod tds;
mod token;

use std::{pin::Pin, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use cdc_core::{Error, ErrorKind, Lsn, Result, SqlType};
use futures_core::Stream;

use crate::{
    config::{BulkReader, MssqlConfig},
    fault::Fault,
};

/// The width of a position, as Arrow counts it.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "it is 10")]
pub(crate) const LSN_WIDTH: i32 = Lsn::WIDTH as i32;

/// Record batches of a running statement. A fault is the last item. Dropped early, the stream takes
/// its connection with it.
pub(crate) type RecordStream =
    Pin<Box<dyn Stream<Item = std::result::Result<RecordBatch, Fault>> + Send>>;

/// A value that goes with a statement, never inside of its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Parameter {
    /// Text, sent as `nvarchar`.
    Text(String),
    /// An integer, sent as `bigint`.
    Int(i64),
    /// A bit.
    Bit(bool),
    /// A 32-bit number.
    Real(f32),
    /// A 64-bit number.
    Float(f64),
    /// Digits and how many of them stand behind the point.
    Decimal(i128, u8),
    /// Bytes, sent as `varbinary`.
    Bytes(Vec<u8>),
}

/// What the values of a result column become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The column form of a type; narrower types that fit are widened.
    Sql(SqlType),
    /// A position of ten bytes.
    Lsn,
}

impl Form {
    /// The Arrow type.
    ///
    /// # Errors
    /// `Unsupported` for a type without a column form.
    pub(crate) fn arrow(&self) -> Result<DataType> {
        match self {
            Self::Sql(sql_type) => sql_type.arrow(),
            Self::Lsn => Ok(DataType::FixedSizeBinary(LSN_WIDTH)),
        }
    }
}

/// A column that a statement's result has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultColumn {
    /// Its name: in the batches, and where a procedure's result is matched by name.
    pub(crate) name: String,
    /// What its values become.
    pub(crate) form: Form,
}

impl ResultColumn {
    pub(crate) fn new(name: impl Into<String>, form: Form) -> Self {
        Self { name: name.into(), form }
    }
}

/// How columns of a result are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// By their place: the result of a SELECT that was written here.
    Place,
    /// By their name: the result of a procedure, which may have more columns in another version.
    Name,
}

/// A text of statements with everything that is needed to run it and to understand its result.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    /// The text. Several SELECTs of one shape give their rows one after the other.
    pub(crate) text: String,
    /// `@P1`, `@P2`, ...
    pub(crate) parameters: Vec<Parameter>,
    /// The result.
    pub(crate) columns: Vec<ResultColumn>,
    /// How its columns are found.
    pub(crate) matching: Matching,
    /// Most rows of a record batch.
    pub(crate) batch_rows: usize,
}

impl Statement {
    /// The schema of the record batches.
    ///
    /// # Errors
    /// `Unsupported` for a type without a column form.
    pub(crate) fn schema(&self) -> Result<SchemaRef> {
        let field =
            |column: &ResultColumn| Ok(Field::new(&column.name, column.form.arrow()?, true));
        Ok(Arc::new(Schema::new(self.columns.iter().map(field).collect::<Result<Vec<_>>>()?)))
    }

    /// Where the wanted columns are in a result with these columns.
    ///
    /// # Errors
    /// `InvalidData` when one is missing, `Bug` when a SELECT gives another number of them.
    pub(crate) fn places<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<Vec<usize>> {
        let names: Vec<&str> = names.collect();
        match self.matching {
            // A row without columns still has one on the wire.
            Matching::Place if self.columns.is_empty() => Ok(Vec::new()),
            Matching::Place if names.len() == self.columns.len() => Ok((0..names.len()).collect()),
            Matching::Place => {
                Err(Error::bug("a result has another number of columns than it was asked for")
                    .with("asked", self.columns.len())
                    .with("found", names.len()))
            }
            Matching::Name => {
                let place = |wanted: &ResultColumn| {
                    names.iter().position(|own| *own == wanted.name).ok_or_else(|| {
                        Error::new(ErrorKind::InvalidData, "a result lacks a column")
                            .with("column", &wanted.name)
                    })
                };
                self.columns.iter().map(place).collect()
            }
        }
    }
}

/// The driver that reads many rows, beside the one of everything else.
pub(crate) fn bulk_reader(config: &Arc<MssqlConfig>, other: &Arc<dyn Driver>) -> Arc<dyn Driver> {
    match config.reader() {
        Ok(BulkReader::Tiberius) => Arc::clone(other),
        #[cfg(feature = "mssql-tds")]
        Ok(BulkReader::MssqlTds) => Arc::new(bulk::Bulk::new(Arc::clone(config))),
        _ => Arc::new(refusal::Refusal(Arc::clone(config))),
    }
}

/// A way to a server.
///
/// # Contract
/// Calls may run at once. Each runs on a connection of its own, or on one that nobody uses. A
/// connection whose result was not read to its end is thrown away. Nothing is tried twice here. An
/// error of the server in the middle of rows is a fault, never an end. The text and the
/// parameters of a statement are never logged.
#[async_trait]
pub(crate) trait Driver: Send + Sync + std::fmt::Debug {
    /// Starts a statement.
    async fn run(&self, statement: Arc<Statement>) -> std::result::Result<RecordStream, Fault>;

    /// Throws away the connections that nobody uses, after one of them was found broken.
    fn forget_idle(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(matching: Matching, names: &[&str]) -> Statement {
        let column = |name: &&str| ResultColumn::new(*name, Form::Sql(SqlType::Int));
        Statement {
            text: String::new(),
            parameters: Vec::new(),
            columns: names.iter().map(column).collect(),
            matching,
            batch_rows: 1,
        }
    }

    #[test]
    fn a_result_of_our_own_is_matched_by_place_and_one_of_a_procedure_by_name() {
        let places = |matching, wanted: &[&str], found: &[&'static str]| {
            statement(matching, wanted).places(found.iter().copied())
        };
        assert_eq!(places(Matching::Place, &["a", "b"], &["x", ""]).expect("fits"), [0, 1]);
        assert_eq!(places(Matching::Name, &["a", "b"], &["b", "c", "a"]).expect("fits"), [2, 0]);
        assert!(places(Matching::Place, &[], &["x"]).expect("nothing is wanted").is_empty());
        let error = places(Matching::Place, &["a"], &["a", "b"]).expect_err("one too many");
        assert_eq!(error.kind(), ErrorKind::Bug);
        let error = places(Matching::Name, &["a"], &["A"]).expect_err("is missing");
        assert_eq!(error.context("column"), Some("a"));
    }
}

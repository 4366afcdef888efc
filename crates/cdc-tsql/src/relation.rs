//! Where rows come from: tables, change tables, views of the catalogue, table-valued functions.

use std::sync::Arc;

use cdc_fake::{SqlResult, Value};

use crate::kind::{Kind, Typed};

/// A row of a relation: one value a column.
pub type Row = Arc<[Value]>;

/// Rows, as they are read.
pub type Rows<'a> = Box<dyn Iterator<Item = SqlResult<Row>> + Send + 'a>;

/// The name of the hidden column that tells one row of a table from all others: what UPDATE,
/// DELETE and MERGE name rows by. `SELECT *` leaves it out.
pub const ROW_LOCATION: &str = "%%physloc%%";

/// A column of a relation.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// True for an `IDENTITY` column.
    pub identity: bool,
    /// True for a computed column.
    pub computed: bool,
    /// True when `SELECT *` leaves it out.
    pub hidden: bool,
}

impl RelationColumn {
    /// A plain column.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, identity: false, computed: false, hidden: false }
    }
}

/// How a column compares with a value in a bound of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A condition every wanted row meets: `column` compares so with `value`, which has the column's
/// type already.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The column's place in [`Relation::columns`].
    pub column: usize,
    /// How.
    pub comparison: Comparison,
    /// With what; never NULL.
    pub value: Value,
}

/// What a statement wants of a relation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scan {
    /// Conditions that all wanted rows meet. A relation may use them to seek, or give more rows:
    /// the statement filters again.
    pub bounds: Vec<Bound>,
    /// True with `WITH (NOLOCK)` or `READUNCOMMITTED`.
    pub uncommitted: bool,
    /// True with `WITH (READPAST)`: held rows are left out.
    pub skip_held: bool,
    /// True with `WITH (READCOMMITTEDLOCK)`: waits for held rows even under read committed
    /// snapshot.
    pub locking: bool,
}

/// Rows of known columns.
pub trait Relation: Send + Sync {
    /// The columns, in order.
    fn columns(&self) -> &[RelationColumn];

    /// Reads rows, in the order of the relation's clustered key where it has one.
    ///
    /// # Errors
    /// As the server refuses a read: 229, 1222, 3952, 313 and the like.
    fn scan<'a>(&'a self, scan: &Scan) -> SqlResult<Rows<'a>>;

    /// The columns that scans come ordered by, most significant first; empty when in no order.
    fn order(&self) -> &[usize] {
        &[]
    }
}

/// The parts of an object's name: up to server, database, schema and object. An empty middle part
/// is the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The database, when named.
    pub database: Option<String>,
    /// The schema, when named.
    pub schema: Option<String>,
    /// The object itself.
    pub name: String,
}

/// What names mean to a statement.
pub trait Catalogue {
    /// A table, a view, a change table, a table variable (`@name`), a temporary table.
    ///
    /// # Errors
    /// 208 when there is none that the login may know of; 229 when it may not read it.
    fn relation(&self, name: &ObjectName) -> SqlResult<Arc<dyn Relation>>;

    /// A table-valued function's result.
    ///
    /// # Errors
    /// 208; 313 for missing arguments, and what the function itself refuses.
    fn table_function(
        &self,
        name: &ObjectName,
        arguments: &[Typed],
    ) -> SqlResult<Arc<dyn Relation>>;

    /// The columns of a table-valued function, before its arguments are known.
    ///
    /// # Errors
    /// 208 when there is none.
    fn table_function_columns(&self, name: &ObjectName) -> SqlResult<Vec<RelationColumn>>;

    /// The type of a scalar function that knows the server (`sys.fn_cdc_get_max_lsn`,
    /// `OBJECT_ID`, `SERVERPROPERTY`); none when the catalogue has no such function.
    fn function_kind(&self, name: &ObjectName, arguments: &[Kind]) -> Option<SqlResult<Kind>>;

    /// The value of such a function.
    ///
    /// # Errors
    /// As the server refuses the call.
    fn function(&self, name: &ObjectName, arguments: &[Typed]) -> SqlResult<Value>;

    /// A variable (`@x`) or a function of the session (`@@TRANCOUNT`); none when not declared.
    fn variable(&self, name: &str) -> Option<Typed>;

    /// The moment that this statement takes for now, with the server's zone.
    fn now(&self) -> Moment;

    /// The collation of the database.
    fn collation(&self) -> crate::kind::Collation;

    /// Session settings that change what expressions mean.
    fn settings(&self) -> Settings;
}

/// A moment on the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// 100 ns since 1970-01-01 00:00 UTC.
    pub utc_ticks: i64,
    /// Minutes that the server's wall clock is ahead of UTC.
    pub offset_minutes: i16,
}

/// `SET` options that expressions see, with the defaults of ODBC clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `DATEFIRST`, 1 (Monday) to 7 (Sunday, the default).
    pub date_first: u8,
    /// `DATEFORMAT`.
    pub date_format: DateFormat,
    /// `CONCAT_NULL_YIELDS_NULL`.
    pub concat_null_yields_null: bool,
    /// `ANSI_NULLS`: off makes `= NULL` compare.
    pub ansi_nulls: bool,
    /// `QUOTED_IDENTIFIER`: off makes `"x"` a string.
    pub quoted_identifier: bool,
    /// `ARITHABORT` or `ANSI_WARNINGS`: both off make an overflow NULL instead of an error.
    pub arithmetic_errors: bool,
}

/// The order of date parts in a text like `01/02/2024`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateFormat {
    /// Month, day, year: us_english's.
    #[default]
    MonthDayYear,
    /// Day, month, year.
    DayMonthYear,
    /// Year, month, day.
    YearMonthDay,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            date_first: 7,
            date_format: DateFormat::default(),
            concat_null_yields_null: true,
            ansi_nulls: true,
            quoted_identifier: true,
            arithmetic_errors: true,
        }
    }
}

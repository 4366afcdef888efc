//! The static type of an expression, and a value with its type.

use cdc_core::SqlType;
use cdc_fake::Value;

/// What is known of an expression before it is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The type. A bare `NULL` is an `int`, as the server reports it.
    pub sql_type: SqlType,
    /// True when it may be NULL.
    pub nullable: bool,
    /// The collation of a character type; none means the database's.
    pub collation: Option<Collation>,
    /// True when the collation was named with `COLLATE` or belongs to a column, which decides
    /// between two that differ (error 468 when both are columns').
    pub explicit_collation: bool,
}

impl Kind {
    /// A type with the database's collation.
    #[must_use]
    pub const fn new(sql_type: SqlType, nullable: bool) -> Self {
        Self { sql_type, nullable, collation: None, explicit_collation: false }
    }
}

/// A value and its type: a variable, an argument, a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// Its type.
    pub kind: Kind,
    /// The value, as a column of that type stores it.
    pub value: Value,
}

impl Typed {
    /// A value of a type, with the database's collation.
    #[must_use]
    pub const fn new(sql_type: SqlType, value: Value) -> Self {
        Self { kind: Kind::new(sql_type, true), value }
    }
}

/// A collation by what it decides: how texts compare and in which bytes they travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collation {
    /// The server's name of it, `Latin1_General_CI_AS` for instance.
    pub name: &'static str,
    /// The Windows locale in the wire's five bytes.
    pub lcid: u32,
    /// The comparison flags and version in the wire's five bytes, as the protocol places them.
    pub flags: u8,
    /// The sort id in the wire's five bytes; 0 for a Windows collation.
    pub sort_id: u8,
    /// The code page of `char` and `varchar`: 1252, 1253, ..., or 65001 for UTF-8.
    pub code_page: u16,
    /// True when upper and lower case are alike.
    pub ignores_case: bool,
    /// True when accents make no difference.
    pub ignores_accents: bool,
    /// True when texts compare by code point (`_BIN`, `_BIN2`).
    pub binary: bool,
}

//! The static type of an expression, and a value with its type.

use cdc_core::SqlType;
pub use cdc_fake::Collation;
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
    /// True when the collation was named with `COLLATE`, which decides over a column's. A column's
    /// is a collation without this; a constant or a variable has no collation. Two of the same
    /// rank that differ are error 468.
    pub explicit_collation: bool,
    /// True when the collation is the database's for want of another, as of a constant: it gives
    /// way to a column's.
    pub fallback_collation: bool,
}

impl Kind {
    /// A type with the database's collation.
    #[must_use]
    pub const fn new(sql_type: SqlType, nullable: bool) -> Self {
        Self {
            sql_type,
            nullable,
            collation: None,
            explicit_collation: false,
            fallback_collation: false,
        }
    }

    /// The same with the collation of another, and with that one's right to it.
    #[must_use]
    pub(crate) fn collated_as(self, other: &Self) -> Self {
        let Self { collation, explicit_collation, fallback_collation, .. } = *other;
        Self { collation, explicit_collation, fallback_collation, ..self }
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

//! Which type converts to which: by itself, when it is written out, or never.

use cdc_core::SqlType;
use cdc_fake::SqlResult;

use super::error;
use crate::kind::Kind;

/// How a conversion may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    /// Without being written.
    Implicit,
    /// With CAST or CONVERT.
    Explicit,
    /// Not at all.
    Never,
}

/// A row and column of the conversion table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Binary,
    Char,
    NChar,
    OldMoment,
    Date,
    Time,
    Moment2,
    Exact,
    Approximate,
    Money,
    Guid,
    RowVersion,
    Text,
    NText,
    Image,
    Xml,
    Variant,
    Other,
}

fn group(sql_type: &SqlType) -> Group {
    use SqlType as T;
    match sql_type {
        T::Binary(_) | T::VarBinary(_) => Group::Binary,
        T::Char(_) | T::VarChar(_) => Group::Char,
        T::NChar(_) | T::NVarChar(_) => Group::NChar,
        T::DateTime | T::SmallDateTime => Group::OldMoment,
        T::Date => Group::Date,
        T::Time { .. } => Group::Time,
        T::DateTime2 { .. } | T::DateTimeOffset { .. } => Group::Moment2,
        T::Bit | T::TinyInt | T::SmallInt | T::Int | T::BigInt | T::Decimal { .. } => Group::Exact,
        T::Real | T::Float => Group::Approximate,
        T::Money | T::SmallMoney => Group::Money,
        T::UniqueIdentifier => Group::Guid,
        T::RowVersion => Group::RowVersion,
        T::Text => Group::Text,
        T::NText => Group::NText,
        T::Image => Group::Image,
        T::Xml => Group::Xml,
        T::Other(name) if name == "sql_variant" => Group::Variant,
        _ => Group::Other,
    }
}

/// How `from` converts to `to`.
pub(super) fn permission(from: &SqlType, to: &SqlType) -> Permission {
    use Group as G;
    use Permission::{Explicit, Implicit, Never};
    let (one, other) = (group(from), group(to));
    match (one, other) {
        (G::Other, _) | (_, G::Other) if from == to => Implicit,
        (G::Other, _) | (_, G::Other) => Never,
        (G::Variant, G::Variant) => Implicit,
        (G::Text | G::NText | G::Image | G::Xml | G::RowVersion, G::Variant)
        | (G::Variant, G::Text | G::NText | G::Image | G::Xml | G::RowVersion) => Never,
        (_, G::Variant) => Implicit,
        (G::Variant, _) => Explicit,

        (G::Binary, G::Date | G::Time | G::Moment2 | G::Xml) => Explicit,
        (G::Binary, G::Approximate | G::Text | G::NText) => Never,
        (G::Binary, _) => Implicit,

        (G::Char, G::Binary | G::RowVersion) | (G::NChar, G::Binary) => Explicit,
        (G::NChar, G::RowVersion | G::Image) => Never,
        (G::Char | G::NChar, _) => Implicit,

        (G::OldMoment, G::Binary | G::Exact | G::Approximate | G::Money | G::RowVersion) => {
            Explicit
        }
        (G::OldMoment, G::Char | G::NChar | G::OldMoment | G::Date | G::Time | G::Moment2) => {
            Implicit
        }
        (G::Date, G::Time) | (G::Time, G::Date) => Never,
        (G::Date | G::Time | G::Moment2, G::Binary) => Explicit,
        (
            G::Date | G::Time | G::Moment2,
            G::Char | G::NChar | G::OldMoment | G::Date | G::Time | G::Moment2,
        ) => Implicit,
        (G::OldMoment | G::Date | G::Time | G::Moment2, _) => Never,

        (G::Money, G::Char | G::NChar) => Explicit,
        (G::Approximate, G::RowVersion) => Never,
        (
            G::Exact | G::Approximate | G::Money,
            G::Binary
            | G::Char
            | G::NChar
            | G::OldMoment
            | G::Exact
            | G::Approximate
            | G::Money
            | G::RowVersion,
        ) => Implicit,
        (G::Exact | G::Approximate | G::Money, _) => Never,

        (G::Guid, G::Binary | G::Char | G::NChar | G::Guid) => Implicit,
        (G::Guid, _) => Never,

        (G::RowVersion, G::NChar | G::Approximate | G::Date | G::Time | G::Moment2) => Never,
        (G::RowVersion, G::Guid | G::Text | G::NText | G::Xml) => Never,
        (G::RowVersion, _) => Implicit,

        (G::Text | G::NText, G::Char | G::NChar | G::Text | G::NText) => Implicit,
        (G::Text | G::NText, G::Xml) => Explicit,
        (G::Image, G::Binary | G::RowVersion | G::Image) => Implicit,
        (G::Xml, G::Xml) => Implicit,
        (G::Xml, G::Binary | G::Char | G::NChar) => Explicit,
        (G::Text | G::NText | G::Image | G::Xml, _) => Never,
    }
}

/// Whether `from` converts to `to`, before any value is known.
///
/// # Errors
/// 257 for a conversion that has to be written out, 206 for types that clash, 529 for a
/// conversion that cannot even be written.
pub(crate) fn check_conversion(from: &Kind, to: &Kind, explicit: bool) -> SqlResult<()> {
    check(&from.sql_type, &to.sql_type, explicit)
}

pub(super) fn check(from: &SqlType, to: &SqlType, explicit: bool) -> SqlResult<()> {
    match (permission(from, to), explicit) {
        (Permission::Implicit, _) | (Permission::Explicit, true) => Ok(()),
        (Permission::Explicit, false) => Err(error::implicit_refused(from, to)),
        (Permission::Never, true) => Err(error::explicit_refused(from, to)),
        (Permission::Never, false) => Err(error::clash(from, to)),
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::Length;

    use super::*;

    const VARCHAR: SqlType = SqlType::VarChar(Length::Limited(30));
    const NVARCHAR: SqlType = SqlType::NVarChar(Length::Limited(30));
    const VARBINARY: SqlType = SqlType::VarBinary(Length::Limited(30));
    const DECIMAL: SqlType = SqlType::Decimal { precision: 18, scale: 2 };

    #[test]
    fn the_conversion_table_is_the_servers() {
        use Permission::{Explicit, Implicit, Never};
        use SqlType as T;
        for (from, to, permission_wanted) in [
            (T::Int, VARCHAR, Implicit),
            (VARCHAR, T::Int, Implicit),
            (VARCHAR, VARBINARY, Explicit),
            (VARBINARY, VARCHAR, Implicit),
            (VARBINARY, T::Int, Implicit),
            (VARBINARY, T::Float, Never),
            (T::Int, T::DateTime, Implicit),
            (T::DateTime, T::Int, Explicit),
            (T::Int, T::Date, Never),
            (T::Date, T::Int, Never),
            (T::Date, T::DateTime, Implicit),
            (T::Date, T::Time { scale: 7 }, Never),
            (T::DateTime, T::Time { scale: 7 }, Implicit),
            (T::DateTime2 { scale: 7 }, VARBINARY, Explicit),
            (T::Money, VARCHAR, Explicit),
            (VARCHAR, T::Money, Implicit),
            (T::Money, DECIMAL, Implicit),
            (T::UniqueIdentifier, NVARCHAR, Implicit),
            (T::UniqueIdentifier, T::Int, Never),
            (T::RowVersion, T::BigInt, Implicit),
            (T::RowVersion, NVARCHAR, Never),
            (T::NText, VARCHAR, Implicit),
            (T::Text, T::Int, Never),
            (T::Image, VARBINARY, Implicit),
            (T::Xml, NVARCHAR, Explicit),
            (NVARCHAR, T::Xml, Implicit),
            (T::Other("geography".into()), VARCHAR, Never),
            (T::Other("sql_variant".into()), T::Int, Explicit),
            (T::Int, T::Other("sql_variant".into()), Implicit),
            (T::Xml, T::Other("sql_variant".into()), Never),
        ] {
            assert_eq!(permission(&from, &to), permission_wanted, "{from} to {to}");
        }
    }

    #[test]
    fn a_refusal_has_the_servers_number() {
        for (from, to, explicit, number) in [
            (SqlType::DateTime, SqlType::Int, false, 257),
            (SqlType::Int, SqlType::Date, false, 206),
            (SqlType::Int, SqlType::Date, true, 529),
        ] {
            assert_eq!(check(&from, &to, explicit).expect_err("refused").number, number);
        }
        assert_eq!(check(&SqlType::DateTime, &SqlType::Int, true), Ok(()));
    }
}

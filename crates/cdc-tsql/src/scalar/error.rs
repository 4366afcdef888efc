//! The errors of computing with values, in the server's words without the value that failed: a
//! message may name types and functions, never what a cell holds.

use cdc_core::SqlType;
use cdc_fake::SqlError;

/// What this server reads but does not evaluate.
pub(super) fn not_supported(construct: &str) -> SqlError {
    SqlError::new(50_000, format!("not supported by this server: {construct}"))
}

/// The name of a type in messages: without its length, `numeric` for every exact number.
pub(super) fn name(sql_type: &SqlType) -> &str {
    use SqlType as T;
    match sql_type {
        T::Bit => "bit",
        T::TinyInt => "tinyint",
        T::SmallInt => "smallint",
        T::Int => "int",
        T::BigInt => "bigint",
        T::Real => "real",
        T::Float => "float",
        T::Decimal { .. } => "numeric",
        T::Money => "money",
        T::SmallMoney => "smallmoney",
        T::Date => "date",
        T::DateTime => "datetime",
        T::SmallDateTime => "smalldatetime",
        T::DateTime2 { .. } => "datetime2",
        T::DateTimeOffset { .. } => "datetimeoffset",
        T::Time { .. } => "time",
        T::Char(_) => "char",
        T::VarChar(_) => "varchar",
        T::NChar(_) => "nchar",
        T::NVarChar(_) => "nvarchar",
        T::Text => "text",
        T::NText => "ntext",
        T::Xml => "xml",
        T::UniqueIdentifier => "uniqueidentifier",
        T::Binary(_) => "binary",
        T::VarBinary(_) => "varbinary",
        T::Image => "image",
        T::RowVersion => "timestamp",
        T::Other(name) => name,
        _ => "unknown",
    }
}

/// 8115: a number, or what came of computing, is beyond its type.
pub(super) fn overflow(to: &SqlType) -> SqlError {
    SqlError::new(
        8115,
        format!("Arithmetic overflow error converting expression to data type {}.", name(to)),
    )
}

/// 8115 for a conversion between two types.
pub(super) fn overflow_from(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(
        8115,
        format!("Arithmetic overflow error converting {} to data type {}.", name(from), name(to)),
    )
}

/// 220: a whole number beyond `tinyint` or `smallint`.
pub(super) fn small_overflow(to: &SqlType) -> SqlError {
    SqlError::new(220, format!("Arithmetic overflow error for data type {}.", name(to)))
}

/// 232: an approximate number beyond a type.
pub(super) fn float_overflow(to: &SqlType) -> SqlError {
    SqlError::new(232, format!("Arithmetic overflow error for type {}.", name(to)))
}

/// 8134.
pub(super) fn division_by_zero() -> SqlError {
    SqlError::new(8134, "Divide by zero error encountered.")
}

/// 245: a text that is no whole number, no `bit`.
pub(super) fn not_a_number(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(
        245,
        format!(
            "Conversion failed when converting the {} value to data type {}.",
            name(from),
            name(to)
        ),
    )
}

/// 8114: a text that is no number of another type, no hexadecimal digits.
pub(super) fn not_converted(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(8114, format!("Error converting data type {} to {}.", name(from), name(to)))
}

/// 241: a text that is no date and no time.
pub(super) fn not_a_date() -> SqlError {
    SqlError::new(241, "Conversion failed when converting date and/or time from character string.")
}

/// 242: a date that the type does not reach.
pub(super) fn date_out_of_range(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(
        242,
        format!(
            "The conversion of a {} data type to a {} data type resulted in an out-of-range value.",
            name(from),
            name(to)
        ),
    )
}

/// 517: adding to a date left its type's range.
pub(super) fn date_overflow(of: &SqlType) -> SqlError {
    SqlError::new(517, format!("Adding a value to a '{}' column caused an overflow.", name(of)))
}

/// 206: types that have nothing to do with each other.
pub(super) fn clash(one: &SqlType, other: &SqlType) -> SqlError {
    SqlError::new(
        206,
        format!("Operand type clash: {} is incompatible with {}", name(one), name(other)),
    )
}

/// 257: a conversion that has to be written out.
pub(super) fn implicit_refused(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(
        257,
        format!(
            "Implicit conversion from data type {} to {} is not allowed. Use the CONVERT function \
             to run this query.",
            name(from),
            name(to)
        ),
    )
}

/// 529: a conversion that cannot be written either.
pub(super) fn explicit_refused(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(
        529,
        format!(
            "Explicit conversion from data type {} to {} is not allowed.",
            name(from),
            name(to)
        ),
    )
}

/// 2628: a text or a binary longer than its column.
pub(super) fn truncated(to: &SqlType) -> SqlError {
    SqlError::new(2628, format!("String or binary data would be truncated in {to}."))
}

/// 8117: a type that an operator or a function does not take.
pub(super) fn invalid_operand(sql_type: &SqlType, operator: &str) -> SqlError {
    SqlError::new(
        8117,
        format!("Operand data type {} is invalid for {operator} operator.", name(sql_type)),
    )
}

/// 402: two types that an operator does not take together.
pub(super) fn incompatible(left: &SqlType, right: &SqlType, operator: &str) -> SqlError {
    SqlError::new(
        402,
        format!(
            "The data types {} and {} are incompatible in the {operator} operator.",
            name(left),
            name(right)
        ),
    )
}

/// 8116: a type that a function does not take at a place, counted from 1.
pub(super) fn invalid_argument(sql_type: &SqlType, place: usize, function: &str) -> SqlError {
    SqlError::new(
        8116,
        format!(
            "Argument data type {} is invalid for argument {place} of {} function.",
            name(sql_type),
            function.to_lowercase()
        ),
    )
}

/// 174: a function that takes a fixed number of arguments.
pub(super) fn argument_count(function: &str, wanted: usize) -> SqlError {
    SqlError::new(
        174,
        format!("The {} function requires {wanted} argument(s).", function.to_lowercase()),
    )
}

/// 189: a function that takes a range of numbers of arguments.
pub(super) fn argument_range(function: &str, least: usize, most: usize) -> SqlError {
    SqlError::new(
        189,
        format!("The {} function requires {least} to {most} arguments.", function.to_lowercase()),
    )
}

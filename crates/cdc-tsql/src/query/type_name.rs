//! What a type's name means in CAST, DECLARE and CREATE TABLE.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult};
use sqlparser::ast::{
    self, BinaryLength, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo, TypeModifier,
};

use super::naming::parts;
use crate::{kind::Kind, scalar};

/// The most characters of `nchar` and `nvarchar(n)`.
const MAX_NATIONAL: u64 = 4_000;
/// The most bytes of the other types with a length.
const MAX_BYTES: u64 = 8_000;
/// The most digits of `decimal`.
const MAX_PRECISION: u64 = 38;
/// The length of a character or binary type that names none, where a value is made one.
const CAST_LENGTH: u16 = 30;

/// The kind that a type's name means in DECLARE, a list of parameters and CREATE TABLE; nullable.
/// A character or binary type without a length has 1.
///
/// # Errors
/// 243 for an unknown type; 131, 192, 1001, 1002, 2750 for a length, precision or scale out of
/// range; 448 for an unknown collation.
pub(crate) fn kind_of(
    data_type: &DataType,
    collation: Option<&ast::ObjectName>,
) -> SqlResult<Kind> {
    kind(data_type, collation, 1)
}

/// As [`kind_of`], for CAST and CONVERT, where a type without a length has 30.
///
/// # Errors
/// As [`kind_of`].
pub(super) fn cast_kind(data_type: &DataType) -> SqlResult<Kind> {
    kind(data_type, None, CAST_LENGTH)
}

fn kind(
    data_type: &DataType,
    collation: Option<&ast::ObjectName>,
    missing: u16,
) -> SqlResult<Kind> {
    if let DataType::Collate(inner, named) = data_type {
        return kind(inner, Some(named), missing);
    }
    let mut kind = Kind::new(sql_type(data_type, missing)?, true);
    if let Some(name) = collation {
        let name = name.to_string();
        kind.collation = Some(scalar::collation(&name).ok_or_else(|| no_collation(&name))?);
        kind.explicit_collation = true;
    }
    Ok(kind)
}

/// A collation that does not exist.
pub(super) fn no_collation(name: &str) -> SqlError {
    SqlError::new(448, format!("Invalid collation '{name}'."))
}

fn sql_type(data_type: &DataType, missing: u16) -> SqlResult<SqlType> {
    use SqlType as T;
    Ok(match data_type {
        DataType::Bit(_) => T::Bit,
        DataType::TinyInt(_) => T::TinyInt,
        DataType::SmallInt(_) => T::SmallInt,
        DataType::Int(_) | DataType::Integer(_) => T::Int,
        DataType::BigInt(_) => T::BigInt,
        DataType::Real => T::Real,
        DataType::Float(info) => float(info)?,
        DataType::DoublePrecision => T::Float,
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => decimal(info)?,
        DataType::Date => T::Date,
        DataType::Datetime(_) => T::DateTime,
        DataType::Time(scale, TimezoneInfo::None) => T::Time { scale: fraction(*scale)? },
        DataType::Timestamp(None, TimezoneInfo::None) => T::RowVersion,
        DataType::Char(length) | DataType::Character(length) => {
            T::Char(fixed(length.as_ref(), MAX_BYTES, missing, "char")?)
        }
        DataType::Varchar(length)
        | DataType::CharVarying(length)
        | DataType::CharacterVarying(length) => {
            T::VarChar(varying(length.as_ref(), MAX_BYTES, missing, "varchar")?)
        }
        DataType::Nvarchar(length) => {
            T::NVarChar(varying(length.as_ref(), MAX_NATIONAL, missing, "nvarchar")?)
        }
        DataType::Binary(length) => T::Binary(bytes(*length, missing, "binary")?),
        DataType::Varbinary(length) => T::VarBinary(match length {
            Some(BinaryLength::Max) => Length::Max,
            Some(BinaryLength::IntegerLength { length }) => {
                Length::Limited(limited(*length, MAX_BYTES, "varbinary")?)
            }
            None => Length::Limited(missing),
        }),
        DataType::Text => T::Text,
        DataType::Uuid => T::UniqueIdentifier,
        DataType::Custom(name, modifiers) => custom(name, modifiers, missing)?,
        other => return Err(no_type(&other.to_string())),
    })
}

fn no_type(name: &str) -> SqlError {
    SqlError::new(243, format!("Type {name} is not a defined system type."))
}

fn custom(name: &ast::ObjectName, modifiers: &[TypeModifier], missing: u16) -> SqlResult<SqlType> {
    use SqlType as T;
    let parts = parts(name)?;
    let own = parts.last().map(|part| part.to_lowercase()).unwrap_or_default();
    let number = match modifiers {
        [] => None,
        [TypeModifier::Number(text, _) | TypeModifier::String(text)] => {
            Some(text.parse::<u64>().map_err(|_| no_type(&name.to_string()))?)
        }
        [TypeModifier::Identifier(word)] if word.value.eq_ignore_ascii_case("max") => {
            return match own.as_str() {
                "nvarchar" => Ok(T::NVarChar(Length::Max)),
                "varchar" => Ok(T::VarChar(Length::Max)),
                "varbinary" => Ok(T::VarBinary(Length::Max)),
                _ => Err(no_type(&name.to_string())),
            };
        }
        _ => return Err(no_type(&name.to_string())),
    };
    let length = |most: u64| match number {
        Some(number) => limited(number, most, &own),
        None => Ok(missing),
    };
    Ok(match own.as_str() {
        "datetime2" => T::DateTime2 { scale: fraction(number)? },
        "datetimeoffset" => T::DateTimeOffset { scale: fraction(number)? },
        "smalldatetime" => T::SmallDateTime,
        "nchar" => T::NChar(length(MAX_NATIONAL)?),
        "nvarchar" => T::NVarChar(Length::Limited(length(MAX_NATIONAL)?)),
        "money" => T::Money,
        "smallmoney" => T::SmallMoney,
        "uniqueidentifier" => T::UniqueIdentifier,
        "ntext" => T::NText,
        "image" => T::Image,
        "xml" => T::Xml,
        "sysname" => T::NVarChar(Length::Limited(128)),
        "rowversion" => T::RowVersion,
        "sql_variant" | "hierarchyid" | "geography" | "geometry" | "json" | "vector" => {
            T::Other(own)
        }
        _ => return Err(no_type(&name.to_string())),
    })
}

fn limited(length: u64, most: u64, name: &str) -> SqlResult<u16> {
    if length == 0 {
        return Err(SqlError::new(1001, "Length or precision specification 0 is invalid."));
    }
    u16::try_from(length).ok().filter(|_| length <= most).ok_or_else(|| {
        SqlError::new(
            131,
            format!(
                "The size ({length}) given to the type '{name}' exceeds the maximum allowed for \
                 any data type ({most})."
            ),
        )
    })
}

fn bytes(length: Option<u64>, missing: u16, name: &str) -> SqlResult<u16> {
    length.map_or(Ok(missing), |length| limited(length, MAX_BYTES, name))
}

fn fixed(length: Option<&CharacterLength>, most: u64, missing: u16, name: &str) -> SqlResult<u16> {
    match length {
        None => Ok(missing),
        Some(CharacterLength::IntegerLength { length, .. }) => limited(*length, most, name),
        Some(CharacterLength::Max) => Err(no_type(&format!("{name}(max)"))),
    }
}

fn varying(
    length: Option<&CharacterLength>,
    most: u64,
    missing: u16,
    name: &str,
) -> SqlResult<Length> {
    match length {
        Some(CharacterLength::Max) => Ok(Length::Max),
        other => fixed(other, most, missing, name).map(Length::Limited),
    }
}

fn fraction(scale: Option<u64>) -> SqlResult<u8> {
    match scale {
        None => Ok(7),
        Some(scale) => u8::try_from(scale)
            .ok()
            .filter(|scale| *scale <= 7)
            .ok_or_else(|| SqlError::new(1002, format!("Specified scale {scale} is invalid."))),
    }
}

fn decimal(info: &ExactNumberInfo) -> SqlResult<SqlType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (18, 0),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let known = u8::try_from(precision).ok().filter(|_| (1..=MAX_PRECISION).contains(&precision));
    let Some(known) = known else {
        return Err(SqlError::new(
            2750,
            format!("Column or parameter: Specified column precision {precision} is invalid."),
        ));
    };
    match u8::try_from(scale) {
        Ok(scale) if scale <= known => Ok(SqlType::Decimal { precision: known, scale }),
        _ => Err(SqlError::new(
            192,
            format!("The scale ({scale}) must be less than or equal to the precision."),
        )),
    }
}

fn float(info: &ExactNumberInfo) -> SqlResult<SqlType> {
    match info {
        ExactNumberInfo::None => Ok(SqlType::Float),
        ExactNumberInfo::Precision(1..=24) => Ok(SqlType::Real),
        ExactNumberInfo::Precision(25..=53) => Ok(SqlType::Float),
        _ => Err(SqlError::new(2750, "Specified column precision of float is invalid.")),
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::{ast::Expr, dialect::MsSqlDialect, parser::Parser};

    use super::*;

    fn read(text: &str) -> SqlResult<SqlType> {
        let text = format!("CAST(1 AS {text})");
        let mut parser = Parser::new(&MsSqlDialect {}).try_with_sql(&text).unwrap();
        let Expr::Cast { data_type, .. } = parser.parse_expr().unwrap() else {
            panic!("a cast");
        };
        cast_kind(&data_type).map(|kind| kind.sql_type)
    }

    #[test]
    fn every_type_is_known_by_its_names() {
        use SqlType as T;
        for (text, sql_type) in [
            ("bit", T::Bit),
            ("tinyint", T::TinyInt),
            ("INTEGER", T::Int),
            ("bigint", T::BigInt),
            ("float(24)", T::Real),
            ("float(53)", T::Float),
            ("double precision", T::Float),
            ("decimal", T::Decimal { precision: 18, scale: 0 }),
            ("numeric(38, 10)", T::Decimal { precision: 38, scale: 10 }),
            ("money", T::Money),
            ("datetime2", T::DateTime2 { scale: 7 }),
            ("datetime2(3)", T::DateTime2 { scale: 3 }),
            ("datetimeoffset(0)", T::DateTimeOffset { scale: 0 }),
            ("smalldatetime", T::SmallDateTime),
            ("time(2)", T::Time { scale: 2 }),
            ("char", T::Char(30)),
            ("nchar(5)", T::NChar(5)),
            ("varchar(max)", T::VarChar(Length::Max)),
            ("nvarchar(MAX)", T::NVarChar(Length::Max)),
            ("nvarchar(4000)", T::NVarChar(Length::Limited(4000))),
            ("varbinary", T::VarBinary(Length::Limited(30))),
            ("binary(10)", T::Binary(10)),
            ("uniqueidentifier", T::UniqueIdentifier),
            ("sysname", T::NVarChar(Length::Limited(128))),
            ("rowversion", T::RowVersion),
            ("timestamp", T::RowVersion),
            ("xml", T::Xml),
            ("image", T::Image),
        ] {
            assert_eq!(read(text), Ok(sql_type), "{text}");
        }
    }

    #[test]
    fn a_type_out_of_range_or_unknown_is_refused_with_the_servers_number() {
        for (text, number) in [
            ("varchar(8001)", 131),
            ("nvarchar(4001)", 131),
            ("binary(0)", 1001),
            ("decimal(39)", 2750),
            ("decimal(5, 6)", 192),
            ("datetime2(8)", 1002),
            ("nothing", 243),
            ("float(54)", 2750),
        ] {
            assert_eq!(read(text).unwrap_err().number, number, "{text}");
        }
    }

    #[test]
    fn a_length_that_is_not_written_is_one_in_a_declaration_and_thirty_in_a_cast() {
        let varchar = DataType::Varchar(None);
        let length = |kind: SqlResult<Kind>| kind.unwrap().sql_type;
        assert_eq!(length(kind_of(&varchar, None)), SqlType::VarChar(Length::Limited(1)));
        assert_eq!(length(cast_kind(&varchar)), SqlType::VarChar(Length::Limited(30)));
    }
}

//! Types as ODBC numbers and measures them.

use cdc_core::{Length, SqlType};
use cdc_fake::SqlResult;

use super::{Arguments, ProcedureInfo, ProcedureOutput, Typed, give, may};
use crate::model::{
    Names,
    shape::row,
    view::{all_types, facts},
};

const PARAMETERS: &[super::Parameter] =
    &[may("@data_type", SqlType::Int), may("@ODBCVer", SqlType::TinyInt)];

pub(super) const PROCEDURES: &[ProcedureInfo] = &[
    ProcedureInfo {
        schema: "sys",
        name: "sp_datatype_info",
        parameters: PARAMETERS,
        run: type_info,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_datatype_info_100",
        parameters: PARAMETERS,
        run: type_info,
    },
];

/// A type as ODBC has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OdbcType {
    pub(super) name: &'static str,
    pub(super) data_type: i32,
    pub(super) precision: Option<i32>,
    pub(super) length: Option<i32>,
    pub(super) scale: Option<i32>,
    pub(super) radix: Option<i32>,
    pub(super) sql_data_type: i32,
    pub(super) datetime_sub: Option<i32>,
    pub(super) octets: Option<i32>,
    /// The type's token in the oldest protocol: where it takes no NULL, and where it does.
    tokens: (i32, i32),
}

impl OdbcType {
    /// `SS_DATA_TYPE`.
    pub(super) const fn token(&self, nullable: bool) -> i32 {
        if nullable { self.tokens.1 } else { self.tokens.0 }
    }
}

const WIDE_TEXT: i32 = 1_073_741_823;
const WIDE_BYTES: i32 = 2_147_483_646;
const WIDE: i32 = 2_147_483_647;

/// A type as a version of ODBC has it: version 2 knows the newer types of dates as texts.
pub(super) fn odbc_type(sql_type: &SqlType, version: i64) -> OdbcType {
    use SqlType as T;
    let name = facts(sql_type).name;
    match sql_type {
        T::Bit => number(name, -7, 1, 1, None, None, (50, 50)),
        T::TinyInt => number(name, -6, 3, 1, Some(0), Some(10), (48, 38)),
        T::SmallInt => number(name, 5, 5, 2, Some(0), Some(10), (52, 38)),
        T::Int => number(name, 4, 10, 4, Some(0), Some(10), (56, 38)),
        T::BigInt => number(name, -5, 19, 8, Some(0), Some(10), (63, 108)),
        T::Real => number(name, 7, 24, 4, None, Some(2), (59, 109)),
        T::Float => number(name, 6, 53, 8, None, Some(2), (62, 109)),
        T::Decimal { precision, scale } => {
            let precision = i32::from(*precision);
            let scale = Some(i32::from(*scale));
            number(name, 3, precision, precision + 2, scale, Some(10), (55, 106))
        }
        T::Money => number(name, 3, 19, 21, Some(4), Some(10), (60, 110)),
        T::SmallMoney => number(name, 3, 10, 12, Some(4), Some(10), (122, 110)),
        T::Date
        | T::DateTime
        | T::SmallDateTime
        | T::DateTime2 { .. }
        | T::DateTimeOffset { .. }
        | T::Time { .. } => moment(sql_type, name, version),
        T::UniqueIdentifier => {
            OdbcType { octets: None, ..sized(name, -11, 36, 16, None, (37, 37)) }
        }
        T::Char(n) => text(name, 1, i32::from(*n), 1, (47, 39)),
        T::VarChar(Length::Limited(n)) => text(name, 12, i32::from(*n), 1, (39, 39)),
        T::VarChar(Length::Max) => sized(name, 12, WIDE, WIDE, Some(WIDE), (39, 39)),
        T::NChar(n) => text(name, -8, i32::from(*n), 2, (39, 39)),
        T::NVarChar(Length::Limited(n)) => text(name, -9, i32::from(*n), 2, (39, 39)),
        T::NVarChar(Length::Max) => {
            sized(name, -9, WIDE_TEXT, WIDE_BYTES, Some(WIDE_BYTES), (39, 39))
        }
        T::Text => sized(name, -1, WIDE, WIDE, Some(WIDE), (35, 35)),
        T::NText => sized(name, -10, WIDE_TEXT, WIDE_BYTES, Some(WIDE_BYTES), (35, 35)),
        T::Xml => {
            let data_type = if version >= 3 { -152 } else { -10 };
            sized(name, data_type, WIDE_TEXT, WIDE_BYTES, Some(WIDE_BYTES), (0, 0))
        }
        T::Binary(n) => text(name, -2, i32::from(*n), 1, (45, 37)),
        T::VarBinary(Length::Limited(n)) => text(name, -3, i32::from(*n), 1, (37, 37)),
        T::VarBinary(Length::Max) => sized(name, -3, WIDE, WIDE, Some(WIDE), (37, 37)),
        T::Image => sized(name, -4, WIDE, WIDE, Some(WIDE), (34, 34)),
        T::RowVersion => text(name, -2, 8, 1, (45, 45)),
        _ => sized(name, -150, 8000, 8000, None, (39, 39)),
    }
}

const fn number(
    name: &'static str,
    data_type: i32,
    precision: i32,
    length: i32,
    scale: Option<i32>,
    radix: Option<i32>,
    tokens: (i32, i32),
) -> OdbcType {
    OdbcType {
        name,
        data_type,
        precision: Some(precision),
        length: Some(length),
        scale,
        radix,
        sql_data_type: data_type,
        datetime_sub: None,
        octets: None,
        tokens,
    }
}

const fn sized(
    name: &'static str,
    data_type: i32,
    precision: i32,
    length: i32,
    octets: Option<i32>,
    tokens: (i32, i32),
) -> OdbcType {
    OdbcType { octets, ..number(name, data_type, precision, length, None, None, tokens) }
}

const fn text(
    name: &'static str,
    data_type: i32,
    letters: i32,
    bytes: i32,
    tokens: (i32, i32),
) -> OdbcType {
    sized(name, data_type, letters, letters * bytes, Some(letters * bytes), tokens)
}

/// Dates and times: their precision is the length of their text.
fn moment(sql_type: &SqlType, name: &'static str, version: i64) -> OdbcType {
    use SqlType as T;
    let fraction = |scale: u8| if scale == 0 { 0 } else { i32::from(scale) + 1 };
    let (newest, precision, length, scale, sub) = match sql_type {
        T::Date => (91, 10, 6, None, Some(1)),
        T::DateTime => (93, 23, 16, Some(3), Some(3)),
        T::SmallDateTime => (93, 16, 16, Some(0), Some(3)),
        T::DateTime2 { scale } => (93, 19 + fraction(*scale), 16, Some(i32::from(*scale)), Some(3)),
        T::Time { scale } => (-154, 8 + fraction(*scale), 12, Some(i32::from(*scale)), None),
        T::DateTimeOffset { scale } => {
            (-155, 26 + fraction(*scale), 20, Some(i32::from(*scale)), None)
        }
        _ => (93, 23, 16, Some(3), Some(3)),
    };
    let old = matches!(sql_type, T::DateTime | T::SmallDateTime);
    let tokens = match sql_type {
        T::DateTime => (61, 111),
        T::SmallDateTime => (58, 111),
        _ => (0, 0),
    };
    if version >= 3 || old {
        let data_type = if old && version < 3 { 11 } else { newest };
        return OdbcType {
            sql_data_type: if sub.is_some() { 9 } else { newest },
            datetime_sub: sub,
            ..number(name, data_type, precision, length, scale, None, tokens)
        };
    }
    // A text to a client that knows no such type.
    OdbcType { octets: None, ..sized(name, -9, precision, precision * 2, None, tokens) }
}

fn type_info(
    _: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    let wanted = arguments.integer(0).unwrap_or(0);
    let version = arguments.integer(1).unwrap_or(2);
    let columns = "TYPE_NAME sysname; DATA_TYPE smallint; PRECISION int?; \
        LITERAL_PREFIX varchar(32)?; LITERAL_SUFFIX varchar(32)?; CREATE_PARAMS varchar(32)?; \
        NULLABLE smallint; CASE_SENSITIVE smallint; SEARCHABLE smallint; \
        UNSIGNED_ATTRIBUTE smallint?; MONEY smallint; AUTO_INCREMENT smallint?; \
        LOCAL_TYPE_NAME sysname?; MINIMUM_SCALE smallint?; MAXIMUM_SCALE smallint?; \
        SQL_DATA_TYPE smallint; SQL_DATETIME_SUB smallint?; NUM_PREC_RADIX int?; \
        INTERVAL_PRECISION smallint?; USERTYPE smallint?";
    let mut rows: Vec<(i32, crate::relation::Row)> = Vec::new();
    for (name, facts, sql_type) in all_types() {
        let shown = odbc_type(&sql_type, version);
        let data_type = if name == "numeric" { 2 } else { shown.data_type };
        if wanted != 0 && wanted != i64::from(data_type) {
            continue;
        }
        let quote = literal_quotes(&sql_type);
        let money = matches!(sql_type, SqlType::Money | SqlType::SmallMoney);
        let is_number = shown.radix.is_some();
        rows.push((
            data_type,
            row![
                name,
                data_type,
                shown.precision,
                quote.map(|(before, _)| before),
                quote.map(|(_, after)| after),
                create_parameters(&sql_type),
                1,
                0,
                if matches!(sql_type, SqlType::Text | SqlType::NText | SqlType::Image) {
                    1
                } else {
                    3
                },
                is_number.then(|| i32::from(sql_type == SqlType::TinyInt)),
                i32::from(money),
                is_number.then_some(0),
                name,
                shown.scale.map(|_| 0),
                shown.scale,
                shown.sql_data_type,
                shown.datetime_sub,
                shown.radix,
                (),
                facts.user_type_id.min(32_767)
            ],
        ));
    }
    rows.sort_by_key(|(data_type, _)| *data_type);
    give(output, columns, rows.into_iter().map(|(_, row)| row))
}

const fn literal_quotes(sql_type: &SqlType) -> Option<(&'static str, &'static str)> {
    use SqlType as T;
    match sql_type {
        T::NChar(_) | T::NVarChar(_) | T::NText | T::Xml => Some(("N'", "'")),
        T::Char(_)
        | T::VarChar(_)
        | T::Text
        | T::UniqueIdentifier
        | T::Date
        | T::DateTime
        | T::SmallDateTime
        | T::DateTime2 { .. }
        | T::DateTimeOffset { .. }
        | T::Time { .. } => Some(("'", "'")),
        T::Binary(_) | T::VarBinary(_) | T::Image | T::RowVersion => Some(("0x", "")),
        T::Money | T::SmallMoney => Some(("$", "")),
        _ => None,
    }
}

const fn create_parameters(sql_type: &SqlType) -> Option<&'static str> {
    use SqlType as T;
    match sql_type {
        T::Decimal { .. } => Some("precision,scale"),
        T::Char(_) | T::NChar(_) | T::Binary(_) => Some("length"),
        T::VarChar(_) | T::NVarChar(_) | T::VarBinary(_) => Some("max length"),
        T::DateTime2 { .. } | T::DateTimeOffset { .. } | T::Time { .. } => Some("scale"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odbc_sees_types_as_its_version_knows_them() {
        let shown = |sql_type: SqlType, version| {
            let shown = odbc_type(&sql_type, version);
            (shown.data_type, shown.precision, shown.length, shown.scale)
        };
        let datetime2 = SqlType::DateTime2 { scale: 7 };
        assert_eq!(shown(datetime2.clone(), 3), (93, Some(27), Some(16), Some(7)));
        assert_eq!(shown(datetime2, 2), (-9, Some(27), Some(54), None));
        assert_eq!(shown(SqlType::DateTime, 2), (11, Some(23), Some(16), Some(3)));
        let decimal = SqlType::Decimal { precision: 10, scale: 2 };
        assert_eq!(shown(decimal, 3), (3, Some(10), Some(12), Some(2)));
        let text = SqlType::NVarChar(Length::Limited(50));
        assert_eq!(shown(text, 3), (-9, Some(50), Some(100), None));
    }
}

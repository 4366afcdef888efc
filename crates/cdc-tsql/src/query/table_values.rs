//! Table-valued functions of values alone: STRING_SPLIT and GENERATE_SERIES.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult, Value};

use super::refusal::argument_count;
use crate::{
    kind::{Kind, Typed},
    relation::{ObjectName, RelationColumn, Row},
};

/// Such a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableValues {
    /// The parts of a text between separators.
    StringSplit,
    /// Numbers from one to another.
    GenerateSeries,
}

impl TableValues {
    /// The function of a name.
    pub(super) fn named(name: &ObjectName) -> Option<Self> {
        let known =
            [("STRING_SPLIT", Self::StringSplit), ("GENERATE_SERIES", Self::GenerateSeries)];
        let own = name.schema.is_none() && name.database.is_none();
        let found = known.into_iter().find(|(known, _)| name.name.eq_ignore_ascii_case(known));
        found.filter(|_| own).map(|(_, function)| function)
    }

    /// Its columns, for arguments of these kinds; `ordinal` when STRING_SPLIT is asked for places.
    ///
    /// # Errors
    /// 174 for the number of arguments, 8116 for a type.
    pub(super) fn columns(self, kinds: &[Kind], ordinal: bool) -> SqlResult<Vec<RelationColumn>> {
        match (self, kinds) {
            (Self::StringSplit, [text, _] | [text, _, _]) => {
                if !super::binder::is_text(&text.sql_type) {
                    return Err(invalid_argument(1, "string_split"));
                }
                let value = Kind { nullable: false, ..text.clone() };
                let mut columns = vec![RelationColumn::new("value", value)];
                if ordinal {
                    let place = Kind::new(SqlType::BigInt, false);
                    columns.push(RelationColumn::new("ordinal", place));
                }
                Ok(columns)
            }
            (Self::GenerateSeries, [start, _] | [start, _, _]) => {
                let whole = kinds.iter().all(|kind| {
                    use SqlType as T;
                    matches!(kind.sql_type, T::TinyInt | T::SmallInt | T::Int | T::BigInt)
                });
                if !whole {
                    return Err(invalid_argument(1, "generate_series"));
                }
                let value = Kind { nullable: false, ..start.clone() };
                Ok(vec![RelationColumn::new("value", value)])
            }
            (Self::StringSplit, _) => Err(argument_count("string_split", 2)),
            (Self::GenerateSeries, _) => Err(argument_count("generate_series", 2)),
        }
    }

    /// Its rows, one by one; with places when STRING_SPLIT is asked for them.
    ///
    /// # Errors
    /// 214 for a separator that is no single character, 4199 for a step of 0.
    pub(super) fn rows<'a>(
        self,
        arguments: &'a [Typed],
    ) -> SqlResult<Box<dyn Iterator<Item = Row> + 'a>> {
        let value = |place: usize| arguments.get(place).map_or(&Value::Null, |typed| &typed.value);
        match self {
            Self::StringSplit => {
                let (Value::Text(text), Value::Text(separator)) = (value(0), value(1)) else {
                    return Ok(Box::new(std::iter::empty()));
                };
                let mut characters = separator.chars();
                let (Some(separator), None) = (characters.next(), characters.next()) else {
                    return Err(SqlError::new(
                        214,
                        "Procedure expects parameter 'separator' of type \
                         'nchar(1)/nvarchar(1)'.",
                    ));
                };
                let ordinal = value(2).as_int() == Some(1) || *value(2) == Value::Bit(true);
                Ok(Box::new(text.split(separator).zip(1_i64..).map(move |(part, place)| {
                    if ordinal {
                        [Value::text(part), place.into()].into()
                    } else {
                        [Value::text(part)].into()
                    }
                })))
            }
            Self::GenerateSeries => {
                let (Some(start), Some(stop)) = (value(0).as_int(), value(1).as_int()) else {
                    return Ok(Box::new(std::iter::empty()));
                };
                let down = if start > stop { -1 } else { 1 };
                let step = if arguments.len() > 2 { value(2).as_int() } else { Some(down) };
                let Some(step) = step else { return Ok(Box::new(std::iter::empty())) };
                if step == 0 {
                    return Err(SqlError::new(
                        4199,
                        "Argument value 0 is invalid for argument 3 of generate_series function.",
                    ));
                }
                let next = move |number: &i64| number.checked_add(step);
                let within = move |number: &i64| {
                    if step > 0 { *number <= stop } else { *number >= stop }
                };
                let numbers = std::iter::successors(Some(start), next).take_while(within);
                Ok(Box::new(numbers.map(|number| [Value::Int(number)].into())))
            }
        }
    }
}

fn invalid_argument(place: usize, function: &str) -> SqlError {
    SqlError::new(
        8116,
        format!("Argument data type is invalid for argument {place} of {function} function."),
    )
}

//! Functions by name: how many arguments each takes, the kind of its result, its value.

mod calendar;
mod character;
mod choice;
mod clock;
mod mathematics;
mod string;

pub(super) use character::stored_size;

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlResult, Value};

use super::{
    ArgumentKind, ArgumentValue, Facts,
    conversion::{Excess, assign, fitted, text_of},
    error,
    permission::{Permission, permission},
    precedence::{MAX_BYTES, MAX_UNITS, is_national, length},
};
use crate::kind::{Collation, Kind, Typed};

/// A function.
pub(super) struct Definition {
    name: &'static str,
    /// The least and the most arguments.
    least: usize,
    most: usize,
    kind: fn(&Signature<'_>) -> SqlResult<Kind>,
    value: fn(&Call<'_>) -> SqlResult<Value>,
}

/// More arguments than a statement can have.
const ANY_NUMBER: usize = usize::MAX;

const fn define(
    name: &'static str,
    least: usize,
    most: usize,
    kind: fn(&Signature<'_>) -> SqlResult<Kind>,
    value: fn(&Call<'_>) -> SqlResult<Value>,
) -> Definition {
    Definition { name, least, most, kind, value }
}

/// A call before its arguments are known.
pub(super) struct Signature<'a> {
    name: &'a str,
    arguments: Vec<ArgumentKind>,
}

impl Signature<'_> {
    /// The kind of an argument, from 0.
    fn kind(&self, place: usize) -> SqlResult<&Kind> {
        match self.arguments.get(place) {
            Some(ArgumentKind::Value(kind)) => Ok(kind),
            _ => Err(error::argument_count(self.name, place + 1)),
        }
    }

    /// All kinds.
    fn kinds(&self) -> SqlResult<Vec<Kind>> {
        (0..self.arguments.len()).map(|place| self.kind(place).cloned()).collect()
    }

    /// Checks that arguments convert to a type by themselves.
    fn takes(&self, places: std::ops::Range<usize>, to: &SqlType) -> SqlResult<()> {
        for place in places {
            if let Some(ArgumentKind::Value(kind)) = self.arguments.get(place)
                && permission(&kind.sql_type, to) != Permission::Implicit
                && permission(&kind.sql_type, to) != Permission::Explicit
            {
                return Err(error::invalid_argument(&kind.sql_type, place + 1, self.name));
            }
        }
        Ok(())
    }

    /// True when any argument may be NULL.
    fn nullable(&self) -> bool {
        self.arguments.iter().any(|argument| match argument {
            ArgumentKind::Value(kind) => kind.nullable,
            ArgumentKind::Word(_) => false,
        })
    }

    /// A result that is NULL when an argument is.
    fn result(&self, sql_type: SqlType) -> Kind {
        Kind::new(sql_type, self.nullable())
    }
}

/// A call.
pub(super) struct Call<'a> {
    name: &'a str,
    arguments: &'a [ArgumentValue],
    facts: &'a Facts,
    definition: &'static Definition,
}

impl<'a> Call<'a> {
    /// An argument, from 0.
    fn typed(&self, place: usize) -> SqlResult<&'a Typed> {
        match self.arguments.get(place) {
            Some(ArgumentValue::Value(typed)) => Ok(typed),
            _ => Err(error::argument_count(self.name, place + 1)),
        }
    }

    fn has(&self, place: usize) -> bool {
        self.arguments.len() > place
    }

    fn word(&self, place: usize) -> Option<&'a str> {
        match self.arguments.get(place) {
            Some(ArgumentValue::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// An argument as a text; none for NULL.
    fn text(&self, place: usize) -> SqlResult<Option<Cow<'a, str>>> {
        let typed = self.typed(place)?;
        if typed.value.is_null() {
            return Ok(None);
        }
        text_of(&typed.value, &typed.kind, self.facts).map(Some)
    }

    /// An argument converted to a type by itself; NULL stays NULL.
    fn converted(&self, place: usize, to: SqlType) -> SqlResult<Value> {
        let typed = self.typed(place)?;
        assign(&typed.value, &typed.kind, &Kind::new(to, true), self.facts)
    }

    /// An argument as an `int`; none for NULL.
    fn int(&self, place: usize) -> SqlResult<Option<i64>> {
        match self.converted(place, SqlType::Int)? {
            Value::Int(number) => Ok(Some(number)),
            _ => Ok(None),
        }
    }

    /// An argument as a float; none for NULL.
    fn float(&self, place: usize) -> SqlResult<Option<f64>> {
        match self.converted(place, SqlType::Float)? {
            Value::Float(number) => Ok(Some(number)),
            _ => Ok(None),
        }
    }

    /// The kind of the result.
    fn kind(&self) -> SqlResult<Kind> {
        let arguments = self.arguments.iter().map(kind_of).collect();
        (self.definition.kind)(&Signature { name: self.name, arguments })
    }

    /// The collation that an argument compares with.
    fn collation(&self, place: usize) -> SqlResult<Collation> {
        Ok(self.typed(place)?.kind.collation.unwrap_or(self.facts.collation))
    }

    /// A text as the result's type holds it.
    fn text_result(&self, text: &str) -> SqlResult<Value> {
        let kind = self.kind()?;
        let page = kind.collation.unwrap_or(self.facts.collation).code_page;
        fitted(text, &kind.sql_type, page, Excess::Cut)
    }
}

fn kind_of(argument: &ArgumentValue) -> ArgumentKind {
    match argument {
        ArgumentValue::Value(typed) => ArgumentKind::Value(typed.kind.clone()),
        ArgumentValue::Word(word) => ArgumentKind::Word(word.clone()),
    }
}

/// All functions by their upper-case names.
static FUNCTIONS: LazyLock<BTreeMap<&'static str, &'static Definition>> = LazyLock::new(|| {
    [
        string::FUNCTIONS,
        character::FUNCTIONS,
        mathematics::FUNCTIONS,
        calendar::FUNCTIONS,
        clock::FUNCTIONS,
        choice::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
    .map(|definition| (definition.name, definition))
    .collect()
});

/// Functions of the server that exist there and are refused here by name.
const REFUSED: &[&str] = &[
    "APPLOCK_MODE",
    "APPLOCK_TEST",
    "BINARY_CHECKSUM",
    "BIT_COUNT",
    "CHANGE_TRACKING_CURRENT_VERSION",
    "CHECKSUM",
    "COLUMNS_UPDATED",
    "COMPRESS",
    "CURSOR_STATUS",
    "DATE_BUCKET",
    "DECOMPRESS",
    "DECRYPTBYKEY",
    "DECRYPTBYPASSPHRASE",
    "DIFFERENCE",
    "ENCRYPTBYKEY",
    "ENCRYPTBYPASSPHRASE",
    "EVENTDATA",
    "FILEPROPERTY",
    "FILE_ID",
    "FILE_NAME",
    "FORMAT",
    "FORMATMESSAGE",
    "GETANSINULL",
    "GET_BIT",
    "ISJSON",
    "JSON_ARRAY",
    "JSON_MODIFY",
    "JSON_OBJECT",
    "JSON_PATH_EXISTS",
    "JSON_QUERY",
    "JSON_VALUE",
    "LEFT_SHIFT",
    "NEWSEQUENTIALID",
    "PARSENAME",
    "PWDCOMPARE",
    "PWDENCRYPT",
    "RIGHT_SHIFT",
    "SET_BIT",
    "SOUNDEX",
    "STRING_ESCAPE",
];

/// No function has a longer name.
const LONGEST_NAME: usize = 32;

fn found(name: &str) -> Option<&'static Definition> {
    // Once a row: without an allocation.
    let mut buffer = [0; LONGEST_NAME];
    let upper = buffer.get_mut(..name.len())?;
    upper.copy_from_slice(name.as_bytes());
    upper.make_ascii_uppercase();
    let upper = std::str::from_utf8(upper).ok()?;
    FUNCTIONS.get(upper.strip_prefix("SYS.").unwrap_or(upper)).copied()
}

/// The names of all functions, with the least and the most arguments.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, usize, usize)> {
    FUNCTIONS.values().map(|definition| (definition.name, definition.least, definition.most))
}

/// The kind of a function's result; none when there is no such function here. Names are
/// case-insensitive. `x AT TIME ZONE z` is the function `AT TIME ZONE` of two arguments;
/// `TRIM(LEADING a FROM b)` is `TRIM` of the word and two values.
///
/// # Errors
/// 174 and 189 for the number of arguments, 8116 for a type, 155 for a date part, 50000 for a
/// function that this server does not evaluate.
pub(crate) fn function_kind(name: &str, arguments: &[ArgumentKind]) -> Option<SqlResult<Kind>> {
    let Some(definition) = found(name) else {
        let refused = REFUSED.iter().any(|known| known.eq_ignore_ascii_case(name));
        return refused.then(|| Err(error::not_supported(&format!("function {name}"))));
    };
    let count = arguments.len();
    if count < definition.least || count > definition.most {
        return Some(Err(if definition.least == definition.most {
            error::argument_count(definition.name, definition.least)
        } else {
            error::argument_range(definition.name, definition.least, definition.most.min(254))
        }));
    }
    let signature = Signature { name: definition.name, arguments: arguments.to_vec() };
    Some((definition.kind)(&signature))
}

/// The value of a function, of the kind that [`function_kind`] says.
///
/// # Errors
/// 195 for a function that there is not; what the function itself refuses, and conversions of its
/// arguments.
pub(crate) fn function(name: &str, arguments: &[ArgumentValue], facts: &Facts) -> SqlResult<Value> {
    match found(name) {
        Some(definition) => {
            (definition.value)(&Call { name: definition.name, arguments, facts, definition })
        }
        None => Err(cdc_fake::SqlError::new(
            195,
            format!("'{name}' is not a recognized built-in function name."),
        )),
    }
}

/// False for functions whose value changes between calls (`GETDATE`, `NEWID`, `RAND`).
pub(crate) fn is_deterministic(name: &str) -> bool {
    const CHANGING: &[&str] = &[
        "CURRENT_TIMESTAMP",
        "CURRENT_DATE",
        "GETDATE",
        "GETUTCDATE",
        "NEWID",
        "NEWSEQUENTIALID",
        "RAND",
        "SYSDATETIME",
        "SYSDATETIMEOFFSET",
        "SYSUTCDATETIME",
    ];
    !CHANGING.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The variable-length text type of what a function makes of an argument, with its collation.
fn text_kind(kind: &Kind) -> Kind {
    use SqlType as T;
    let limited = |length: u16| T::VarChar(Length::Limited(length));
    let sql_type = match &kind.sql_type {
        T::NChar(_) | T::NVarChar(_) | T::NText | T::Xml => T::NVarChar(length(&kind.sql_type)),
        T::Char(_) | T::VarChar(_) | T::Text => T::VarChar(length(&kind.sql_type)),
        T::Binary(_) | T::VarBinary(_) | T::Image | T::RowVersion => {
            T::VarChar(length(&kind.sql_type))
        }
        T::Bit => limited(1),
        T::TinyInt => limited(4),
        T::SmallInt => limited(7),
        T::Int => limited(12),
        T::BigInt => limited(24),
        T::Decimal { .. } => limited(41),
        T::UniqueIdentifier => limited(36),
        _ => limited(40),
    };
    Kind { sql_type, ..kind.clone() }
}

/// The text type of the greatest length that is not `(max)`, or `(max)` when the argument is.
fn long_text(kind: &Kind) -> Kind {
    let text = text_kind(kind);
    let national = is_national(&text.sql_type);
    let most = match length(&text.sql_type) {
        Length::Max => Length::Max,
        Length::Limited(_) => Length::Limited(if national { MAX_UNITS } else { MAX_BYTES }),
    };
    let sql_type = if national { SqlType::NVarChar(most) } else { SqlType::VarChar(most) };
    Kind { sql_type, ..text }
}

#[cfg(test)]
mod tests;

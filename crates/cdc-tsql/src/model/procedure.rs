//! Procedures of the server: which there are, and how they are called.

use std::ops::ControlFlow;

use cdc_core::SqlType;
use cdc_fake::{SqlResult, Value};

use crate::{
    kind::Typed,
    model::{Names, base_table::goes_on, shape::result_columns},
    relation::{ObjectName, Row},
    talk::{Message, ResultColumn},
};

mod capture;
mod control;
mod jobs;
mod listing;
mod odbc_type;
mod security;
mod server;
mod space;

/// Where a procedure's results go. Every method says whether to go on.
pub(crate) trait ProcedureOutput {
    /// A result begins.
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()>;

    /// A row of the result.
    fn row(&mut self, row: &[Value]) -> ControlFlow<()>;

    /// A message, or an error that does not end the procedure.
    fn message(&mut self, message: &Message) -> ControlFlow<()>;
}

/// A parameter of a procedure.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    /// Its name, with `@`.
    pub(crate) name: &'static str,
    /// Its type: arguments are converted to it before the call.
    pub(crate) sql_type: SqlType,
    /// True when a call without it is error 201.
    pub(crate) required: bool,
}

/// What a procedure does: its arguments in the parameters' order, none where omitted; the return
/// status comes back.
pub(crate) type Run = fn(&Names<'_>, &[Option<Typed>], &mut dyn ProcedureOutput) -> SqlResult<i32>;

/// A procedure of the server.
pub(crate) struct ProcedureInfo {
    /// Its schema: `sys`, or `fake` for the ones that control this server.
    pub(crate) schema: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
    /// Its parameters.
    pub(crate) parameters: &'static [Parameter],
    pub(crate) run: Run,
}

impl ProcedureInfo {
    /// Calls it in the database of `names`. `arguments` stand in the parameters' order; none is
    /// one that the call leaves out.
    ///
    /// # Errors
    /// 201 for a required argument that is missing, and what the procedure refuses.
    pub(crate) fn run(
        &self,
        names: &Names<'_>,
        arguments: &[Option<Typed>],
        output: &mut dyn ProcedureOutput,
    ) -> SqlResult<i32> {
        for (parameter, argument) in self
            .parameters
            .iter()
            .zip(arguments.iter().map(Option::as_ref).chain(std::iter::repeat(None)))
        {
            if parameter.required && argument.is_none() {
                return Err(cdc_fake::SqlError::new(
                    201,
                    format!(
                        "Procedure or function '{}' expects parameter '{}', which was not \
                         supplied.",
                        self.name, parameter.name
                    ),
                ));
            }
        }
        (self.run)(names, arguments, output)
    }
}

/// The procedure of a name; none when there is none. Its database part is the caller's to open.
pub(crate) fn procedure(name: &ObjectName) -> Option<&'static ProcedureInfo> {
    let schema = name.schema.as_deref().filter(|schema| !schema.is_empty());
    all().find(|known| {
        let there = match schema {
            // Procedures of the server are found in every schema.
            None | Some("dbo") => known.schema == "sys",
            Some(schema) => known.schema.eq_ignore_ascii_case(schema),
        };
        there && known.name.eq_ignore_ascii_case(&name.name)
    })
}

/// Every procedure.
pub(super) fn all() -> impl Iterator<Item = &'static ProcedureInfo> {
    [capture::PROCEDURES, jobs::PROCEDURES, listing::PROCEDURES, odbc_type::PROCEDURES]
        .into_iter()
        .chain([space::PROCEDURES, security::PROCEDURES, server::PROCEDURES])
        .chain([control::PROCEDURES])
        .flatten()
}

/// A parameter that a call may leave out.
const fn may(name: &'static str, sql_type: SqlType) -> Parameter {
    Parameter { name, sql_type, required: false }
}

/// A parameter that a call must have.
const fn must(name: &'static str, sql_type: SqlType) -> Parameter {
    Parameter { name, sql_type, required: true }
}

/// The type of names.
const NAME: SqlType = SqlType::NVarChar(cdc_core::Length::Limited(128));
/// The type of names that patterns fit in.
const PATTERN: SqlType = SqlType::NVarChar(cdc_core::Length::Limited(384));

/// The arguments of a call, as the plain things they stand for.
struct Arguments<'a>(&'a [Option<Typed>]);

impl Arguments<'_> {
    fn value(&self, at: usize) -> Option<&Value> {
        let value = &self.0.get(at)?.as_ref()?.value;
        (!value.is_null()).then_some(value)
    }

    /// The text of an argument; none for NULL and for one that was left out.
    fn text(&self, at: usize) -> Option<String> {
        match self.value(at)? {
            Value::Text(text) => Some(text.trim_end().to_owned()),
            _ => None,
        }
    }

    /// The number of an argument; none for NULL and for one that was left out.
    fn integer(&self, at: usize) -> Option<i64> {
        match self.value(at)? {
            Value::Int(number) => Some(*number),
            Value::Bit(bit) => Some(i64::from(*bit)),
            _ => None,
        }
    }

    fn flag(&self, at: usize) -> Option<bool> {
        self.integer(at).map(|number| number != 0)
    }
}

/// Gives a result: its columns, then its rows.
fn give(
    output: &mut dyn ProcedureOutput,
    columns: &str,
    rows: impl IntoIterator<Item = Row>,
) -> SqlResult<i32> {
    if goes_on(output.columns(&result_columns(columns))) {
        for row in rows {
            if !goes_on(output.row(&row)) {
                break;
            }
        }
    }
    Ok(0)
}

/// Tells something that is no error.
fn tell(output: &mut dyn ProcedureOutput, number: i32, procedure: &str, text: String) {
    let message =
        Message { number, state: 1, class: 0, text, procedure: procedure.into(), line: 1 };
    // The client's leaving shows at the next row or at the end.
    let _ = output.message(&message);
}

#[cfg(test)]
mod tests;

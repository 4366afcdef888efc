//! Procedures of the server: which there are, and how they are called.

use std::ops::ControlFlow;

use cdc_core::SqlType;
use cdc_fake::{SqlResult, Value};

use crate::{
    kind::Typed,
    model::Names,
    relation::ObjectName,
    talk::{Message, ResultColumn},
};

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
pub(crate) fn procedure(_name: &ObjectName) -> Option<&'static ProcedureInfo> {
    None
}

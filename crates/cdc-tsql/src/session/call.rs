//! EXEC and remote calls: which procedure a name means, how its arguments are matched, and what
//! the client is told.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    failure::{Failure, Raised, Run},
    frame::{Frame, undeclared},
    runner::{Runner, go_on},
    scope::Scope,
    told::Told,
};
use crate::{
    kind::{Kind, Typed},
    model::{ProcedureInfo, procedure},
    relation::ObjectName,
    scalar,
    syntax::{Execute, ProcedureName, unsupported},
    talk::{Argument, KnownProcedure, Procedure, StatementKind},
};

/// An argument of a call.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) name: Option<String>,
    /// None for the default.
    pub(super) value: Option<Typed>,
    /// Where its value goes afterwards.
    pub(super) output: Option<Receiver>,
}

/// What takes the value of an output parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    /// A variable of the caller.
    Variable(String),
    /// The client.
    Client,
}

/// What a text gives back when it ends.
struct Before {
    options: super::options::Options,
    tables: std::collections::BTreeSet<String>,
}

/// Procedures that work on the session itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    ExecuteSql,
    Prepare,
    PrepExec,
    Execute,
    Unprepare,
    DescribeFirst,
    DescribeUndeclared,
    ResetConnection,
}

fn own(name: &ObjectName) -> Option<Own> {
    let sys = name.schema.as_deref().is_none_or(|schema| {
        schema.eq_ignore_ascii_case("sys") || schema.eq_ignore_ascii_case("dbo")
    });
    if !sys {
        return None;
    }
    Some(match name.name.to_lowercase().as_str() {
        "sp_executesql" => Own::ExecuteSql,
        "sp_prepare" => Own::Prepare,
        "sp_prepexec" => Own::PrepExec,
        "sp_execute" => Own::Execute,
        "sp_unprepare" => Own::Unprepare,
        "sp_describe_first_result_set" => Own::DescribeFirst,
        "sp_describe_undeclared_parameters" => Own::DescribeUndeclared,
        "sp_reset_connection" => Own::ResetConnection,
        _ => return None,
    })
}

impl Runner<'_> {
    /// `EXEC procedure arguments`.
    pub(super) fn execute(&mut self, call: &Execute, frame: &Frame) -> Run<()> {
        let name = match &call.procedure {
            ProcedureName::Name(name) => name.clone(),
            ProcedureName::Variable(variable) => self.procedure_of(variable, frame)?,
        };
        let mut given = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let value = match &argument.value {
                Some(value) => Some(self.value(value, frame)?),
                None => None,
            };
            let output = argument.output.clone().map(Receiver::Variable);
            given.push(Given { name: argument.name.clone(), value, output });
        }
        let (status, outputs) = self.invoke(&name, &given, frame)?;
        for (place, typed) in outputs {
            if let Some(Given { output: Some(Receiver::Variable(variable)), .. }) = given.get(place)
            {
                self.scoped(frame, |scope, _| {
                    frame.set(variable, &typed.value, &typed.kind, &scope.facts())
                })?;
            }
        }
        if let Some(variable) = &call.status {
            let kind = Kind::new(SqlType::Int, false);
            self.scoped(frame, |scope, _| {
                frame.set(variable, &Value::Int(status.into()), &kind, &scope.facts())
            })?;
        }
        if !frame.in_procedure {
            go_on(self.replies.return_status(status))?;
        }
        self.done(None, StatementKind::Execute, false, frame)
    }

    fn procedure_of(&mut self, variable: &str, frame: &Frame) -> Run<ObjectName> {
        let typed = frame.get(variable).ok_or_else(|| undeclared(variable))?;
        let Value::Text(text) = &typed.value else {
            return Err(unknown_procedure("").into());
        };
        let settings = self.core.options.expressions;
        let batch = crate::syntax::parse(&format!("EXEC {text}"), &settings);
        match batch.ok().as_ref().map(|batch| batch.statements.as_slice()) {
            Some([one]) => match &one.body {
                crate::syntax::Body::Execute(Execute {
                    procedure: ProcedureName::Name(name),
                    ..
                }) => Ok(name.clone()),
                _ => Err(unknown_procedure(text).into()),
            },
            _ => Err(unknown_procedure(text).into()),
        }
    }

    /// `EXEC (text)`.
    pub(super) fn execute_text(&mut self, text: &sqlparser::ast::Expr, frame: &Frame) -> Run<()> {
        let text = self.text(text, frame)?;
        let inner = frame.inner("")?;
        let before = self.enter();
        let result = self.text_of_statements(&text, &inner);
        self.leave(before)?;
        result
    }

    /// Remembers what a text gives back when it ends.
    fn enter(&self) -> Before {
        Before { options: self.core.options.clone(), tables: self.core.temporary.names() }
    }

    /// Options that a text has set are the caller's again when it ends, the isolation level too;
    /// its temporary tables go.
    fn leave(&mut self, before: Before) -> Run<()> {
        if before.options.isolation != self.core.options.isolation {
            self.core.transactions.set_isolation(before.options.isolation);
        }
        self.core.options = before.options;
        for table in self.core.temporary.since(&before.tables) {
            let database = self.core.temporary.tables.clone();
            if self.core.transactions.count > 0 && !self.core.transactions.doomed {
                let change = cdc_fake::SchemaChange::DropTable(table.clone());
                self.change_schema(&database, &change, None)?;
            } else {
                // Gone already when a rollback has taken it.
                let _ = database.drop_table(&table);
            }
            self.core.temporary.forget(&table);
        }
        Ok(())
    }

    /// A call of the protocol.
    pub(super) fn remote_call(
        &mut self,
        procedure: &Procedure,
        arguments: Vec<Argument>,
        frame: &Frame,
    ) -> Run<()> {
        let name = match procedure {
            Procedure::Named(name) => name.clone(),
            Procedure::Known(known) => {
                ObjectName { database: None, schema: None, name: known_name(*known).to_owned() }
            }
        };
        let names: Vec<String> =
            arguments.iter().map(|one| one.name.clone().unwrap_or_default()).collect();
        let given: Vec<Given> = arguments
            .into_iter()
            .map(|argument| Given {
                name: argument.name.filter(|name| !name.is_empty()),
                value: (!argument.default).then_some(argument.typed),
                output: argument.output.then_some(Receiver::Client),
            })
            .collect();
        let verb = own(&name).is_none() && !is_control(&name);
        if verb {
            let met = self.core.server.faults().meet("EXECUTE", false);
            self.encounter(&met, frame).map_err(|failure| located(failure, frame))?;
        }
        // A handle means another text in another session.
        self.repeatable &= own(&name) == Some(Own::ExecuteSql);
        let remote = Frame { in_procedure: true, ..Frame::default() };
        let called = self.invoke(&name, &given, &remote);
        let (status, outputs) = called.map_err(|failure| located(failure, &remote))?;
        go_on(self.replies.return_status(status))?;
        for (place, typed) in outputs {
            let name = names.get(place).map_or("", String::as_str);
            let place = u16::try_from(place).unwrap_or(u16::MAX);
            go_on(self.replies.return_value(place, name, &typed))?;
        }
        Ok(())
    }

    /// Calls a procedure. Gives its status, and the values of its output parameters by the place
    /// of the argument.
    fn invoke(
        &mut self,
        name: &ObjectName,
        given: &[Given],
        frame: &Frame,
    ) -> Run<(i32, Vec<(usize, Typed)>)> {
        if let Some(own) = own(name) {
            let before = self.enter();
            let result = self.invoke_own(own, given, frame);
            if own != Own::ResetConnection {
                self.leave(before)?;
            }
            return result;
        }
        if name.name.to_lowercase().starts_with("sp_cursor") {
            return Err(unsupported(&format!("{}: server cursors", name.name)).into());
        }
        let Some(found) = procedure(&ObjectName { database: None, ..name.clone() }) else {
            return Err(unknown_procedure(&super::scope::shown(name)).into());
        };
        self.invoke_known(found, name, given, frame)
    }

    fn invoke_own(
        &mut self,
        own: Own,
        given: &[Given],
        frame: &Frame,
    ) -> Run<(i32, Vec<(usize, Typed)>)> {
        let rest = |from: usize| given.get(from..).unwrap_or_default();
        let shifted = |outputs: Vec<(usize, Typed)>, by: usize| {
            outputs.into_iter().map(|(place, typed)| (place + by, typed)).collect::<Vec<_>>()
        };
        let handle_out = |handle: i32| (0, Typed::new(SqlType::Int, Value::Int(handle.into())));
        match own {
            Own::ExecuteSql => {
                let text = self.text_argument(given.first(), frame)?;
                let declared = self.text_argument(given.get(1), frame)?;
                let prepared = self.prepare(&text, &declared, frame)?;
                let outputs = self.run_prepared(&prepared, rest(2), frame)?;
                Ok((self.core.last.error_status(), shifted(outputs, 2)))
            }
            Own::Prepare => {
                let declared = self.text_argument(given.get(1), frame)?;
                let text = self.text_argument(given.get(2), frame)?;
                let prepared = self.prepare(&text, &declared, frame)?;
                let handle = self.keep_prepared(prepared)?;
                Ok((0, vec![handle_out(handle)]))
            }
            Own::PrepExec => {
                let declared = self.text_argument(given.get(1), frame)?;
                let text = self.text_argument(given.get(2), frame)?;
                let prepared = self.prepare(&text, &declared, frame)?;
                let handle = self.keep_prepared(prepared.clone())?;
                let outputs = self.run_prepared(&prepared, rest(3), frame)?;
                let mut all = vec![handle_out(handle)];
                all.extend(shifted(outputs, 3));
                Ok((self.core.last.error_status(), all))
            }
            Own::Execute => {
                let handle = handle_in(given)?;
                let prepared = self.prepared(handle)?;
                let outputs = self.run_prepared(&prepared, rest(1), frame)?;
                Ok((self.core.last.error_status(), shifted(outputs, 1)))
            }
            Own::Unprepare => {
                self.unprepare(handle_in(given)?)?;
                Ok((0, Vec::new()))
            }
            Own::DescribeFirst => self.describe_first(given, frame).map(|()| (0, Vec::new())),
            Own::DescribeUndeclared => {
                self.describe_undeclared(given, frame).map(|()| (0, Vec::new()))
            }
            Own::ResetConnection => {
                self.core.transactions.abandon();
                self.core.options = super::options::Options::default();
                self.core.temporary.clear();
                Ok((0, Vec::new()))
            }
        }
    }

    /// A procedure of the catalogue.
    fn invoke_known(
        &mut self,
        found: &'static ProcedureInfo,
        name: &ObjectName,
        given: &[Given],
        frame: &Frame,
    ) -> Run<(i32, Vec<(usize, Typed)>)> {
        let (arguments, _) = self.matched_arguments(found, given, frame)?;
        let database = match &name.database {
            Some(database) => self.core.open_database(database)?,
            None => self.core.database.clone(),
        };
        // What such a procedure changes is committed with it.
        if self.core.transactions.count > 0 {
            self.core.transactions.part(&database, &self.core.options, &self.core.cancel);
        }
        let no_count = self.core.options.no_count;
        let scope = Scope::new(self.core, frame);
        let names = scope.names(&database);
        let mut told = Told {
            replies: self.replies,
            rows: None,
            no_count,
            gone: false,
            procedure: found.name,
            line: frame.line.get(),
        };
        let result = found.run(&names, &arguments, &mut told);
        let gone = told.gone || told.end().is_break();
        if gone {
            return Err(Failure::Gone);
        }
        let status = result
            .map_err(|error| Failure::Raised(Raised::new(error, frame.line.get(), found.name)))?;
        Ok((status, Vec::new()))
    }

    /// The arguments in the order of the parameters, converted to their types, and the place of
    /// each among the given ones.
    #[allow(clippy::type_complexity, reason = "two lists that belong together")]
    fn matched_arguments(
        &mut self,
        found: &ProcedureInfo,
        given: &[Given],
        frame: &Frame,
    ) -> Run<(Vec<Option<Typed>>, Vec<usize>)> {
        let mut arguments: Vec<Option<Typed>> = vec![None; found.parameters.len()];
        let mut places = Vec::with_capacity(given.len());
        let mut named = false;
        for (at, one) in given.iter().enumerate() {
            let place = match &one.name {
                Some(name) => {
                    named = true;
                    let bare = name.strip_prefix('@').unwrap_or(name);
                    let mut known = found.parameters.iter();
                    known.position(|other| {
                        other.name.trim_start_matches('@').eq_ignore_ascii_case(bare)
                    })
                }
                None if named => return Err(positional_after_named(at).into()),
                None => Some(at),
            };
            let parameter = place.and_then(|place| found.parameters.get(place));
            let (Some(place), Some(parameter)) = (place, parameter) else {
                return Err(too_many(found.name, one.name.as_deref()).into());
            };
            places.push(place);
            if let Some(typed) = &one.value {
                let kind = Kind::new(parameter.sql_type.clone(), true);
                let value = match &typed.value {
                    Value::Null => Value::Null,
                    value => self.scoped(frame, |scope, _| {
                        scalar::assign(value, &typed.kind, &kind, &scope.facts())
                    })?,
                };
                if let Some(argument) = arguments.get_mut(place) {
                    *argument = Some(Typed { kind, value });
                }
            }
        }
        Ok((arguments, places))
    }
}

impl super::runner::Last {
    /// The status of a text that has run: its last error, or 0.
    const fn error_status(&self) -> i32 {
        self.error
    }
}

fn known_name(known: KnownProcedure) -> &'static str {
    match known {
        KnownProcedure::Cursor => "sp_cursor",
        KnownProcedure::CursorOpen => "sp_cursoropen",
        KnownProcedure::CursorPrepare => "sp_cursorprepare",
        KnownProcedure::CursorExecute => "sp_cursorexecute",
        KnownProcedure::CursorPrepExec => "sp_cursorprepexec",
        KnownProcedure::CursorUnprepare => "sp_cursorunprepare",
        KnownProcedure::CursorFetch => "sp_cursorfetch",
        KnownProcedure::CursorOption => "sp_cursoroption",
        KnownProcedure::CursorClose => "sp_cursorclose",
        KnownProcedure::ExecuteSql => "sp_executesql",
        KnownProcedure::Prepare => "sp_prepare",
        KnownProcedure::Execute => "sp_execute",
        KnownProcedure::PrepExec => "sp_prepexec",
        KnownProcedure::PrepExecRpc => "sp_prepexecrpc",
        KnownProcedure::Unprepare => "sp_unprepare",
    }
}

fn is_control(name: &ObjectName) -> bool {
    name.schema.as_deref().is_some_and(|schema| schema.eq_ignore_ascii_case("fake"))
}

fn located(failure: Failure, frame: &Frame) -> Failure {
    match failure {
        Failure::Error(error) => {
            Failure::Raised(Raised::new(error, frame.line.get().max(1), &frame.procedure))
        }
        other => other,
    }
}

fn handle_in(given: &[Given]) -> SqlResult<i32> {
    let value = given.first().and_then(|given| given.value.as_ref());
    let number = value.and_then(|typed| typed.value.as_int());
    number
        .and_then(|number| i32::try_from(number).ok())
        .ok_or_else(|| SqlError::new(214, "Procedure expects parameter '@handle' of type 'int'."))
}

fn unknown_procedure(name: &str) -> SqlError {
    SqlError::new(2812, format!("Could not find stored procedure '{name}'."))
}

fn positional_after_named(at: usize) -> SqlError {
    SqlError::new(
        119,
        format!(
            "Must pass parameter number {} and subsequent parameters as '@name = value'. After \
             the form '@name = value' has been used, all subsequent parameters must be passed in \
             the form '@name = value'.",
            at + 1
        ),
    )
}

fn too_many(procedure: &str, name: Option<&str>) -> SqlError {
    match name {
        Some(name) => {
            SqlError::new(8145, format!("{name} is not a parameter for procedure {procedure}."))
        }
        None => SqlError::new(
            8144,
            format!("Procedure or function {procedure} has too many arguments specified."),
        ),
    }
}

//! Statements with parameters: `sp_executesql`, `sp_prepare` and its kin.

use std::{collections::BTreeMap, sync::Arc};

use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    call::Given,
    conversation::require_declared,
    failure::{Failure, Raised, Run},
    flow::Flow,
    frame::Frame,
    runner::Runner,
};
use crate::{
    kind::Typed,
    scalar,
    syntax::{self, FreeVariable, Parameter, Statement},
};

/// Statements that one session may keep prepared. A client that never gives them back is told so
/// instead of filling the memory.
const MAX_PREPARED: usize = 10_000;

/// A text with its parameters, read once.
#[derive(Clone, Debug)]
pub(super) struct PreparedText {
    pub(super) parameters: Arc<[Parameter]>,
    pub(super) statements: Arc<[Statement]>,
    free: Arc<[FreeVariable]>,
}

/// What a session has prepared, by handle.
#[derive(Clone, Debug, Default)]
pub(super) struct PreparedTexts {
    texts: BTreeMap<i32, PreparedText>,
    last: i32,
}

impl PreparedTexts {
    /// Keeps a text. Gives its handle.
    fn add(&mut self, text: PreparedText) -> SqlResult<i32> {
        if self.texts.len() >= MAX_PREPARED {
            return Err(SqlError::new(
                8181,
                format!("the session holds {MAX_PREPARED} prepared statements; unprepare some"),
            ));
        }
        self.last = self.last.wrapping_add(1).max(1);
        self.texts.insert(self.last, text);
        Ok(self.last)
    }

    fn get(&self, handle: i32) -> SqlResult<PreparedText> {
        self.texts.get(&handle).cloned().ok_or_else(|| {
            SqlError::new(8179, format!("Could not find prepared statement with handle {handle}."))
        })
    }
}

impl Runner<'_> {
    /// Reads a text and the declarations of its parameters.
    pub(super) fn prepare(&self, text: &str, parameters: &str, frame: &Frame) -> Run<PreparedText> {
        let settings = self.core.options.expressions;
        let raised = |error: syntax::SyntaxError| {
            Failure::Raised(Raised::new(error.error, error.line, &frame.procedure))
        };
        let batch = syntax::parse(text, &settings).map_err(raised)?;
        let parameters = syntax::parse_parameters(parameters, &settings).map_err(raised)?;
        Ok(PreparedText {
            parameters: parameters.into(),
            statements: batch.statements.into(),
            free: batch.free.into(),
        })
    }

    /// Runs a prepared text with arguments. Gives what its output parameters are afterwards, by
    /// the place of the argument.
    pub(super) fn run_prepared(
        &mut self,
        prepared: &PreparedText,
        arguments: &[Given],
        frame: &Frame,
    ) -> Run<Vec<(usize, Typed)>> {
        let is_parameter =
            |name: &str| prepared.parameters.iter().any(|one| one.name.eq_ignore_ascii_case(name));
        require_declared(&prepared.free, is_parameter, frame)?;
        let inner = frame.inner("")?;
        let places = self.bind(prepared, arguments, &inner, frame)?;
        let flow = self.list(&prepared.statements, &inner);
        // The errors that the text told stay with the caller's line.
        match flow? {
            Flow::Next | Flow::Return(_) | Flow::Break | Flow::Continue => {}
        }
        let outputs = places.into_iter().filter_map(|(place, name)| {
            let asked = arguments.get(place).is_some_and(|given| given.output.is_some());
            asked.then(|| inner.get(&name).map(|typed| (place, typed))).flatten()
        });
        Ok(outputs.collect())
    }

    /// Declares the parameters of a text with the arguments' values. Gives the place of each
    /// argument with its parameter's name.
    fn bind(
        &mut self,
        prepared: &PreparedText,
        arguments: &[Given],
        inner: &Frame,
        frame: &Frame,
    ) -> Run<Vec<(usize, String)>> {
        let mut places = Vec::new();
        for parameter in prepared.parameters.iter() {
            let kind = self.kind_of(&parameter.data_type, None)?;
            inner.declare(&parameter.name, Typed { kind: kind.clone(), value: Value::Null });
        }
        for (at, given) in arguments.iter().enumerate() {
            let parameter = match &given.name {
                Some(name) => prepared
                    .parameters
                    .iter()
                    .find(|one| bare(&one.name).eq_ignore_ascii_case(bare(name))),
                None => prepared.parameters.get(at),
            };
            let Some(parameter) = parameter else {
                return Err(SqlError::new(
                    8144,
                    "Procedure or function has too many arguments specified.",
                )
                .into());
            };
            if let Some(typed) = &given.value {
                self.scoped(frame, |scope, _| {
                    inner.set(&parameter.name, &typed.value, &typed.kind, &scope.facts())
                })?;
            }
            places.push((at, parameter.name.clone()));
        }
        for (at, parameter) in prepared.parameters.iter().enumerate() {
            let given = places.iter().any(|(_, name)| name.eq_ignore_ascii_case(&parameter.name))
                || arguments.get(at).is_some_and(|given| given.name.is_none());
            if given {
                continue;
            }
            let Some(default) = &parameter.default else {
                return Err(SqlError::new(
                    8178,
                    format!(
                        "The parameterized query expects the parameter '{}', which was not \
                         supplied.",
                        parameter.name
                    ),
                )
                .into());
            };
            let typed = self.value(default, frame)?;
            self.scoped(frame, |scope, _| {
                inner.set(&parameter.name, &typed.value, &typed.kind, &scope.facts())
            })?;
        }
        Ok(places)
    }

    pub(super) fn keep_prepared(&mut self, prepared: PreparedText) -> Run<i32> {
        Ok(self.core.prepared.add(prepared)?)
    }

    pub(super) fn prepared(&self, handle: i32) -> Run<PreparedText> {
        Ok(self.core.prepared.get(handle)?)
    }

    pub(super) fn unprepare(&mut self, handle: i32) -> Run<()> {
        self.core.prepared.get(handle)?;
        self.core.prepared.texts.remove(&handle);
        Ok(())
    }

    /// A given argument as a text.
    pub(super) fn text_argument(&mut self, given: Option<&Given>, frame: &Frame) -> Run<String> {
        let Some(typed) = given.and_then(|given| given.value.as_ref()) else {
            return Ok(String::new());
        };
        let kind = crate::kind::Kind::new(cdc_core::SqlType::NVarChar(cdc_core::Length::Max), true);
        let value = self.scoped(frame, |scope, _| {
            scalar::convert(&typed.value, &typed.kind, &kind, None, true, &scope.facts())
        })?;
        match value {
            Value::Text(text) => Ok(text.to_string()),
            _ => Ok(String::new()),
        }
    }
}

/// A parameter's name without `@`: some clients leave it out.
fn bare(name: &str) -> &str {
    name.strip_prefix('@').unwrap_or(name)
}

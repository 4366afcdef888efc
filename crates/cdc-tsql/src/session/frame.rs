//! What belongs to one batch or procedure call: variables, and what its statements are inside of.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use cdc_fake::{SqlError, SqlResult, Value};

use super::{failure::Raised, temporary::TableVariable};
use crate::{
    kind::{Kind, Typed},
    scalar::{self, Facts},
};

/// Calls within calls, as the server limits them.
pub(super) const MAX_NESTING: u8 = 32;

/// The place that statements run in.
#[derive(Default)]
pub(super) struct Frame {
    pub(super) variables: RefCell<HashMap<String, Typed>>,
    pub(super) tables: RefCell<HashMap<String, TableVariable>>,
    /// True inside a procedure, where ends of statements are told differently.
    pub(super) in_procedure: bool,
    /// The procedure's name in messages; empty in a batch.
    pub(super) procedure: String,
    /// How many calls are open.
    pub(super) nesting: u8,
    /// How many TRY blocks are open, of callers too.
    pub(super) tries: Cell<u32>,
    /// The errors that CATCH blocks are handling, innermost last.
    pub(super) caught: RefCell<Vec<Raised>>,
    /// The line of the statement that runs.
    pub(super) line: Cell<u32>,
}

impl Frame {
    /// The frame of a text that a statement of this one runs.
    pub(super) fn inner(&self, procedure: &str) -> SqlResult<Self> {
        if self.nesting >= MAX_NESTING {
            return Err(SqlError::new(
                217,
                "Maximum stored procedure, function, trigger, or view nesting level exceeded \
                 (limit 32).",
            ));
        }
        Ok(Self {
            in_procedure: true,
            procedure: procedure.to_owned(),
            nesting: self.nesting + 1,
            tries: self.tries.clone(),
            caught: self.caught.clone(),
            ..Self::default()
        })
    }

    pub(super) fn declare(&self, name: &str, value: Typed) {
        self.variables.borrow_mut().insert(name.to_lowercase(), value);
    }

    pub(super) fn get(&self, name: &str) -> Option<Typed> {
        self.variables.borrow().get(&name.to_lowercase()).cloned()
    }

    /// Gives a variable a value, converted to its type.
    pub(super) fn set(
        &self,
        name: &str,
        value: &Value,
        from: &Kind,
        facts: &Facts,
    ) -> SqlResult<()> {
        let kind = match self.variables.borrow().get(&name.to_lowercase()) {
            Some(typed) => typed.kind.clone(),
            None => return Err(undeclared(name)),
        };
        // NULL has no type of its own.
        let value = match value {
            Value::Null => Value::Null,
            value => scalar::assign(value, from, &kind, facts)?,
        };
        self.declare(name, Typed { kind, value });
        Ok(())
    }
}

/// The error of a variable that was not declared.
pub(super) fn undeclared(name: &str) -> SqlError {
    SqlError::new(137, format!("Must declare the scalar variable \"{name}\"."))
}

//! Computing bound expressions and conditions over the rows at hand.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell, RefCell},
    cmp::Ordering,
    collections::HashSet,
    ops::ControlFlow,
    sync::Arc,
};

use cdc_fake::{SqlResult, Value};

use super::{
    Context,
    expression::{Argument, Chain, Column, Condition, Conversion, Expr, Node},
    plan::Subquery,
    refusal::{NOT_SUPPORTED, cancelled, no_variable, several_rows, too_many_rows},
};
use crate::{
    kind::{Kind, Typed},
    relation::Row,
    scalar::{self, ArgumentValue, Facts},
};

/// Whether to go on.
pub(super) type Flow = SqlResult<ControlFlow<()>>;

/// The most rows that a statement holds at once, for sorting, joining and grouping: more than any
/// test's tables, less than a machine's memory.
const MAX_HELD_ROWS: u64 = 20_000_000;
/// Rows between two looks at whether the statement was cancelled.
const ROWS_A_LOOK: u32 = 1_024;

static NULL: Value = Value::Null;

/// The rows at hand: one for each source, and those of the queries around.
pub(super) struct Frame<'a> {
    /// A row for each slot; none for the NULL side of an outer join.
    pub rows: Vec<Option<Row>>,
    /// The rows at hand in the query around this one.
    pub outer: Option<&'a Frame<'a>>,
}

impl<'a> Frame<'a> {
    /// A frame of so many slots, all without a row.
    pub(super) fn new(slots: usize, outer: Option<&'a Frame<'a>>) -> Self {
        Self { rows: vec![None; slots], outer }
    }

    /// A column's value; NULL when its slot has no row.
    #[inline]
    pub(super) fn column(&self, column: Column) -> &Value {
        let mut frame = self;
        for _ in 0..column.depth {
            match frame.outer {
                Some(outer) => frame = outer,
                None => return &NULL,
            }
        }
        match frame.rows.get(column.slot) {
            Some(Some(row)) => row.get(column.column).unwrap_or(&NULL),
            _ => &NULL,
        }
    }

    /// Puts a row into a slot.
    #[inline]
    pub(super) fn put(&mut self, slot: usize, row: Option<Row>) {
        if let Some(place) = self.rows.get_mut(slot) {
            *place = row;
        }
    }
}

/// An answer of a query that does not depend on the rows around it.
pub(super) enum Kept {
    /// The one value.
    Value(Value),
    /// Whether there is a row.
    Exists(bool),
    /// The values of the one column, and for equality their keys.
    Values { values: Vec<Value>, keys: HashSet<Vec<u8>>, has_null: bool },
}

/// A statement while it runs.
pub(super) struct Run<'a> {
    pub(super) context: Context<'a>,
    pub(super) facts: Facts,
    variables: Vec<Value>,
    once: Vec<OnceCell<Value>>,
    pub(super) kept: Vec<OnceCell<Kept>>,
    /// The last round's rows of each recursive expression.
    pub(super) working: RefCell<Vec<Arc<Vec<Row>>>>,
    /// How deep recursive expressions go; none for any depth.
    pub(super) max_recursion: Option<u32>,
    held: Cell<u64>,
    looked: Cell<u32>,
}

/// How many places a statement needs while it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) variables: Vec<String>,
    pub(super) once: usize,
    pub(super) kept: usize,
    pub(super) recursions: usize,
}

impl<'a> Run<'a> {
    /// A run for what depends on nothing.
    pub(super) fn bare(context: &Context<'a>, facts: Facts) -> Self {
        Self {
            context: *context,
            facts,
            variables: Vec::new(),
            once: Vec::new(),
            kept: Vec::new(),
            working: RefCell::default(),
            max_recursion: None,
            held: Cell::new(0),
            looked: Cell::new(0),
        }
    }

    /// A run of a bound statement: variables have the values of now.
    ///
    /// # Errors
    /// 137 for a variable that is gone.
    pub(super) fn new(
        context: &Context<'a>,
        places: &Places,
        max_recursion: Option<u32>,
    ) -> SqlResult<Self> {
        let variables = places
            .variables
            .iter()
            .map(|name| {
                let typed = context.catalogue.variable(name).ok_or_else(|| no_variable(name))?;
                Ok(typed.value)
            })
            .collect::<SqlResult<Vec<_>>>()?;
        Ok(Self {
            variables,
            once: (0..places.once).map(|_| OnceCell::new()).collect(),
            kept: (0..places.kept).map(|_| OnceCell::new()).collect(),
            working: RefCell::new(vec![Arc::default(); places.recursions]),
            max_recursion,
            ..Self::bare(context, super::binder::facts(context))
        })
    }

    /// Counts a row that was read, and ends a statement that was cancelled.
    #[inline]
    pub(super) fn look(&self) -> SqlResult<()> {
        let rows = self.looked.get() + 1;
        if rows < ROWS_A_LOOK {
            self.looked.set(rows);
            return Ok(());
        }
        self.looked.set(0);
        if self.context.cancel.is_set() { Err(cancelled()) } else { Ok(()) }
    }

    /// Counts rows that are held.
    pub(super) fn hold(&self, rows: u64) -> SqlResult<()> {
        let held = self.held.get().saturating_add(rows);
        self.held.set(held);
        if held > MAX_HELD_ROWS { Err(too_many_rows()) } else { Ok(()) }
    }

    /// Counts rows that are let go.
    pub(super) fn let_go(&self, rows: u64) {
        self.held.set(self.held.get().saturating_sub(rows));
    }

    /// The value of an expression without columns.
    pub(super) fn constant(&self, expr: &Expr) -> SqlResult<Value> {
        let frame = Frame::new(0, None);
        self.value(expr, &frame).map(Cow::into_owned)
    }

    /// The truth of a condition without columns.
    pub(super) fn known(&self, condition: &Condition) -> SqlResult<Option<bool>> {
        self.truth(condition, &Frame::new(0, None))
    }

    /// The value of an expression.
    pub(super) fn value<'v>(
        &'v self,
        expr: &'v Expr,
        frame: &'v Frame<'_>,
    ) -> SqlResult<Cow<'v, Value>> {
        Ok(match &expr.node {
            Node::Column(column) => Cow::Borrowed(frame.column(*column)),
            Node::Constant(value) => Cow::Borrowed(value),
            Node::Null => Cow::Borrowed(&NULL),
            Node::Variable(place) => Cow::Borrowed(self.variables.get(*place).unwrap_or(&NULL)),
            Node::LiveVariable(name) => {
                let typed = self.context.catalogue.variable(name);
                Cow::Owned(typed.ok_or_else(|| no_variable(name))?.value)
            }
            Node::Once(place, of) => match self.once.get(*place) {
                Some(cell) => {
                    if cell.get().is_none() {
                        let value = self.value(of, frame)?.into_owned();
                        return Ok(Cow::Borrowed(cell.get_or_init(|| value)));
                    }
                    Cow::Borrowed(cell.get().unwrap_or(&NULL))
                }
                None => self.value(of, frame)?,
            },
            Node::Operate(operator, sides) => {
                let (left, right) = &**sides;
                let (one, other) = (self.value(left, frame)?, self.value(right, frame)?);
                Cow::Owned(scalar::operate(
                    *operator,
                    (&one, &left.kind),
                    (&other, &right.kind),
                    &self.facts,
                )?)
            }
            Node::Chain(chain) => Cow::Owned(self.chain(chain, frame)?),
            Node::Unary(operator, of) => {
                let value = self.value(of, frame)?;
                Cow::Owned(scalar::unary(*operator, (&value, &of.kind), &self.facts)?)
            }
            Node::Convert(conversion) => Cow::Owned(self.converted(conversion, &expr.kind, frame)?),
            Node::Call { name, arguments } => Cow::Owned(self.called(name, arguments, frame)?),
            Node::CatalogueCall { name, arguments } => {
                let arguments = self.typed(arguments, frame)?;
                Cow::Owned(self.context.catalogue.function(name, &arguments)?)
            }
            Node::Case { branches, otherwise } => {
                self.case(branches, otherwise.as_deref(), frame)?
            }
            Node::Coalesce(values) => {
                for value in values {
                    let value = self.value(value, frame)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Cow::Borrowed(&NULL)
            }
            Node::Choose(place, values) => {
                let place = self.value(place, frame)?.as_int();
                let place = place.and_then(|place| usize::try_from(place).ok()?.checked_sub(1));
                match place.and_then(|place| values.get(place)) {
                    Some(value) => self.value(value, frame)?,
                    None => Cow::Borrowed(&NULL),
                }
            }
            Node::Query(query) => self.only_value(query, frame)?,
        })
    }

    fn chain(&self, chain: &Chain, frame: &Frame<'_>) -> SqlResult<Value> {
        let mut value = self.value(&chain.first, frame)?.into_owned();
        let mut kind = &chain.first.kind;
        for step in &chain.steps {
            let right = self.value(&step.right, frame)?;
            let operands = ((&value, kind), (&*right, &step.right.kind));
            value = scalar::operate(step.operator, operands.0, operands.1, &self.facts)?;
            kind = &step.kind;
        }
        Ok(value)
    }

    /// The value of the first branch whose condition holds.
    fn case<'v>(
        &'v self,
        branches: &'v [(Condition, Expr)],
        otherwise: Option<&'v Expr>,
        frame: &'v Frame<'_>,
    ) -> SqlResult<Cow<'v, Value>> {
        for (condition, value) in branches {
            if self.truth(condition, frame)? == Some(true) {
                return self.value(value, frame);
            }
        }
        otherwise.map_or(Ok(Cow::Borrowed(&NULL)), |value| self.value(value, frame))
    }

    /// Arguments with their kinds.
    pub(super) fn typed(&self, arguments: &[Expr], frame: &Frame<'_>) -> SqlResult<Vec<Typed>> {
        arguments
            .iter()
            .map(|argument| {
                let value = self.value(argument, frame)?.into_owned();
                Ok(Typed { kind: argument.kind.clone(), value })
            })
            .collect()
    }

    fn called(&self, name: &str, arguments: &[Argument], frame: &Frame<'_>) -> SqlResult<Value> {
        let arguments = arguments
            .iter()
            .map(|argument| {
                Ok(match argument {
                    Argument::Word(word) => ArgumentValue::Word(word.clone()),
                    Argument::Value(value) => ArgumentValue::Value(Typed {
                        kind: value.kind.clone(),
                        value: self.value(value, frame)?.into_owned(),
                    }),
                })
            })
            .collect::<SqlResult<Vec<_>>>()?;
        scalar::function(name, &arguments, &self.facts)
    }

    fn converted(&self, conversion: &Conversion, to: &Kind, frame: &Frame<'_>) -> SqlResult<Value> {
        let Conversion { of, style, explicit, parses, lenient } = conversion;
        let value = self.value(of, frame)?;
        let style = match style {
            None => None,
            Some(style) => match &*self.value(style, frame)? {
                Value::Null => return Ok(Value::Null),
                value => value.as_int().and_then(|style| i32::try_from(style).ok()),
            },
        };
        if value.is_null() {
            return Ok(Value::Null);
        }
        let converted = if *parses {
            scalar::parse(&value, &of.kind, to, &self.facts)
        } else {
            scalar::convert(&value, &of.kind, to, style, *explicit, &self.facts)
        };
        match converted {
            // What is not supported is no NULL.
            Err(error) if *lenient && error.number != NOT_SUPPORTED => Ok(Value::Null),
            converted => converted,
        }
    }

    /// The one value of a query.
    fn only_value<'v>(&'v self, query: &Subquery, frame: &Frame<'_>) -> SqlResult<Cow<'v, Value>> {
        let cell = query.kept.and_then(|place| self.kept.get(place));
        if let Some(Kept::Value(value)) = cell.and_then(OnceCell::get) {
            return Ok(Cow::Borrowed(value));
        }
        let mut found: Option<Value> = None;
        let _ = self.plan(&query.plan, Some(frame), &mut |row| {
            if found.is_some() {
                return Err(several_rows());
            }
            found = Some(row.first().cloned().unwrap_or(Value::Null));
            Ok(ControlFlow::Continue(()))
        })?;
        let value = found.unwrap_or(Value::Null);
        if let Some(cell) = cell
            && let Kept::Value(value) = cell.get_or_init(|| Kept::Value(value.clone()))
        {
            return Ok(Cow::Borrowed(value));
        }
        Ok(Cow::Owned(value))
    }
}

/// How two values of a kind compare; none when one is NULL.
#[inline]
pub(super) fn ordering(left: &Value, right: &Value, kind: &Kind) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Bytes(left), Value::Bytes(right)) if left.len() == right.len() => {
            Some(left.cmp(right))
        }
        (Value::Null, _) | (_, Value::Null) => None,
        _ => scalar::compare(left, right, kind),
    }
}

//! Computing bound expressions and conditions over the rows at hand.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell, RefCell},
    cmp::Ordering,
    collections::HashSet,
    ops::ControlFlow,
    sync::Arc,
};

use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    Context,
    expression::{
        Argument, Column, Comparing, Condition, Conversion, Expr, Liking, Node, Quantified, Test,
    },
    plan::Subquery,
    refusal::{cancelled, no_variable, several_rows, too_many_rows},
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
enum Kept {
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
    kept: Vec<OnceCell<Kept>>,
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
                for (condition, value) in branches {
                    if self.truth(condition, frame)? == Some(true) {
                        return self.value(value, frame);
                    }
                }
                match otherwise {
                    Some(value) => self.value(value, frame)?,
                    None => Cow::Borrowed(&NULL),
                }
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
        let Conversion { of, style, explicit, lenient } = conversion;
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
        match scalar::convert(&value, &of.kind, to, style, *explicit, &self.facts) {
            Err(_) if *lenient => Ok(Value::Null),
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
        self.plan(&query.plan, Some(frame), &mut |row| {
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

    /// The truth of a condition; none when it is unknown.
    pub(super) fn truth(
        &self,
        condition: &Condition,
        frame: &Frame<'_>,
    ) -> SqlResult<Option<bool>> {
        Ok(match condition {
            Condition::Known(truth) => *truth,
            Condition::All(parts) => {
                let mut result = Some(true);
                for part in parts {
                    match self.truth(part, frame)? {
                        Some(true) => {}
                        Some(false) => return Ok(Some(false)),
                        None => result = None,
                    }
                }
                result
            }
            Condition::Any(parts) => {
                let mut result = Some(false);
                for part in parts {
                    match self.truth(part, frame)? {
                        Some(false) => {}
                        Some(true) => return Ok(Some(true)),
                        None => result = None,
                    }
                }
                result
            }
            Condition::Not(part) => self.truth(part, frame)?.map(|truth| !truth),
            Condition::Compare(comparing) => {
                let Comparing { left, test, right, kind } = &**comparing;
                let (one, other) = (self.value(left, frame)?, self.value(right, frame)?);
                ordering(&one, &other, kind).map(|ordering| test.holds(ordering))
            }
            Condition::Distinct { of, negated } => {
                let one = self.value(&of.left, frame)?;
                let other = self.value(&of.right, frame)?;
                let distinct = match (one.is_null(), other.is_null()) {
                    (true, true) => false,
                    (false, false) => {
                        !ordering(&one, &other, &of.kind).is_some_and(Ordering::is_eq)
                    }
                    _ => true,
                };
                Some(distinct != *negated)
            }
            Condition::IsNull { of, negated } => Some(self.value(of, frame)?.is_null() != *negated),
            Condition::Like(liking) => self.like(liking, frame)?,
            Condition::In { of, list, kind, negated } => {
                self.is_in(of, list, kind, frame)?.map(|found| found != *negated)
            }
            Condition::Quantified(quantified) => {
                self.quantified(quantified, frame)?.map(|truth| truth != quantified.negated)
            }
            Condition::Exists { query, negated } => Some(self.exists(query, frame)? != *negated),
        })
    }

    fn like(&self, liking: &Liking, frame: &Frame<'_>) -> SqlResult<Option<bool>> {
        let of = self.value(&liking.of, frame)?;
        let pattern = self.value(&liking.pattern, frame)?;
        let escape = match &liking.escape {
            None => None,
            Some(escape) => match &*self.value(escape, frame)? {
                Value::Text(text) => {
                    let mut letters = text.chars();
                    match (letters.next(), letters.next()) {
                        (Some(letter), None) => Some(letter),
                        _ => {
                            return Err(SqlError::new(
                                506,
                                "The invalid escape character was specified in a LIKE predicate.",
                            ));
                        }
                    }
                }
                _ => return Ok(None),
            },
        };
        let (Value::Text(of), Value::Text(pattern)) = (&*of, &*pattern) else {
            return Ok(None);
        };
        let found = scalar::like(of, pattern, escape, liking.collation)?;
        Ok(Some(found != liking.negated))
    }

    fn is_in(
        &self,
        of: &Expr,
        list: &[Expr],
        kind: &Kind,
        frame: &Frame<'_>,
    ) -> SqlResult<Option<bool>> {
        let of = self.value(of, frame)?;
        if of.is_null() {
            return Ok(if list.is_empty() { Some(false) } else { None });
        }
        let mut result = Some(false);
        for item in list {
            let item = self.value(item, frame)?;
            match ordering(&of, &item, kind) {
                Some(Ordering::Equal) => return Ok(Some(true)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    fn exists(&self, query: &Subquery, frame: &Frame<'_>) -> SqlResult<bool> {
        let cell = query.kept.and_then(|place| self.kept.get(place));
        if let Some(Kept::Exists(found)) = cell.and_then(OnceCell::get) {
            return Ok(*found);
        }
        let mut found = false;
        self.plan(&query.plan, Some(frame), &mut |_| {
            found = true;
            Ok(ControlFlow::Break(()))
        })?;
        if let Some(cell) = cell {
            cell.get_or_init(|| Kept::Exists(found));
        }
        Ok(found)
    }

    fn quantified(&self, quantified: &Quantified, frame: &Frame<'_>) -> SqlResult<Option<bool>> {
        let left = self.value(&quantified.left, frame)?;
        let cell = quantified.query.kept.and_then(|place| self.kept.get(place));
        if let Some(cell) = cell {
            if cell.get().is_none() {
                let kept = self.kept_values(quantified, frame)?;
                cell.get_or_init(|| kept);
            }
            if let Some(Kept::Values { values, keys, has_null }) = cell.get() {
                return Ok(among(&left, quantified, values, keys, *has_null));
            }
        }
        let mut result = Some(quantified.all);
        self.plan(&quantified.query.plan, Some(frame), &mut |row| {
            let right = self.right_value(quantified, row)?;
            let truth =
                ordering(&left, &right, &quantified.kind).map(|found| quantified.test.holds(found));
            match truth {
                None => result = None,
                Some(truth) if truth != quantified.all => {
                    result = Some(truth);
                    return Ok(ControlFlow::Break(()));
                }
                Some(_) => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(result)
    }

    fn right_value(&self, quantified: &Quantified, row: &[Value]) -> SqlResult<Value> {
        if matches!(quantified.right.node, Node::Column(_)) {
            return Ok(row.first().cloned().unwrap_or(Value::Null));
        }
        let frame = Frame { rows: vec![Some(row.into())], outer: None };
        self.value(&quantified.right, &frame).map(Cow::into_owned)
    }

    fn kept_values(&self, quantified: &Quantified, frame: &Frame<'_>) -> SqlResult<Kept> {
        let (mut values, mut keys, mut has_null) = (Vec::new(), HashSet::new(), false);
        let by_key = quantified.test == Test::Equal && !quantified.all;
        self.plan(&quantified.query.plan, Some(frame), &mut |row| {
            let right = self.right_value(quantified, row)?;
            self.hold(1)?;
            if right.is_null() {
                has_null = true;
            } else if by_key {
                keys.insert(scalar::order_key([(&right, &quantified.kind, false)]));
            } else {
                values.push(right);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Kept::Values { values, keys, has_null })
    }
}

/// A comparison of a value with those of a query.
fn among(
    left: &Value,
    quantified: &Quantified,
    values: &[Value],
    keys: &HashSet<Vec<u8>>,
    has_null: bool,
) -> Option<bool> {
    let empty = values.is_empty() && keys.is_empty() && !has_null;
    if empty {
        return Some(quantified.all);
    }
    if left.is_null() {
        return None;
    }
    let unknown = if has_null { None } else { Some(quantified.all) };
    if quantified.test == Test::Equal && !quantified.all {
        let key = scalar::order_key([(left, &quantified.kind, false)]);
        return if keys.contains(&key) { Some(true) } else { unknown };
    }
    let decided = values.iter().any(|right| {
        ordering(left, right, &quantified.kind)
            .is_some_and(|found| quantified.test.holds(found) != quantified.all)
    });
    if decided { Some(!quantified.all) } else { unknown }
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

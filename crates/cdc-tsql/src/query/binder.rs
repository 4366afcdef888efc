//! Binding a statement: what it collects on the way, and how expressions that do not depend on
//! rows are computed early.

use std::cell::{Cell, RefCell};

use cdc_core::SqlType;
use cdc_fake::{SqlResult, Value};

use super::{
    Context,
    evaluate::{Places, Run},
    expression::{Argument, Condition, Conversion, Expr, Node},
    refusal::{no_variable, too_deep},
};
use crate::{
    kind::Kind,
    scalar::{self, Facts},
};

mod call;
mod grouping;
mod predicate;
pub(super) mod query;
pub(super) mod select;
mod source;
mod value;
mod window;

pub(super) use self::value::is_text;

/// How deeply expressions and queries may nest: a session's stack is what ends first, and no
/// client nests so.
const MAX_NESTING: usize = 200;

/// A statement while it is bound.
pub(super) struct Binder<'a> {
    pub(super) context: Context<'a>,
    pub(super) facts: Facts,
    /// The variables so far, in the order of their places.
    pub(super) variables: RefCell<Vec<String>>,
    /// Variables that the statement sets itself.
    pub(super) live: Vec<String>,
    /// How many values are computed once a run.
    pub(super) once: Cell<usize>,
    /// How many answers of queries are kept.
    pub(super) kept: Cell<usize>,
    /// How many recursive expressions there are.
    pub(super) recursions: Cell<usize>,
    /// False when anything but data, text and variables decides.
    pub(super) only_data: Cell<bool>,
    nesting: Cell<usize>,
}

/// On what an expression's value depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Dependence {
    /// On nothing.
    Nothing,
    /// On variables, the moment, the server.
    Run,
    /// On rows, or it differs with each call.
    Row,
}

impl<'a> Binder<'a> {
    /// A statement that sets the variables `live` row by row.
    pub(super) fn new(context: Context<'a>, live: Vec<String>) -> Self {
        let facts = facts(&context);
        Self {
            context,
            facts,
            variables: RefCell::default(),
            live,
            once: Cell::new(0),
            kept: Cell::new(0),
            recursions: Cell::new(0),
            only_data: Cell::new(true),
            nesting: Cell::new(0),
        }
    }

    /// Runs `bind` one level deeper.
    pub(super) fn nested<T>(&self, bind: impl FnOnce() -> SqlResult<T>) -> SqlResult<T> {
        let depth = self.nesting.get();
        if depth >= MAX_NESTING {
            return Err(too_deep());
        }
        self.nesting.set(depth + 1);
        let bound = bind();
        self.nesting.set(depth);
        bound
    }

    /// The next number of a counter.
    pub(super) fn next(counter: &Cell<usize>) -> usize {
        let number = counter.get();
        counter.set(number + 1);
        number
    }

    /// A variable (`@x`) or a value of the session (`@@x`).
    fn variable(&self, name: &str) -> SqlResult<Expr> {
        let typed = self.context.catalogue.variable(name).ok_or_else(|| no_variable(name))?;
        let mut kind = typed.kind;
        kind.nullable = true;
        if name.starts_with("@@") {
            self.only_data.set(false);
            kind.nullable = false;
        }
        if self.live.iter().any(|live| live.eq_ignore_ascii_case(name)) {
            return Ok(Expr::new(Node::LiveVariable(name.to_owned()), kind));
        }
        let mut variables = self.variables.borrow_mut();
        let place = variables.iter().position(|known| known.eq_ignore_ascii_case(name));
        let place = place.unwrap_or_else(|| {
            variables.push(name.to_owned());
            variables.len() - 1
        });
        Ok(Expr::new(Node::Variable(place), kind))
    }

    /// Computes what depends on nothing; marks what is the same for all rows.
    pub(super) fn settled(&self, expr: Expr) -> Expr {
        match &expr.node {
            Node::Constant(_)
            | Node::Null
            | Node::Column(_)
            | Node::Variable(_)
            | Node::LiveVariable(_)
            | Node::Once(..)
            | Node::Query(_) => return expr,
            _ => {}
        }
        match dependence(&expr) {
            Dependence::Row => return expr,
            Dependence::Nothing => {
                let run = Run::bare(&self.context, self.facts);
                if let Ok(value) = run.constant(&expr) {
                    return Expr::new(Node::Constant(value), expr.kind);
                }
            }
            Dependence::Run => {}
        }
        // A value that fails to be computed fails only when it is asked for.
        let kind = expr.kind.clone();
        Expr::new(Node::Once(Self::next(&self.once), Box::new(expr)), kind)
    }

    /// The expression as one of a kind that it converts to without being told.
    ///
    /// # Errors
    /// 206, 257.
    pub(super) fn converted(&self, expr: Expr, kind: &Kind) -> SqlResult<Expr> {
        self.made(expr, kind, false)
    }

    /// As [`Binder::converted`]; texts are cut when `explicit`.
    pub(super) fn made(&self, expr: Expr, kind: &Kind, explicit: bool) -> SqlResult<Expr> {
        let nullable = expr.kind.nullable;
        let kind = Kind { nullable, ..kind.clone() };
        if matches!(expr.node, Node::Null) {
            return Ok(Expr::new(Node::Null, kind));
        }
        if is_alike(&expr.kind.sql_type, &kind.sql_type, explicit) {
            return Ok(Expr { kind, ..expr });
        }
        scalar::check_conversion(&expr.kind, &kind, explicit)?;
        let conversion = Conversion::new(expr, explicit);
        Ok(self.settled(Expr::new(Node::Convert(Box::new(conversion)), kind)))
    }

    /// The kind that several expressions have in common; bare NULLs do not count.
    ///
    /// # Errors
    /// 206, 468.
    pub(super) fn common<'e>(&self, values: impl IntoIterator<Item = &'e Expr>) -> SqlResult<Kind> {
        let mut nullable = false;
        let mut kinds = Vec::new();
        for value in values {
            nullable |= value.kind.nullable;
            if !matches!(value.node, Node::Null) {
                kinds.push(value.kind.clone());
            }
        }
        let mut kind = match kinds.as_slice() {
            [] => Kind::new(SqlType::Int, true),
            [kind] => kind.clone(),
            several => scalar::common_kind(several)?,
        };
        kind.nullable = nullable;
        Ok(kind)
    }
}

/// What expressions of a statement depend on besides their operands.
pub(super) fn facts(context: &Context<'_>) -> Facts {
    Facts {
        now: context.catalogue.now(),
        settings: context.catalogue.settings(),
        collation: context.catalogue.collation(),
    }
}

/// True when a value of `from` is the same as one of `to` already. With `cutting`, the length of
/// `to` counts.
fn is_alike(from: &SqlType, to: &SqlType, cutting: bool) -> bool {
    use SqlType as T;
    if from == to {
        return true;
    }
    if cutting {
        return matches!((from, to), (T::TinyInt | T::SmallInt, T::Int | T::BigInt))
            || matches!((from, to), (T::Int, T::BigInt));
    }
    match (from, to) {
        (
            T::TinyInt | T::SmallInt | T::Int | T::BigInt,
            T::TinyInt | T::SmallInt | T::Int | T::BigInt,
        )
        | (
            T::Char(_) | T::NChar(_) | T::VarChar(_) | T::NVarChar(_),
            T::VarChar(_) | T::NVarChar(_),
        )
        | (T::Binary(_) | T::VarBinary(_) | T::RowVersion, T::VarBinary(_))
        | (T::SmallDateTime, T::DateTime2 { .. })
        | (T::SmallMoney, T::Money) => true,
        (T::Char(from), T::NChar(to)) => from == to,
        (T::Decimal { scale: from, .. }, T::Decimal { scale: to, .. }) => from == to,
        (T::Money | T::SmallMoney, T::Decimal { scale, .. }) => *scale == 4,
        (T::DateTime2 { scale: from }, T::DateTime2 { scale: to })
        | (T::DateTimeOffset { scale: from }, T::DateTimeOffset { scale: to })
        | (T::Time { scale: from }, T::Time { scale: to }) => from <= to,
        _ => false,
    }
}

fn dependence(expr: &Expr) -> Dependence {
    let most = |values: &mut dyn Iterator<Item = &Expr>| {
        values.map(dependence).max().unwrap_or(Dependence::Nothing)
    };
    match &expr.node {
        Node::Constant(_) | Node::Null => Dependence::Nothing,
        Node::Variable(_) | Node::Once(..) => Dependence::Run,
        Node::Column(_) | Node::LiveVariable(_) | Node::Query(_) => Dependence::Row,
        Node::Operate(_, sides) => dependence(&sides.0).max(dependence(&sides.1)),
        Node::Chain(chain) => most(&mut chain.operands()),
        Node::Unary(_, of) => dependence(of),
        Node::Convert(conversion) => {
            let style = conversion.style.as_ref().map_or(Dependence::Nothing, dependence);
            dependence(&conversion.of).max(style)
        }
        Node::Call { name, arguments } => {
            let own = if scalar::is_deterministic(name) {
                Dependence::Nothing
            } else if name.eq_ignore_ascii_case("NEWID") {
                Dependence::Row
            } else {
                Dependence::Run
            };
            own.max(most(&mut arguments.iter().filter_map(|argument| match argument {
                Argument::Value(value) => Some(value),
                Argument::Word(_) => None,
            })))
        }
        Node::CatalogueCall { arguments, .. } => Dependence::Run.max(most(&mut arguments.iter())),
        Node::Case { branches, otherwise } => {
            let rest = otherwise.as_deref().map_or(Dependence::Nothing, dependence);
            branches.iter().fold(rest, |sum, (condition, value)| {
                sum.max(condition_dependence(condition)).max(dependence(value))
            })
        }
        Node::Coalesce(values) => most(&mut values.iter()),
        Node::Choose(place, values) => dependence(place).max(most(&mut values.iter())),
    }
}

fn condition_dependence(condition: &Condition) -> Dependence {
    match condition {
        Condition::Known(_) => Dependence::Nothing,
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().map(condition_dependence).max().unwrap_or(Dependence::Nothing)
        }
        Condition::Not(part) => condition_dependence(part),
        Condition::Compare(of) | Condition::Distinct { of, .. } => {
            dependence(&of.left).max(dependence(&of.right))
        }
        Condition::IsNull { of, .. } => dependence(of),
        Condition::Like(liking) => {
            let escape = liking.escape.as_ref().map_or(Dependence::Nothing, dependence);
            dependence(&liking.of).max(dependence(&liking.pattern)).max(escape)
        }
        Condition::In { of, list, .. } => {
            list.iter().map(dependence).fold(dependence(of), Ord::max)
        }
        Condition::Quantified(_) | Condition::Exists { .. } => Dependence::Row,
    }
}

impl Binder<'_> {
    /// Decides a condition that depends on nothing.
    pub(super) fn settled_condition(&self, condition: Condition) -> Condition {
        if matches!(condition, Condition::Known(_))
            || condition_dependence(&condition) != Dependence::Nothing
        {
            return condition;
        }
        let run = Run::bare(&self.context, self.facts);
        match run.known(&condition) {
            Ok(truth) => Condition::Known(truth),
            Err(_) => condition,
        }
    }

    /// How many places what was bound needs while it runs.
    pub(super) fn places(&self) -> Places {
        Places {
            variables: self.variables.borrow().clone(),
            once: self.once.get(),
            kept: self.kept.get(),
            recursions: self.recursions.get(),
        }
    }

    /// A constant.
    pub(super) fn constant(value: Value, sql_type: SqlType) -> Expr {
        Expr::new(Node::Constant(value), Kind::new(sql_type, false))
    }
}

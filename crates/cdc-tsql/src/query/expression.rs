//! Bound expressions and conditions: every name a place in a row, every operation with its types.

use cdc_fake::Value;

use super::plan::Subquery;
use crate::{
    kind::Kind,
    relation::ObjectName,
    scalar::{Operator, Unary},
};

/// An expression and the kind of its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expr {
    /// How its value comes about.
    pub node: Node,
    /// What it gives.
    pub kind: Kind,
}

/// How a value comes about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Written in the text, or computed when the statement was bound.
    Constant(Value),
    /// A bare `NULL`, which has no type of its own.
    Null,
    /// A column of a row.
    Column(Column),
    /// A variable, by its place among the statement's variables.
    Variable(usize),
    /// A variable that the statement itself sets, row by row.
    LiveVariable(String),
    /// The same for every row: computed once a run, at its first use.
    Once(usize, Box<Expr>),
    /// `left op right`.
    Operate(Operator, Box<(Expr, Expr)>),
    /// `first op right op right ...`, from left to right: too long for each to hold the next.
    Chain(Box<Chain>),
    /// `op of`.
    Unary(Unary, Box<Expr>),
    /// Made one of this expression's kind.
    Convert(Box<Conversion>),
    /// A function of values.
    Call {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: Vec<Argument>,
    },
    /// A function that knows the server.
    CatalogueCall {
        /// Its name.
        name: ObjectName,
        /// Its arguments.
        arguments: Vec<Expr>,
    },
    /// The value of the first branch whose condition holds. Branches have this kind already.
    Case {
        /// Conditions and values.
        branches: Vec<(Condition, Expr)>,
        /// The value otherwise; NULL when there is none.
        otherwise: Option<Box<Expr>>,
    },
    /// The first that is not NULL. All have this kind already.
    Coalesce(Vec<Expr>),
    /// The one at the place that the first says, from 1.
    Choose(Box<Expr>, Vec<Expr>),
    /// The one value of a query, NULL when it gives no row.
    Query(Box<Subquery>),
}

/// Values computed from left to right.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chain {
    /// What it begins with.
    pub first: Expr,
    /// What is done to the value so far, in turn.
    pub steps: Vec<Step>,
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    /// What is done.
    pub operator: Operator,
    /// With what.
    pub right: Expr,
    /// The kind of the result.
    pub kind: Kind,
}

impl Chain {
    /// Its operands, from left to right.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Expr> {
        std::iter::once(&self.first).chain(self.steps.iter().map(|step| &step.right))
    }
}

/// A conversion to the kind of its expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conversion {
    /// Of what.
    pub of: Expr,
    /// CONVERT's style.
    pub style: Option<Expr>,
    /// True for CAST and CONVERT, which cut texts.
    pub explicit: bool,
    /// True for PARSE, which reads a text as people write it.
    pub parses: bool,
    /// True for TRY_CAST, TRY_CONVERT and TRY_PARSE: NULL instead of an error.
    pub lenient: bool,
}

impl Conversion {
    /// A conversion without a style, which fails when the value does not convert.
    pub(super) const fn new(of: Expr, explicit: bool) -> Self {
        Self { of, style: None, explicit, parses: false, lenient: false }
    }
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Argument {
    /// A value.
    Value(Expr),
    /// A bare word.
    Word(String),
}

/// A column's place in the rows at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Column {
    /// How many queries further out, 0 for the query at hand.
    pub depth: usize,
    /// Which row of that query.
    pub slot: usize,
    /// Which value of the row.
    pub column: usize,
}

/// What can be true, false or unknown.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// Known when the statement was bound.
    Known(Option<bool>),
    /// All hold.
    All(Vec<Condition>),
    /// One holds.
    Any(Vec<Condition>),
    /// The other one.
    Not(Box<Condition>),
    /// `left comparison right`, both converted to a kind.
    Compare(Box<Comparing>),
    /// `IS [NOT] DISTINCT FROM`: `negated` is `IS NOT DISTINCT FROM`.
    Distinct {
        /// What is compared; the comparison itself is not looked at.
        of: Box<Comparing>,
        /// True when they are to be alike.
        negated: bool,
    },
    /// `IS [NOT] NULL`.
    IsNull {
        /// Of what.
        of: Box<Expr>,
        /// `IS NOT NULL`.
        negated: bool,
    },
    /// `[NOT] LIKE`.
    Like(Box<Liking>),
    /// `[NOT] IN` a list; everything has been converted to the kind.
    In {
        /// What is looked for.
        of: Box<Expr>,
        /// Where.
        list: Vec<Expr>,
        /// How they compare.
        kind: Kind,
        /// `NOT IN`.
        negated: bool,
        /// The place of the list's keys among what a run keeps, of a long list that is the same
        /// for every row.
        kept: Option<usize>,
    },
    /// `comparison ANY (query)` or `ALL`; `IN` is `= ANY`.
    Quantified(Box<Quantified>),
    /// `[NOT] EXISTS`.
    Exists {
        /// The query.
        query: Box<Subquery>,
        /// `NOT EXISTS`.
        negated: bool,
    },
}

/// How two values are to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Test {
    /// Whether an ordering passes.
    pub(super) const fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }

    /// The same with the sides swapped.
    pub(super) const fn swapped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }
}

/// A comparison of two expressions that have the kind already.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparing {
    pub left: Expr,
    pub test: Test,
    pub right: Expr,
    pub kind: Kind,
}

/// A LIKE.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Liking {
    pub of: Expr,
    pub pattern: Expr,
    pub escape: Option<Expr>,
    pub negated: bool,
}

/// A comparison with the rows of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantified {
    pub left: Expr,
    pub test: Test,
    /// True for ALL.
    pub all: bool,
    pub query: Subquery,
    /// How the query's column becomes one of `kind`; a column of the row that the query gives.
    pub right: Expr,
    pub kind: Kind,
    pub negated: bool,
}

impl Expr {
    /// An expression.
    pub(super) const fn new(node: Node, kind: Kind) -> Self {
        Self { node, kind }
    }

    /// A column of the query at hand.
    pub(super) const fn column(slot: usize, column: usize, kind: Kind) -> Self {
        Self { node: Node::Column(Column { depth: 0, slot, column }), kind }
    }

    /// Calls `see` for every column that is read, with the query at hand as depth 0.
    pub(super) fn columns(&self, see: &mut dyn FnMut(Column)) {
        match &self.node {
            Node::Constant(_) | Node::Null | Node::Variable(_) => {}
            // It changes with every row, so it is as good as a column of one.
            Node::LiveVariable(_) => see(Column { depth: 0, slot: usize::MAX, column: 0 }),
            Node::Column(column) => see(*column),
            Node::Once(_, of) | Node::Unary(_, of) => of.columns(see),
            Node::Operate(_, sides) => {
                sides.0.columns(see);
                sides.1.columns(see);
            }
            Node::Chain(chain) => chain.operands().for_each(|value| value.columns(see)),
            Node::Convert(conversion) => {
                conversion.of.columns(see);
                if let Some(style) = &conversion.style {
                    style.columns(see);
                }
            }
            Node::Call { arguments, .. } => {
                for argument in arguments {
                    if let Argument::Value(value) = argument {
                        value.columns(see);
                    }
                }
            }
            Node::CatalogueCall { arguments, .. } => each(arguments, see),
            Node::Case { branches, otherwise } => {
                for (condition, value) in branches {
                    condition.columns(see);
                    value.columns(see);
                }
                if let Some(value) = otherwise {
                    value.columns(see);
                }
            }
            Node::Coalesce(values) => each(values, see),
            Node::Choose(place, values) => {
                place.columns(see);
                each(values, see);
            }
            Node::Query(query) => query.columns(see),
        }
    }
}

fn each(values: &[Expr], see: &mut dyn FnMut(Column)) {
    for value in values {
        value.columns(see);
    }
}

impl Condition {
    /// Calls `see` for every column that is read.
    pub(super) fn columns(&self, see: &mut dyn FnMut(Column)) {
        match self {
            Self::Known(_) => {}
            Self::All(parts) | Self::Any(parts) => {
                for part in parts {
                    part.columns(see);
                }
            }
            Self::Not(part) => part.columns(see),
            Self::Compare(of) | Self::Distinct { of, .. } => {
                of.left.columns(see);
                of.right.columns(see);
            }
            Self::IsNull { of, .. } => of.columns(see),
            Self::Like(liking) => {
                liking.of.columns(see);
                liking.pattern.columns(see);
                if let Some(escape) = &liking.escape {
                    escape.columns(see);
                }
            }
            Self::In { of, list, .. } => {
                of.columns(see);
                each(list, see);
            }
            Self::Quantified(quantified) => {
                quantified.left.columns(see);
                quantified.query.columns(see);
            }
            Self::Exists { query, .. } => query.columns(see),
        }
    }

    /// The parts that all have to hold.
    pub(super) fn into_conjuncts(self) -> Vec<Self> {
        match self {
            Self::All(parts) => parts.into_iter().flat_map(Self::into_conjuncts).collect(),
            Self::Known(Some(true)) => Vec::new(),
            other => vec![other],
        }
    }

    /// One condition of parts that all have to hold; none for no part.
    pub(super) fn from_conjuncts(mut parts: Vec<Self>) -> Option<Self> {
        match parts.len() {
            0 => None,
            1 => parts.pop(),
            _ => Some(Self::All(parts)),
        }
    }
}

//! A bound SELECT: where rows come from, and what is done to them in which order.

use std::sync::Arc;

use super::expression::{Column, Condition, Expr, Node, Test};
use crate::{
    kind::Kind,
    relation::{ObjectName, Relation, RelationColumn},
    talk::ResultColumn,
};

/// A query that can be run, once for every row of the queries around it.
#[derive(Clone)]
pub(super) struct Plan {
    /// The columns of its rows.
    pub columns: Vec<ResultColumn>,
    /// How its rows come about.
    pub body: Body,
    /// The columns of queries around it that it reads; depth 1 is the next one out.
    pub outward: Vec<Column>,
    /// True when it reads the rows of a recursive expression's last round.
    pub recursive: bool,
    /// The one table whose rows it gives, each at most once; changing the query's rows changes
    /// that table's.
    pub base: Option<Base>,
}

/// A table whose rows a query gives.
#[derive(Clone)]
pub(super) struct Base {
    /// Its name.
    pub table: ObjectName,
    /// Its columns, the hidden ones too.
    pub columns: Vec<RelationColumn>,
    /// The slot of its row in the query.
    pub slot: usize,
}

impl Plan {
    /// The base table's column that each of its own is; none for a computed one.
    pub(super) fn origins(&self) -> Vec<Option<usize>> {
        let (Some(base), Body::Select(select)) = (&self.base, &self.body) else {
            return vec![None; self.columns.len()];
        };
        let origin = |value: &Expr| match value.node {
            Node::Column(Column { depth: 0, slot, column }) if slot == base.slot => Some(column),
            _ => None,
        };
        select.output.iter().map(origin).collect()
    }

    /// Gives the base table's columns behind the query's own.
    pub(super) fn with_base(&mut self) -> Option<Base> {
        let base = self.base.clone()?;
        let Body::Select(select) = &mut self.body else { return None };
        for (column, of) in base.columns.iter().enumerate() {
            select.output.push(Expr::column(base.slot, column, of.kind.clone()));
        }
        Some(base)
    }

    /// Leaves out what does not decide whether there is a row: EXISTS computes no select list.
    pub(super) fn only_whether(&mut self) {
        let Body::Select(select) = &mut self.body else { return };
        if select.distinct || select.limit.top.is_some() || select.limit.offset.is_some() {
            return;
        }
        select.output.clear();
        select.order.clear();
        select.windows.clear();
        select.presorted = 0;
        self.columns.clear();
    }
}

/// How a query's rows come about.
#[derive(Clone)]
pub(super) enum Body {
    /// From one SELECT.
    Select(Box<SelectPlan>),
    /// From two queries.
    Set(Box<SetPlan>),
    /// From written rows.
    Values(Vec<Vec<Expr>>),
    /// From an anchor and a query over its own rows.
    Recursive(Box<RecursivePlan>),
}

/// A query inside an expression.
#[derive(Clone)]
pub(super) struct Subquery {
    /// The query.
    pub plan: Plan,
    /// The place of its answer among those that a run keeps; none when it depends on the row.
    pub kept: Option<usize>,
}

impl std::fmt::Debug for Subquery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subquery").field("kept", &self.kept).finish_non_exhaustive()
    }
}

/// No query is known to be another.
impl PartialEq for Subquery {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Subquery {
    /// Calls `see` for every column of the queries around it, the next one out as depth 0.
    pub(super) fn columns(&self, see: &mut dyn FnMut(Column)) {
        for column in &self.plan.outward {
            see(Column { depth: column.depth.saturating_sub(1), ..*column });
        }
    }
}

/// A SELECT.
#[derive(Clone)]
pub(super) struct SelectPlan {
    /// FROM; none gives one row without columns.
    pub source: Option<Source>,
    /// Rows of FROM's sources; the row of the group and that of the windows come behind them.
    pub slots: usize,
    /// WHERE, without what the sources look after.
    pub filter: Option<Condition>,
    /// GROUP BY and aggregates.
    pub group: Option<GroupPlan>,
    /// Window functions.
    pub windows: Vec<WindowPlan>,
    /// The select list.
    pub output: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY.
    pub order: Vec<OrderKey>,
    /// How many of the leading keys of ORDER BY the rows come ordered by already.
    pub presorted: usize,
    /// TOP, OFFSET, FETCH.
    pub limit: Limit,
}

/// An expression that rows are ordered by.
#[derive(Clone)]
pub(super) struct OrderKey {
    /// What.
    pub by: OrderBy,
    /// Its kind.
    pub kind: Kind,
    /// DESC.
    pub descending: bool,
}

/// What rows are ordered by.
#[derive(Clone)]
pub(super) enum OrderBy {
    /// A column of the result.
    Output(usize),
    /// An expression over the sources.
    Value(Expr),
}

/// Which of the rows are given.
#[derive(Clone, Default)]
pub(super) struct Limit {
    /// TOP.
    pub top: Option<Expr>,
    /// TOP ... PERCENT.
    pub percent: bool,
    /// TOP ... WITH TIES.
    pub ties: bool,
    /// OFFSET.
    pub offset: Option<Expr>,
    /// FETCH.
    pub fetch: Option<Expr>,
}

/// Where a SELECT's rows come from.
#[derive(Clone)]
pub(super) enum Source {
    /// A relation.
    Scan(Scan),
    /// A query.
    Query {
        /// The slot of its row.
        slot: usize,
        /// The query.
        plan: Box<Plan>,
        /// True when it sees the rows to its left (APPLY).
        lateral: bool,
    },
    /// A table-valued function.
    Function {
        /// The slot of its row.
        slot: usize,
        /// Its name.
        name: ObjectName,
        /// Its arguments.
        arguments: Vec<Expr>,
    },
    /// The last round of a recursive expression.
    Working {
        /// The slot of its row.
        slot: usize,
        /// Which recursive expression.
        id: usize,
    },
    /// A join.
    Join(Box<Join>),
    /// APPLY.
    Apply {
        /// The rows applied to.
        left: Box<Source>,
        /// What is applied to each.
        right: Box<Source>,
        /// OUTER APPLY.
        outer: bool,
    },
}

/// A read of a relation.
#[derive(Clone)]
pub(super) struct Scan {
    /// The slot of its row.
    pub slot: usize,
    /// What is read.
    pub relation: Arc<dyn Relation>,
    /// What is known of the columns: each of these holds, by one of its alternatives, all of
    /// whose parts hold.
    pub bounds: Vec<Vec<Vec<Limitation>>>,
    /// NOLOCK.
    pub uncommitted: bool,
    /// READPAST.
    pub skip_held: bool,
    /// READCOMMITTEDLOCK.
    pub locking: bool,
    /// Conditions on this relation's row alone.
    pub filter: Option<Condition>,
}

/// A comparison of a column with a value that is the same for all rows of a scan.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limitation {
    /// The column.
    pub column: usize,
    /// How it compares.
    pub test: Test,
    /// With what; of `kind`.
    pub value: Expr,
    /// The kind in which they compare.
    pub kind: Kind,
}

/// A join of two sources.
#[derive(Clone)]
pub(super) struct Join {
    /// The side that leads: its order is the join's.
    pub left: Source,
    /// The side that is looked up.
    pub right: Source,
    /// How rows without a match go on.
    pub kind: JoinKind,
    /// Equalities of a left and a right expression, of the same kind.
    pub keys: Vec<(Expr, Expr, Kind)>,
    /// What else has to hold.
    pub residual: Option<Condition>,
    /// True when both sides come ordered by the only key.
    pub merge: bool,
}

/// How rows without a match go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinKind {
    /// Not at all.
    Inner,
    /// The left ones with NULL.
    Left,
    /// Both with NULL.
    Full,
}

/// GROUP BY and what is computed of each group.
#[derive(Clone)]
pub(super) struct GroupPlan {
    /// What tells groups apart; none makes one group of all rows, even of no row.
    pub keys: Vec<Expr>,
    /// The places of the keys of each set, with ROLLUP and its like; none when all keys are the
    /// only set.
    pub sets: Vec<Vec<usize>>,
    /// The aggregates, in the order of the group's row.
    pub aggregates: Vec<AggregatePlan>,
    /// HAVING.
    pub having: Option<Condition>,
}

/// An aggregate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AggregatePlan {
    /// Its name.
    pub name: String,
    /// Its arguments; none for `COUNT(*)`.
    pub arguments: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// WITHIN GROUP (ORDER BY): expression and DESC.
    pub order: Vec<(Expr, bool)>,
    /// The kind of its result.
    pub kind: Kind,
}

/// A window function.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WindowPlan {
    /// What is computed.
    pub function: WindowFunction,
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY: expression and DESC.
    pub order: Vec<(Expr, bool)>,
    /// The rows that an aggregate, FIRST_VALUE or LAST_VALUE sees.
    pub frame: FrameRange,
}

/// What a window function computes.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a statement has a handful")]
pub(super) enum WindowFunction {
    /// ROW_NUMBER.
    RowNumber,
    /// RANK.
    Rank,
    /// DENSE_RANK.
    DenseRank,
    /// NTILE.
    Tiles(Expr),
    /// PERCENT_RANK.
    PercentRank,
    /// CUME_DIST.
    CumulativeDistribution,
    /// LAG (true) and LEAD: value, offset, default; IGNORE NULLS.
    Neighbour {
        /// True for LAG.
        before: bool,
        /// The value.
        value: Expr,
        /// How many rows away; 1 when not given.
        offset: Option<Expr>,
        /// The value when there is no such row.
        default: Option<Expr>,
        /// IGNORE NULLS.
        ignore_nulls: bool,
    },
    /// FIRST_VALUE (true) and LAST_VALUE.
    Edge {
        /// True for FIRST_VALUE.
        first: bool,
        /// The value.
        value: Expr,
        /// IGNORE NULLS.
        ignore_nulls: bool,
    },
    /// An aggregate over the frame.
    Aggregate(Box<AggregatePlan>),
}

/// The rows of a partition that a window function sees for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameRange {
    /// ROWS; otherwise RANGE, where rows of equal order go together.
    pub rows: bool,
    /// The first.
    pub start: FrameEdge,
    /// The last.
    pub end: FrameEdge,
}

/// An end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameEdge {
    /// The partition's first row.
    First,
    /// So many rows before the current one.
    Before(u64),
    /// The current row.
    Current,
    /// So many rows behind the current one.
    After(u64),
    /// The partition's last row.
    Last,
}

/// UNION, EXCEPT or INTERSECT.
#[derive(Clone)]
pub(super) struct SetPlan {
    /// Which.
    pub operation: SetOperation,
    /// The first query.
    pub left: Plan,
    /// The second query.
    pub right: Plan,
    /// How the first query's columns become the result's; over a row in slot 0.
    pub left_values: Vec<Expr>,
    /// How the second query's columns become the result's.
    pub right_values: Vec<Expr>,
    /// ORDER BY, by columns of the result.
    pub order: Vec<OrderKey>,
    /// OFFSET, FETCH.
    pub limit: Limit,
}

/// What two queries are combined by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetOperation {
    UnionAll,
    Union,
    Except,
    Intersect,
}

/// A recursive common table expression.
#[derive(Clone)]
pub(super) struct RecursivePlan {
    /// Which, among the statement's.
    pub id: usize,
    /// The rows it begins with.
    pub anchor: Plan,
    /// The query over the last round's rows.
    pub step: Plan,
    /// How the step's columns become the anchor's.
    pub step_values: Vec<Expr>,
}

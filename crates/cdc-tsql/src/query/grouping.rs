//! Columns that are neither grouped by nor aggregated.

use cdc_fake::SqlResult;

use super::{
    expression::{Argument, Column, Comparing, Condition, Expr, Node},
    level::Level,
    plan::{AggregatePlan, OrderBy, OrderKey, WindowFunction, WindowPlan},
    refusal::{Clause, not_grouped},
};

/// Refuses columns of the sources that a grouped query reads of a group as if it were a row.
///
/// # Errors
/// 8120 in the select list, 8121 in HAVING, 8127 in ORDER BY.
pub(super) fn check(
    level: &Level<'_>,
    keys: &[Expr],
    output: &[&Expr],
    having: Option<&Condition>,
    order: &[OrderKey],
    windows: &[WindowPlan],
) -> SqlResult<()> {
    let grouping = Grouping { keys, slots: level.slots };
    let refused = |result: Result<(), Column>, clause| {
        result.map_err(|column| not_grouped(&level.shown(column), clause))
    };
    for value in output {
        refused(grouping.value(value), Clause::SelectList)?;
    }
    for window in windows {
        refused(grouping.window(window), Clause::SelectList)?;
    }
    if let Some(having) = having {
        refused(grouping.condition(having), Clause::Having)?;
    }
    for key in order {
        if let OrderBy::Value(value) = &key.by {
            refused(grouping.value(value), Clause::OrderBy)?;
        }
    }
    Ok(())
}

struct Grouping<'a> {
    keys: &'a [Expr],
    /// Slots below are rows of the sources.
    slots: usize,
}

impl Grouping<'_> {
    fn column(&self, column: Column) -> Result<(), Column> {
        let grouped = column.depth > 0
            || column.slot >= self.slots
            || self.keys.iter().any(|key| matches!(key.node, Node::Column(own) if own == column));
        if grouped { Ok(()) } else { Err(column) }
    }

    fn all<'e>(&self, values: impl IntoIterator<Item = &'e Expr>) -> Result<(), Column> {
        values.into_iter().try_for_each(|value| self.value(value))
    }

    fn value(&self, value: &Expr) -> Result<(), Column> {
        if self.keys.iter().any(|key| key.node == value.node) {
            return Ok(());
        }
        match &value.node {
            Node::Constant(_)
            | Node::Null
            | Node::Variable(_)
            | Node::LiveVariable(_)
            | Node::Once(..) => Ok(()),
            Node::Column(column) => self.column(*column),
            Node::Operate(_, sides) => {
                self.value(&sides.0)?;
                self.value(&sides.1)
            }
            Node::Chain(chain) => self.all(chain.operands()),
            Node::Unary(_, of) => self.value(of),
            Node::Convert(conversion) => {
                self.all(std::iter::once(&conversion.of).chain(&conversion.style))
            }
            Node::Call { arguments, .. } => {
                self.all(arguments.iter().filter_map(|argument| match argument {
                    Argument::Value(value) => Some(value),
                    Argument::Word(_) => None,
                }))
            }
            Node::CatalogueCall { arguments, .. } => self.all(arguments),
            Node::Case { branches, otherwise } => {
                for (condition, value) in branches {
                    self.condition(condition)?;
                    self.value(value)?;
                }
                self.all(otherwise.as_deref())
            }
            Node::Coalesce(values) => self.all(values),
            Node::Choose(place, values) => {
                self.value(place)?;
                self.all(values)
            }
            Node::Query(query) => self.outward(|see| query.columns(see)),
        }
    }

    fn outward(&self, columns: impl FnOnce(&mut dyn FnMut(Column))) -> Result<(), Column> {
        let mut result = Ok(());
        columns(&mut |column| {
            if result.is_ok() {
                result = self.column(column);
            }
        });
        result
    }

    fn compared(&self, comparing: &Comparing) -> Result<(), Column> {
        self.value(&comparing.left)?;
        self.value(&comparing.right)
    }

    fn condition(&self, condition: &Condition) -> Result<(), Column> {
        match condition {
            Condition::Known(_) => Ok(()),
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().try_for_each(|part| self.condition(part))
            }
            Condition::Not(part) => self.condition(part),
            Condition::Compare(of) | Condition::Distinct { of, .. } => self.compared(of),
            Condition::IsNull { of, .. } => self.value(of),
            Condition::Like(liking) => {
                self.all([&liking.of, &liking.pattern].into_iter().chain(&liking.escape))
            }
            Condition::In { of, list, .. } => {
                self.value(of)?;
                self.all(list)
            }
            Condition::Quantified(quantified) => {
                self.value(&quantified.left)?;
                self.outward(|see| quantified.query.columns(see))
            }
            Condition::Exists { query, .. } => self.outward(|see| query.columns(see)),
        }
    }

    fn aggregate(&self, aggregate: &AggregatePlan) -> Result<(), Column> {
        self.all(&aggregate.arguments)
    }

    fn window(&self, window: &WindowPlan) -> Result<(), Column> {
        self.all(&window.partition)?;
        self.all(window.order.iter().map(|(value, _)| value))?;
        match &window.function {
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumulativeDistribution => Ok(()),
            WindowFunction::Tiles(value) | WindowFunction::Edge { value, .. } => self.value(value),
            WindowFunction::Neighbour { value, offset, default, .. } => {
                self.all(std::iter::once(value).chain(offset).chain(default))
            }
            WindowFunction::Aggregate(aggregate) => self.aggregate(aggregate),
        }
    }
}

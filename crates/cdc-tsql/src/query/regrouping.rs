//! What a query with grouping sets gives of a group: its keys are those of the group's row, NULL
//! where the group's set leaves them out, and no longer those of any row of the sources.

use cdc_fake::SqlResult;

use super::{
    expression::{Argument, Chain, Comparing, Condition, Conversion, Expr, Liking, Node},
    refusal::unsupported,
};
use crate::kind::Kind;

/// Reads keys from the group's row.
pub(super) struct Regrouping<'k> {
    /// The keys.
    pub(super) keys: &'k [Expr],
    /// The slot of the group's row of keys.
    pub(super) slot: usize,
}

impl Regrouping<'_> {
    /// The expression with its keys read from the group's row.
    ///
    /// # Errors
    /// 50000 for a query inside, which would read them of a row of the sources.
    pub(super) fn value(&self, value: &mut Expr) -> SqlResult<()> {
        if let Some(place) = self.keys.iter().position(|key| key.node == value.node) {
            let kind = Kind { nullable: true, ..value.kind.clone() };
            *value = Expr::column(self.slot, place, kind);
            return Ok(());
        }
        match &mut value.node {
            Node::Constant(_)
            | Node::Null
            | Node::Variable(_)
            | Node::LiveVariable(_)
            | Node::Column(_)
            | Node::Once(..) => return Ok(()),
            Node::Operate(_, sides) => {
                self.value(&mut sides.0)?;
                self.value(&mut sides.1)?;
            }
            Node::Chain(chain) => {
                let Chain { first, steps } = &mut **chain;
                self.value(first)?;
                self.all(steps.iter_mut().map(|step| &mut step.right))?;
            }
            Node::Unary(_, of) => self.value(of)?,
            Node::Convert(conversion) => {
                let Conversion { of, style, .. } = &mut **conversion;
                self.value(of)?;
                self.all(style.iter_mut())?;
            }
            Node::Call { arguments, .. } => {
                self.all(arguments.iter_mut().filter_map(|argument| match argument {
                    Argument::Value(value) => Some(value),
                    Argument::Word(_) => None,
                }))?;
            }
            Node::CatalogueCall { arguments, .. } => self.all(arguments.iter_mut())?,
            Node::Case { branches, otherwise } => {
                for (condition, value) in branches {
                    self.condition(condition)?;
                    self.value(value)?;
                }
                self.all(otherwise.as_deref_mut().into_iter())?;
            }
            Node::Coalesce(values) => self.all(values.iter_mut())?,
            Node::Choose(place, values) => {
                self.value(place)?;
                self.all(values.iter_mut())?;
            }
            Node::Query(query) => {
                refuse_query(query.plan.outward.is_empty())?;
            }
        }
        // A key may be NULL where its column is not.
        value.kind.nullable |= reads_keys(value, self.slot);
        Ok(())
    }

    fn all<'e>(&self, mut values: impl Iterator<Item = &'e mut Expr>) -> SqlResult<()> {
        values.try_for_each(|value| self.value(value))
    }

    fn compared(&self, of: &mut Comparing) -> SqlResult<()> {
        self.value(&mut of.left)?;
        self.value(&mut of.right)
    }

    /// As [`Regrouping::value`], for a condition.
    ///
    /// # Errors
    /// As there.
    pub(super) fn condition(&self, condition: &mut Condition) -> SqlResult<()> {
        match condition {
            Condition::Known(_) => Ok(()),
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter_mut().try_for_each(|part| self.condition(part))
            }
            Condition::Not(part) => self.condition(part),
            Condition::Compare(of) | Condition::Distinct { of, .. } => self.compared(of),
            Condition::IsNull { of, .. } => self.value(of),
            Condition::Like(liking) => {
                let Liking { of, pattern, escape, .. } = &mut **liking;
                self.value(of)?;
                self.value(pattern)?;
                self.all(escape.iter_mut())
            }
            Condition::In { of, list, .. } => {
                self.value(of)?;
                self.all(list.iter_mut())
            }
            Condition::Quantified(quantified) => {
                refuse_query(quantified.query.plan.outward.is_empty())?;
                self.value(&mut quantified.left)
            }
            Condition::Exists { query, .. } => refuse_query(query.plan.outward.is_empty()),
        }
    }
}

fn reads_keys(value: &Expr, slot: usize) -> bool {
    let mut reads = false;
    value.columns(&mut |column| reads |= column.depth == 0 && column.slot == slot);
    reads
}

fn refuse_query(reads_nothing_outside: bool) -> SqlResult<()> {
    if reads_nothing_outside {
        return Ok(());
    }
    Err(unsupported("a correlated subquery over ROLLUP, CUBE or GROUPING SETS"))
}

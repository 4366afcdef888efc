//! Binding conditions: what is true, false or unknown.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult};
use sqlparser::ast::{self, BinaryOperator, InTarget, UnaryOperator};

use super::{Binder, value::is_text};
use crate::{
    kind::Kind,
    query::{
        expression::{Comparing, Condition, Expr, Liking, Node, Quantified, Test},
        level::Level,
        refusal::{no_condition, several_columns, unsupported},
    },
    scalar,
};

/// Values of an IN list that are compared one by one; more are looked up.
const LONG_LIST: usize = 32;

impl<'a> Binder<'a> {
    /// Binds a condition.
    ///
    /// # Errors
    /// 4145 for a value; what its operands refuse.
    pub(crate) fn condition(&self, expr: &'a ast::Expr, level: &Level<'a>) -> SqlResult<Condition> {
        self.nested(|| self.condition_of(expr, level))
    }

    fn condition_of(&self, expr: &'a ast::Expr, level: &Level<'a>) -> SqlResult<Condition> {
        use ast::Expr as E;
        Ok(match expr {
            E::Nested(inner) => self.condition(inner, level)?,
            E::BinaryOp { op: BinaryOperator::And, .. } => {
                let parts = self.chain(expr, &BinaryOperator::And, level)?;
                self.settled_condition(Condition::All(parts))
            }
            E::BinaryOp { op: BinaryOperator::Or, .. } => {
                let parts = self.chain(expr, &BinaryOperator::Or, level)?;
                self.settled_condition(Condition::Any(parts))
            }
            E::UnaryOp { op: UnaryOperator::Not, expr } => {
                Condition::Not(Box::new(self.condition(expr, level)?))
            }
            E::BinaryOp { left, op, right } => {
                let test = test(op).ok_or_else(|| no_condition(op))?;
                self.comparison(left, test, right, level)?
            }
            E::IsNull(of) => self.is_null(of, false, level)?,
            E::IsNotNull(of) => self.is_null(of, true, level)?,
            E::IsDistinctFrom(left, right) => self.distinct(left, right, false, level)?,
            E::IsNotDistinctFrom(left, right) => self.distinct(left, right, true, level)?,
            E::Between { expr, negated, low, high } => {
                let from = self.comparison(expr, Test::GreaterOrEqual, low, level)?;
                let to = self.comparison(expr, Test::LessOrEqual, high, level)?;
                negated_if(*negated, Condition::All(vec![from, to]))
            }
            E::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_deref(), *negated, level)?
            }
            E::In { expr, target, negated, .. } => self.is_in(expr, target, *negated, level)?,
            E::AnyOp { left, compare_op, right, .. } => {
                self.quantified(left, compare_op, right, false, level)?
            }
            E::AllOp { left, compare_op, right } => {
                self.quantified(left, compare_op, right, true, level)?
            }
            E::Exists { subquery, negated } => {
                let mut query = self.subquery(subquery, level)?;
                query.plan.only_whether();
                Condition::Exists { query: Box::new(query), negated: *negated }
            }
            value => {
                // The names are looked up first: a wrong one is the better message.
                self.value(value, level)?;
                return Err(no_condition("the end of the condition"));
            }
        })
    }

    /// The parts of `a AND b AND c`, however long the chain.
    fn chain(
        &self,
        expr: &'a ast::Expr,
        operator: &BinaryOperator,
        level: &Level<'a>,
    ) -> SqlResult<Vec<Condition>> {
        let (mut parts, mut rest) = (Vec::new(), vec![expr]);
        while let Some(next) = rest.pop() {
            match next {
                ast::Expr::BinaryOp { left, op, right } if op == operator => {
                    rest.push(right);
                    rest.push(left);
                }
                part => parts.push(self.condition(part, level)?),
            }
        }
        Ok(parts)
    }

    fn comparison(
        &self,
        left: &'a ast::Expr,
        test: Test,
        right: &'a ast::Expr,
        level: &Level<'a>,
    ) -> SqlResult<Condition> {
        let (left, right) = (self.value(left, level)?, self.value(right, level)?);
        let nullish = |side: &Expr| matches!(side.node, Node::Null | Node::Variable(_));
        if !self.facts.settings.ansi_nulls
            && matches!(test, Test::Equal | Test::NotEqual)
            && (nullish(&left) || nullish(&right))
        {
            let of = Box::new(self.compared(left, Test::Equal, right)?);
            return Ok(Condition::Distinct { of, negated: test == Test::Equal });
        }
        let comparing = self.compared(left, test, right)?;
        Ok(self.settled_condition(Condition::Compare(Box::new(comparing))))
    }

    /// `left = right`.
    pub(super) fn equal(&self, left: Expr, right: Expr) -> SqlResult<Condition> {
        let comparing = self.compared(left, Test::Equal, right)?;
        Ok(self.settled_condition(Condition::Compare(Box::new(comparing))))
    }

    fn compared(&self, left: Expr, test: Test, right: Expr) -> SqlResult<Comparing> {
        let kind = self.common([&left, &right])?;
        comparable(&kind)?;
        let left = self.converted(left, &kind)?;
        let right = self.converted(right, &kind)?;
        Ok(Comparing { left, test, right, kind })
    }

    fn is_null(&self, of: &'a ast::Expr, negated: bool, level: &Level<'a>) -> SqlResult<Condition> {
        let of = Box::new(self.value(of, level)?);
        Ok(self.settled_condition(Condition::IsNull { of, negated }))
    }

    fn distinct(
        &self,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        negated: bool,
        level: &Level<'a>,
    ) -> SqlResult<Condition> {
        let (left, right) = (self.value(left, level)?, self.value(right, level)?);
        let of = Box::new(self.compared(left, Test::Equal, right)?);
        Ok(self.settled_condition(Condition::Distinct { of, negated }))
    }

    fn like(
        &self,
        of: &'a ast::Expr,
        pattern: &'a ast::Expr,
        escape: Option<&'a ast::Expr>,
        negated: bool,
        level: &Level<'a>,
    ) -> SqlResult<Condition> {
        let text = |value: Expr| -> SqlResult<Expr> {
            if is_text(&value.kind.sql_type) {
                return Ok(value);
            }
            let kind = Kind::new(SqlType::NVarChar(Length::Limited(4_000)), true);
            self.converted(value, &kind)
        };
        let of = text(self.value(of, level)?)?;
        let pattern = text(self.value(pattern, level)?)?;
        let escape = escape.map(|escape| text(self.value(escape, level)?)).transpose()?;
        let collation = self.common([&of, &pattern])?.collation;
        let collated = |value: Expr| Expr { kind: Kind { collation, ..value.kind }, ..value };
        let (of, pattern) = (collated(of), collated(pattern));
        let liking = Liking { of, pattern, escape, negated };
        Ok(self.settled_condition(Condition::Like(Box::new(liking))))
    }

    fn is_in(
        &self,
        of: &'a ast::Expr,
        target: &'a InTarget,
        negated: bool,
        level: &Level<'a>,
    ) -> SqlResult<Condition> {
        match target {
            InTarget::List(list) => {
                let of = self.value(of, level)?;
                let list = list
                    .iter()
                    .map(|item| self.value(item, level))
                    .collect::<SqlResult<Vec<_>>>()?;
                let kind = self.common(std::iter::once(&of).chain(&list))?;
                comparable(&kind)?;
                let of = Box::new(self.converted(of, &kind)?);
                let list = list
                    .into_iter()
                    .map(|item| self.converted(item, &kind))
                    .collect::<SqlResult<Vec<_>>>()?;
                let steady = |item: &Expr| {
                    matches!(
                        item.node,
                        Node::Constant(_) | Node::Null | Node::Variable(_) | Node::Once(..)
                    )
                };
                let long = list.len() > LONG_LIST && list.iter().all(steady);
                let kept = long.then(|| Self::next(&self.kept));
                Ok(self.settled_condition(Condition::In { of, list, kind, negated, kept }))
            }
            InTarget::Subquery(query) => {
                let left = self.value(of, level)?;
                self.with_query(left, Test::Equal, query, false, negated, level)
            }
            InTarget::Unnest(_) | InTarget::Table { .. } => {
                Err(unsupported("IN of a table's name"))
            }
        }
    }

    fn quantified(
        &self,
        left: &'a ast::Expr,
        op: &BinaryOperator,
        right: &'a ast::Expr,
        all: bool,
        level: &Level<'a>,
    ) -> SqlResult<Condition> {
        let test = test(op).ok_or_else(|| no_condition(op))?;
        let mut right = right;
        while let ast::Expr::Nested(inner) = right {
            right = inner;
        }
        let ast::Expr::Subquery(query) = right else {
            return Err(unsupported("ANY or ALL of anything but a query"));
        };
        let left = self.value(left, level)?;
        self.with_query(left, test, query, all, false, level)
    }

    fn with_query(
        &self,
        left: Expr,
        test: Test,
        query: &'a ast::Query,
        all: bool,
        negated: bool,
        level: &Level<'a>,
    ) -> SqlResult<Condition> {
        let query = self.subquery(query, level)?;
        let [column] = query.plan.columns.as_slice() else {
            return Err(several_columns());
        };
        let right = Expr::column(0, 0, column.kind.clone());
        let compared = self.compared(left, test, right)?;
        Ok(Condition::Quantified(Box::new(Quantified {
            left: compared.left,
            test,
            all,
            query,
            right: compared.right,
            kind: compared.kind,
            negated,
        })))
    }
}

fn negated_if(negated: bool, condition: Condition) -> Condition {
    if negated { Condition::Not(Box::new(condition)) } else { condition }
}

/// The comparison that an operator makes.
const fn test(op: &BinaryOperator) -> Option<Test> {
    Some(match op {
        BinaryOperator::Eq => Test::Equal,
        BinaryOperator::NotEq => Test::NotEqual,
        BinaryOperator::Lt => Test::Less,
        BinaryOperator::LtEq => Test::LessOrEqual,
        BinaryOperator::Gt => Test::Greater,
        BinaryOperator::GtEq => Test::GreaterOrEqual,
        _ => return None,
    })
}

/// Refuses types that have no order or equality.
fn comparable(kind: &Kind) -> SqlResult<()> {
    match &kind.sql_type {
        SqlType::Text | SqlType::NText | SqlType::Image | SqlType::Xml => {
            let name = scalar::result_name_of_type(&kind.sql_type);
            Err(SqlError::new(
                402,
                format!(
                    "The data types {name} and {name} are incompatible in the equal to operator."
                ),
            ))
        }
        _ => Ok(()),
    }
}

//! Binding expressions that give a value.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};
use sqlparser::ast::{self, BinaryOperator, CastKind, UnaryOperator};

use super::Binder;
use crate::{
    kind::Kind,
    query::{
        expression::{Chain, Condition, Conversion, Expr, Node, Step},
        level::{Level, Place},
        plan::Subquery,
        refusal::{aggregate_of_query, several_columns, syntax, unsupported},
        type_name::{cast_kind, no_collation},
    },
    scalar::{self, Operator, Unary},
    syntax::chain_steps,
};

impl<'a> Binder<'a> {
    /// Binds an expression that gives a value.
    ///
    /// # Errors
    /// 207, 209, 4104, 137 for names; 102 for a condition; what operators and functions refuse.
    pub(crate) fn value(&self, expr: &'a ast::Expr, level: &Level<'a>) -> SqlResult<Expr> {
        let mut value = self.nested(|| self.value_of(expr, level))?;
        let is_column = matches!(value.node, Node::Column(_));
        self.collate(&mut value.kind, is_column);
        Ok(value)
    }

    /// A text without a collation has the database's: a column has it as its own.
    pub(super) fn collate(&self, kind: &mut Kind, is_column: bool) {
        if kind.collation.is_none() && is_text(&kind.sql_type) {
            kind.collation = Some(self.facts.collation);
            kind.fallback_collation = !is_column;
        }
    }

    fn value_of(&self, expr: &'a ast::Expr, level: &Level<'a>) -> SqlResult<Expr> {
        use ast::Expr as E;
        match expr {
            E::Identifier(ident) => self.identifier(ident, level),
            E::CompoundIdentifier(idents) => {
                let parts: Vec<String> = idents.iter().map(|part| part.value.clone()).collect();
                level.resolve(&parts, &self.facts.collation)
            }
            E::Nested(inner) => self.value(inner, level),
            E::Value(value) => self.literal(&value.value),
            E::BinaryOp { left, op, right } => self.binary(left, op, right, level),
            E::CompoundFieldAccess { root, access_chain } => match chain_steps(access_chain) {
                Some(steps) => self.value_chain(root, &steps, level),
                None => Err(unsupported("a method or a property of a value")),
            },
            E::UnaryOp { op, expr } => self.unary(op, expr, level),
            E::Cast { kind, expr, data_type, format: None } => {
                let lenient = !matches!(kind, CastKind::Cast | CastKind::DoubleColon);
                self.conversion(expr, data_type, &[], lenient, level)
            }
            E::Convert { is_try, expr, data_type: Some(data_type), styles, .. } => {
                self.conversion(expr, data_type, styles, *is_try, level)
            }
            E::TypedString(typed) => self.typed_string(typed),
            E::Collate { expr, collation } => {
                let value = self.value(expr, level)?;
                self.collated(value, &collation.to_string())
            }
            E::AtTimeZone { timestamp, time_zone } => {
                let arguments = [&**timestamp, &**time_zone];
                self.call_values("AT TIME ZONE", &arguments, level)
            }
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), level)
            }
            E::Subquery(query) => self.scalar_query(query, level),
            E::Function(function) => self.function(function, level),
            E::Substring { .. } | E::Trim { .. } | E::Ceil { .. } | E::Floor { .. } => {
                self.keyword_function(expr, level)
            }
            E::IsNull(_)
            | E::IsNotNull(_)
            | E::IsDistinctFrom(..)
            | E::IsNotDistinctFrom(..)
            | E::In { .. }
            | E::Between { .. }
            | E::Like { .. }
            | E::AnyOp { .. }
            | E::AllOp { .. }
            | E::Exists { .. } => Err(syntax(predicate_word(expr))),
            other => Err(unsupported(format!("the expression {}", shape(other)))),
        }
    }

    fn identifier(&self, ident: &ast::Ident, level: &Level<'a>) -> SqlResult<Expr> {
        if ident.quote_style.is_none() {
            if ident.value.starts_with('@') {
                return self.variable(&ident.value);
            }
            if ident.value.eq_ignore_ascii_case("SYSTEM_USER") {
                return self.named_call(&["SYSTEM_USER".to_owned()], Vec::new());
            }
        }
        if ident.quote_style == Some('"') && !self.facts.settings.quoted_identifier {
            return Ok(self.text(&ident.value, false));
        }
        level.resolve(std::slice::from_ref(&ident.value), &self.facts.collation)
    }

    fn text(&self, text: &str, national: bool) -> Expr {
        let typed = scalar::text_literal(text, national, &self.facts);
        Expr::new(Node::Constant(typed.value), Kind { nullable: false, ..typed.kind })
    }

    fn literal(&self, value: &ast::Value) -> SqlResult<Expr> {
        use ast::Value as V;
        match value {
            V::Null => Ok(Expr::new(Node::Null, Kind::new(SqlType::Int, true))),
            V::Number(text, _) => {
                let typed = scalar::number_literal(text)?;
                Ok(Expr::new(Node::Constant(typed.value), Kind { nullable: false, ..typed.kind }))
            }
            V::SingleQuotedString(text) => Ok(self.text(text, false)),
            V::NationalStringLiteral(text) => Ok(self.text(text, true)),
            V::DoubleQuotedString(text) if !self.facts.settings.quoted_identifier => {
                Ok(self.text(text, false))
            }
            V::HexStringLiteral(text) => hexadecimal(text),
            V::Placeholder(text) => money(text),
            other => Err(syntax(other)),
        }
    }

    fn binary(
        &self,
        left: &'a ast::Expr,
        op: &BinaryOperator,
        right: &'a ast::Expr,
        level: &Level<'a>,
    ) -> SqlResult<Expr> {
        let Some(operator) = operator(op) else {
            return Err(match op {
                BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
                | BinaryOperator::And
                | BinaryOperator::Or => syntax(op),
                other => unsupported(format!("the operator {other}")),
            });
        };
        let (left, right) = (self.value(left, level)?, self.value(right, level)?);
        self.operation(operator, left, right)
    }

    pub(super) fn operation(&self, operator: Operator, left: Expr, right: Expr) -> SqlResult<Expr> {
        let (left, right) = fitted(left, right);
        let mut kind = scalar::operator_kind(operator, &left.kind, &right.kind)?;
        // Arithmetic may overflow into NULL, depending on settings: the server says nullable.
        kind.nullable = left.kind.nullable
            || right.kind.nullable
            || !matches!((&left.node, &right.node), (Node::Constant(_), Node::Constant(_)));
        Ok(self.settled(Expr::new(Node::Operate(operator, Box::new((left, right))), kind)))
    }

    /// Binds a long chain of values: what is known by now is computed step by step, what is not
    /// stands side by side.
    fn value_chain(
        &self,
        first: &'a ast::Expr,
        steps: &[(&'a BinaryOperator, &'a ast::Expr)],
        level: &Level<'a>,
    ) -> SqlResult<Expr> {
        let mut first = self.value(first, level)?;
        let mut made: Vec<Step> = Vec::new();
        for (op, right) in steps {
            let operator = operator(op).ok_or_else(|| syntax(op))?;
            let right = self.value(right, level)?;
            let constant = |value: &Expr| matches!(value.node, Node::Constant(_) | Node::Null);
            if made.is_empty() && constant(&first) && constant(&right) {
                first = self.operation(operator, first, right)?;
                self.collate(&mut first.kind, false);
                continue;
            }
            let so_far = match made.last() {
                None => first.clone(),
                Some(step) => Expr::column(0, 0, step.kind.clone()),
            };
            let (left, right) = fitted(so_far, right);
            let mut kind = scalar::operator_kind(operator, &left.kind, &right.kind)?;
            kind.nullable = true;
            self.collate(&mut kind, false);
            if made.is_empty() {
                first = left;
            }
            made.push(Step { operator, right, kind });
        }
        let Some(last) = made.last() else { return Ok(first) };
        let kind = last.kind.clone();
        Ok(self.settled(Expr::new(Node::Chain(Box::new(Chain { first, steps: made })), kind)))
    }

    fn unary(&self, op: &UnaryOperator, of: &'a ast::Expr, level: &Level<'a>) -> SqlResult<Expr> {
        let op = match op {
            UnaryOperator::Minus => Unary::Minus,
            UnaryOperator::Plus => Unary::Plus,
            UnaryOperator::BitwiseNot => Unary::BitNot,
            UnaryOperator::Not => return Err(syntax("NOT")),
            other => return Err(unsupported(format!("the operator {other}"))),
        };
        let of = self.value(of, level)?;
        let mut kind = scalar::unary_kind(op, &of.kind)?;
        kind.nullable = of.kind.nullable;
        Ok(self.settled(Expr::new(Node::Unary(op, Box::new(of)), kind)))
    }

    fn conversion(
        &self,
        of: &'a ast::Expr,
        data_type: &ast::DataType,
        styles: &'a [ast::Expr],
        lenient: bool,
        level: &Level<'a>,
    ) -> SqlResult<Expr> {
        let of = self.value(of, level)?;
        let mut kind = cast_kind(data_type)?;
        if kind.collation.is_none() && is_text(&kind.sql_type) {
            kind = kind.collated_as(&of.kind);
        }
        if matches!(of.node, Node::Null) {
            return Ok(Expr::new(Node::Constant(Value::Null), kind));
        }
        scalar::check_conversion(&of.kind, &kind, true)?;
        let style = match styles {
            [] => None,
            [style] => Some(self.value(style, level)?),
            [_, extra, ..] => return Err(syntax(extra)),
        };
        let conversion = Conversion { style, lenient, ..Conversion::new(of, true) };
        Ok(self.settled(Expr::new(Node::Convert(Box::new(conversion)), kind)))
    }

    /// `{d '...'}`, `{t '...'}`, `{ts '...'}` of ODBC.
    fn typed_string(&self, typed: &ast::TypedString) -> SqlResult<Expr> {
        let Some(text) = typed.value.value.clone().into_string() else {
            return Err(syntax(&typed.value));
        };
        if !typed.uses_odbc_syntax {
            return Err(syntax(&text));
        }
        let conversion = Conversion::new(self.text(&text, false), true);
        let kind = Kind::new(SqlType::DateTime, false);
        Ok(self.settled(Expr::new(Node::Convert(Box::new(conversion)), kind)))
    }

    fn collated(&self, mut value: Expr, name: &str) -> SqlResult<Expr> {
        let name = name.trim_matches(['[', ']']);
        let collation = if name.eq_ignore_ascii_case("database_default") {
            self.facts.collation
        } else {
            scalar::collation(name).ok_or_else(|| no_collation(name))?
        };
        if !is_text(&value.kind.sql_type) {
            let name = scalar::result_name_of_type(&value.kind.sql_type);
            return Err(SqlError::new(
                447,
                format!("Expression type {name} is invalid for COLLATE clause."),
            ));
        }
        value.kind.collation = Some(collation);
        value.kind.explicit_collation = true;
        value.kind.fallback_collation = false;
        Ok(value)
    }

    fn case(
        &self,
        operand: Option<&'a ast::Expr>,
        conditions: &'a [ast::CaseWhen],
        otherwise: Option<&'a ast::Expr>,
        level: &Level<'a>,
    ) -> SqlResult<Expr> {
        let mut branches = Vec::with_capacity(conditions.len());
        for when in conditions {
            let condition = match operand {
                None => self.condition(&when.condition, level)?,
                Some(operand) => {
                    let left = self.value(operand, level)?;
                    let right = self.value(&when.condition, level)?;
                    self.equal(left, right)?
                }
            };
            branches.push((condition, self.value(&when.result, level)?));
        }
        let otherwise = otherwise.map(|value| self.value(value, level)).transpose()?;
        self.choice(branches, otherwise)
    }

    /// CASE with its values made one kind.
    pub(super) fn choice(
        &self,
        branches: Vec<(Condition, Expr)>,
        otherwise: Option<Expr>,
    ) -> SqlResult<Expr> {
        let values = branches.iter().map(|(_, value)| value).chain(otherwise.as_ref());
        if values.clone().all(|value| matches!(value.node, Node::Null)) {
            return Err(SqlError::new(
                8133,
                "At least one of the result expressions in a CASE specification must be an \
                 expression other than the NULL constant.",
            ));
        }
        let mut kind = self.common(values)?;
        kind.nullable |= otherwise.is_none();
        let branches = branches
            .into_iter()
            .map(|(condition, value)| Ok((condition, self.converted(value, &kind)?)))
            .collect::<SqlResult<Vec<_>>>()?;
        let otherwise =
            otherwise.map(|value| self.converted(value, &kind).map(Box::new)).transpose()?;
        Ok(self.settled(Expr::new(Node::Case { branches, otherwise }, kind)))
    }

    fn scalar_query(&self, query: &'a ast::Query, level: &Level<'a>) -> SqlResult<Expr> {
        let query = self.subquery(query, level)?;
        let [column] = query.plan.columns.as_slice() else {
            return Err(several_columns());
        };
        let kind = Kind { nullable: true, ..column.kind.clone() };
        Ok(Expr::new(Node::Query(Box::new(query)), kind))
    }

    /// Binds a query inside an expression.
    pub(super) fn subquery(&self, query: &'a ast::Query, level: &Level<'a>) -> SqlResult<Subquery> {
        if level.place.get() == Place::Aggregate {
            return Err(aggregate_of_query());
        }
        let plan = self.nested(|| self.query(query, Some(level), &level.tables, false))?;
        if plan.recursive {
            level.recursive.set(true);
        }
        let row_independent = plan.outward.is_empty() && !plan.recursive && self.live.is_empty();
        let kept = row_independent.then(|| Self::next(&self.kept));
        Ok(Subquery { plan, kept })
    }
}

/// True for types that have a collation.
pub(in crate::query) const fn is_text(sql_type: &SqlType) -> bool {
    matches!(
        sql_type,
        SqlType::Char(_)
            | SqlType::VarChar(_)
            | SqlType::NChar(_)
            | SqlType::NVarChar(_)
            | SqlType::Text
            | SqlType::NText
    )
}

/// The sides of an operation, each as the other makes it.
fn fitted(mut left: Expr, mut right: Expr) -> (Expr, Expr) {
    // A bare NULL takes the other side's type.
    match (&left.node, &right.node) {
        (Node::Null, Node::Null) => {}
        (Node::Null, _) => left.kind = Kind { nullable: true, ..right.kind.clone() },
        (_, Node::Null) => right.kind = Kind { nullable: true, ..left.kind.clone() },
        _ => {}
    }
    let decimal = |kind: &Kind| matches!(kind.sql_type, SqlType::Decimal { .. });
    if decimal(&left.kind) {
        right = as_decimal(right);
    } else if decimal(&right.kind) {
        left = as_decimal(left);
    }
    (left, right)
}

/// An integer of the text as the exact number it is next to a decimal.
fn as_decimal(expr: Expr) -> Expr {
    match &expr.node {
        Node::Constant(Value::Int(number)) if !expr.kind.nullable => {
            let typed = scalar::integer_as_decimal(*number);
            Expr::new(Node::Constant(typed.value), Kind { nullable: false, ..typed.kind })
        }
        _ => expr,
    }
}

const fn operator(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Plus => Operator::Add,
        BinaryOperator::Minus => Operator::Subtract,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        BinaryOperator::BitwiseAnd => Operator::BitAnd,
        BinaryOperator::BitwiseOr => Operator::BitOr,
        BinaryOperator::BitwiseXor => Operator::BitXor,
        _ => return None,
    })
}

fn hexadecimal(text: &str) -> SqlResult<Expr> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()
        .ok_or_else(|| syntax(text))?;
    // An odd number of digits begins with half a byte.
    let (head, pairs) = digits.split_at(digits.len() % 2);
    let mut bytes = head.to_vec();
    bytes.extend(
        pairs.chunks_exact(2).map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | digit)),
    );
    let length = match u16::try_from(bytes.len().max(1)) {
        Ok(length) if length <= 8_000 => Length::Limited(length),
        _ => Length::Max,
    };
    Ok(Binder::constant(Value::bytes(&bytes), SqlType::VarBinary(length)))
}

fn money(text: &str) -> SqlResult<Expr> {
    let Some(digits) = text.strip_prefix('$') else {
        return Err(syntax(text));
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let number: String = whole.chars().chain(part.chars().chain("0000".chars()).take(4)).collect();
    let units = number.parse::<i64>().map_err(|_| syntax(text))?;
    // A fifth digit rounds.
    let up = part.chars().nth(4).is_some_and(|digit| digit >= '5');
    let units = units.saturating_add(i64::from(up));
    Ok(Binder::constant(Value::decimal(units.into()), SqlType::Money))
}

/// The word that a condition is known by.
fn predicate_word(expr: &ast::Expr) -> &'static str {
    use ast::Expr as E;
    match expr {
        E::In { .. } => "IN",
        E::Between { .. } => "BETWEEN",
        E::Like { .. } => "LIKE",
        E::Exists { .. } => "EXISTS",
        E::AnyOp { .. } | E::AllOp { .. } => "=",
        _ => "IS",
    }
}

/// The name of an expression's form, without what it holds.
fn shape(expr: &ast::Expr) -> String {
    let debug = format!("{expr:?}");
    debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

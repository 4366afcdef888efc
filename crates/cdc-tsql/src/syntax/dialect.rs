//! The dialect that `sqlparser` reads: its own for SQL Server, with what that leaves out. Chains of
//! operators come out flat, because a tree as deep as a chain is long takes a stack as deep to
//! walk, and to drop. `&`, `|` and `^` bind as tightly as `+` and `-`, from left to right. GROUP BY
//! has ROLLUP, CUBE and GROUPING SETS.

use std::any::TypeId;

use sqlparser::{
    ast::{AccessExpr, BinaryOperator, Expr, GranteesType, Statement, Value},
    dialect::{Dialect, MsSqlDialect, Precedence},
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::{Span, Token},
};

use super::extent;

/// Operators of one chain that may hold one another; of a longer chain all stand side by side.
const MAX_DEPTH: usize = 64;

/// Reserved words that no expression begins with, and no name is without quotes.
const BEGIN_NO_VALUE: [&str; 38] = [
    "ALTER", "AND", "AS", "ASC", "BETWEEN", "BY", "CREATE", "CROSS", "DECLARE", "DELETE", "DESC",
    "DROP", "EXEC", "EXECUTE", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INSERT", "INTO",
    "IS", "JOIN", "LIKE", "MERGE", "ON", "OR", "ORDER", "OUTER", "SET", "THEN", "UNION", "UPDATE",
    "VALUES", "WHEN", "WHERE", "WITH",
];

/// T-SQL.
#[derive(Debug)]
pub(super) struct TSql(MsSqlDialect);

pub(super) static DIALECT: TSql = TSql(MsSqlDialect {});

/// Operators that bind equally and are read from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Or,
    And,
    Sums,
    Products,
}

/// The operator that a token is, and what it chains with.
fn operator(token: &Token) -> Option<(Family, BinaryOperator)> {
    Some(match token {
        Token::Plus => (Family::Sums, BinaryOperator::Plus),
        Token::Minus => (Family::Sums, BinaryOperator::Minus),
        Token::Ampersand => (Family::Sums, BinaryOperator::BitwiseAnd),
        Token::Pipe => (Family::Sums, BinaryOperator::BitwiseOr),
        Token::Caret => (Family::Sums, BinaryOperator::BitwiseXor),
        Token::Mul => (Family::Products, BinaryOperator::Multiply),
        Token::Div => (Family::Products, BinaryOperator::Divide),
        Token::Mod => (Family::Products, BinaryOperator::Modulo),
        Token::Word(word) => match word.keyword {
            Keyword::AND => (Family::And, BinaryOperator::And),
            Keyword::OR => (Family::Or, BinaryOperator::Or),
            _ => return None,
        },
        _ => return None,
    })
}

/// Reads a whole chain of operators that bind equally, from behind its first operand on.
fn chain(
    parser: &mut Parser<'_>,
    first: &Expr,
    family: Family,
    precedence: u8,
) -> Result<Expr, ParserError> {
    let mut steps = Vec::new();
    while let Some((own, operator)) = operator(&parser.peek_token_ref().token) {
        if own != family {
            break;
        }
        parser.advance_token();
        steps.push((operator, parser.parse_subexpr(precedence)?));
    }
    let first = first.clone();
    Ok(match family {
        Family::Or | Family::And => {
            let operator =
                if family == Family::Or { BinaryOperator::Or } else { BinaryOperator::And };
            let parts = std::iter::once(first).chain(steps.into_iter().map(|(_, part)| part));
            balanced(parts.collect(), &operator)
        }
        Family::Sums | Family::Products => from_left(first, steps),
    })
}

/// The parts in their order, in a tree as low as can be: how AND and OR are grouped changes
/// nothing.
fn balanced(mut parts: Vec<Expr>, operator: &BinaryOperator) -> Expr {
    while parts.len() > 1 {
        let mut pairs = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => binary(left, operator.clone(), right),
                None => left,
            });
        }
        parts = pairs;
    }
    parts.pop().unwrap_or_else(nothing)
}

/// Values computed from left to right. Of a long chain the steps stand side by side; see
/// [`steps`].
fn from_left(first: Expr, steps: Vec<(BinaryOperator, Expr)>) -> Expr {
    if steps.len() <= MAX_DEPTH {
        return steps
            .into_iter()
            .fold(first, |left, (operator, right)| binary(left, operator, right));
    }
    let step = |(operator, right)| AccessExpr::Dot(binary(nothing(), operator, right));
    Expr::CompoundFieldAccess {
        root: Box::new(first),
        access_chain: steps.into_iter().map(step).collect(),
    }
}

/// The operators and right operands of a long chain of values; none for what is no such chain.
/// T-SQL has no field of a value whose name is an operation.
pub(crate) fn steps(chain: &[AccessExpr]) -> Option<Vec<(&BinaryOperator, &Expr)>> {
    chain.iter().map(step).collect()
}

fn step(part: &AccessExpr) -> Option<(&BinaryOperator, &Expr)> {
    match part {
        AccessExpr::Dot(Expr::BinaryOp { op, right, .. }) => Some((op, right)),
        _ => None,
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// Stands where a step of a chain has the value so far.
fn nothing() -> Expr {
    Expr::Value(sqlparser::ast::ValueWithSpan { value: Value::Null, span: Span::empty() })
}

impl Dialect for TSql {
    // The parser asks in places whether it reads SQL Server.
    fn dialect(&self) -> TypeId {
        TypeId::of::<MsSqlDialect>()
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let token = parser.peek_token_ref();
        let word = extent::word(&token.token)?;
        BEGIN_NO_VALUE.contains(&&*word).then(|| parser.expected_ref("an expression", token))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let (family, _) = operator(&parser.peek_token_ref().token)?;
        Some(chain(parser, expr, family, precedence))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        let precedence = match precedence {
            Precedence::Ampersand | Precedence::Pipe | Precedence::Caret => Precedence::PlusMinus,
            other => other,
        };
        self.0.prec_value(precedence)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        self.0.get_next_precedence(parser)
    }

    fn is_delimited_identifier_start(&self, letter: char) -> bool {
        self.0.is_delimited_identifier_start(letter)
    }

    fn is_identifier_start(&self, letter: char) -> bool {
        self.0.is_identifier_start(letter)
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        self.0.is_identifier_part(letter)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.0.identifier_quote_style(identifier)
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn convert_type_before_value(&self) -> bool {
        self.0.convert_type_before_value()
    }

    fn supports_outer_join_operator(&self) -> bool {
        self.0.supports_outer_join_operator()
    }

    fn supports_dollar_as_money_prefix(&self) -> bool {
        self.0.supports_dollar_as_money_prefix()
    }

    fn supports_create_proc_syntax(&self) -> bool {
        self.0.supports_create_proc_syntax()
    }

    fn supports_connect_by(&self) -> bool {
        self.0.supports_connect_by()
    }

    fn supports_eq_alias_assignment(&self) -> bool {
        self.0.supports_eq_alias_assignment()
    }

    fn supports_try_convert(&self) -> bool {
        self.0.supports_try_convert()
    }

    fn supports_boolean_literals(&self) -> bool {
        self.0.supports_boolean_literals()
    }

    fn supports_named_fn_args_with_colon_operator(&self) -> bool {
        self.0.supports_named_fn_args_with_colon_operator()
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        self.0.supports_named_fn_args_with_expr_name()
    }

    fn supports_named_fn_args_with_rarrow_operator(&self) -> bool {
        self.0.supports_named_fn_args_with_rarrow_operator()
    }

    fn supports_start_transaction_modifier(&self) -> bool {
        self.0.supports_start_transaction_modifier()
    }

    fn supports_end_transaction_modifier(&self) -> bool {
        self.0.supports_end_transaction_modifier()
    }

    fn supports_set_stmt_without_operator(&self) -> bool {
        self.0.supports_set_stmt_without_operator()
    }

    fn supports_table_versioning(&self) -> bool {
        self.0.supports_table_versioning()
    }

    fn supports_nested_comments(&self) -> bool {
        self.0.supports_nested_comments()
    }

    fn supports_object_name_double_dot_notation(&self) -> bool {
        self.0.supports_object_name_double_dot_notation()
    }

    fn get_reserved_grantees_types(&self) -> &[GranteesType] {
        self.0.get_reserved_grantees_types()
    }

    fn is_select_item_alias(
        &self,
        explicit: bool,
        keyword: &Keyword,
        parser: &mut Parser<'_>,
    ) -> bool {
        self.0.is_select_item_alias(explicit, keyword, parser)
    }

    fn is_table_factor(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.0.is_table_factor(keyword, parser)
    }

    fn is_table_factor_alias(
        &self,
        explicit: bool,
        keyword: &Keyword,
        parser: &mut Parser<'_>,
    ) -> bool {
        self.0.is_table_factor_alias(explicit, keyword, parser)
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        self.0.parse_statement(parser)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Expr {
        let mut parser = Parser::new(&DIALECT).try_with_sql(text).expect(text);
        parser.parse_expr().expect(text)
    }

    /// How deeply operators hold one another.
    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            _ => 0,
        }
    }

    #[test]
    fn a_long_chain_of_conditions_is_a_low_tree() {
        for word in ["AND", "OR"] {
            let text = vec!["a = 1"; 5_000].join(&format!(" {word} "));
            let read = read(&text);
            assert!(depth(&read) <= 14, "{}", depth(&read));
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn a_long_chain_of_values_stands_side_by_side() {
        let read = read(&vec!["a"; 5_000].join(" + "));
        let Expr::CompoundFieldAccess { access_chain, .. } = read else { panic!("no chain") };
        assert_eq!(steps(&access_chain).map(|steps| steps.len()), Some(4_999));
    }

    #[test]
    fn bits_are_read_with_sums_from_left_to_right() {
        let grouped = |text: &str| {
            fn show(expr: &Expr) -> String {
                match expr {
                    Expr::BinaryOp { left, op, right } => {
                        format!("({} {op} {})", show(left), show(right))
                    }
                    other => other.to_string(),
                }
            }
            show(&read(text))
        };
        assert_eq!(grouped("4 & 2 + 1"), "((4 & 2) + 1)");
        assert_eq!(grouped("1 - 2 | 3 ^ 4 * 5"), "(((1 - 2) | 3) ^ (4 * 5))");
        assert_eq!(grouped("a OR b AND c OR d"), "((a OR (b AND c)) OR d)");
        assert_eq!(grouped("a BETWEEN 1 AND 2 AND b"), "(a BETWEEN 1 AND 2 AND b)");
    }
}

//! Operators, case by case.

use cdc_core::Length;
use proptest::prelude::*;

use super::*;
use crate::{
    kind::Typed,
    relation::Settings,
    scalar::{
        conversion::convert,
        literal::{number_literal, text_literal},
        tests_support::facts,
    },
};

/// A value: a type and a text, or a constant.
fn typed(text: &str) -> Typed {
    if let Some((name, text)) = text.split_once(':') {
        let sql_type = match name {
            "tinyint" => SqlType::TinyInt,
            "bigint" => SqlType::BigInt,
            "bit" => SqlType::Bit,
            "money" => SqlType::Money,
            "smallmoney" => SqlType::SmallMoney,
            "float" => SqlType::Float,
            "real" => SqlType::Real,
            "datetime" => SqlType::DateTime,
            "smalldatetime" => SqlType::SmallDateTime,
            "d38" => SqlType::Decimal { precision: 38, scale: 10 },
            _ => SqlType::Decimal { precision: 30, scale: 10 },
        };
        let kind = Kind::new(sql_type, true);
        let source = Kind::new(SqlType::VarChar(Length::Max), true);
        let value = convert(&Value::text(text), &source, &kind, None, true, &facts());
        return Typed { kind, value: value.expect(text) };
    }
    match text.strip_prefix('\'') {
        Some(text) => text_literal(text.trim_end_matches('\''), false, &facts()),
        None => match text.strip_prefix('-') {
            Some(number) => {
                let typed = number_literal(number).expect(number);
                let value = unary(Unary::Minus, (&typed.value, &typed.kind), &facts());
                Typed { value: value.expect(number), ..typed }
            }
            None => number_literal(text).expect(text),
        },
    }
}

fn computed(left: &str, op: Operator, right: &str) -> Result<String, i32> {
    let (a, b) = (typed(left), typed(right));
    let kind = operator_kind(op, &a.kind, &b.kind).map_err(|error| error.number)?;
    let found = operate(op, (&a.value, &a.kind), (&b.value, &b.kind), &facts())
        .map_err(|error| error.number)?;
    let style = match kind.sql_type {
        SqlType::Money | SqlType::SmallMoney => Some(2),
        SqlType::DateTime | SqlType::SmallDateTime => Some(121),
        _ => None,
    };
    let max = Kind::new(SqlType::VarChar(Length::Max), true);
    match convert(&found, &kind, &max, style, true, &facts()) {
        Ok(Value::Text(text)) => Ok(text.to_string()),
        other => panic!("no text: {other:?}"),
    }
}

#[test]
fn numbers_are_computed_as_the_server_computes_them() {
    use Operator::{Add, BitAnd, BitOr, BitXor, Divide, Modulo, Multiply, Subtract};
    for (left, op, right, wanted) in [
        ("7", Divide, "2", Ok("3")),
        ("-7", Divide, "2", Ok("-3")),
        ("-7", Modulo, "2", Ok("-1")),
        ("7", Modulo, "-2", Ok("1")),
        ("2147483647", Add, "1", Err(8115)),
        ("2147483647", Add, "bigint:1", Ok("2147483648")),
        ("tinyint:1", Subtract, "tinyint:2", Err(8115)),
        ("1", Divide, "0", Err(8134)),
        ("1.0", Modulo, "0", Err(8134)),
        ("1", Add, "'2'", Ok("3")),
        ("1", Add, "'x'", Err(245)),
        ("6", BitAnd, "3", Ok("2")),
        ("6", BitOr, "3", Ok("7")),
        ("6", BitXor, "3", Ok("5")),
        ("bit:1", BitXor, "bit:1", Ok("0")),
        ("2.0", Divide, "3.0", Ok("0.666666")),
        ("1.50", Multiply, "2.0", Ok("3.000")),
        ("d30:0.0000009", Multiply, "d30:1", Ok("0.000001")),
        ("1.5", Add, "1", Ok("2.5")),
        ("1.5", Add, "'2.55'", Ok("4.1")),
        ("d38:9999999999999999999999999999", Multiply, "d38:99999999999", Err(8115)),
        // 100 / 339 * 10000 shows what money loses.
        ("money:100", Divide, "money:339", Ok("0.2949")),
        ("money:0.2949", Multiply, "money:10000", Ok("2949.0000")),
        ("money:0.0001", Multiply, "money:0.5", Ok("0.0001")),
        ("money:1", Divide, "3", Ok("0.3333")),
        ("money:5", Modulo, "3", Ok("2.0000")),
        ("smallmoney:200000", Add, "smallmoney:200000", Err(8115)),
        ("money:922337203685477", Multiply, "2", Err(8115)),
        ("float:1", Divide, "3", Ok("0.333333")),
        ("float:1e308", Multiply, "float:10", Err(8115)),
        ("float:1", Divide, "0", Err(8134)),
        ("real:1", Divide, "3", Ok("0.333333")),
        ("float:1", Add, "1.5", Ok("2.5")),
    ] {
        let found = computed(left, op, right);
        assert_eq!(found.as_deref().map_err(|n| *n), wanted, "{left} {op:?} {right}");
    }
}

#[test]
fn days_are_added_to_datetimes() {
    use Operator::{Add, Subtract};
    for (left, op, right, wanted) in [
        ("datetime:2024-03-05", Add, "1", Ok("2024-03-06 00:00:00.000")),
        ("datetime:2024-03-05", Subtract, "1.5", Ok("2024-03-03 12:00:00.000")),
        ("1", Add, "datetime:2024-03-05", Ok("2024-03-06 00:00:00.000")),
        ("datetime:2024-03-05", Add, "float:0.25", Ok("2024-03-05 06:00:00.000")),
        (
            "datetime:2024-03-05 00:00:00.003",
            Add,
            "datetime:1900-01-01 00:00:00.003",
            Ok("2024-03-05 00:00:00.007"),
        ),
        (
            "datetime:2024-03-05",
            Subtract,
            "datetime:2024-03-04 12:00",
            Ok("1900-01-01 12:00:00.000"),
        ),
        ("datetime:2024-03-05", Subtract, "'2024-03-04'", Ok("1900-01-02 00:00:00.000")),
        ("smalldatetime:2024-03-05", Add, "1", Ok("2024-03-06 00:00:00.000")),
        ("datetime:9999-12-31", Add, "1", Err(8115)),
        ("datetime:1753-01-01", Subtract, "1", Err(8115)),
    ] {
        let found = computed(left, op, right);
        assert_eq!(found.as_deref().map_err(|n| *n), wanted, "{left} {op:?} {right}");
    }
}

#[test]
fn texts_and_bytes_go_behind_one_another() {
    let facts = facts();
    let add = |a: &Typed, b: &Typed| {
        operate(Operator::Add, (&a.value, &a.kind), (&b.value, &b.kind), &facts)
    };
    assert_eq!(add(&typed("'ab'"), &typed("'c'")), Ok(Value::text("abc")));
    let binary =
        |bytes: &[u8]| Typed::new(SqlType::VarBinary(Length::Limited(8)), Value::bytes(bytes));
    assert_eq!(add(&binary(&[1]), &binary(&[2, 3])), Ok(Value::bytes(&[1, 2, 3])));
    let long = Typed::new(SqlType::VarChar(Length::Limited(8000)), Value::text(&"x".repeat(8000)));
    assert_eq!(add(&long, &typed("'y'")), Ok(long.value.clone()));
    let null = Typed::new(SqlType::VarChar(Length::Limited(1)), Value::Null);
    assert_eq!(add(&null, &typed("'a'")), Ok(Value::Null));
    let settings = Settings { concat_null_yields_null: false, ..Settings::default() };
    let facts = Facts { settings, ..facts };
    let one = typed("'a'");
    let found = operate(Operator::Add, (&null.value, &null.kind), (&one.value, &one.kind), &facts);
    assert_eq!(found, Ok(Value::text("a")));
}

#[test]
fn a_sign_or_a_complement_stays_in_the_type() {
    for (op, text, wanted) in [
        (Unary::Minus, "5", Ok(Value::Int(-5))),
        (Unary::Minus, "tinyint:5", Ok(Value::Int(-5))),
        (Unary::Minus, "1.5", Ok(Value::decimal(-15))),
        (Unary::Minus, "float:1.5", Ok(Value::Float(-1.5))),
        (Unary::Minus, "bigint:-9223372036854775808", Err(8115)),
        (Unary::Minus, "money:-922337203685477.5808", Err(8115)),
        (Unary::BitNot, "5", Ok(Value::Int(-6))),
        (Unary::BitNot, "tinyint:5", Ok(Value::Int(250))),
        (Unary::BitNot, "bit:1", Ok(Value::Bit(false))),
        (Unary::Plus, "'x'", Ok(Value::text("x"))),
    ] {
        let given = typed(text);
        let found = unary(op, (&given.value, &given.kind), &facts());
        assert_eq!(found.map_err(|error| error.number), wanted, "{op:?} {text}");
    }
}

#[test]
fn with_arithabort_and_ansi_warnings_off_a_failure_is_null() {
    let settings = Settings { arithmetic_errors: false, ..Settings::default() };
    let facts = Facts { settings, ..facts() };
    let (one, zero) = (typed("1"), typed("0"));
    let found =
        operate(Operator::Divide, (&one.value, &one.kind), (&zero.value, &zero.kind), &facts);
    assert_eq!(found, Ok(Value::Null));
}

proptest! {
    #[test]
    fn whole_numbers_are_quotient_times_divisor_and_rest(a: i32, b: i32) {
        prop_assume!(b != 0 && !(a == i32::MIN && b == -1));
        let kind = Kind::new(SqlType::Int, false);
        let value = |number: i32| Value::Int(number.into());
        let compute = |op| operate(op, (&value(a), &kind), (&value(b), &kind), &facts());
        let (Ok(Value::Int(quotient)), Ok(Value::Int(rest))) =
            (compute(Operator::Divide), compute(Operator::Modulo)) else { panic!("whole numbers") };
        prop_assert_eq!(quotient * i64::from(b) + rest, i64::from(a));
        prop_assert!(rest == 0 || rest.signum() == i64::from(a).signum());
    }

    #[test]
    fn the_value_is_of_the_kind_that_was_announced(
        a in prop::sample::select(vec!["7", "1.50", "money:2.5", "float:3", "real:2", "bigint:9", "tinyint:3", "bit:1", "'4'", "datetime:2000-01-01"]),
        b in prop::sample::select(vec!["7", "1.50", "money:2.5", "float:3", "real:2", "bigint:9", "tinyint:3", "bit:1", "'4'", "datetime:2000-01-01"]),
        op in prop::sample::select(vec![Operator::Add, Operator::Subtract, Operator::Multiply, Operator::Divide, Operator::Modulo, Operator::BitAnd]),
    ) {
        let (a, b) = (typed(a), typed(b));
        let kind = operator_kind(op, &a.kind, &b.kind);
        let value = operate(op, (&a.value, &a.kind), (&b.value, &b.kind), &facts());
        match (kind, value) {
            (Ok(kind), Ok(value)) => prop_assert_eq!(value.clone().stored(&kind.sql_type), Ok(value)),
            // A number that does not fit, or a text that is no date.
            (Ok(_), Err(error)) => prop_assert!(matches!(error.number, 8115 | 241), "{}", error),
            (Err(refused), value) => prop_assert_eq!(value, Err(refused)),
        }
    }
}

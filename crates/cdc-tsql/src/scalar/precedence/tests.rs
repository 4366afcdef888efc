//! Types of operators and of alternatives, case by case.

use super::*;
use cdc_fake::collation::named;

fn kind(sql_type: SqlType) -> Kind {
    Kind::new(sql_type, false)
}

const fn varchar(length: u16) -> SqlType {
    SqlType::VarChar(Length::Limited(length))
}

const fn nvarchar(length: u16) -> SqlType {
    SqlType::NVarChar(Length::Limited(length))
}

const fn decimal(precision: u8, scale: u8) -> SqlType {
    SqlType::Decimal { precision, scale }
}

#[test]
fn an_operator_gives_the_type_of_higher_precedence() {
    use Operator::{Add, BitAnd, Divide, Modulo, Multiply, Subtract};
    use SqlType as T;
    for (a, op, b, result) in [
        (T::Int, Add, T::BigInt, T::BigInt),
        (T::TinyInt, Subtract, T::TinyInt, T::TinyInt),
        (T::Int, Divide, T::Int, T::Int),
        (T::Bit, Add, T::Int, T::Int),
        (T::Bit, BitAnd, T::Bit, T::Bit),
        (T::Int, Multiply, decimal(5, 2), decimal(16, 2)),
        (decimal(2, 1), Divide, decimal(1, 0), decimal(7, 6)),
        (T::Money, Multiply, T::Int, T::Money),
        (T::Money, Multiply, decimal(5, 2), decimal(25, 6)),
        (T::SmallMoney, Divide, T::Money, T::Money),
        (T::Money, Modulo, T::Int, T::Money),
        (T::Float, Add, decimal(38, 10), T::Float),
        (T::Real, Add, T::BigInt, T::Real),
        (T::Int, Add, varchar(3), T::Int),
        (varchar(3), Subtract, T::Float, T::Float),
        (T::DateTime, Add, T::Int, T::DateTime),
        (T::DateTime, Subtract, T::SmallDateTime, T::DateTime),
        (T::SmallDateTime, Add, T::Float, T::SmallDateTime),
        (varchar(3), Add, varchar(4), varchar(7)),
        (T::Char(3), Add, T::NChar(4), nvarchar(7)),
        (varchar(8000), Add, varchar(1), varchar(8000)),
        (nvarchar(4000), Add, varchar(8000), nvarchar(4000)),
        (varchar(1), Add, T::VarChar(Length::Max), T::VarChar(Length::Max)),
        (T::Binary(2), Add, T::VarBinary(Length::Limited(3)), T::VarBinary(Length::Limited(5))),
        (T::VarBinary(Length::Limited(3)), BitAnd, T::Int, T::Int),
    ] {
        let found = operator_kind(op, &kind(a.clone()), &kind(b.clone()));
        assert_eq!(found.map(|kind| kind.sql_type), Ok(result), "{a} {op:?} {b}");
    }
}

#[test]
fn operands_that_do_not_go_together_are_refused_with_the_servers_number() {
    use Operator::{Add, BitOr, Modulo, Multiply, Subtract};
    use SqlType as T;
    for (a, op, b, number) in [
        (T::Bit, Add, T::Bit, 8117),
        (T::Float, Modulo, T::Int, 402),
        (T::Float, BitOr, T::Int, 402),
        (varchar(1), Subtract, varchar(1), 8117),
        (varchar(1), Add, T::Binary(1), 402),
        (T::Date, Add, T::Int, 206),
        (T::DateTime2 { scale: 7 }, Subtract, T::DateTime2 { scale: 7 }, 8117),
        (T::DateTime, Add, T::Date, 402),
        (T::DateTime, Multiply, T::Int, 8117),
        (T::UniqueIdentifier, Add, varchar(1), 402),
        (T::UniqueIdentifier, Add, T::Int, 206),
        (T::Text, Add, varchar(1), 402),
    ] {
        let found = operator_kind(op, &kind(a.clone()), &kind(b.clone()));
        assert_eq!(found.expect_err("refused").number, number, "{a} {op:?} {b}");
    }
}

#[test]
fn alternatives_have_a_type_that_holds_all() {
    use SqlType as T;
    for (kinds, common) in [
        (vec![], T::Int),
        (vec![T::Int, varchar(5)], T::Int),
        (vec![varchar(5), T::Int, T::BigInt], T::BigInt),
        (vec![decimal(5, 2), T::Int], decimal(12, 2)),
        (vec![decimal(5, 2), decimal(10, 8)], decimal(11, 8)),
        (vec![decimal(18, 2), T::Money], decimal(20, 4)),
        (vec![T::Char(3), T::Char(5)], T::Char(5)),
        (vec![T::Char(3), varchar(2)], varchar(3)),
        (vec![T::Char(3), nvarchar(2)], nvarchar(3)),
        (vec![varchar(8000), nvarchar(2)], nvarchar(4000)),
        (vec![T::Binary(3), T::Binary(10)], T::Binary(10)),
        (vec![T::Binary(10), T::VarBinary(Length::Limited(8))], T::VarBinary(Length::Limited(10))),
        (vec![T::Date, T::DateTime], T::DateTime),
        (vec![T::DateTime, T::DateTime2 { scale: 0 }], T::DateTime2 { scale: 3 }),
        (
            vec![T::DateTimeOffset { scale: 3 }, T::DateTime2 { scale: 7 }],
            T::DateTimeOffset { scale: 7 },
        ),
        (vec![varchar(40), T::DateTime], T::DateTime),
        (vec![varchar(40), T::UniqueIdentifier], T::UniqueIdentifier),
        (vec![T::Int, T::Float], T::Float),
        (vec![varchar(4), T::VarBinary(Length::Limited(8))], varchar(4)),
    ] {
        let given: Vec<_> = kinds.into_iter().map(kind).collect();
        assert_eq!(common_kind(&given).map(|kind| kind.sql_type), Ok(common), "{given:?}");
    }
}

#[test]
fn alternatives_that_have_no_common_type_clash() {
    use SqlType as T;
    for (a, b) in [
        (T::Date, T::Int),
        (T::Date, T::Time { scale: 0 }),
        (T::UniqueIdentifier, T::Int),
        (T::Money, T::Xml),
    ] {
        let found = common_kind(&[kind(a.clone()), kind(b.clone())]);
        assert_eq!(found.expect_err("clash").number, 206, "{a} and {b}");
    }
}

#[test]
fn null_and_collation_go_on_to_the_result() {
    let greek = Kind { collation: named("Greek_CI_AS"), ..Kind::new(varchar(3), true) };
    let plain = kind(varchar(4));
    let sum = operator_kind(Operator::Add, &plain, &greek).expect("texts");
    assert_eq!((sum.nullable, sum.collation), (true, greek.collation));
    let common = common_kind(&[greek.clone(), plain]).expect("texts");
    assert_eq!((common.nullable, common.collation), (true, greek.collation));
    let other = Kind { collation: named("Latin1_General_CI_AS"), ..greek.clone() };
    assert_eq!(common_kind(&[greek, other]).expect_err("conflict").number, 468);
}

#[test]
fn signs_go_before_numbers() {
    use SqlType as T;
    for (op, of, number) in [
        (Unary::Minus, T::Int, None),
        (Unary::Minus, T::Money, None),
        (Unary::Minus, T::Bit, Some(8117)),
        (Unary::Minus, varchar(3), Some(8117)),
        (Unary::Plus, varchar(3), None),
        (Unary::BitNot, T::TinyInt, None),
        (Unary::BitNot, T::Float, Some(8117)),
    ] {
        let found = unary_kind(op, &kind(of.clone())).err().map(|error| error.number);
        assert_eq!(found, number, "{op:?} {of}");
    }
}

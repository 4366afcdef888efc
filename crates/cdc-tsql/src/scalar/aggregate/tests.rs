//! Aggregates over rows, case by case.

use proptest::prelude::*;

use super::*;

fn kind(sql_type: SqlType) -> Kind {
    Kind::new(sql_type, true)
}

const fn decimal(precision: u8, scale: u8) -> SqlType {
    SqlType::Decimal { precision, scale }
}

fn over(
    name: &str,
    sql_type: SqlType,
    distinct: bool,
    values: &[Value],
) -> Result<(SqlType, Value), i32> {
    let mut made = aggregate(name, &[kind(sql_type)], distinct)
        .expect("known")
        .map_err(|error| error.number)?;
    for value in values {
        made.add(std::slice::from_ref(value)).map_err(|error| error.number)?;
    }
    Ok((made.kind().sql_type, made.finish().map_err(|error| error.number)?))
}

#[test]
fn an_aggregate_has_the_servers_type_and_leaves_null_out() {
    use Value::{Int, Null};
    let ints = [Int(1), Null, Int(2), Int(2)];
    let decimals = [Value::decimal(150), Value::decimal(250), Null];
    let max = SqlType::VarChar(Length::Limited(9));
    for (name, sql_type, distinct, values, result, value) in [
        ("count", SqlType::Int, false, &ints[..], SqlType::Int, Int(3)),
        ("COUNT", SqlType::Int, true, &ints, SqlType::Int, Int(2)),
        ("COUNT_BIG", SqlType::Int, false, &ints, SqlType::BigInt, Int(3)),
        ("APPROX_COUNT_DISTINCT", SqlType::Int, false, &ints, SqlType::BigInt, Int(2)),
        ("SUM", SqlType::TinyInt, false, &ints, SqlType::Int, Int(5)),
        ("SUM", SqlType::Int, true, &ints, SqlType::Int, Int(3)),
        ("SUM", SqlType::BigInt, false, &ints, SqlType::BigInt, Int(5)),
        ("AVG", SqlType::Int, false, &ints, SqlType::Int, Int(1)),
        ("SUM", decimal(5, 2), false, &decimals, decimal(38, 2), Value::decimal(400)),
        ("AVG", decimal(5, 2), false, &decimals, decimal(38, 6), Value::decimal(2_000_000)),
        ("AVG", SqlType::Money, false, &decimals, SqlType::Money, Value::decimal(200)),
        (
            "SUM",
            SqlType::Float,
            false,
            &[Value::Float(0.5), Value::Float(1.5)],
            SqlType::Float,
            Value::Float(2.0),
        ),
        (
            "AVG",
            SqlType::Real,
            false,
            &[Value::Real(0.5), Value::Real(1.5)],
            SqlType::Float,
            Value::Float(1.0),
        ),
        ("MIN", SqlType::Int, false, &ints, SqlType::Int, Int(1)),
        ("MAX", SqlType::Int, false, &ints, SqlType::Int, Int(2)),
        (
            "MAX",
            max.clone(),
            false,
            &[Value::text("a"), Value::text("B")],
            max.clone(),
            Value::text("B"),
        ),
        ("VARP", SqlType::Int, false, &[Int(1), Int(3)], SqlType::Float, Value::Float(1.0)),
        ("VAR", SqlType::Int, false, &[Int(1), Int(3)], SqlType::Float, Value::Float(2.0)),
        ("STDEVP", SqlType::Int, false, &[Int(1), Int(3)], SqlType::Float, Value::Float(1.0)),
        ("STDEV", SqlType::Int, false, &[Int(1)], SqlType::Float, Null),
        ("SUM", SqlType::Int, false, &[Null], SqlType::Int, Null),
        ("MIN", SqlType::Int, false, &[], SqlType::Int, Null),
        ("COUNT", SqlType::Int, false, &[Null], SqlType::Int, Int(0)),
    ] {
        assert_eq!(over(name, sql_type, distinct, values), Ok((result, value)), "{name}");
    }
}

#[test]
fn count_of_every_row_counts_null_too() {
    let mut made = aggregate("COUNT", &[], false).expect("known").expect("made");
    made.add(&[]).expect("counted");
    made.add(&[]).expect("counted");
    assert_eq!(made.finish(), Ok(Value::Int(2)));
    assert_eq!(made.fresh().finish(), Ok(Value::Int(0)));
}

#[test]
fn what_does_not_add_up_is_refused() {
    use Value::Int;
    let text = SqlType::VarChar(Length::Limited(9));
    for (name, sql_type, values, number) in [
        ("SUM", SqlType::Int, &[Int(i64::from(i32::MAX)), Int(1)][..], 8115),
        ("SUM", SqlType::BigInt, &[Int(i64::MAX), Int(1)], 8115),
        ("SUM", SqlType::Money, &[Value::decimal(i128::from(i64::MAX)), Value::decimal(1)], 8115),
        ("SUM", SqlType::Bit, &[], 8117),
        ("SUM", text.clone(), &[], 8117),
        ("AVG", SqlType::DateTime, &[], 8117),
        ("MIN", SqlType::Bit, &[], 8117),
        ("MAX", SqlType::Text, &[], 8117),
        ("STDEV", text, &[], 8117),
        ("CHECKSUM_AGG", SqlType::Int, &[], 50_000),
    ] {
        assert_eq!(over(name, sql_type, false, values), Err(number), "{name}");
    }
    assert!(aggregate("ABS", &[kind(SqlType::Int)], false).is_none());
    let two = aggregate("SUM", &[kind(SqlType::Int), kind(SqlType::Int)], false).expect("known");
    assert_eq!(two.err().expect("refused").number, 174);
}

#[test]
fn texts_are_joined_in_the_order_of_rows() {
    let kinds = |text: SqlType| [kind(text), kind(SqlType::VarChar(Length::Limited(2)))];
    let join = |text: SqlType, values: &[Value]| {
        let mut made = aggregate("STRING_AGG", &kinds(text), false).expect("known").expect("made");
        for value in values {
            made.add(&[value.clone(), Value::text(", ")]).map_err(|error| error.number)?;
        }
        Ok((made.kind().sql_type, made.finish().expect("text")))
    };
    let varchar = || SqlType::VarChar(Length::Limited(20));
    let parts = [Value::text("b"), Value::Null, Value::text("a")];
    let long = || SqlType::VarChar(Length::Limited(8000));
    assert_eq!(join(varchar(), &parts), Ok((long(), Value::text("b, a"))));
    assert_eq!(join(varchar(), &[Value::Null]), Ok((long(), Value::Null)));
    let numbers = join(SqlType::Int, &[Value::Int(1), Value::Int(2)]);
    assert_eq!(numbers, Ok((SqlType::NVarChar(Length::Limited(4000)), Value::text("1, 2"))));
    let big = Value::text(&"x".repeat(5000));
    assert_eq!(join(long(), &[big.clone(), big.clone()]), Err(9829));
    let max = SqlType::VarChar(Length::Max);
    assert!(join(max, &[big.clone(), big]).is_ok());
}

#[test]
fn distinct_counts_what_the_collation_holds_for_equal_once() {
    let text = SqlType::VarChar(Length::Limited(9));
    let values = ["a", "A ", "b"].map(Value::text);
    let (_, count) = over("COUNT", text, true, &values).expect("counted");
    assert_eq!(count, Value::Int(2));
}

proptest! {
    #[test]
    fn a_sum_is_the_average_times_the_count_within_a_rest(numbers in prop::collection::vec(-1000..1000_i64, 1..30)) {
        let values: Vec<Value> = numbers.iter().map(|n| Value::Int(*n)).collect();
        let (_, sum) = over("SUM", SqlType::Int, false, &values).expect("sum");
        let (_, average) = over("AVG", SqlType::Int, false, &values).expect("average");
        let count = i64::try_from(numbers.len()).expect("few");
        let (Value::Int(sum), Value::Int(average)) = (sum, average) else { panic!("numbers") };
        prop_assert_eq!(sum, numbers.iter().sum::<i64>());
        prop_assert!((sum - average * count).abs() < count);
    }

    #[test]
    fn the_extremes_are_those_of_the_values(numbers in prop::collection::vec(any::<i64>(), 1..30)) {
        let values: Vec<Value> = numbers.iter().map(|n| Value::Int(*n)).collect();
        let least = over("MIN", SqlType::BigInt, false, &values).expect("least").1;
        let most = over("MAX", SqlType::BigInt, false, &values).expect("most").1;
        prop_assert_eq!(least, Value::Int(*numbers.iter().min().expect("one")));
        prop_assert_eq!(most, Value::Int(*numbers.iter().max().expect("one")));
    }
}

//! Expressions: laziness, conversions, functions, NULL.

use super::*;

fn check(cases: &[(&str, &str)]) {
    let toy = Toy::new();
    for (expression, value) in cases {
        let sql = format!("SELECT {expression}");
        assert_eq!(toy.rows(&sql), [*value], "{sql}");
    }
}

#[test]
fn only_the_branch_that_is_taken_is_computed() {
    check(&[
        ("CASE WHEN 1 = 1 THEN 1 ELSE 1 / 0 END", "1"),
        ("CASE 2 WHEN 1 THEN 1 / 0 WHEN 2 THEN 5 END", "5"),
        ("CASE 3 WHEN 1 THEN 0 END", "NULL"),
        ("IIF(1 > 2, 1 / 0, 7)", "7"),
        ("COALESCE(NULL, 4, 1 / 0)", "4"),
        ("ISNULL(4, 1 / 0)", "4"),
        ("CHOOSE(2, 1 / 0, 9)", "9"),
        ("CHOOSE(3, 1, 9)", "NULL"),
        ("NULLIF(3, 3)", "NULL"),
        ("NULLIF(3, 4)", "3"),
    ]);
    let toy = Toy::new();
    assert_eq!(toy.error("SELECT 1 / 0"), 8134);
    assert!(toy.rows("SELECT 1 / 0 WHERE 1 = 2").is_empty());
    assert_eq!(toy.error("SELECT CASE WHEN 1 = 1 THEN NULL END"), 8133);
    assert_eq!(toy.error("SELECT COALESCE(NULL, NULL)"), 4127);
}

#[test]
fn the_first_argument_of_isnull_decides_the_type_and_the_common_type_that_of_coalesce() {
    check(&[
        ("ISNULL(CAST(NULL AS varchar(2)), 'abcd')", "ab"),
        ("COALESCE(CAST(NULL AS varchar(2)), 'abcd')", "abcd"),
        ("ISNULL(NULL, 'abcd')", "abcd"),
    ]);
}

#[test]
fn operators_follow_precedence_and_null_swallows_them() {
    check(&[
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 / 2", "3"),
        ("-7 % 3", "-1"),
        ("'a' + 'b'", "ab"),
        ("1 + NULL", "NULL"),
        ("5 & 3 | 8", "9"),
        ("~5", "-6"),
        ("1 + '2'", "3"),
        ("0x01 + 0x02", "0x0102"),
        ("1 / 2.0", "500000"),
    ]);
}

#[test]
fn literals_have_their_types() {
    check(&[
        ("0xABC", "0x0ABC"),
        ("0x", "0x"),
        ("$12.34567", "123457"),
        ("1.50", "150"),
        ("N'it''s'", "it's"),
        ("'a''b'", "a'b"),
    ]);
}

#[test]
fn conversions_take_styles_and_try_gives_null() {
    check(&[
        ("CAST('12' AS int)", "12"),
        ("CONVERT(varchar(10), 12)", "12"),
        ("CONVERT(varchar(22), CAST(0x0102 AS binary(2)), 1)", "0x0102"),
        ("CONVERT(binary(2), '0x0102', 1)", "0x0102"),
        ("TRY_CAST('x' AS int)", "NULL"),
        ("TRY_CONVERT(int, '7')", "7"),
        ("CAST(NULL AS int)", "NULL"),
        ("CAST('abc' AS char(2))", "ab"),
    ]);
    assert_eq!(Toy::new().error("SELECT CAST('x' AS int)"), 245);
}

#[test]
fn functions_of_values_and_of_the_server_are_called_by_name() {
    check(&[
        ("UPPER('abc')", "ABC"),
        ("SUBSTRING('abcdef', 2, 3)", "bcd"),
        ("LEFT('abc', 2)", "ab"),
        ("LTRIM(RTRIM('  x '))", "x"),
        ("TRIM('  x ')", "x"),
        ("FLOOR(1.7)", "1"),
        ("CEILING(1.2)", "2"),
        ("DATEDIFF(day, '2026-01-01', '2026-01-31')", "30"),
        ("DATEPART(year, CAST('2026-03-04' AS date))", "2026"),
        ("OBJECT_NAME(5)", "object5"),
        ("toy.sys.fn_cdc_get_max_lsn()", "0x0000002A000000070001"),
        ("LEN('abc  ')", "3"),
        ("CHAR(65) + NCHAR(66)", "AB"),
        ("REPLACE('aba', 'a', 'c')", "cbc"),
        ("YEAR('2026-03-04') + MONTH('2026-03-04') + DAY('2026-03-04')", "2033"),
        ("CAST({d '2026-03-04'} AS varchar(11))", "Mar  4 2026"),
        ("CAST({ts '2026-03-04 05:06:07'} AS varchar(20))", "Mar  4 2026  5:06AM"),
        ("CASE WHEN CURRENT_TIMESTAMP IS NULL THEN 1 ELSE 0 END", "0"),
        (
            "CONVERT(varchar(30), CAST('2026-07-01T00:00:00' AS datetime2(0)) AT TIME ZONE \
          'Pacific Standard Time', 126)",
            "2026-07-01T00:00:00-07:00",
        ),
        ("TRIM(BOTH 'x' FROM 'xax')", "a"),
        ("TRIM('x' FROM 'xax')", "a"),
        ("DATEADD(ms, 5, CAST('2026-03-04' AS datetime2(3)))", "DateTime2(17725824000050000)"),
        ("CONCAT('a', NULL, 1)", "a1"),
        ("{fn UCASE('a')}", "A"),
        ("sys.fn_varbintohexstr(0x0A)", "0x0a"),
        ("CASE WHEN 'B' COLLATE Latin1_General_BIN = 'b' THEN 1 ELSE 0 END", "0"),
        ("CASE WHEN 'B' = 'b' THEN 1 ELSE 0 END", "1"),
    ]);
}

#[test]
fn null_equals_null_only_when_ansi_nulls_are_off() {
    let mut toy = Toy::new();
    toy.set("@n", SqlType::Int, Value::Null);
    assert!(toy.rows("SELECT 1 WHERE @n = NULL").is_empty());
    toy.settings.ansi_nulls = false;
    assert_eq!(toy.rows("SELECT 1 WHERE @n = NULL"), ["1"]);
    assert_eq!(toy.rows("SELECT id FROM orders WHERE customer = NULL"), ["4"]);
    assert_eq!(toy.rows("SELECT COUNT(*) FROM orders WHERE customer <> NULL"), ["3"]);
}

#[test]
fn a_value_without_rows_is_computed_with_its_type() {
    let toy = Toy::new();
    let cancel = Cancel::default();
    let context = Context { catalogue: &toy, cancel: &cancel };
    let expr = |text: &str| {
        Parser::new(&MsSqlDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap()
    };
    let typed = scalar(&expr("(SELECT COUNT(*) FROM orders) + 1"), &context).unwrap();
    assert_eq!((typed.kind.sql_type, typed.value), (SqlType::Int, Value::Int(5)));
    for (text, truth) in [
        ("1 = 1", Some(true)),
        ("1 = NULL", None),
        ("EXISTS (SELECT 1 FROM orders WHERE id = 9)", Some(false)),
        ("NULL IS NULL AND NOT 1 > 2", Some(true)),
    ] {
        assert_eq!(condition(&expr(text), &context), Ok(truth), "{text}");
    }
    assert_eq!(scalar(&expr("id"), &context).unwrap_err().number, 207);
    assert_eq!(condition(&expr("1"), &context).unwrap_err().number, 4145);
    assert_eq!(scalar(&expr("COUNT(*)"), &context).unwrap_err().number, 147);
}

//! What names mean, the columns of a result, and where conditions may stand.

use super::*;

#[test]
fn names_are_found_whatever_their_case_and_refused_by_the_servers_numbers() {
    let toy = Toy::new();
    assert_eq!(
        toy.rows("SELECT ID, Orders.NAME FROM dbo.ORDERS WHERE dbo.orders.Id = 1"),
        ["1 apple"]
    );
    for (sql, number) in [
        ("SELECT nothing FROM orders", 207),
        ("SELECT orders.nothing FROM orders", 207),
        ("SELECT x.id FROM orders", 4104),
        ("SELECT orders.id FROM orders o", 4104),
        ("SELECT id FROM nothing", 208),
        ("SELECT id FROM orders, customers", 209),
        ("SELECT x.* FROM orders", 107),
        ("SELECT *", 263),
        ("SELECT @missing", 137),
        ("SELECT NOSUCH(1)", 195),
        ("SELECT dbo.nosuch(1)", 4121),
        ("SELECT 1 FROM orders a, customers a", 1011),
        ("SELECT 1 FROM orders, orders", 1013),
        ("SELECT * FROM nosuch(1)", 208),
    ] {
        assert_eq!(toy.error(sql), number, "{sql}");
    }
}

#[test]
fn names_keep_their_case_where_the_collation_does() {
    let mut toy = Toy::new();
    toy.collation = Collation { ignores_case: false, ..DEFAULT_COLLATION };
    assert_eq!(toy.rows("SELECT COUNT(id) FROM orders"), ["4"]);
    assert_eq!(toy.error("SELECT ID FROM orders"), 207);
}

#[test]
fn texts_compare_as_the_collation_of_the_database_says_unless_one_is_named() {
    let mut toy = Toy::new();
    for (name, alike) in [("Latin1_General_CS_AS", "0"), ("Latin1_General_CI_AS", "1")] {
        toy.collation = crate::scalar::collation(name).unwrap();
        for (sql, rows) in [
            ("SELECT COUNT(*) FROM orders WHERE name = 'APPLE'", alike),
            ("SELECT COUNT(*) FROM orders WHERE name LIKE 'APP%'", alike),
            ("SELECT COUNT(*) FROM orders WHERE name IN ('APPLE')", alike),
            ("SELECT 2 - COUNT(DISTINCT x) FROM (VALUES ('a'), ('A')) v(x)", alike),
            (
                "SELECT 2 - COUNT(*) FROM (SELECT DISTINCT x FROM (VALUES ('a'), ('A')) v(x)) d",
                alike,
            ),
            ("SELECT COUNT(*) FROM orders o JOIN (VALUES ('FIG  ')) v(x) ON v.x = o.name", alike),
            ("SELECT COUNT(*) FROM orders WHERE name = 'FIG' COLLATE Latin1_General_CI_AS", "1"),
            ("SELECT COUNT(*) FROM orders WHERE name = 'FIG' COLLATE Latin1_General_BIN2", "0"),
        ] {
            assert_eq!(toy.rows(sql), [rows], "{name}: {sql}");
        }
    }
    let conflict =
        "SELECT 1 WHERE 'a' COLLATE Latin1_General_BIN = 'a' COLLATE Latin1_General_CI_AS";
    assert_eq!(toy.error(conflict), 468);
}

#[test]
fn a_condition_is_no_value_and_a_value_is_no_condition() {
    let toy = Toy::new();
    for (sql, number) in [
        ("SELECT id > 1 FROM orders", 102),
        ("SELECT (id IS NULL) FROM orders", 102),
        ("SELECT id IN (1) FROM orders", 102),
        ("SELECT id FROM orders WHERE id", 4145),
        ("SELECT id FROM orders WHERE id + 1", 4145),
        ("SELECT CASE WHEN id THEN 1 END FROM orders", 4145),
        ("SELECT id FROM orders WHERE nothing", 207),
    ] {
        assert_eq!(toy.error(sql), number, "{sql}");
    }
}

#[test]
fn columns_have_their_names_types_and_nullability_before_a_row_is_read() {
    let toy = Toy::new();
    let decimal = |precision, scale| SqlType::Decimal { precision, scale };
    let varchar = |length| SqlType::VarChar(Length::Limited(length));
    for (item, name, sql_type, nullable) in [
        ("o.id", "id", SqlType::Int, false),
        ("o.ID", "ID", SqlType::Int, false),
        ("o.amount", "amount", decimal(10, 2), true),
        ("c.city", "city", text(20), true),
        ("1", "", SqlType::Int, false),
        ("'abc' AS t", "t", varchar(3), false),
        ("N'abc' AS [a b]", "a b", text(3), false),
        ("2.50", "", decimal(3, 2), false),
        ("0x0102", "", SqlType::VarBinary(Length::Limited(2)), false),
        ("$1.5", "", SqlType::Money, false),
        ("NULL AS n", "n", SqlType::Int, true),
        ("o.id + 1", "", SqlType::Int, true),
        ("CAST(o.id AS bigint)", "", SqlType::BigInt, true),
        ("CASE WHEN o.id = 1 THEN 1 ELSE 0 END", "", SqlType::Int, false),
        ("CASE WHEN o.id = 1 THEN 1 END", "", SqlType::Int, true),
        ("ISNULL(o.customer, 0)", "", SqlType::Int, false),
        ("COALESCE(o.customer, 0)", "", SqlType::Int, true),
        ("CAST(NULL AS varchar(5))", "", varchar(5), true),
        ("(SELECT 1)", "", SqlType::Int, true),
    ] {
        let sql = format!("SELECT {item} FROM orders o LEFT JOIN customers c ON c.id = o.customer");
        let prepared = toy.prepared(&sql).unwrap_or_else(|error| panic!("{item}: {error}"));
        let [column] = prepared.columns() else { panic!("one column") };
        assert_eq!(column.name, name, "{item}");
        assert_eq!(column.kind.sql_type, sql_type, "{item}");
        assert_eq!(column.kind.nullable, nullable, "{item}");
    }
    let prepared = toy.prepared("SELECT COUNT(*), MAX(id), COUNT_BIG(id) FROM orders").unwrap();
    let kinds: Vec<_> = prepared
        .columns()
        .iter()
        .map(|column| (column.kind.sql_type.clone(), column.kind.nullable))
        .collect();
    assert_eq!(kinds[0].0, SqlType::Int);
    assert_eq!(kinds[1], (SqlType::Int, true));
    assert_eq!(kinds[2].0, SqlType::BigInt);
    assert!(!kinds[0].1 && !kinds[2].1, "a count is never NULL");
}

#[test]
fn a_star_gives_what_is_not_hidden_in_the_order_of_from() {
    let mut toy = Toy::new();
    let mut table = Table::new(
        &[
            ("a", SqlType::Int, false),
            ("%%physloc%%", SqlType::VarBinary(Length::Limited(8)), false),
        ],
        vec![vec![1.into(), Value::bytes(&[9])]],
    );
    table.columns[1].hidden = true;
    table.columns[0].identity = true;
    toy.add("dbo", "h", table);
    let names = |sql: &str| {
        let prepared = toy.prepared(sql).unwrap();
        prepared.columns().iter().map(|column| column.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("SELECT * FROM h"), ["a"]);
    assert_eq!(toy.rows("SELECT * FROM h"), ["1"]);
    assert_eq!(names("SELECT c.*, h.a FROM h CROSS JOIN customers c"), ["id", "city", "a"]);
    assert_eq!(names("SELECT * FROM customers c RIGHT JOIN h ON c.id = h.a"), ["id", "city", "a"]);
    let prepared = toy.prepared("SELECT a, a + 1 AS b FROM h").unwrap();
    assert!(prepared.columns()[0].identity && !prepared.columns()[0].computed);
    assert!(!prepared.columns()[1].identity && prepared.columns()[1].computed);
}

#[test]
fn variables_are_read_when_the_statement_runs() {
    let toy = Toy::new();
    toy.set("@id", SqlType::Int, 2);
    let prepared = toy.prepared("SELECT name FROM orders WHERE id = @ID").err();
    assert_eq!(prepared.map(|error| error.number), Some(137), "the catalogue decides on case");
    let prepared = toy.prepared("SELECT name FROM orders WHERE id = @id").unwrap();
    let cancel = Cancel::default();
    let context = Context { catalogue: &toy, cancel: &cancel };
    for (id, name) in [(2, "Pear"), (3, "fig")] {
        toy.set("@id", SqlType::Int, id);
        let mut given = Vec::new();
        prepared
            .run(&context, &mut |row| {
                given.push(shown(&row[0]));
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        assert_eq!(given, [name]);
    }
}

#[test]
fn a_select_that_sets_variables_reads_them_anew_for_each_row() {
    let toy = Toy::new();
    toy.set("@sum", SqlType::Int, 0);
    let prepared = toy.prepared("SELECT @sum = @sum + id FROM orders").unwrap();
    assert_eq!(prepared.assigned(), Some(vec!["@sum"]));
    let cancel = Cancel::default();
    let context = Context { catalogue: &toy, cancel: &cancel };
    prepared
        .run(&context, &mut |row| {
            toy.set("@sum", SqlType::Int, row[0].clone());
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(toy.variable("@sum").unwrap().value, Value::Int(10));
    toy.set("@sum", SqlType::Int, 0);
    let prepared = toy.prepared("SELECT @sum = @sum + 1 FROM orders WHERE @sum < 2").unwrap();
    let given = prepared.run(&context, &mut |row| {
        toy.set("@sum", SqlType::Int, row[0].clone());
        Ok(ControlFlow::Continue(()))
    });
    assert_eq!(given, Ok(2), "the condition sees what the rows before have set");
    assert_eq!(toy.error("SELECT @sum = 1, id FROM orders"), 141);
    assert_eq!(toy.prepared("SELECT id AS [@sum] FROM orders").unwrap().assigned(), None);
}

#[test]
fn a_reply_may_be_given_again_when_nothing_but_data_decides() {
    let toy = Toy::new();
    toy.set("@x", SqlType::Int, 1);
    toy.set("@@SPID", SqlType::SmallInt, 51);
    for (sql, only_data) in [
        ("SELECT id FROM orders WHERE id = @x", true),
        ("SELECT sys.fn_cdc_get_max_lsn()", true),
        ("SELECT @@SPID", false),
        ("SELECT DB_NAME()", false),
        ("SELECT GETDATE()", false),
    ] {
        assert_eq!(toy.prepared(sql).unwrap().reads_only_data(), only_data, "{sql}");
    }
}

#[test]
fn an_expression_nested_too_deeply_is_refused_before_the_stack_ends() {
    let toy = Toy::new();
    let deep = format!("SELECT 1{}", " + 1".repeat(1_000));
    assert_eq!(toy.error(&deep), 8631);
    let long = format!("SELECT id FROM orders WHERE id = 0{}", " OR id = 3".repeat(1_000));
    assert_eq!(toy.rows(&long), ["3"]);
}

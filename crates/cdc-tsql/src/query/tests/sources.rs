//! FROM: joins, APPLY, derived tables, common table expressions, and what scans are asked.

use super::*;

fn check(cases: &[(&str, &[&str])]) {
    let toy = Toy::new();
    for (sql, rows) in cases {
        assert_eq!(toy.rows(sql), *rows, "{sql}");
    }
}

#[test]
fn joins_give_the_rows_that_their_kind_promises() {
    check(&[
        (
            "SELECT o.id, c.city FROM orders o JOIN customers c ON c.id = o.customer ORDER BY o.id",
            &["1 Oslo", "2 Rome", "3 Oslo"],
        ),
        (
            "SELECT o.id, c.city FROM orders o LEFT JOIN customers c ON c.id = o.customer \
             ORDER BY o.id",
            &["1 Oslo", "2 Rome", "3 Oslo", "4 NULL"],
        ),
        (
            "SELECT o.id, c.city FROM orders o RIGHT JOIN customers c ON c.id = o.customer \
             ORDER BY c.id, o.id",
            &["1 Oslo", "3 Oslo", "2 Rome", "NULL Bern"],
        ),
        (
            "SELECT o.id, c.id FROM orders o FULL JOIN customers c ON c.id = o.customer \
             ORDER BY c.id, o.id",
            &["4 NULL", "1 10", "3 10", "2 20", "NULL 30"],
        ),
        (
            "SELECT o.id, c.id FROM orders o FULL JOIN customers c ON c.id < o.id \
             WHERE c.id IS NULL ORDER BY 1",
            &["1 NULL", "2 NULL", "3 NULL", "4 NULL"],
        ),
        ("SELECT COUNT(*) FROM orders CROSS JOIN customers", &["12"]),
        (
            "SELECT o.id FROM orders o, customers c WHERE o.customer = c.id AND c.city = 'Rome'",
            &["2"],
        ),
        (
            "SELECT a.id, b.id FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id",
            &["1 3"],
        ),
        // The condition of ON decides on a match, that of WHERE on the row.
        (
            "SELECT o.id, c.city FROM orders o LEFT JOIN customers c ON c.id = o.customer AND \
             c.city = 'Rome' ORDER BY o.id",
            &["1 NULL", "2 Rome", "3 NULL", "4 NULL"],
        ),
        (
            "SELECT o.id FROM orders o LEFT JOIN customers c ON c.id = o.customer \
             WHERE c.city IS NULL",
            &["4"],
        ),
        (
            "SELECT o.id FROM orders o LEFT JOIN customers c ON c.id = o.customer AND o.id = 2 \
             WHERE c.id IS NOT NULL",
            &["2"],
        ),
        (
            "SELECT o.id, c.city FROM orders o LEFT JOIN (customers c JOIN customers d ON \
             d.id = c.id) ON c.id = o.customer WHERE o.id IN (2, 4) ORDER BY o.id",
            &["2 Rome", "4 NULL"],
        ),
    ]);
}

#[test]
fn apply_runs_its_right_side_for_each_row_of_the_left() {
    check(&[
        (
            "SELECT o.id, v.x FROM orders o CROSS APPLY (VALUES (o.id * 2), (o.id * 3)) AS v(x) \
             WHERE o.id < 3 ORDER BY o.id, v.x",
            &["1 2", "1 3", "2 4", "2 6"],
        ),
        (
            "SELECT c.id, t.id FROM customers c OUTER APPLY (SELECT TOP 1 o.id FROM orders o WHERE \
             o.customer = c.id ORDER BY o.id DESC) t ORDER BY c.id",
            &["10 3", "20 2", "30 NULL"],
        ),
        (
            "SELECT o.id, n.n FROM orders o CROSS APPLY dbo.numbers(o.id) n WHERE o.id <= 2",
            &["1 1", "2 1", "2 2"],
        ),
        ("SELECT SUM(n) FROM dbo.numbers(4)", &["10"]),
    ]);
}

#[test]
fn functions_of_values_alone_give_rows() {
    check(&[
        ("SELECT value FROM STRING_SPLIT('a,,b', ',')", &["a", "", "b"]),
        ("SELECT value, ordinal FROM STRING_SPLIT(N'x y', N' ', 1)", &["x 1", "y 2"]),
        (
            "SELECT o.id, s.value FROM orders o CROSS APPLY STRING_SPLIT(o.name, 'p') s WHERE id = 1",
            &["1 a", "1 ", "1 le"],
        ),
        ("SELECT value FROM STRING_SPLIT(NULL + 'a', ',')", &[]),
        ("SELECT value FROM GENERATE_SERIES(1, 7, 3)", &["1", "4", "7"]),
        ("SELECT value FROM GENERATE_SERIES(2, 0)", &["2", "1", "0"]),
    ]);
    let toy = Toy::new();
    for (sql, number) in [
        ("SELECT * FROM STRING_SPLIT('a', 'xy')", 214),
        ("SELECT * FROM STRING_SPLIT('a')", 174),
        ("SELECT * FROM STRING_SPLIT(1, 'x')", 8116),
        ("SELECT * FROM GENERATE_SERIES(1, 2, 0)", 4199),
    ] {
        assert_eq!(toy.error(sql), number, "{sql}");
    }
}

#[test]
fn derived_tables_and_expressions_are_read_as_tables() {
    check(&[
        (
            "SELECT x.b FROM (SELECT id + 1 AS b FROM orders) x WHERE x.b > 3 ORDER BY 1",
            &["4", "5"],
        ),
        ("SELECT a, b FROM (VALUES (1, 'x'), (2, NULL)) v(a, b)", &["1 x", "2 NULL"]),
        (
            "WITH a AS (SELECT id FROM orders WHERE id > 1), b (n) AS (SELECT id FROM a WHERE \
             id < 4) SELECT n FROM b UNION ALL SELECT id FROM a ORDER BY 1",
            &["2", "2", "3", "3", "4"],
        ),
        ("SELECT * FROM (SELECT * FROM orders) q WHERE 1 = 0", &[]),
    ]);
    let toy = Toy::new();
    for (sql, number) in [
        ("SELECT * FROM (SELECT id + 1 FROM orders) x", 8155),
        ("SELECT * FROM (SELECT id, id FROM orders) x", 8156),
        ("WITH a (x, y) AS (SELECT id FROM orders) SELECT * FROM a", 8159),
        ("SELECT * FROM (VALUES (1, 2)) v(a)", 8158),
        ("SELECT * FROM (VALUES (1, 2), (3)) v(a, b)", 10_709),
    ] {
        assert_eq!(toy.error(sql), number, "{sql}");
    }
}

#[test]
fn a_recursive_expression_reads_its_own_last_round() {
    check(&[
        (
            "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n",
            &["1", "2", "3", "4", "5"],
        ),
        (
            "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100) \
             SELECT MAX(i) FROM n",
            &["100"],
        ),
        (
            "WITH t AS (SELECT id, customer FROM orders WHERE id = 1 UNION ALL SELECT o.id, \
             o.customer FROM orders o JOIN t ON o.id = t.id + 1) SELECT id FROM t ORDER BY id",
            &["1", "2", "3", "4"],
        ),
    ]);
    let toy = Toy::new();
    let endless = "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 102) \
                   SELECT COUNT(*) FROM n";
    assert_eq!(toy.error(endless), 530);
    let prepared = toy.prepared(endless).unwrap().with_max_recursion(0);
    let cancel = Cancel::default();
    let context = Context { catalogue: &toy, cancel: &cancel };
    let given = prepared.run(&context, &mut |row| {
        assert_eq!(row, [Value::Int(102)]);
        Ok(ControlFlow::Continue(()))
    });
    assert_eq!(given, Ok(1));
    assert_eq!(
        toy.error(
            "WITH n AS (SELECT 1 AS i UNION SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n"
        ),
        252
    );
    assert_eq!(
        toy.error("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1.5 FROM n) SELECT i FROM n"),
        240
    );
}

#[test]
fn queries_inside_expressions_see_the_rows_around_them() {
    check(&[
        (
            "SELECT id, (SELECT city FROM customers c WHERE c.id = o.customer) FROM orders o",
            &["1 Oslo", "2 Rome", "3 Oslo", "4 NULL"],
        ),
        (
            "SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE \
             o.customer = c.id AND o.amount > 2)",
            &["20"],
        ),
        ("SELECT 1 WHERE EXISTS (SELECT 1 / 0 FROM orders)", &["1"]),
        (
            "SELECT id FROM customers WHERE NOT EXISTS (SELECT * FROM orders WHERE id > 99)",
            &["10", "20", "30"],
        ),
        ("SELECT id FROM customers WHERE id IN (SELECT customer FROM orders)", &["10", "20"]),
        // NOT IN with a NULL among the values is never true.
        ("SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders)", &[]),
        (
            "SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE \
             customer IS NOT NULL)",
            &["30"],
        ),
        ("SELECT id FROM customers WHERE id > ALL (SELECT id + 17 FROM orders)", &["30"]),
        ("SELECT id FROM customers WHERE id < ANY (SELECT customer FROM orders)", &["10"]),
        ("SELECT id FROM customers WHERE id = (SELECT MAX(customer) FROM orders)", &["20"]),
        (
            "SELECT id FROM customers WHERE id > ALL (SELECT id FROM orders WHERE id > 9)",
            &["10", "20", "30"],
        ),
    ]);
    let toy = Toy::new();
    for (sql, number) in [
        ("SELECT (SELECT id FROM orders)", 512),
        ("SELECT (SELECT id, name FROM orders)", 116),
        ("SELECT 1 WHERE 1 IN (SELECT id, name FROM orders)", 116),
    ] {
        assert_eq!(toy.error(sql), number, "{sql}");
    }
}

fn lsn(last: u8) -> Value {
    Value::bytes(&[0, 0, 0, 1, 0, 0, 0, 0, 0, last])
}

fn bound(column: usize, comparison: Comparison, value: Value) -> Bound {
    Bound { column, comparison, value }
}

/// Change rows and their times, both ordered by LSN.
fn changes(toy: &mut Toy) -> (Arc<Table>, Arc<Table>) {
    let rows = (1..=4)
        .flat_map(|at| (0..2).map(move |seq| vec![lsn(at), lsn(seq), Value::Int(2)]))
        .collect();
    let of_changes = Table::new(
        &[
            ("__$start_lsn", SqlType::Binary(10), false),
            ("__$seqval", SqlType::Binary(10), false),
            ("__$operation", SqlType::Int, false),
        ],
        rows,
    );
    let of_times = Table::new(
        &[("start_lsn", SqlType::Binary(10), false), ("at", SqlType::Int, true)],
        (1..=3).map(|at| vec![lsn(at), Value::Int(i64::from(at) * 100)]).collect(),
    );
    (
        toy.add("cdc", "t_ct", of_changes.ordered(&[0, 1])),
        toy.add("cdc", "lsn_time_mapping", of_times.ordered(&[0])),
    )
}

#[test]
fn bounds_of_where_reach_the_scan_in_the_columns_type() {
    let mut toy = Toy::new();
    let (change, time) = changes(&mut toy);
    let bytes = SqlType::VarBinary(Length::Limited(8000));
    toy.set("@from", bytes.clone(), lsn(1));
    toy.set("@to", bytes.clone(), lsn(3));
    toy.set("@none", bytes, Value::Null);
    let rows = toy.rows(
        "SELECT c.__$operation, m.at FROM cdc.t_ct c LEFT JOIN cdc.lsn_time_mapping m ON \
         m.start_lsn = c.__$start_lsn WHERE c.__$start_lsn > @from AND c.__$start_lsn <= @to",
    );
    assert_eq!(rows, ["2 200", "2 200", "2 300", "2 300"]);
    let wanted = [bound(0, Comparison::Greater, lsn(1)), bound(0, Comparison::LessOrEqual, lsn(3))];
    assert_eq!(change.asked().pop().unwrap().bounds, wanted);
    // What is known of one side of an equality is known of the other.
    assert_eq!(time.asked().pop().unwrap().bounds, wanted);

    // Alternatives leave their widest bound.
    let rows = toy.rows(
        "SELECT COUNT(*) FROM cdc.t_ct WHERE ((__$start_lsn = @from AND __$seqval > @none) OR \
         (__$start_lsn = @to AND __$operation = 2) OR __$start_lsn > @to) AND __$operation < 3",
    );
    assert_eq!(rows, ["4"]);
    assert_eq!(
        change.asked().pop().unwrap().bounds[0],
        bound(0, Comparison::GreaterOrEqual, lsn(3))
    );

    let before = change.asked().len();
    assert!(toy.rows("SELECT * FROM cdc.t_ct WHERE __$start_lsn > @none").is_empty());
    assert_eq!(change.asked().len(), before, "nothing is read when nothing can be found");
}

#[test]
fn a_bound_that_the_column_cannot_express_is_not_handed_down() {
    let mut toy = Toy::new();
    let table = toy.add(
        "dbo",
        "k",
        Table::new(
            &[("id", SqlType::Int, false), ("code", SqlType::VarChar(Length::Limited(5)), false)],
            vec![vec![1.into(), "7".into()], vec![2.into(), "08".into()]],
        ),
    );
    assert_eq!(toy.rows("SELECT id FROM k WHERE id < 1.5"), ["1"]);
    assert!(table.asked().pop().unwrap().bounds.is_empty());
    assert_eq!(toy.rows("SELECT id FROM k WHERE code = 8"), ["2"]);
    assert!(table.asked().pop().unwrap().bounds.is_empty());
    assert_eq!(toy.rows("SELECT id FROM k WHERE 2.0 <= id"), ["2"]);
    let wanted = bound(0, Comparison::GreaterOrEqual, 2.into());
    assert_eq!(table.asked().pop().unwrap().bounds, [wanted]);
}

#[test]
fn a_correlated_query_seeks_by_the_row_around_it() {
    let toy = Toy::new();
    let orders = toy.tables[&("dbo".to_owned(), "orders".to_owned())].clone();
    toy.rows("SELECT (SELECT name FROM orders o WHERE o.id = c.id) FROM customers c");
    let values: Vec<Value> =
        orders.asked().iter().map(|scan| scan.bounds[0].value.clone()).collect();
    assert_eq!(values, [Value::Int(10), Value::Int(20), Value::Int(30)]);
}

#[test]
fn rows_come_in_the_wanted_order_whatever_part_of_it_the_scan_has() {
    let mut toy = Toy::new();
    changes(&mut toy);
    for (order, rows) in [
        ("__$start_lsn", ["1 0", "1 1", "2 0", "2 1"]),
        ("__$start_lsn, __$seqval", ["1 0", "1 1", "2 0", "2 1"]),
        ("__$start_lsn, __$seqval DESC", ["1 1", "1 0", "2 1", "2 0"]),
        ("__$seqval, __$start_lsn", ["1 0", "2 0", "3 0", "4 0"]),
        ("__$start_lsn DESC, __$seqval", ["4 0", "4 1", "3 0", "3 1"]),
    ] {
        let sql = format!("SELECT TOP 4 __$start_lsn, __$seqval FROM cdc.t_ct ORDER BY {order}");
        let given: Vec<String> = toy
            .values(&sql)
            .unwrap()
            .iter()
            .map(|row| {
                let last = |value: &Value| match value {
                    Value::Bytes(bytes) => bytes[9].to_string(),
                    other => panic!("{other:?}"),
                };
                format!("{} {}", last(&row[0]), last(&row[1]))
            })
            .collect();
        assert_eq!(given, rows, "{order}");
    }
}

#[test]
fn hints_decide_how_a_table_is_read() {
    let toy = Toy::new();
    let orders = toy.tables[&("dbo".to_owned(), "orders".to_owned())].clone();
    for (hint, uncommitted, skip_held, locking) in [
        ("WITH (NOLOCK)", true, false, false),
        ("(nolock)", true, false, false),
        ("WITH (READPAST, ROWLOCK)", false, true, false),
        ("WITH (READCOMMITTEDLOCK)", false, false, true),
        ("WITH (TABLOCKX)", false, false, false),
        ("WITH (INDEX(1))", false, false, false),
    ] {
        toy.rows(&format!("SELECT id FROM orders {hint}"));
        let scan = orders.asked().pop().unwrap();
        assert_eq!(
            (scan.uncommitted, scan.skip_held, scan.locking),
            (uncommitted, skip_held, locking),
            "{hint}"
        );
    }
    assert_eq!(toy.error("SELECT id FROM orders WITH (FASTER)"), 321);
}

#[test]
fn a_cancelled_statement_ends() {
    let mut toy = Toy::new();
    let rows = (0..5_000).map(|n| vec![Value::Int(n)]).collect();
    toy.add("dbo", "many", Table::new(&[("n", SqlType::Int, false)], rows));
    let cancel = Cancel::default();
    let context = Context { catalogue: &toy, cancel: &cancel };
    let prepared = toy.prepared("SELECT a.n FROM many a, many b").unwrap();
    let mut given = 0_u32;
    let error = prepared
        .run(&context, &mut |_| {
            given += 1;
            if given == 100 {
                cancel.set();
            }
            Ok(ControlFlow::Continue(()))
        })
        .unwrap_err();
    assert_eq!(error.number, 3617);
    assert!(given < 5_000);
}

//! The clauses of SELECT: WHERE, GROUP BY, HAVING, ORDER BY, TOP, UNION, window functions.

use super::*;

fn check(cases: &[(&str, &[&str])]) {
    let toy = Toy::new();
    for (sql, rows) in cases {
        assert_eq!(toy.rows(sql), *rows, "{sql}");
    }
}

#[test]
fn where_gives_rows_whose_condition_is_true_and_not_unknown() {
    check(&[
        ("SELECT id FROM orders WHERE amount > 0", &["1", "2"]),
        ("SELECT id FROM orders WHERE NOT amount > 0", &["4"]),
        ("SELECT id FROM orders WHERE amount IS NULL", &["3"]),
        ("SELECT id FROM orders WHERE customer <> 10", &["2"]),
        ("SELECT id FROM orders WHERE customer = NULL", &[]),
        ("SELECT id FROM orders WHERE customer IN (10, NULL)", &["1", "3"]),
        ("SELECT id FROM orders WHERE customer NOT IN (10, NULL)", &[]),
        ("SELECT id FROM orders WHERE id BETWEEN 2 AND 3", &["2", "3"]),
        ("SELECT id FROM orders WHERE id NOT BETWEEN 2 AND 3", &["1", "4"]),
        ("SELECT id FROM orders WHERE name = 'APPLE  '", &["1"]),
        ("SELECT id FROM orders WHERE name LIKE '%A%'", &["1", "2"]),
        ("SELECT id FROM orders WHERE name NOT LIKE 'p%'", &["1", "3"]),
        ("SELECT id FROM orders WHERE customer IS DISTINCT FROM 10", &["2", "4"]),
        ("SELECT id FROM orders WHERE customer IS NOT DISTINCT FROM NULL", &["4"]),
        ("SELECT id FROM orders WHERE 1 = 0", &[]),
        ("SELECT id FROM orders WHERE (id = 1 OR id = 4) AND customer = 10", &["1"]),
    ]);
}

#[test]
fn groups_are_told_apart_by_their_keys_and_null_is_a_key() {
    check(&[
        (
            "SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer ORDER BY customer",
            &["NULL 1 -50", "10 2 150", "20 1 250"],
        ),
        ("SELECT COUNT(*), COUNT(amount), MAX(id) FROM orders", &["4 3 4"]),
        ("SELECT COUNT(*), MAX(id) FROM orders WHERE id > 9", &["0 NULL"]),
        ("SELECT customer FROM orders WHERE id > 9 GROUP BY customer", &[]),
        ("SELECT COUNT(DISTINCT customer) FROM orders", &["2"]),
        ("SELECT customer + 1 FROM orders GROUP BY customer + 1 HAVING COUNT(*) > 1", &["11"]),
        ("SELECT MIN(id) FROM orders HAVING COUNT(*) = 4", &["1"]),
        ("SELECT MIN(id) FROM orders HAVING COUNT(*) = 5", &[]),
        (
            "SELECT c.id, (SELECT COUNT(*) FROM orders o WHERE o.customer = c.id) FROM customers c \
             GROUP BY c.id ORDER BY COUNT(*), c.id DESC",
            &["30 0", "20 1", "10 2"],
        ),
        (
            "SELECT STRING_AGG(name, ',') WITHIN GROUP (ORDER BY id DESC) FROM orders",
            &["fig,Pear,apple"],
        ),
    ]);
}

#[test]
fn a_column_that_is_not_grouped_by_is_refused_by_its_clause() {
    let toy = Toy::new();
    for (sql, number) in [
        ("SELECT id, COUNT(*) FROM orders GROUP BY customer", 8120),
        ("SELECT id FROM orders HAVING COUNT(*) > 1", 8120),
        ("SELECT customer FROM orders GROUP BY customer HAVING id > 1", 8121),
        ("SELECT customer FROM orders GROUP BY customer ORDER BY id", 8127),
        (
            "SELECT (SELECT c.city FROM customers c WHERE c.id = o.id) FROM orders o \
             GROUP BY o.customer",
            8120,
        ),
        ("SELECT id FROM orders WHERE COUNT(*) > 1", 147),
        ("SELECT SUM(COUNT(*)) FROM orders", 130),
        ("SELECT id FROM orders WHERE ROW_NUMBER() OVER (ORDER BY id) = 1", 4108),
        ("SELECT COUNT(*) FROM orders GROUP BY 1", 164),
    ] {
        assert_eq!(toy.error(sql), number, "{sql}");
    }
}

#[test]
fn order_by_sorts_null_first_by_name_place_or_expression() {
    check(&[
        ("SELECT id FROM orders ORDER BY customer, id DESC", &["4", "3", "1", "2"]),
        (
            "SELECT id, name AS n FROM orders ORDER BY n DESC",
            &["2 Pear", "3 fig", "1 apple", "4 NULL"],
        ),
        ("SELECT name, id FROM orders ORDER BY 2 DESC", &["NULL 4", "fig 3", "Pear 2", "apple 1"]),
        ("SELECT id FROM orders ORDER BY -id", &["4", "3", "2", "1"]),
        ("SELECT DISTINCT customer FROM orders ORDER BY customer DESC", &["20", "10", "NULL"]),
        (
            "SELECT id FROM orders ORDER BY CASE WHEN id = 3 THEN 0 ELSE 1 END, id",
            &["3", "1", "2", "4"],
        ),
    ]);
    let toy = Toy::new();
    for (sql, number) in [
        ("SELECT DISTINCT customer FROM orders ORDER BY id", 145),
        ("SELECT id FROM orders ORDER BY 2", 108),
        ("SELECT id FROM orders UNION SELECT id FROM customers ORDER BY city", 104),
        ("SELECT id FROM (SELECT id FROM orders ORDER BY id) x", 1033),
        ("SELECT customer AS a, id AS a FROM orders ORDER BY a", 209),
    ] {
        assert_eq!(toy.error(sql), number, "{sql}");
    }
}

#[test]
fn top_and_offset_give_a_part_of_the_rows() {
    check(&[
        ("SELECT TOP 2 id FROM orders", &["1", "2"]),
        ("SELECT TOP (1 + 1) id FROM orders ORDER BY id DESC", &["4", "3"]),
        ("SELECT TOP 0 id FROM orders", &[]),
        ("SELECT TOP 30 PERCENT id FROM orders ORDER BY id DESC", &["4", "3"]),
        ("SELECT TOP 2 WITH TIES customer FROM orders ORDER BY customer", &["NULL", "10", "10"]),
        ("SELECT TOP 1 WITH TIES id FROM orders ORDER BY id", &["1"]),
        ("SELECT id FROM orders ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY", &["2", "3"]),
        ("SELECT id FROM orders ORDER BY name OFFSET 3 ROWS", &["2"]),
        ("SELECT DISTINCT TOP 2 customer FROM orders ORDER BY customer DESC", &["20", "10"]),
        (
            "SELECT MAX(id) FROM (SELECT TOP (2) id FROM orders WHERE id > 1 ORDER BY id) AS x",
            &["3"],
        ),
    ]);
    let toy = Toy::new();
    for (sql, number) in [
        ("SELECT TOP 1 WITH TIES id FROM orders", 1062),
        ("SELECT TOP (-1) id FROM orders", 127),
        ("SELECT TOP ('x') id FROM orders", 1060),
        ("SELECT id FROM orders ORDER BY id OFFSET -1 ROWS", 10_742),
        ("SELECT id FROM orders ORDER BY id OFFSET 0 ROWS FETCH NEXT 0 ROWS ONLY", 10_744),
    ] {
        assert_eq!(toy.error(sql), number, "{sql}");
    }
}

#[test]
fn queries_are_combined_as_sets_of_whole_rows() {
    check(&[
        ("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 1", &["1", "2", "1"]),
        ("SELECT 1 UNION SELECT 2 UNION SELECT 1", &["1", "2"]),
        ("SELECT customer FROM orders EXCEPT SELECT id FROM customers", &["NULL"]),
        ("SELECT customer FROM orders INTERSECT SELECT id FROM customers", &["10", "20"]),
        ("SELECT NULL AS x UNION ALL SELECT 'a'", &["NULL", "a"]),
        (
            "SELECT id FROM customers UNION ALL SELECT id FROM orders ORDER BY id DESC",
            &["30", "20", "10", "4", "3", "2", "1"],
        ),
        ("SELECT 1 AS n UNION ALL SELECT 2.5 ORDER BY 1 DESC", &["25", "10"]),
    ]);
    assert_eq!(Toy::new().error("SELECT 1 UNION ALL SELECT 1, 2"), 205);
}

#[test]
fn window_functions_see_their_partition_in_its_order() {
    check(&[
        (
            "SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY id DESC) FROM orders \
             ORDER BY id",
            &["1 2", "2 1", "3 1", "4 1"],
        ),
        (
            "SELECT id, RANK() OVER (ORDER BY customer), DENSE_RANK() OVER (ORDER BY customer) \
             FROM orders ORDER BY id",
            &["1 2 2", "2 4 3", "3 2 2", "4 1 1"],
        ),
        (
            "SELECT id, NTILE(3) OVER (ORDER BY id) FROM orders ORDER BY id",
            &["1 1", "2 1", "3 2", "4 3"],
        ),
        (
            "SELECT id, LAG(id) OVER (ORDER BY id), LEAD(id, 2, 0) OVER (ORDER BY id) FROM orders \
             ORDER BY id",
            &["1 NULL 3", "2 1 4", "3 2 0", "4 3 0"],
        ),
        (
            "SELECT id, SUM(id) OVER (ORDER BY id), COUNT(*) OVER () FROM orders ORDER BY id",
            &["1 1 4", "2 3 4", "3 6 4", "4 10 4"],
        ),
        // RANGE takes rows of equal order together, ROWS does not.
        (
            "SELECT id, COUNT(*) OVER (ORDER BY customer), COUNT(*) OVER (ORDER BY customer ROWS \
             UNBOUNDED PRECEDING) FROM orders ORDER BY customer, id",
            &["4 1 1", "1 3 2", "3 3 3", "2 4 4"],
        ),
        (
            "SELECT id, SUM(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) \
             FROM orders ORDER BY id",
            &["1 3", "2 6", "3 9", "4 7"],
        ),
        (
            "SELECT id, FIRST_VALUE(name) OVER (ORDER BY id DESC), LAST_VALUE(name) OVER (ORDER BY \
             id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM orders WHERE id < 3 \
             ORDER BY id",
            &["1 Pear Pear", "2 Pear Pear"],
        ),
        (
            "SELECT customer, SUM(COUNT(*)) OVER () FROM orders GROUP BY customer ORDER BY customer",
            &["NULL 4", "10 4", "20 4"],
        ),
    ]);
    let toy = Toy::new();
    for (sql, number) in [
        ("SELECT ROW_NUMBER() OVER () FROM orders", 4112),
        ("SELECT SUM(id) OVER (ROWS UNBOUNDED PRECEDING) FROM orders", 10_756),
        (
            "SELECT SUM(id) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders",
            4194,
        ),
        ("SELECT COUNT(DISTINCT id) OVER () FROM orders", 10_759),
    ] {
        assert_eq!(toy.error(sql), number, "{sql}");
    }
}

#[test]
fn what_is_read_but_not_evaluated_is_refused_by_name() {
    let toy = Toy::new();
    for sql in [
        "SELECT customer, ROW_NUMBER() OVER (ORDER BY customer) FROM orders GROUP BY ROLLUP (customer)",
        "SELECT id FROM orders FOR JSON PATH",
        "SELECT id FROM orders FOR XML AUTO",
    ] {
        assert_eq!(toy.error(sql), 50_000, "{sql}");
    }
}

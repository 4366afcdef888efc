//! Statements that change rows, and temporary tables.

use cdc_fake::Value;

use super::rig::{Reply, Rig};
use crate::talk::StatementKind;

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.run(
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(10) NULL, n decimal(10,2) DEFAULT 1.5)
         INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b'), (3, NULL)",
    );
    rig
}

#[test]
fn inserted_rows_have_their_defaults_and_are_counted() {
    let mut rig = rig();
    assert_eq!(
        rig.rows("SELECT id, v, n FROM t WHERE id <= 2 ORDER BY id"),
        [[1.into(), "a".into(), Value::decimal(150)], [2.into(), "b".into(), Value::decimal(150)]]
    );
    let recording = rig.run("INSERT t VALUES (4, 'd', 2), (5, 'e', DEFAULT) SELECT @@ROWCOUNT");
    assert_eq!(recording.counts()[0], (StatementKind::Insert, Some(2)));
    assert_eq!(recording.rows(), [[Value::Int(2)]]);
    rig.run("INSERT INTO t (id, v) SELECT id + 10, v FROM t WHERE id < 3");
    assert_eq!(rig.ints("SELECT id FROM t WHERE id > 10"), [11, 12]);
}

#[test]
fn null_goes_into_a_column_of_any_type() {
    let mut rig = Rig::new();
    rig.run("CREATE TABLE n (d datetime2(3) NULL, b varbinary(5) NULL, u uniqueidentifier NULL)");
    rig.run("INSERT n VALUES (NULL, NULL, NULL), ('2024-01-01', 0x01, NULL)");
    rig.run("INSERT n SELECT NULL, NULL, NULL");
    rig.run("UPDATE n SET d = NULL DECLARE @d datetime2 = NULL SET @d = NULL");
    assert_eq!(rig.ints("SELECT COUNT(*) FROM n WHERE d IS NULL"), [3]);
}

#[test]
fn an_insert_that_does_not_fit_leaves_nothing() {
    let mut rig = rig();
    for (text, number) in [
        ("INSERT t VALUES (7, 'x', 1), (1, 'y', 1)", 2627),
        ("INSERT t (id, v) VALUES (7, 'x'), (8, 'far too long for it')", 2628),
        ("INSERT t (v) VALUES ('x')", 515),
        ("INSERT t (id) VALUES (1, 2)", 110),
        ("INSERT t (id, v) VALUES (1)", 109),
        ("INSERT t (id, v) SELECT 1", 120),
        ("INSERT t VALUES (1)", 213),
        ("INSERT t (id, id) VALUES (1, 2)", 264),
        ("INSERT t (nothing) VALUES (1)", 207),
        ("INSERT nothing VALUES (1)", 208),
        ("INSERT sys.tables (name) VALUES ('x')", 259),
    ] {
        assert_eq!(rig.error(text), number, "{text}");
    }
    assert_eq!(rig.ints("SELECT COUNT(*) FROM t"), [3]);
}

#[test]
fn identity_values_are_handed_out_and_told() {
    let mut rig = Rig::new();
    rig.run("CREATE TABLE i (id int IDENTITY(10, 5) PRIMARY KEY, v int)");
    rig.run("INSERT i VALUES (1), (2)");
    assert_eq!(rig.ints("SELECT id FROM i"), [10, 15]);
    assert_eq!(rig.one("SELECT CAST(SCOPE_IDENTITY() AS int)"), 15.into());
    assert_eq!(rig.one("SELECT CAST(@@IDENTITY AS int)"), 15.into());
    assert_eq!(rig.error("INSERT i (id, v) VALUES (1, 1)"), 544);
    rig.run("SET IDENTITY_INSERT i ON INSERT i (id, v) VALUES (100, 1) SET IDENTITY_INSERT i OFF");
    rig.run("INSERT i DEFAULT VALUES");
    assert_eq!(rig.ints("SELECT id FROM i"), [10, 15, 100, 105]);
    assert_eq!(rig.error("UPDATE i SET id = 1"), 8102);
}

#[test]
fn an_update_sets_columns_and_variables_and_may_join() {
    let mut rig = rig();
    let recording = rig.run("UPDATE t SET v = v + '!', n += 1 WHERE id < 3");
    assert_eq!(recording.counts(), [(StatementKind::Update, Some(2))]);
    assert_eq!(rig.rows("SELECT v, n FROM t WHERE id = 1"), [["a!".into(), Value::decimal(250)]]);
    rig.run("UPDATE x SET v = s.w FROM t AS x JOIN (VALUES (1, 'one'), (3, 'three')) s (i, w) ON s.i = x.id");
    assert_eq!(
        rig.rows("SELECT v FROM t ORDER BY id"),
        [["one".into()], ["b!".into()], [Value::from("three")]]
    );
    assert_eq!(
        rig.one("DECLARE @v varchar(20) UPDATE t SET @v = v = 'z' WHERE id = 2 SELECT @v"),
        "z".into()
    );
    rig.run("UPDATE t SET n = DEFAULT WHERE id = 1");
    assert_eq!(rig.one("SELECT n FROM t WHERE id = 1"), Value::decimal(150));
    assert_eq!(rig.run("UPDATE TOP (1) t SET v = 'top'").counts()[0].1, Some(1));
}

#[test]
fn an_update_may_change_the_key() {
    let mut rig = rig();
    rig.run("UPDATE t SET id = id + 1");
    assert_eq!(rig.ints("SELECT id FROM t ORDER BY id"), [2, 3, 4]);
    assert_eq!(rig.error("UPDATE t SET id = 2 WHERE id = 3"), 2627);
}

#[test]
fn a_delete_removes_what_it_names() {
    let mut rig = rig();
    assert_eq!(
        rig.run("DELETE FROM t WHERE v IS NULL").counts(),
        [(StatementKind::Delete, Some(1))]
    );
    rig.run("DELETE x FROM t x JOIN (VALUES (1)) s (i) ON s.i = x.id");
    assert_eq!(rig.ints("SELECT id FROM t"), [2]);
    rig.run("TRUNCATE TABLE t");
    assert_eq!(rig.ints("SELECT COUNT(*) FROM t"), [0]);
}

#[test]
fn output_tells_the_rows_before_and_after() {
    let mut rig = rig();
    let recording = rig
        .run("UPDATE t SET v = 'n' OUTPUT deleted.v AS old, inserted.v, inserted.id WHERE id = 1");
    assert_eq!(recording.0[0], Reply::Columns(vec!["old".into(), "v".into(), "id".into()]));
    assert_eq!(recording.rows(), [["a".into(), "n".into(), Value::Int(1)]]);
    assert_eq!(rig.ints("INSERT t (id) OUTPUT inserted.* VALUES (9)"), [9]);
    let text = "DECLARE @o TABLE (id int, v varchar(10))
        DELETE t OUTPUT deleted.id, deleted.v INTO @o WHERE id < 3
        SELECT id FROM @o ORDER BY id";
    assert_eq!(rig.ints(text), [1, 2]);
}

#[test]
fn a_merge_does_what_its_clauses_say_and_tells_it() {
    let mut rig = rig();
    let text = "MERGE t AS d USING (VALUES (1, 'x'), (9, 'y')) AS s (id, v) ON d.id = s.id
        WHEN MATCHED THEN UPDATE SET v = s.v
        WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)
        WHEN NOT MATCHED BY SOURCE AND d.id = 3 THEN DELETE
        OUTPUT $action, inserted.id, deleted.id, s.v;";
    let recording = rig.run(text);
    let mut told = recording.rows();
    told.sort_by_key(|row| format!("{row:?}"));
    let nothing = Value::Null;
    assert_eq!(
        told,
        [
            ["DELETE".into(), nothing.clone(), 3.into(), nothing.clone()],
            ["INSERT".into(), 9.into(), nothing.clone(), "y".into()],
            ["UPDATE".into(), 1.into(), 1.into(), Value::from("x")],
        ]
    );
    assert_eq!(recording.counts(), [(StatementKind::Merge, Some(3))]);
    assert_eq!(
        rig.rows("SELECT id, v FROM t ORDER BY id"),
        [[1.into(), "x".into()], [2.into(), "b".into()], [Value::Int(9), "y".into()]]
    );
    let twice = "MERGE t USING (VALUES (1), (1)) s (id) ON t.id = s.id WHEN MATCHED THEN DELETE;";
    assert_eq!(rig.error(twice), 8672);
    assert_eq!(rig.ints("SELECT COUNT(*) FROM t"), [3]);
}

#[test]
fn rows_of_a_procedure_go_into_a_table_variable() {
    let mut rig = rig();
    let text = "DECLARE @r TABLE (a int, b varchar(10))
        INSERT @r EXEC ('SELECT id, v FROM t WHERE id < 3') SELECT a FROM @r ORDER BY a";
    assert_eq!(rig.ints(text), [1, 2]);
}

#[test]
fn a_temporary_table_is_the_sessions_own_and_goes_with_a_rollback() {
    let mut rig = rig();
    rig.run("CREATE TABLE #x (a int) INSERT #x VALUES (1)");
    assert_eq!(rig.ints("SELECT a FROM #x"), [1]);
    assert_eq!(rig.other().error("SELECT a FROM #x"), 208);
    rig.run("BEGIN TRAN INSERT #x VALUES (2) ROLLBACK");
    assert_eq!(rig.ints("SELECT a FROM #x"), [1]);
    rig.run("DROP TABLE #x");
    assert_eq!(rig.error("SELECT a FROM #x"), 208);
    rig.run("DROP TABLE IF EXISTS #x");
    rig.run("SELECT id, v INTO #y FROM t");
    assert_eq!(rig.ints("SELECT COUNT(*) FROM #y"), [3]);
}

#[test]
fn a_table_variable_is_not_touched_by_a_rollback() {
    let mut rig = Rig::new();
    let text = "DECLARE @x TABLE (a int PRIMARY KEY, b int DEFAULT 7)
        BEGIN TRAN INSERT @x (a) VALUES (1) ROLLBACK
        INSERT @x (a) VALUES (2) DELETE @x WHERE a = 5 SELECT b FROM @x";
    assert_eq!(rig.ints(text), [7, 7]);
    assert_eq!(rig.error("SELECT * FROM @x"), 1087);
}

#[test]
fn a_check_and_a_computed_column_rule_over_every_row() {
    let mut rig = Rig::new();
    rig.run("CREATE TABLE c (a int CHECK (a > 0), b AS a * 2, d AS 10 / a)");
    rig.run("INSERT c (a) VALUES (5)");
    assert_eq!(rig.rows("SELECT a, b, d FROM c"), [[Value::Int(5), 10.into(), 2.into()]]);
    assert_eq!(rig.error("INSERT c (a) VALUES (-1)"), 547);
    assert_eq!(rig.error("UPDATE c SET a = -1"), 547);
    rig.run("CREATE TABLE e (a int, d AS 10 / a)");
    assert_eq!(rig.error("INSERT e (a) VALUES (0)"), 8134);
}

#[test]
fn a_table_is_made_of_a_querys_result() {
    let mut rig = rig();
    rig.run("SELECT id, v, n * 2 AS twice INTO copy FROM t WHERE id = 1");
    assert_eq!(rig.rows("SELECT * FROM copy"), [[1.into(), "a".into(), Value::decimal(300)]]);
    assert_eq!(rig.error("SELECT 1 INTO copy2"), 1038);
}

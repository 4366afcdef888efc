//! Databases, schemas, tables and indexes that come, change and go.

use cdc_fake::Value;

use super::rig::Rig;

#[test]
fn a_name_that_is_taken_or_not_there_is_refused() {
    let mut rig = Rig::new();
    rig.run("CREATE TABLE t (a int)");
    for (text, number) in [
        ("CREATE TABLE t (a int)", 2714),
        ("CREATE TABLE nowhere.t (a int)", 2760),
        ("DROP TABLE nothing", 3701),
        ("ALTER TABLE nothing ADD b int", 4902),
        ("ALTER TABLE t DROP COLUMN b", 4924),
        ("CREATE DATABASE shop", 1801),
        ("DROP DATABASE nothing", 3701),
        ("CREATE TABLE u (a int NULL PRIMARY KEY)", 8111),
        ("CREATE TABLE u (a int PRIMARY KEY, b int PRIMARY KEY)", 8110),
        ("CREATE TABLE u (a varchar(5) IDENTITY)", 2749),
        ("CREATE TABLE u (a nothing)", 2715),
        ("CREATE DATABASE x COLLATE nothing", 448),
    ] {
        let found = rig.error(text);
        assert!(found == number || (number == 2715 && found == 243), "{text}: {found}");
    }
    rig.run("DROP TABLE IF EXISTS nothing");
}

#[test]
fn a_table_changes_its_shape() {
    let mut rig = Rig::new();
    rig.run("CREATE TABLE t (a int NOT NULL) INSERT t VALUES (1)");
    rig.run("ALTER TABLE t ADD b int NULL DEFAULT 5, c int NOT NULL DEFAULT 6");
    assert_eq!(rig.rows("SELECT b, c FROM t"), [[Value::Null, Value::Int(6)]]);
    rig.run("ALTER TABLE t ADD d int NULL CONSTRAINT dd DEFAULT 7 WITH VALUES");
    assert_eq!(rig.ints("SELECT d FROM t"), [7]);
    rig.run("ALTER TABLE t ADD e int NULL ALTER TABLE t ALTER COLUMN e bigint");
    let refused = rig.tell("ALTER TABLE t ALTER COLUMN b bigint");
    assert_eq!(refused.errors(), [5074, 4922]);
    rig.run("ALTER TABLE t DROP CONSTRAINT dd");
    rig.run("ALTER TABLE t DROP COLUMN d");
    assert_eq!(rig.error("SELECT d FROM t"), 207);
    rig.run("ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY (a)");
    assert_eq!(rig.error("INSERT t (a) VALUES (1)"), 2627);
    rig.run("CREATE UNIQUE INDEX u ON t (b)");
    rig.run("INSERT t (a, b) VALUES (2, 2)");
    assert_eq!(rig.error("INSERT t (a, b) VALUES (3, 2)"), 2601);
    rig.run("DROP INDEX u ON t INSERT t (a, b) VALUES (3, 2)");
}

#[test]
fn a_default_is_told_in_the_servers_parentheses() {
    let mut rig = Rig::new();
    rig.run(
        "CREATE TABLE t (a int DEFAULT 1, b int DEFAULT ((-2)), c varchar(9) DEFAULT 'x', \
         d nvarchar(9) DEFAULT (N'y'), e datetime DEFAULT (GETDATE()), f int DEFAULT (((NULL))))",
    );
    let told = rig.rows("SELECT definition FROM sys.default_constraints ORDER BY parent_column_id");
    let texts = ["((1))", "((-2))", "('x')", "(N'y')", "(GETDATE())", "(NULL)"];
    assert_eq!(told, texts.map(|text| vec![Value::text(text)]));
}

#[test]
fn a_schema_statement_goes_with_a_rollback() {
    let mut rig = Rig::new();
    rig.run("BEGIN TRAN CREATE TABLE t (a int) INSERT t VALUES (1)");
    assert_eq!(rig.ints("SELECT a FROM t"), [1]);
    rig.run("ROLLBACK");
    assert_eq!(rig.error("SELECT a FROM t"), 208);
    assert_eq!(rig.error("BEGIN TRAN CREATE DATABASE other"), 226);
    rig.run("IF @@TRANCOUNT > 0 ROLLBACK");
}

#[test]
fn schemas_and_other_databases_are_named_in_front() {
    let mut rig = Rig::new();
    rig.run("CREATE SCHEMA sales");
    rig.run("CREATE TABLE sales.t (a int) INSERT sales.t VALUES (1)");
    rig.run("USE master");
    assert_eq!(rig.ints("SELECT a FROM shop.sales.t"), [1]);
    rig.run("UPDATE shop.sales.t SET a = 2");
    assert_eq!(rig.ints("SELECT a FROM shop.sales.t"), [2]);
    assert_eq!(rig.error("SELECT a FROM shop.dbo.t"), 208);
    rig.run("USE shop DROP TABLE sales.t DROP SCHEMA sales");
}

#[test]
fn a_default_is_computed_with_each_row() {
    let mut rig = Rig::new();
    rig.run("CREATE TABLE t (a int, at datetime2(0) DEFAULT SYSUTCDATETIME())");
    rig.run("INSERT t (a) VALUES (1)");
    rig.advance(60);
    rig.run("INSERT t (a) VALUES (2)");
    let apart = rig.one("SELECT DATEDIFF(second, MIN(at), MAX(at)) FROM t");
    assert_eq!(apart, 60.into());
}

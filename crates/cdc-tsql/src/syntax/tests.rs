//! Texts, and the statements they are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;

fn read(text: &str) -> Vec<Statement> {
    match parse(text, &Settings::default()) {
        Ok(batch) => batch.statements,
        Err(error) => panic!("{text}: {error:?}"),
    }
}

fn refused(text: &str) -> (i32, u32) {
    let error = parse(text, &Settings::default()).expect_err(text);
    (error.error.number, error.line)
}

fn names(text: &str) -> Vec<String> {
    let name = |statement: &Statement| {
        let text = format!("{:?}", statement.body);
        let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
        text[..end].to_owned()
    };
    read(text).iter().map(name).collect()
}

#[test]
fn statements_end_where_the_next_begins_without_a_semicolon() {
    for (text, expected) in [
        ("SELECT 1 SELECT 2", vec!["Query", "Query"]),
        ("SELECT a FROM t SET NOCOUNT ON", vec!["Query", "Set"]),
        ("SELECT a b FROM t c DECLARE @x int SELECT @x", vec!["Query", "Declare", "Query"]),
        ("SELECT 1 UNION ALL SELECT 2 SELECT 3", vec!["Query", "Query"]),
        ("UPDATE t SET a = 1 SET XACT_ABORT ON", vec!["Update", "Set"]),
        ("INSERT INTO t SELECT 1 SELECT 2", vec!["Insert", "Query"]),
        ("INSERT t EXEC p 1 SELECT 2", vec!["Insert", "Query"]),
        ("WITH x AS (SELECT 1 a) SELECT * FROM x; PRINT 'a'", vec!["Query", "Print"]),
        ("WITH x AS (SELECT 1 a) UPDATE x SET a = 2 PRINT 'a'", vec!["Update", "Print"]),
        ("SELECT CASE WHEN 1 = 1 THEN 2 ELSE 3 END PRINT 'a'", vec!["Query", "Print"]),
        ("BEGIN TRAN COMMIT TRAN", vec!["Begin", "Commit"]),
        (
            "SELECT a FROM t ORDER BY a OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY PRINT 'x'",
            vec!["Query", "Print"],
        ),
        ("EXEC p 1, @x = 2 EXEC q", vec!["Execute", "Execute"]),
        ("sp_who", vec!["Execute"]),
        ("{call p(1, 'a')}", vec!["Execute"]),
        (
            "IF @@TRANCOUNT = 0 BEGIN BEGIN TRAN IF @@TRANCOUNT = 2 COMMIT TRAN END SAVE TRAN [a]",
            vec!["If", "Save"],
        ),
        (
            "SELECT a FROM t WITH (NOLOCK) OPTION (RECOMPILE, MAXDOP 1) SELECT 1",
            vec!["Query", "Query"],
        ),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn a_statement_knows_its_line() {
    let lines: Vec<u32> =
        read("SELECT 1\n\nSELECT 2 -- a\n/* b\n*/ SELECT 3").iter().map(|s| s.line).collect();
    assert_eq!(lines, [1, 3, 5]);
    assert_eq!(refused("SELECT 1\nSELEC 2\n"), (102, 2));
    assert_eq!(refused("SELECT 1\nFROM WHERE"), (156, 2));
}

#[test]
fn what_is_no_statement_is_refused_with_the_servers_number() {
    for (text, number) in [
        ("SELECT 'abc", 105),
        ("SELECT /* abc", 113),
        ("SELECT * FROM", 102),
        ("SELECT (1", 102),
        ("BEGIN SELECT 1", 102),
        ("GO", 102),
        ("MERGE t USING s ON 1 = 1 WHEN MATCHED THEN DELETE", 10_713),
        ("GOTO a", 50_000),
        ("DBCC CHECKDB", 50_000),
        ("CREATE PROCEDURE p AS SELECT 1", 50_000),
        ("CREATE TABLE t (a int REFERENCES u (a))", 50_000),
        ("SET NOEXISTING ON", 195),
        ("DECLARE @c CURSOR", 50_000),
    ] {
        assert_eq!(refused(text).0, number, "{text}");
    }
}

#[test]
fn the_set_options_that_clients_send_are_known() {
    for text in [
        "set ansi_nulls on\nset ansi_null_dflt_on on\nset ansi_padding on\nset ansi_warnings on\n\
         set arithabort on\nset concat_null_yields_null on\nset cursor_close_on_commit off\n\
         set datefirst 7\nset dateformat mdy\nset implicit_transactions off\nset language \
         us_english\nset numeric_roundabort off\nset quoted_identifier on\nset textsize \
         2147483647\nset transaction isolation level read committed\nset xact_abort off",
        "SET ARITHABORT ON;SET ANSI_DEFAULTS ON;SET CONCAT_NULL_YIELDS_NULL ON;SET TEXTSIZE \
         2147483647;SET IMPLICIT_TRANSACTIONS ON;",
        "set implicit_transactions on ",
        "SET LOCK_TIMEOUT -1",
        "set transaction isolation level  repeatable read ",
        "SET ANSI_NULLS, QUOTED_IDENTIFIER ON",
        "SET IDENTITY_INSERT [dbo].[t] ON",
        "SET FMTONLY ON SET ROWCOUNT 0",
        "SET STATISTICS IO, TIME OFF",
    ] {
        assert!(read(text).iter().all(|s| matches!(s.body, Body::Set(_))), "{text}");
    }
}

#[test]
fn a_table_keeps_what_was_said_of_its_columns() {
    let text = "CREATE TABLE [dbo].[t] (
        [id] [int] IDENTITY(1,1) NOT NULL,
        name nvarchar(50) COLLATE Greek_CI_AS NULL CONSTRAINT df DEFAULT (N'x'),
        n decimal(10, 2) NOT NULL DEFAULT 0,
        twice AS (id * 2) PERSISTED,
        v rowversion,
        u uniqueidentifier DEFAULT NEWID() UNIQUE,
        CONSTRAINT [pk] PRIMARY KEY CLUSTERED ([id] ASC, n DESC) WITH (PAD_INDEX = OFF) ON [PRIMARY]
    ) ON [PRIMARY]";
    let statements = read(text);
    let Body::Definition(definition) = &statements[0].body else { panic!("a definition") };
    let Definition::CreateTable { name, table } = &**definition else { panic!("a table") };
    assert_eq!((name.schema.as_deref(), &*name.name), (Some("dbo"), "t"));
    assert_eq!(table.columns.len(), 6);
    assert_eq!(table.columns[0].identity, Some((1, 1)));
    assert_eq!(table.columns[1].nullable, Some(true));
    assert_eq!(table.columns[2].nullable, Some(false));
    assert!(table.columns[3].computed.is_some() && table.columns[3].persisted);
    assert!(table.columns[5].default.is_some());
    assert_eq!(table.constraints.len(), 2);
    assert!(!table.constraints[0].primary && table.constraints[1].primary);
    assert_eq!(table.constraints[1].columns, [("id".into(), false), ("n".into(), true)]);
}

#[test]
fn changes_of_rows_keep_their_parts() {
    let statements = read(
        "INSERT INTO t (a, b) OUTPUT inserted.a INTO @x (a) VALUES (1, DEFAULT), (2, 'b')
         UPDATE TOP (5) x SET a = 1, x.b += 2, @v = c = 3 OUTPUT deleted.* FROM t x JOIN u ON x.a = u.a \
         WHERE u.b = 1
         DELETE t WITH (ROWLOCK) OUTPUT deleted.a WHERE a = 1
         MERGE INTO t WITH (HOLDLOCK) AS d USING (SELECT 1 a) AS s ON d.a = s.a
         WHEN MATCHED AND s.a = 1 THEN UPDATE SET b = CASE WHEN 1 = 1 THEN 2 END
         WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)
         WHEN NOT MATCHED BY SOURCE THEN DELETE OUTPUT $action, inserted.a;",
    );
    let [insert, update, delete, merge] = &statements[..] else { panic!("four") };
    let Body::Insert(insert) = &insert.body else { panic!("insert") };
    assert_eq!(insert.columns, ["a", "b"]);
    assert!(matches!(&insert.source, InsertSource::Values(rows) if rows[0][1].is_none()));
    assert_eq!(insert.output.as_ref().unwrap().into.as_ref().unwrap().0.name, "@x");
    let Body::Update(update) = &update.body else { panic!("update") };
    assert_eq!(update.assignments.len(), 3);
    assert_eq!(update.assignments[2].variable.as_deref(), Some("@v"));
    assert_eq!(update.assignments[1].value.as_ref().unwrap().to_string(), "[b] + (2)");
    assert!(update.top.is_some() && update.from.len() == 1 && update.selection.is_some());
    let Body::Delete(delete) = &delete.body else { panic!("delete") };
    assert_eq!(delete.target.hints.len(), 1);
    let Body::Merge(merge) = &merge.body else { panic!("merge") };
    assert_eq!(merge.target.alias.as_deref(), Some("d"));
    assert_eq!(merge.clauses.len(), 3);
    assert!(merge.output.is_some());
}

#[test]
fn parameters_are_declared_as_executesql_takes_them() {
    let read = parse_parameters(
        "@P0 nvarchar(4000),@b decimal(10,2) OUTPUT, @c varbinary(max) = NULL",
        &Settings::default(),
    )
    .expect("readable");
    assert_eq!(read.len(), 3);
    assert_eq!((&*read[1].name, read[1].output), ("@b", true));
    assert!(read[2].default.is_some());
    assert!(parse_parameters("", &Settings::default()).expect("none").is_empty());
}

#[test]
fn rights_keep_their_words() {
    let statements = read(
        "GRANT SELECT, INSERT ON dbo.t TO a, [b]; DENY VIEW DATABASE STATE TO a
         REVOKE SELECT ON SCHEMA::cdc FROM a ALTER ROLE db_owner ADD MEMBER a
         CREATE LOGIN a WITH PASSWORD = 'x', CHECK_POLICY = OFF CREATE USER a FOR LOGIN a",
    );
    assert_eq!(statements.len(), 6);
    let Body::Right(Right::Permission(grant)) = &statements[0].body else { panic!("grant") };
    assert_eq!(grant.rights, ["SELECT", "INSERT"]);
    assert_eq!(grant.principals, ["a", "b"]);
    let Body::Right(Right::Permission(deny)) = &statements[1].body else { panic!("deny") };
    assert_eq!(deny.rights, ["VIEW DATABASE STATE"]);
}

#[test]
fn blocks_nest_as_deep_as_people_write_and_no_deeper() {
    let chain = |levels: usize| format!("{} SELECT 1", "IF 1 = 2 SELECT 2 ELSE ".repeat(levels));
    assert_eq!(read(&chain(500)).len(), 1);
    let blocks =
        |levels: usize| format!("{}SELECT 1{}", "BEGIN ".repeat(levels), " END".repeat(levels));
    assert_eq!(read(&blocks(30)).len(), 1);
    assert_eq!(refused(&blocks(100)).0, 191);
    assert_eq!(refused(&format!("SELECT {}1{}", "(".repeat(300), ")".repeat(300))).0, 191);
}

#[test]
fn variables_that_nothing_declares_are_named_with_their_lines() {
    let free = |text: &str| {
        let batch = parse(text, &Settings::default()).expect("readable");
        batch.free.into_iter().map(|one| (one.name, one.line, one.table)).collect::<Vec<_>>()
    };
    assert_eq!(free("DECLARE @a int = 1, @t TABLE (a int) SELECT @a, @@ROWCOUNT FROM @t"), []);
    assert_eq!(free("SELECT 1\nSELECT @a DECLARE @a int"), [("@a".into(), 2, false)]);
    assert_eq!(free("EXEC p @x = 1, @y = @z OUTPUT"), [("@z".into(), 1, false)]);
    assert_eq!(free("INSERT @t SELECT [@b] FROM u"), [("@t".into(), 1, true)]);
}

#[test]
fn chains_of_operators_are_long_and_chains_of_queries_as_long_as_a_stack_can_walk() {
    let chain = |count: usize, with: &str| vec!["1 = 1"; count].join(with);
    for with in [" AND ", " OR "] {
        let long = |count| format!("SELECT 1\nWHERE {}", chain(count, with));
        assert_eq!(read(&long(10_000)).len(), 1, "{with}");
        let settings = Settings::default();
        let error = parse(&long(65_537), &settings).map(|_| ()).expect_err("too long");
        assert_eq!((error.error.number, error.line), (8632, 2), "{with}");
    }
    assert_eq!(read(&format!("SELECT {}", vec!["1"; 10_000].join(" + "))).len(), 1);
    assert_eq!(refused(&vec!["SELECT 1"; 500].join(" UNION ALL ")).0, 191);
    // Lists, statements and parts of statements are no chains.
    assert_eq!(read(&vec!["SELECT 1 + 1"; 500].join(" ")).len(), 500);
    assert_eq!(read(&format!("SELECT {}", vec!["1 + 1"; 500].join(", "))).len(), 1);
    let rows = vec!["(1 + 1, -1)"; 1000].join(", ");
    assert_eq!(read(&format!("INSERT t VALUES {rows}")).len(), 1);
}

#[test]
fn a_quoted_name_is_a_string_when_the_session_says_so() {
    let off = Settings { quoted_identifier: false, ..Settings::default() };
    let statements = parse("SELECT \"a\"", &off).expect("readable").statements;
    assert!(format!("{statements:?}").contains("SingleQuotedString"));
}

#[test]
fn escapes_of_odbc_are_what_they_stand_for() {
    let shown = |text: &str| match &read(text)[0].body {
        Body::Query(query, _) => query.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(shown("SELECT {fn UCASE('a')}"), "SELECT UCASE('a')");
    assert_eq!(
        shown("SELECT {ts '2024-01-02 03:04:05'}"),
        "SELECT CAST('2024-01-02 03:04:05' AS DATETIME)"
    );
}

#[test]
fn a_parse_is_read_as_a_call_with_its_type() {
    let shown = |text: &str| match &read(text)[0].body {
        Body::Query(query, _) => query.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(
        shown("SELECT PARSE('1' AS int USING 'en-US')"),
        "SELECT PARSE('1', CAST(NULL AS INT), 'en-US')"
    );
    assert_eq!(
        shown("SELECT TRY_PARSE(PARSE('x' AS date) + CAST(1 AS char(3)) AS decimal(5, 2))"),
        "SELECT TRY_PARSE(PARSE('x', CAST(NULL AS DATE)) + CAST(1 AS CHAR(3)), \
         CAST(NULL AS DECIMAL(5,2)))"
    );
    for text in ["SELECT PARSE('1')", "SELECT PARSE('1', int)"] {
        assert_eq!(refused(text).0, 102, "{text}");
    }
}

mod any_text {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_read_or_refused_and_never_stops_the_reader(text in "[ -~\n]{0,80}") {
            let _ = parse(&text, &Settings::default());
        }

        #[test]
        fn of_words_of_the_language_is_read_or_refused(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "SELECT", "FROM", "t", "WHERE", "(", ")", ",", "1", "'a'", "BEGIN", "END", "IF",
                    "CASE", "WHEN", "SET", "UPDATE", "INSERT", "VALUES", "@x", "=", ";", "MERGE",
                    "EXEC", "DECLARE", "int", "WITH", "AS", "{", "}", "call", "CREATE", "TABLE",
                    "TRY", "CATCH", "OUTPUT", "INTO", "OPTION", "ON", "GRANT", "TO", "*", ".",
                ]),
                0..30,
            )
        ) {
            let _ = parse(&words.join(" "), &Settings::default());
        }
    }
}

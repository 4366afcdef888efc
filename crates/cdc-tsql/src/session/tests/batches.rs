//! Batches: replies, variables, control flow, errors, options, waits.

use cdc_fake::{SqlError, Value};

use super::rig::{Reply, Rig};
use crate::talk::{Change, Conversation, StatementKind};

#[test]
fn a_batch_tells_columns_rows_and_the_end_of_each_statement() {
    let mut rig = Rig::new();
    let replies = rig.run("SELECT 1 AS a, N'x' b SELECT 2 WHERE 1 = 0").0;
    let [
        Reply::Columns(first),
        Reply::Row(row),
        Reply::Done(one),
        Reply::Columns(_),
        Reply::Done(two),
    ] = &replies[..]
    else {
        panic!("{replies:?}")
    };
    assert_eq!(first, &["a", "b"]);
    assert_eq!(row, &[Value::Int(1), Value::text("x")]);
    assert_eq!((one.rows, two.rows), (Some(1), Some(0)));
    assert_eq!(one.statement, StatementKind::Select);
}

#[test]
fn nothing_of_a_batch_runs_when_a_part_cannot_be_read() {
    let mut rig = Rig::new();
    let recording = rig.tell("SELECT 1\nSELEC 2 FROM\n");
    assert!(recording.rows().is_empty());
    assert_eq!(recording.errors(), [102]);
    assert_eq!(recording.messages()[0].line, 2);
}

#[test]
fn variables_live_as_long_as_their_batch() {
    let mut rig = Rig::new();
    assert_eq!(
        rig.one("DECLARE @a int = 2, @b int SET @b = @a * 3 SET @b += 1 SELECT @b"),
        7.into()
    );
    assert_eq!(rig.error("SELECT @b"), 137);
    assert_eq!(rig.one("DECLARE @a int SELECT @a = 1, @a = @a + 1 SELECT @a"), 2.into());
}

#[test]
fn nothing_runs_of_a_batch_that_uses_what_it_does_not_declare() {
    let mut rig = Rig::new();
    rig.run("CREATE TABLE u (a int)");
    let recording = rig.tell("INSERT u VALUES (1)\nSELECT @b");
    assert_eq!((recording.errors(), recording.messages()[0].line), (vec![137], 2));
    assert_eq!(rig.error("INSERT @t VALUES (1)"), 1087);
    assert_eq!(rig.ints("SELECT COUNT(*) FROM u"), [0]);
}

#[test]
fn a_variable_takes_a_value_as_its_type_does() {
    let mut rig = Rig::new();
    assert_eq!(rig.one("DECLARE @a varchar(2) = 'abc' SELECT @a"), "ab".into());
    assert_eq!(rig.error("DECLARE @a int = 'x' SELECT @a"), 245);
    assert_eq!(rig.error("DECLARE @a tinyint = 300"), 220);
}

#[test]
fn control_flow_goes_where_conditions_say() {
    let mut rig = Rig::new();
    assert_eq!(rig.ints("IF 1 = 1 SELECT 1 ELSE SELECT 2"), [1]);
    assert_eq!(rig.ints("IF NULL = 1 SELECT 1; ELSE SELECT 2"), [2]);
    let text = "DECLARE @i int = 0
        WHILE 1 = 1 BEGIN
            SET @i += 1
            IF @i = 2 CONTINUE
            IF @i > 4 BREAK
            SELECT @i
        END
        SELECT 100 RETURN SELECT 200";
    assert_eq!(rig.ints(text), [1, 3, 4, 100]);
}

#[test]
fn an_error_ends_its_statement_or_its_batch_as_the_server_does() {
    let mut rig = Rig::new();
    // A division by zero ends its statement, a failed conversion and an unknown name the batch.
    let recording = rig.tell("SELECT 1 / 0 SELECT @@ERROR SELECT @@ERROR");
    assert_eq!(recording.errors(), [8134]);
    assert_eq!(recording.rows(), [[Value::Int(8134)], [Value::Int(0)]]);
    for (text, number) in [("SELECT CAST('x' AS int)", 245), ("SELECT * FROM nothing", 208)] {
        let recording = rig.tell(&format!("{text} SELECT 1"));
        assert_eq!(recording.errors(), [number], "{text}");
        assert!(recording.rows().is_empty(), "{text}");
    }
}

#[test]
fn a_caught_error_is_told_by_its_functions_and_to_nobody_else() {
    let mut rig = Rig::new();
    let text = "BEGIN TRY\nSELECT 1 / 0\nSELECT 9\nEND TRY\nBEGIN CATCH\n\
                SELECT ERROR_NUMBER(), ERROR_SEVERITY(), ERROR_LINE(), ERROR_STATE(), @@ERROR\n\
                END CATCH SELECT ERROR_NUMBER()";
    let recording = rig.run(text);
    let told = recording.rows();
    assert_eq!(told[0], [8134.into(), 16.into(), 2.into(), 1.into(), 8134.into()]);
    assert_eq!(told[1], [Value::Null]);
}

#[test]
fn throw_raises_what_it_says_or_what_was_caught() {
    let mut rig = Rig::new();
    let recording = rig.tell("THROW 50001, 'bad', 3; SELECT 1");
    let message = recording.messages()[0].clone();
    assert_eq!((message.number, message.class, message.state), (50_001, 16, 3));
    assert_eq!(message.text, "bad");
    assert!(recording.rows().is_empty());
    let text = "BEGIN TRY SELECT 1 / 0 END TRY BEGIN CATCH SELECT 1; THROW END CATCH";
    let recording = rig.tell(text);
    assert_eq!((recording.errors(), recording.rows()), (vec![8134], vec![vec![1.into()]]));
    assert_eq!(rig.error("THROW"), 10_704);
    assert_eq!(rig.error("THROW 1, 'x', 1"), 35_100);
}

#[test]
fn raiserror_informs_or_raises_by_its_severity() {
    let mut rig = Rig::new();
    let recording = rig.run("RAISERROR('hello %s %d', 10, 1, 'you', 3) WITH NOWAIT SELECT @@ERROR");
    assert_eq!(recording.messages()[0].text, "hello you 3");
    assert_eq!(recording.rows(), [[Value::Int(0)]]);
    let recording = rig.tell("RAISERROR(N'no', 16, 2) SELECT @@ERROR");
    assert_eq!(recording.errors(), [50_000]);
    assert_eq!(recording.rows(), [[Value::Int(50_000)]]);
    let recording = rig.run("PRINT 'a' + 'b'");
    assert_eq!((recording.messages()[0].class, &*recording.messages()[0].text), (0, "ab"));
}

#[test]
fn use_changes_the_database_and_says_so() {
    let mut rig = Rig::new();
    let recording = rig.run("USE master");
    assert!(
        recording.0.contains(&Reply::Changed(Change::Database("master".into(), "shop".into())))
    );
    assert_eq!(recording.messages()[0].number, 5701);
    assert_eq!(rig.session.greeting().database, "master");
    assert_eq!(rig.error("USE nowhere"), 911);
}

#[test]
fn set_options_are_what_functions_tell_of_them() {
    let mut rig = Rig::new();
    assert_eq!(rig.one("SET LOCK_TIMEOUT 1500 SELECT @@LOCK_TIMEOUT"), 1500.into());
    assert_eq!(rig.one("SET LOCK_TIMEOUT -1 SELECT @@LOCK_TIMEOUT"), (-1).into());
    let bits = rig.one("SET NOCOUNT ON SELECT @@OPTIONS & 512");
    assert_eq!(bits, 512.into());
    assert_eq!(rig.run("SELECT 1").counts(), [(StatementKind::Select, None)]);
    assert_eq!(rig.ints("SET ROWCOUNT 2 SELECT a FROM (VALUES (1), (2), (3)) v (a)"), [1, 2]);
    rig.run("CREATE TABLE r (a int) INSERT r SELECT a FROM (VALUES (1), (2), (3)) v (a)");
    assert_eq!(rig.ints("UPDATE r SET a = 9 SELECT COUNT(*) FROM r"), [2]);
    rig.session.reset(false);
    assert_eq!(rig.session.greeting().database, "master");
    assert_eq!(rig.ints("SELECT a FROM (VALUES (1), (2), (3)) v (a)"), [1, 2, 3]);
}

#[test]
fn a_long_chain_of_conditions_runs_to_its_end() {
    let mut rig = Rig::new();
    assert_eq!(rig.ints(&format!("{} SELECT 7", "IF 1 = 2 SELECT 2 ELSE ".repeat(300))), [7]);
    let nested = format!("{}SELECT 8{}", "IF 1 = 1 BEGIN ".repeat(15), " END".repeat(15));
    assert_eq!(rig.ints(&nested), [8]);
}

#[test]
fn texts_of_any_length_are_cut_at_the_text_size() {
    let mut rig = Rig::new();
    let row = "SELECT CAST('abcdef' AS varchar(max)), CAST(N'abcdef' AS nvarchar(max)), 'abcdef', \
               CAST(0x010203 AS varbinary(max))";
    assert_eq!(
        rig.rows(&format!("SET TEXTSIZE 4 {row} SET TEXTSIZE -1")),
        [[Value::text("abcd"), Value::text("ab"), Value::text("abcdef"), Value::bytes(&[1, 2, 3])]]
    );
    assert_eq!(rig.rows(row)[0][0], "abcdef".into());
}

#[test]
fn format_only_gives_columns_without_rows() {
    let mut rig = Rig::new();
    let recording = rig.run("SET FMTONLY ON SELECT 1 AS a SET FMTONLY OFF");
    assert!(recording.rows().is_empty());
    assert!(recording.0.contains(&Reply::Columns(vec!["a".into()])));
}

#[test]
fn waitfor_lets_time_pass_on_the_servers_clock() {
    let mut rig = Rig::new();
    let before = rig.server.fake().clock().time();
    rig.run("WAITFOR DELAY '00:01:30'");
    let passed = rig.server.fake().clock().time().as_micros() - before.as_micros();
    assert_eq!(passed, 90_000_000);
    rig.run("WAITFOR TIME '13:00'");
    let text = rig.one("SELECT CONVERT(varchar(8), SYSUTCDATETIME(), 108)");
    assert_eq!(text, "13:00:00".into());
    assert_eq!(rig.error("WAITFOR DELAY 'soon'"), 148);
}

#[test]
fn a_cancelled_session_stops_without_another_word() {
    let mut rig = Rig::new();
    rig.session.cancel().set();
    assert!(rig.tell("SELECT 1").0.is_empty());
    rig.session.cancel().clear();
    assert_eq!(rig.ints("SELECT 1"), [1]);
}

#[test]
fn a_cancelled_statement_ends_the_transaction_where_errors_do() {
    let mut rig = Rig::new();
    for (option, open) in [("OFF", 1), ("ON", 0)] {
        rig.run(&format!("SET XACT_ABORT {option} BEGIN TRAN"));
        rig.session.cancel().set();
        rig.tell("SELECT 1");
        rig.session.cancel().clear();
        assert_eq!(rig.ints("SELECT @@TRANCOUNT"), [open]);
        rig.tell("ROLLBACK");
    }
}

#[test]
fn a_killed_session_is_told_so_and_a_planted_error_meets_its_statement() {
    let mut rig = Rig::new();
    rig.server.fake().faults().inject("SELECT", SqlError::deadlock(), 1);
    assert_eq!(rig.error("SELECT 1"), 1205);
    assert_eq!(rig.ints("SELECT 1"), [1]);
    let mut other = rig.other();
    let id = other.one("SELECT @@SPID").as_int().expect("an id");
    rig.run(&format!("KILL {id}"));
    let recording = other.tell("SELECT 1");
    assert_eq!(recording.errors(), [596]);
    assert!(recording.messages()[0].class >= 20);
    assert_eq!(rig.error("KILL 9999"), 6106);
}

#[test]
fn what_is_read_but_not_evaluated_is_refused_by_name() {
    let mut rig = Rig::new();
    for text in
        ["GOTO a", "CREATE PROCEDURE p AS SELECT 1", "DBCC CHECKDB", "CREATE TYPE t FROM int"]
    {
        let recording = rig.tell(text);
        assert_eq!(recording.errors(), [50_000], "{text}");
        assert!(recording.messages()[0].text.starts_with("not supported by this server: "));
    }
}

//! Transactions, savepoints, isolation, waits and repeated replies.

use std::time::Duration;

use cdc_fake::Value;

use super::rig::{Recording, Reply, Rig};
use crate::talk::{Change, Conversation, StatementKind, TransactionRequest};

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.run("CREATE TABLE t (a int PRIMARY KEY, v int) INSERT t VALUES (1, 10), (2, 20)");
    rig
}

#[test]
fn a_rollback_leaves_nothing_and_a_commit_everything() {
    let mut rig = rig();
    let recording = rig.run("BEGIN TRAN INSERT t VALUES (3, 30) SELECT @@TRANCOUNT ROLLBACK");
    assert_eq!(recording.rows(), [[Value::Int(1)]]);
    assert!(matches!(recording.0[0], Reply::Changed(Change::TransactionBegan(_))));
    let rolled = |reply: &Reply| matches!(reply, Reply::Changed(Change::TransactionRolledBack(_)));
    assert!(recording.0.iter().any(rolled));
    assert_eq!(rig.ints("SELECT COUNT(*) FROM t"), [2]);
    rig.run("BEGIN TRAN DELETE t WHERE a = 1 COMMIT");
    assert_eq!(rig.other().ints("SELECT a FROM t"), [2]);
}

#[test]
fn only_the_outermost_commit_commits() {
    let mut rig = rig();
    let text = "BEGIN TRAN BEGIN TRAN INSERT t VALUES (3, 30) COMMIT SELECT @@TRANCOUNT ROLLBACK \
                SELECT @@TRANCOUNT SELECT COUNT(*) FROM t";
    assert_eq!(rig.ints(text), [1, 0, 2]);
    assert_eq!(rig.error("COMMIT"), 3902);
    assert_eq!(rig.error("ROLLBACK"), 3903);
}

#[test]
fn a_savepoint_takes_back_what_came_after_it() {
    let mut rig = rig();
    let text = "BEGIN TRAN INSERT t VALUES (3, 30) SAVE TRAN s INSERT t VALUES (4, 40)
        ROLLBACK TRAN s SELECT @@TRANCOUNT COMMIT SELECT a FROM t ORDER BY a";
    assert_eq!(rig.ints(text), [1, 1, 2, 3]);
    assert_eq!(rig.error("BEGIN TRAN ROLLBACK TRAN nothing"), 6401);
    rig.run("ROLLBACK");
    assert_eq!(rig.error("SAVE TRAN s"), 628);
    // The first statement in the database comes after the savepoint.
    let text = "BEGIN TRAN SAVE TRAN s INSERT t VALUES (5, 50) ROLLBACK TRAN s COMMIT";
    rig.run(text);
    assert_eq!(rig.ints("SELECT COUNT(*) FROM t"), [3]);
}

#[test]
fn a_statement_that_fails_leaves_nothing_and_the_transaction_goes_on() {
    let mut rig = rig();
    let recording =
        rig.tell("BEGIN TRAN INSERT t VALUES (3, 1), (1, 1) INSERT t VALUES (4, 1) COMMIT");
    assert_eq!(recording.errors(), [2627]);
    assert_eq!(rig.ints("SELECT a FROM t ORDER BY a"), [1, 2, 4]);
}

#[test]
fn xact_abort_rolls_back_and_ends_the_batch() {
    let mut rig = rig();
    let recording = rig.tell(
        "SET XACT_ABORT ON BEGIN TRAN INSERT t VALUES (3, 1) INSERT t VALUES (1, 1) SELECT 9",
    );
    assert_eq!((recording.errors(), recording.rows()), (vec![2627], vec![]));
    assert_eq!(rig.ints("SELECT @@TRANCOUNT SELECT COUNT(*) FROM t"), [0, 2]);
}

#[test]
fn a_doomed_transaction_can_only_be_rolled_back() {
    let mut rig = rig();
    let text = "BEGIN TRAN INSERT t VALUES (3, 1)
        BEGIN TRY SELECT CAST('x' AS int) END TRY
        BEGIN CATCH
            SELECT XACT_STATE()
            BEGIN TRY INSERT t VALUES (4, 1) END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH
        END CATCH";
    let recording = rig.tell(text);
    assert_eq!(recording.rows(), [[Value::Int(-1)], [Value::Int(3930)]]);
    assert_eq!(recording.errors(), [3998]);
    assert_eq!(rig.ints("SELECT @@TRANCOUNT SELECT COUNT(*) FROM t"), [0, 2]);
}

#[test]
fn implicit_transactions_begin_with_the_first_statement_on_a_table() {
    let mut rig = rig();
    let text = "SET IMPLICIT_TRANSACTIONS ON SELECT @@TRANCOUNT";
    assert_eq!(rig.ints(text), [0]);
    let recording = rig.run("INSERT t VALUES (3, 1)");
    assert!(matches!(recording.0[0], Reply::Changed(Change::TransactionBegan(_))));
    assert_eq!(rig.ints("SELECT @@TRANCOUNT"), [1]);
    rig.run("IF @@TRANCOUNT > 0 ROLLBACK TRAN");
    assert_eq!(rig.ints("SELECT a FROM t ORDER BY a"), [1, 2]);
    assert_eq!(rig.ints("SELECT @@TRANCOUNT"), [1]);
    rig.session.reset(false);
    assert_eq!(rig.ints("SELECT @@TRANCOUNT"), [0]);
}

#[test]
fn the_transaction_manager_begins_saves_and_ends() {
    let mut rig = rig();
    let ask = |rig: &mut Rig, request| {
        let mut recording = Recording::default();
        rig.session.transaction(request, &mut recording);
        recording
    };
    let began =
        ask(&mut rig, TransactionRequest::Begin { isolation: Some(5), name: String::new() });
    assert!(matches!(began.0[0], Reply::Changed(Change::TransactionBegan(_))));
    assert_eq!(began.counts(), [(StatementKind::Begin, None)]);
    rig.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED INSERT t VALUES (3, 1)");
    ask(&mut rig, TransactionRequest::Save { name: "s".into() });
    rig.run("INSERT t VALUES (4, 1)");
    ask(&mut rig, TransactionRequest::Rollback { name: "s".into(), begin: false });
    let ended = ask(&mut rig, TransactionRequest::Commit { name: String::new(), begin: true });
    assert!(matches!(ended.0[0], Reply::Changed(Change::TransactionCommitted(_))));
    assert!(matches!(ended.0[1], Reply::Changed(Change::TransactionBegan(_))));
    assert_eq!(rig.ints("SELECT @@TRANCOUNT"), [1]);
    assert_eq!(rig.ints("SELECT a FROM t ORDER BY a"), [1, 2, 3]);
    ask(&mut rig, TransactionRequest::Rollback { name: String::new(), begin: false });
    let none = ask(&mut rig, TransactionRequest::Commit { name: String::new(), begin: false });
    assert_eq!(none.errors(), [3902]);
}

#[test]
fn a_reader_waits_for_a_writers_row_as_long_as_it_may() {
    let mut rig = rig();
    rig.run("BEGIN TRAN UPDATE t SET v = 11 WHERE a = 1");
    let mut reader = rig.other();
    assert_eq!(reader.error("SET LOCK_TIMEOUT 0 SELECT v FROM t"), 1222);
    assert_eq!(reader.ints("SELECT v FROM t WITH (NOLOCK) ORDER BY a"), [11, 20]);
    assert_eq!(reader.ints("SELECT v FROM t WITH (READPAST)"), [20]);
    let clock = rig.server.fake().clock().clone();
    let waiting = std::thread::spawn(move || reader.error("SET LOCK_TIMEOUT 5000 SELECT v FROM t"));
    // The wait begins at some moment of the thread's own: the clock moves until it is over.
    while !waiting.is_finished() {
        clock.advance(Duration::from_secs(1));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(waiting.join().expect("ends"), 1222);
    rig.run("ROLLBACK");
    assert_eq!(rig.other().ints("SELECT v FROM t ORDER BY a"), [10, 20]);
}

#[test]
fn a_waiting_reader_goes_on_when_the_writer_commits_or_the_client_cancels() {
    let mut rig = rig();
    rig.run("BEGIN TRAN UPDATE t SET v = 11 WHERE a = 1");
    let mut reader = rig.other();
    let reading = std::thread::spawn(move || reader.ints("SELECT v FROM t ORDER BY a"));
    rig.run("COMMIT");
    assert_eq!(reading.join().expect("ends"), [11, 20]);
    rig.run("BEGIN TRAN UPDATE t SET v = 12 WHERE a = 1");
    let mut reader = rig.other();
    let cancel = reader.session.cancel();
    let reading = std::thread::spawn(move || reader.tell("SELECT v FROM t").rows());
    cancel.set();
    assert!(reading.join().expect("ends").is_empty());
}

#[test]
fn snapshots_read_what_was_committed_where_they_are_allowed() {
    let mut rig = rig();
    let mut reader = rig.other();
    let snapshot = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT";
    assert_eq!(reader.error(&format!("{snapshot} BEGIN TRAN SELECT v FROM t")), 3952);
    reader.session.reset(false);
    rig.run("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON");
    reader.run(&format!("{snapshot} BEGIN TRAN"));
    assert_eq!(reader.ints("SELECT v FROM t ORDER BY a"), [10, 20]);
    rig.run("UPDATE t SET v = 11 WHERE a = 1");
    assert_eq!(reader.ints("SELECT v FROM t ORDER BY a"), [10, 20]);
    assert_eq!(reader.error("UPDATE t SET v = 12 WHERE a = 1"), 3960);
    assert_eq!(reader.ints("SELECT @@TRANCOUNT"), [0]);
    rig.run("ALTER DATABASE shop SET READ_COMMITTED_SNAPSHOT ON");
    rig.run("BEGIN TRAN UPDATE t SET v = 13 WHERE a = 1");
    assert_eq!(rig.other().ints("SELECT v FROM t ORDER BY a"), [11, 20]);
    rig.run("COMMIT");
}

#[test]
fn what_a_session_keeps_for_itself_is_there_at_every_isolation_level() {
    let mut rig = rig();
    rig.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT");
    let variable = "DECLARE @t TABLE (a int) INSERT @t VALUES (1), (2) SELECT a FROM @t ORDER BY a";
    assert_eq!(rig.ints(variable), [1, 2]);
    rig.run("CREATE TABLE #t (a int) INSERT #t VALUES (3)");
    assert_eq!(rig.ints("SELECT a FROM #t"), [3]);
}

#[test]
fn of_two_that_wait_for_each_other_one_gives_way() {
    let mut rig = rig();
    let mut other = rig.other();
    rig.run("BEGIN TRAN UPDATE t SET v = 1 WHERE a = 1");
    other.run("BEGIN TRAN UPDATE t SET v = 2 WHERE a = 2");
    let crossing = std::thread::spawn(move || {
        other.tell("UPDATE t SET v = 2 WHERE a = 1 SELECT @@TRANCOUNT COMMIT").errors()
    });
    let mine = rig.tell("UPDATE t SET v = 1 WHERE a = 2").errors();
    let theirs = crossing.join().expect("ends");
    let victims = [&mine, &theirs].into_iter().filter(|errors| errors.first() == Some(&1205));
    assert_eq!(victims.count(), 1, "{mine:?} {theirs:?}");
}

#[test]
fn a_session_that_ends_takes_its_transaction_with_it() {
    let mut rig = rig();
    let mut other = rig.other();
    other.run("BEGIN TRAN DELETE t");
    drop(other);
    assert_eq!(rig.ints("SELECT COUNT(*) FROM t"), [2]);
}

#[test]
fn a_reply_repeats_while_nothing_that_it_read_has_changed() {
    let mut rig = rig();
    rig.run("SELECT a FROM t");
    let version = rig.session.repeatable().expect("only read");
    assert_eq!(rig.session.version(), version);
    rig.other().run("INSERT t VALUES (9, 9)");
    assert_ne!(rig.session.version(), version);
    let asked = vec![
        super::rig::text("SELECT a FROM t WHERE a > @a"),
        super::rig::text("@a int"),
        super::rig::int(1),
    ];
    rig.call("sp_executesql", asked);
    assert!(rig.session.repeatable().is_some());
    // A reply that is kept must not hide planted trouble.
    rig.server.fake().faults().inject("SELECT", cdc_fake::SqlError::deadlock(), 1);
    assert_ne!(rig.session.version(), rig.session.version());
    rig.server.fake().faults().clear();
    for text in ["SELECT GETDATE()", "SELECT @@TRANCOUNT", "INSERT t VALUES (8, 8)", "PRINT 'a'"] {
        rig.run(text);
        assert_eq!(rig.session.repeatable(), None, "{text}");
    }
}

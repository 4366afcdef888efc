//! What no well-behaved client sends: large, deep and odd batches and calls end with an answer or
//! an error, soon and in bounded memory, and sessions that go away leave nothing behind.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::{
    fmt::Write as _,
    ops::ControlFlow,
    thread,
    time::{Duration, Instant},
};

use cdc_core::{Length, SqlType, Timestamp};
use cdc_fake::{FakeServer, Value, VirtualClock, Zone};
use cdc_tsql::{
    Server, ServerSettings, Session,
    kind::Typed,
    relation::ObjectName,
    talk::{Argument, Change, Conversation as _, Done, Message, Procedure, Replies, ResultColumn},
};

/// Counts what is told, and leaves after so many rows.
#[derive(Default)]
struct Heard {
    rows: Vec<Vec<Value>>,
    errors: Vec<i32>,
    leaves_after: Option<usize>,
}

impl Replies for Heard {
    fn columns(&mut self, _: &[ResultColumn]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value]) -> ControlFlow<()> {
        self.rows.push(row.to_vec());
        match self.leaves_after {
            Some(rows) if self.rows.len() >= rows => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn done(&mut self, _: Done) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn message(&mut self, message: &Message) -> ControlFlow<()> {
        if message.class > 10 {
            self.errors.push(message.number);
        }
        ControlFlow::Continue(())
    }

    fn changed(&mut self, _: &Change) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn return_status(&mut self, _: i32) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn return_value(&mut self, _: u16, _: &str, _: &Typed) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn server() -> Server {
    let clock = VirtualClock::manual(Timestamp::from_micros(1_709_294_400_000_000));
    let server =
        Server::new(FakeServer::new(clock, Zone::UTC), ServerSettings { waits_move_clock: true });
    let mut owner = server.owner_session("master").expect("opens");
    tell(&mut owner, "CREATE DATABASE shop");
    server
}

fn session(server: &Server) -> Session {
    server.owner_session("shop").expect("opens")
}

fn tell(session: &mut Session, text: &str) -> Heard {
    let mut heard = Heard::default();
    session.batch(text, &mut heard);
    heard
}

fn one(session: &mut Session, text: &str) -> Value {
    let heard = tell(session, text);
    assert_eq!(heard.errors, [], "{text:.80}");
    heard.rows[0][0].clone()
}

fn text(text: &str) -> Argument {
    let typed = Typed::new(SqlType::NVarChar(Length::Max), Value::text(text));
    Argument { name: None, typed, output: false, default: false }
}

fn execute_sql(session: &mut Session, arguments: Vec<Argument>) -> Heard {
    let mut heard = Heard::default();
    let name = ObjectName { database: None, schema: None, name: "sp_executesql".into() };
    session.call(&Procedure::Named(name), arguments, &mut heard);
    heard
}

#[test]
fn depth_is_an_error_and_never_an_overflow_of_the_stack() {
    // What the front gives each session.
    let thread = thread::Builder::new().stack_size(16 << 20).spawn(nest_everything);
    thread.expect("a thread").join().expect("no panic");
}

fn nest_everything() {
    let server = server();
    let mut session = session(&server);
    for depth in [50, 1_000, 10_000] {
        let deep = |open: &str, inner: &str, close: &str| {
            format!("SELECT {}{inner}{}", open.repeat(depth), close.repeat(depth))
        };
        for (what, batch) in [
            ("parentheses", deep("(", "1", ")")),
            ("cases", deep("CASE WHEN 1 = 1 THEN ", "1", " END")),
            ("functions", deep("ABS(", "1", ")")),
            ("subqueries", deep("(SELECT ", "1", ")")),
            ("negations", deep("- ", "1", "")),
            ("sums", deep("1 + ", "1", "")),
            ("blocks", format!("{} SELECT 1 {}", "BEGIN ".repeat(depth), "END ".repeat(depth))),
            ("conditions", format!("{} SELECT 1", "IF 1 = 1 ".repeat(depth))),
            ("else", format!("{} SELECT 1", "IF 1 = 0 SELECT 2 ELSE ".repeat(depth))),
            ("loops", format!("{} SELECT 1", "WHILE 1 = 0 ".repeat(depth))),
            (
                "tries",
                format!(
                    "{} SELECT 1 {}",
                    "BEGIN TRY ".repeat(depth),
                    "END TRY BEGIN CATCH SELECT 2 END CATCH ".repeat(depth)
                ),
            ),
            ("nots", format!("SELECT 1 WHERE {} 1 = 1", "NOT ".repeat(depth))),
            ("ands", format!("SELECT 1 WHERE 1 = 1{}", " AND 1 = 1".repeat(depth))),
            ("ors", format!("SELECT 1 WHERE 1 = 0{}", " OR 1 = 1".repeat(depth))),
            ("unions", format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(depth))),
            ("comments", format!("SELECT 1 {} {}", "/*".repeat(depth), "*/".repeat(depth))),
            (
                "derived",
                format!(
                    "SELECT * FROM {}(SELECT 1 AS a) x{}",
                    "(SELECT * FROM ".repeat(depth),
                    ") x".repeat(depth)
                ),
            ),
            (
                "joins",
                format!(
                    "SELECT 1 FROM sys.tables t0{}",
                    " CROSS JOIN (SELECT 1 AS a) x".repeat(depth)
                ),
            ),
        ] {
            let heard = tell(&mut session, &batch);
            assert!(
                !heard.errors.is_empty() || !heard.rows.is_empty() || what.ends_with('s'),
                "{what} {depth}"
            );
        }
    }
    assert_eq!(one(&mut session, "SELECT 1"), Value::Int(1));
}

#[test]
fn a_call_takes_2100_parameters_and_no_more() {
    let server = server();
    let mut session = session(&server);
    for (count, errors) in [(2_098_usize, vec![]), (2_101, vec![8003])] {
        let declared: Vec<_> = (0..count).map(|at| format!("@p{at} int")).collect();
        let sum: Vec<_> = (0..10).map(|at| format!("@p{at}")).collect();
        let mut arguments =
            vec![text(&format!("SELECT {}", sum.join(" + "))), text(&declared.join(", "))];
        arguments.extend((0..count).map(|at| Argument {
            name: Some(format!("@p{at}")),
            typed: Typed::new(SqlType::Int, Value::Int(1)),
            output: false,
            default: false,
        }));
        let heard = execute_sql(&mut session, arguments);
        assert_eq!(heard.errors, errors, "{count}");
        assert_eq!(heard.rows.is_empty(), !errors.is_empty());
    }
}

#[test]
fn long_lists_and_long_batches_are_evaluated() {
    let server = server();
    let mut session = session(&server);
    let begun = Instant::now();
    let list: Vec<_> = (0..20_000).map(|number| number.to_string()).collect();
    let list = list.join(",");
    assert_eq!(
        one(
            &mut session,
            &format!("SELECT COUNT(*) FROM (VALUES (5), (-1)) v (x) WHERE x IN ({list})")
        ),
        Value::Int(1)
    );
    let nulls =
        format!("SELECT COUNT(*) FROM (VALUES (5), (-1)) v (x) WHERE x NOT IN ({list}, NULL)");
    assert_eq!(one(&mut session, &nulls), Value::Int(0));
    tell(&mut session, "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)");
    let rows: Vec<_> = (0..1_000).map(|number| format!("({number})")).collect();
    let insert = format!("INSERT dbo.t VALUES {}", rows.join(","));
    assert_eq!(tell(&mut session, &insert).errors, []);
    // A long list is looked up, not gone through, for each of fifty thousand rows.
    let many = format!(
        "SELECT COUNT(*) FROM dbo.t a CROSS JOIN (SELECT TOP 50 id FROM dbo.t) b WHERE a.id + b.id * 1000 IN ({list})"
    );
    assert_eq!(one(&mut session, &many), Value::Int(20_000));
    let rows: Vec<_> = (2_000..3_001).map(|number| format!("({number})")).collect();
    let insert = format!("INSERT dbo.t VALUES {}", rows.join(","));
    assert_eq!(tell(&mut session, &insert).errors, [10_738]);
    let mut batch = String::new();
    for number in 0..5_000 {
        let _ = writeln!(batch, "DECLARE @v{number} int = {number};");
    }
    batch.push_str("SELECT @v4999");
    assert_eq!(one(&mut session, &batch), Value::Int(4_999));
    let long = "x".repeat(1 << 20);
    assert_eq!(one(&mut session, &format!("SELECT LEN('{long}')")), Value::Int(1 << 20));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn chains_of_five_thousand_operators_are_evaluated_on_a_small_stack() {
    // An eighth of what the front gives each session, without optimisation.
    let thread = thread::Builder::new().stack_size(2 << 20).spawn(chain_everything);
    thread.expect("a thread").join().expect("no panic");
}

fn chain_everything() {
    let server = server();
    let mut session = session(&server);
    let begun = Instant::now();
    tell(&mut session, "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v int, s varchar(9))");
    tell(&mut session, "INSERT dbo.t VALUES (1, 1, 'a'), (4999, 2, 'b'), (6000, 3, 'c')");
    let terms = |term: &dyn Fn(usize) -> String, with: &str| {
        (0..5_000).map(term).collect::<Vec<_>>().join(with)
    };
    let any = terms(&|at| format!("id = {at}"), " OR ");
    let all = terms(&|at| format!("id <> {at}"), " AND ");
    let sum = terms(&|_| "v".into(), " + ");
    let mixed = terms(&|at| ["v", "2", "id"][at % 3].to_owned(), " - ");
    let text = terms(&|_| "s".into(), " + ");
    let product = terms(&|_| "v / v".into(), " * ");
    for (query, answer) in [
        (format!("SELECT COUNT(*) FROM dbo.t WHERE {any}"), Value::Int(2)),
        (format!("SELECT COUNT(*) FROM dbo.t WHERE NOT ({any})"), Value::Int(1)),
        (format!("SELECT COUNT(*) FROM dbo.t WHERE {all}"), Value::Int(1)),
        (format!("SELECT {sum} FROM dbo.t WHERE id = 4999"), Value::Int(10_000)),
        (format!("SELECT SUM({sum}) FROM dbo.t"), Value::Int(30_000)),
        (format!("SELECT {mixed} FROM dbo.t WHERE id = 1"), Value::Int(1 - 1_666 - 3_334 - 1_666)),
        (format!("SELECT LEN({text}) FROM dbo.t WHERE id = 1"), Value::Int(5_000)),
        (format!("SELECT {product} FROM dbo.t WHERE id = 6000"), Value::Int(1)),
        (
            format!("SELECT v FROM dbo.t GROUP BY v, id HAVING {any} ORDER BY {sum} DESC"),
            Value::Int(2),
        ),
        (format!("DECLARE @v int = 3; SELECT {}", sum.replace('v', "@v")), Value::Int(15_000)),
        (format!("SELECT CASE WHEN {any} THEN 'in' ELSE 'out' END FROM dbo.t"), "in".into()),
    ] {
        assert_eq!(one(&mut session, &query), answer, "{query:.80}");
    }
    assert_eq!(tell(&mut session, &format!("UPDATE dbo.t SET v = 9 WHERE {any}")).errors, []);
    assert_eq!(one(&mut session, "SELECT SUM(v) FROM dbo.t"), Value::Int(21));
    // A long chain gives what a short one does, to the type.
    let decimals = |count: usize| vec!["CAST(v AS decimal(5, 2))"; count].join(" + ");
    let described = |count| {
        format!(
            "SELECT {} AS x INTO dbo.x FROM dbo.t WHERE id = 6000; \
             SELECT precision FROM sys.columns WHERE object_id = OBJECT_ID('dbo.x'); \
             DROP TABLE dbo.x",
            decimals(count)
        )
    };
    assert_eq!(one(&mut session, &described(32)), Value::Int(36));
    assert_eq!(one(&mut session, &described(1_000)), Value::Int(38));
    let sums = |count| format!("SELECT {} FROM dbo.t WHERE id = 6000", decimals(count));
    assert_eq!(one(&mut session, &sums(65)), Value::decimal(65 * 300));
    assert_eq!(one(&mut session, &sums(66)), Value::decimal(66 * 300));
    let wrong = sum.replacen('v', "nowhere", 1);
    assert_eq!(tell(&mut session, &format!("SELECT {wrong} FROM dbo.t")).errors, [207]);
    let ended = tell(&mut session, &format!("SELECT {} +", sum));
    assert_eq!(ended.errors, [102]);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn a_cancelled_call_ends_soon_and_the_session_goes_on() {
    let server = server();
    let mut session = session(&server);
    tell(&mut session, "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)");
    for endless in [
        "WHILE 1 = 1 SELECT 1 WHERE 1 = 0",
        "WHILE 1 = 1 BEGIN DECLARE @x int = 1 END",
        "WITH n AS (SELECT 1 AS i UNION ALL SELECT i FROM n) SELECT COUNT(*) FROM n OPTION (MAXRECURSION 0)",
        "SELECT COUNT_BIG(*) FROM sys.all_columns a CROSS JOIN sys.all_columns b CROSS JOIN sys.all_columns c CROSS JOIN sys.all_columns d",
        "SELECT MAX(a.name) FROM sys.all_columns a, sys.all_columns b, sys.all_columns c, sys.all_columns d WHERE a.name > b.name",
    ] {
        let cancel = session.cancel();
        let canceller = thread::spawn({
            let cancel = cancel.clone();
            move || {
                thread::sleep(Duration::from_millis(100));
                cancel.set();
            }
        });
        let begun = Instant::now();
        tell(&mut session, endless);
        canceller.join().unwrap();
        cancel.clear();
        assert!(begun.elapsed() < Duration::from_secs(5), "{endless}: {:?}", begun.elapsed());
        assert_eq!(one(&mut session, "SELECT @@TRANCOUNT"), Value::Int(0));
    }
}

#[test]
fn who_leaves_in_a_result_or_in_a_transaction_holds_nothing() {
    let server = server();
    let mut other = session(&server);
    tell(&mut other, "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v int NULL)");
    tell(&mut other, "INSERT dbo.t VALUES (1, 1), (2, 2), (3, 3)");
    tell(&mut other, "SET LOCK_TIMEOUT 0");
    let mut leaver = session(&server);
    tell(
        &mut leaver,
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN TRAN; UPDATE dbo.t SET v = 9",
    );
    let mut heard = Heard { leaves_after: Some(1), ..Heard::default() };
    leaver.batch("SELECT * FROM dbo.t", &mut heard);
    assert_eq!(heard.rows.len(), 1);
    assert_eq!(tell(&mut other, "UPDATE dbo.t SET v = 5 WHERE id = 1").errors, [1222]);
    drop(leaver);
    assert_eq!(tell(&mut other, "UPDATE dbo.t SET v = 5 WHERE id = 1").errors, []);
    assert_eq!(one(&mut other, "SELECT SUM(v) FROM dbo.t"), Value::Int(10));
    let mut killed = session(&server);
    let Value::Int(id) = one(&mut killed, "SELECT @@SPID") else { panic!("a number") };
    tell(&mut killed, "BEGIN TRAN; DELETE dbo.t");
    assert_eq!(tell(&mut other, "UPDATE dbo.t SET v = 6 WHERE id = 1").errors, [1222]);
    assert_eq!(tell(&mut other, &format!("KILL {id}")).errors, []);
    // It is idle, and nothing of it is left all the same.
    assert_eq!(tell(&mut other, "UPDATE dbo.t SET v = 6 WHERE id = 1").errors, []);
    assert_eq!(one(&mut other, "SELECT COUNT(*) FROM dbo.t"), Value::Int(3));
    assert_eq!(tell(&mut other, &format!("KILL {id}")).errors, [6106]);
    assert_eq!(tell(&mut killed, "COMMIT").errors, [596]);
}

#[test]
fn a_kill_ends_what_a_session_waits_for_or_runs() {
    let server = server();
    let mut owner = session(&server);
    tell(&mut owner, "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v int NULL)");
    tell(&mut owner, "INSERT dbo.t VALUES (1, 1), (2, 2)");
    for waits in [
        "SET LOCK_TIMEOUT -1; BEGIN TRAN; UPDATE dbo.t SET v = 5 WHERE id = 2; UPDATE dbo.t SET v = 5 WHERE id = 1",
        "SET LOCK_TIMEOUT -1; BEGIN TRAN; UPDATE dbo.t SET v = 5 WHERE id = 2; SELECT * FROM dbo.t WHERE id = 1",
        "BEGIN TRAN; UPDATE dbo.t SET v = 5 WHERE id = 2; BEGIN TRY WHILE 1 = 1 SELECT 1 WHERE 1 = 0 END TRY BEGIN CATCH PRINT 'no' END CATCH",
        "BEGIN TRAN; UPDATE dbo.t SET v = 5 WHERE id = 2; SELECT COUNT_BIG(*) FROM sys.all_columns a CROSS JOIN sys.all_columns b CROSS JOIN sys.all_columns c",
    ] {
        tell(&mut owner, "BEGIN TRAN; UPDATE dbo.t SET v = 9 WHERE id = 1");
        let mut victim = session(&server);
        let Value::Int(id) = one(&mut victim, "SELECT @@SPID") else { panic!("a number") };
        let told = thread::scope(|scope| {
            let running = scope.spawn(|| tell(&mut victim, waits));
            let begun = Instant::now();
            while one(&mut owner, "SELECT COUNT(*) FROM dbo.t WITH (NOLOCK) WHERE v = 5")
                == Value::Int(0)
            {
                assert!(begun.elapsed() < Duration::from_secs(20), "{waits}");
                thread::sleep(Duration::from_millis(5));
            }
            thread::sleep(Duration::from_millis(20));
            let begun = Instant::now();
            assert_eq!(tell(&mut owner, &format!("KILL {id}")).errors, []);
            // What it wrote is free before it has noticed.
            let write = "SET LOCK_TIMEOUT 0; UPDATE dbo.t SET v = 3 WHERE id = 2";
            assert_eq!(tell(&mut owner, write).errors, [], "{waits}");
            let told = running.join().expect("no panic");
            assert!(begun.elapsed() < Duration::from_secs(5), "{waits}: {:?}", begun.elapsed());
            told
        });
        assert_eq!(told.errors, [596], "{waits}");
        assert_eq!(tell(&mut owner, "ROLLBACK").errors, []);
    }
    let Value::Int(own) = one(&mut owner, "SELECT @@SPID") else { panic!("a number") };
    assert_eq!(tell(&mut owner, &format!("KILL {own}")).errors, [6104]);
}

#[test]
fn a_merge_that_meets_other_writers_runs_again_over_the_rows_as_they_are() {
    let server = server();
    let mut owner = session(&server);
    tell(&mut owner, "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v int NOT NULL)");
    tell(&mut owner, "INSERT dbo.t VALUES (1, 0), (2, 0)");
    let (sessions, rounds) = (6, 25);
    thread::scope(|scope| {
        for number in 0..sessions {
            let server = &server;
            scope.spawn(move || {
                let mut session = session(server);
                for _ in 0..rounds {
                    // Each adds 1 to the row of all, and keeps one of its own.
                    let merge = format!(
                        "MERGE dbo.t AS t USING (VALUES (1), ({own})) AS s (id) ON t.id = s.id \
                         WHEN MATCHED THEN UPDATE SET v = t.v + 1 \
                         WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 1);",
                        own = 10 + number
                    );
                    assert_eq!(tell(&mut session, &merge).errors, []);
                    let update = "UPDATE dbo.t SET v = v + 1 WHERE id = 2";
                    assert_eq!(tell(&mut session, update).errors, []);
                }
            });
        }
    });
    let total = i64::from(sessions * rounds);
    let of = |session: &mut Session, id: i64| {
        one(session, &format!("SELECT v FROM dbo.t WHERE id = {id}"))
    };
    assert_eq!(of(&mut owner, 1), Value::Int(total));
    assert_eq!(of(&mut owner, 2), Value::Int(total));
    for number in 0..i64::from(sessions) {
        assert_eq!(of(&mut owner, 10 + number), Value::Int(rounds.into()), "{number}");
    }
}

#[test]
fn no_update_of_many_sessions_is_lost() {
    let server = server();
    let mut owner = session(&server);
    tell(&mut owner, "EXEC sys.sp_cdc_enable_db");
    tell(&mut owner, "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v int NOT NULL)");
    tell(&mut owner, "EXEC sys.sp_cdc_enable_table N'dbo', N't', NULL");
    tell(&mut owner, "INSERT dbo.t VALUES (1, 0), (2, 0)");
    let (sessions, rounds) = (8, 25);
    thread::scope(|scope| {
        for _ in 0..sessions {
            scope.spawn(|| {
                let mut session = session(&server);
                for _ in 0..rounds {
                    let moved = "BEGIN TRAN; UPDATE dbo.t SET v = v + 1 WHERE id = 1; \
                                 UPDATE dbo.t SET v = v - 1 WHERE id = 2; COMMIT";
                    assert_eq!(tell(&mut session, moved).errors, []);
                    let sum = one(&mut session, "SELECT SUM(v) FROM dbo.t WITH (TABLOCKX)");
                    assert_eq!(sum, Value::Int(0));
                }
            });
        }
    });
    let total = i64::from(sessions * rounds);
    assert_eq!(one(&mut owner, "SELECT v FROM dbo.t WHERE id = 1"), Value::Int(total));
    tell(&mut owner, "EXEC fake.run_capture");
    let changes = one(&mut owner, "SELECT COUNT(*) FROM cdc.dbo_t_CT WHERE [__$operation] = 4");
    assert_eq!(changes, Value::Int(2 * total));
    let torn = "SELECT COUNT(*) FROM (SELECT [__$start_lsn] AS l FROM cdc.dbo_t_CT WHERE \
                [__$operation] = 4 GROUP BY [__$start_lsn] HAVING COUNT(*) <> 2) x";
    assert_eq!(one(&mut owner, torn), Value::Int(0));
}

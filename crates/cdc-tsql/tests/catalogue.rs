//! What connectors and drivers ask of the catalogue, over a session: every statement answers, with
//! the values that were committed.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::ops::ControlFlow;

use cdc_core::Timestamp;
use cdc_fake::{FakeServer, Value, VirtualClock, Zone};
use cdc_tsql::{
    Server, ServerSettings, Session,
    kind::Typed,
    talk::{Change, Conversation as _, Done, Message, Replies, ResultColumn},
};

/// What a batch gave: the rows of all its results, and its errors.
#[derive(Default)]
struct Heard {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    errors: Vec<(i32, String)>,
}

impl Replies for Heard {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        self.columns = columns.iter().map(|column| column.name.clone()).collect();
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value]) -> ControlFlow<()> {
        self.rows.push(row.to_vec());
        ControlFlow::Continue(())
    }

    fn done(&mut self, _: Done) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn message(&mut self, message: &Message) -> ControlFlow<()> {
        if message.class > 10 {
            self.errors.push((message.number, message.text.clone()));
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

struct Rig {
    server: Server,
    session: Session,
}

impl Rig {
    fn new() -> Self {
        let clock = VirtualClock::manual(Timestamp::from_micros(1_709_294_400_000_000));
        let fake = FakeServer::new(clock, Zone::Named(chrono_tz::America::Sao_Paulo));
        let server = Server::new(fake, ServerSettings { waits_move_clock: true });
        let session = server.owner_session("master").expect("opens");
        let mut rig = Self { server, session };
        for text in [
            "CREATE DATABASE shop",
            "USE shop",
            "EXEC sys.sp_cdc_enable_db",
            "CREATE TABLE dbo.orders (id int NOT NULL IDENTITY(1,1), name nvarchar(40) NULL, \
             amount decimal(10,2) NOT NULL CONSTRAINT df_amount DEFAULT (0), \
             CONSTRAINT pk_orders PRIMARY KEY (id))",
            "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', \
             @role_name = NULL, @supports_net_changes = 1",
            "INSERT INTO dbo.orders (name, amount) VALUES (N'one', 1.5), (N'two', 2)",
            "UPDATE dbo.orders SET amount = 3 WHERE id = 1",
            "DELETE FROM dbo.orders WHERE id = 2",
            "EXEC fake.run_capture",
        ] {
            rig.run(text);
        }
        rig
    }

    fn tell(session: &mut Session, text: &str) -> Heard {
        let mut heard = Heard::default();
        session.batch(text, &mut heard);
        heard
    }

    fn run(&mut self, text: &str) -> Heard {
        let heard = Self::tell(&mut self.session, text);
        assert_eq!(heard.errors, [], "{text}");
        heard
    }
}

fn text(text: &str) -> Value {
    Value::text(text)
}

#[test]
fn a_streaming_connector_finds_its_tables_and_its_changes() {
    let mut rig = Rig::new();
    for statement in [
        "SELECT @@VERSION",
        "IF @@TRANCOUNT > 0 COMMIT TRAN",
        "EXEC [shop].sys.sp_cdc_help_change_data_capture",
        "SELECT COUNT(*) FROM [shop].cdc.change_tables",
        "SELECT name FROM sys.databases WHERE name = N'shop'",
        "select min(start_lsn) from [shop].cdc.change_tables",
        "EXEC sp_tables '%', NULL, 'shop', '''TABLE'''",
        "SET LOCK_TIMEOUT 10000",
        "set transaction isolation level  repeatable read ",
        "SELECT TOP(0) * FROM [shop].[dbo].[orders] WITH (TABLOCKX)",
        "SELECT [shop].sys.fn_cdc_get_max_lsn()",
        "SELECT object_id, column_name FROM [shop].cdc.captured_columns ORDER BY object_id, column_id",
        "SELECT CAST(SERVERPROPERTY('EngineEdition') as INT)",
        "DECLARE @result TABLE (TABLE_QUALIFIER SYSNAME, TABLE_OWNER SYSNAME, TABLE_NAME SYSNAME, \
         COLUMN_NAME SYSNAME, DATA_TYPE SMALLINT, TYPE_NAME SYSNAME, PRECISION INT, LENGTH INT, \
         SCALE SMALLINT, RADIX SMALLINT, NULLABLE SMALLINT, REMARKS VARCHAR(254), \
         COLUMN_DEF NVARCHAR(4000), SQL_DATA_TYPE SMALLINT, SQL_DATETIME_SUB SMALLINT, \
         CHAR_OCTET_LENGTH INT, ORDINAL_POSITION INT, IS_NULLABLE VARCHAR(254), \
         SS_IS_SPARSE SMALLINT, SS_IS_COLUMN_SET SMALLINT, SS_IS_COMPUTED SMALLINT, \
         SS_IS_IDENTITY SMALLINT, SS_UDT_CATALOG_NAME NVARCHAR(128), \
         SS_UDT_SCHEMA_NAME NVARCHAR(128), SS_UDT_ASSEMBLY_TYPE_NAME NVARCHAR(max), \
         SS_XML_SCHEMACOLLECTION_CATALOG_NAME NVARCHAR(128), \
         SS_XML_SCHEMACOLLECTION_SCHEMA_NAME NVARCHAR(128), \
         SS_XML_SCHEMACOLLECTION_NAME NVARCHAR(128), SS_DATA_TYPE TINYINT); \
         INSERT INTO @result EXEC sp_columns_100 'orders', 'dbo', 'shop', '%', 0, 3; \
         SELECT TABLE_QUALIFIER AS TABLE_CAT, COLUMN_NAME, CAST(DATA_TYPE AS INT) FROM @result",
        "EXEC sp_pkeys 'orders', 'dbo', 'shop'",
        "SELECT SYSDATETIMEOFFSET()",
        "set transaction isolation level  read committed ",
        "SET LOCK_TIMEOUT -1",
        "EXEC sys.sp_cdc_help_jobs",
        "SELECT TOP 1 start_lsn from sys.dm_cdc_log_scan_sessions ORDER BY session_id DESC",
        "SELECT CASE WHEN dss.[status]=4 THEN 1 ELSE 0 END AS isRunning FROM \
         [shop].sys.dm_server_services dss WHERE dss.[servicename] LIKE N'SQL Server Agent (%'",
    ] {
        let heard = rig.run(statement);
        let quiet = ["IF", "SET", "set"].iter().any(|word| statement.starts_with(word))
            || statement.contains("TOP(0)");
        assert_eq!(heard.rows.is_empty(), quiet, "{statement}");
    }
    let tables = rig.run(
        "WITH ordered_change_tables AS (SELECT ROW_NUMBER() OVER (PARTITION BY \
         ct.source_object_id, ct.start_lsn ORDER BY ct.create_date DESC) AS ct_sequence, ct.* \
         FROM [shop].cdc.change_tables AS ct) SELECT OBJECT_SCHEMA_NAME(source_object_id, \
         DB_ID(N'shop')), OBJECT_NAME(source_object_id, DB_ID(N'shop')), capture_instance, \
         object_id, start_lsn FROM ordered_change_tables WHERE ct_sequence = 1",
    );
    assert_eq!(tables.rows.len(), 1);
    assert_eq!(tables.rows[0][..3], [text("dbo"), text("orders"), text("dbo_orders")]);
    let changes = rig.run(
        "DECLARE @to binary(10) = (SELECT MAX(start_lsn) FROM (SELECT TOP (500) start_lsn FROM \
         [shop].cdc.lsn_time_mapping WHERE tran_id <> 0x00 ORDER BY start_lsn) AS next_lsns); \
         SELECT cdc_data.[__$operation], [cdc_data].[id], cdc_data.[amount], \
         cdc_data.[__$update_mask], TODATETIMEOFFSET(ltm.tran_end_time, \
         DATEPART(TZOFFSET, SYSDATETIMEOFFSET())) FROM [shop].cdc.[dbo_orders_CT] AS cdc_data \
         LEFT JOIN [shop].cdc.lsn_time_mapping ltm ON ltm.start_lsn = cdc_data.[__$start_lsn] \
         WHERE ((cdc_data.[__$start_lsn] = 0x00 AND cdc_data.[__$seqval] = 0x00 AND \
         cdc_data.[__$operation] > 0) OR (cdc_data.[__$start_lsn] > 0x00)) AND \
         cdc_data.[__$start_lsn] <= @to ORDER BY cdc_data.[__$start_lsn], \
         cdc_data.[__$command_id], cdc_data.[__$seqval], cdc_data.[__$operation]",
    );
    let shown: Vec<_> =
        changes.rows.iter().map(|row| (row[0].clone(), row[1].clone(), row[2].clone())).collect();
    let expected = [(2, 1, 150), (2, 2, 200), (3, 1, 150), (4, 1, 300), (1, 2, 200)];
    let expected = expected.map(|(operation, id, amount): (i32, i32, i128)| {
        (operation.into(), id.into(), Value::decimal(amount))
    });
    assert_eq!(shown, expected);
    assert_eq!(changes.rows[3][3], Value::bytes(&[4]));
    let offset = match &changes.rows[0][4] {
        Value::DateTimeOffset { offset_minutes, utc } => {
            assert_eq!(*utc, 17_092_944_000_000_000);
            *offset_minutes
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(offset, -180);
}

#[test]
fn a_reader_with_the_least_rights_reads_what_it_was_granted() {
    let mut rig = Rig::new();
    for text in [
        "CREATE LOGIN reader WITH PASSWORD = 'Secret-1'",
        "CREATE USER reader FOR LOGIN reader",
        "GRANT SELECT ON dbo.orders TO reader",
        "GRANT SELECT ON cdc.dbo_orders_CT TO reader",
    ] {
        rig.run(text);
    }
    let login = cdc_tsql::talk::LoginRequest {
        user: "reader".into(),
        password: "Secret-1".into(),
        database: "shop".into(),
        ..cdc_tsql::talk::LoginRequest::default()
    };
    use cdc_tsql::talk::Service as _;
    let mut session = rig.server.log_in(&login).expect("known");
    let mut ask = |text: &str| {
        let mut heard = Heard::default();
        session.batch(text, &mut heard);
        heard
    };
    for statement in [
        "SELECT CONVERT(varchar(22), sys.fn_cdc_get_max_lsn(), 1)",
        "SELECT CONVERT(varchar(22), sys.fn_cdc_get_min_lsn(N'dbo_orders'), 1)",
        "SELECT CONVERT(varchar(22), sys.fn_cdc_increment_lsn(CONVERT(binary(10), \
         '0x00000000000000000001', 1)), 1)",
        "EXEC sys.sp_cdc_help_change_data_capture",
        "EXEC sys.sp_cdc_help_change_data_capture @source_schema = N'dbo', @source_name = N'orders'",
        "EXEC sys.sp_cdc_get_captured_columns @capture_instance = N'dbo_orders'",
        "SELECT name, column_id, is_computed FROM sys.columns WHERE object_id = \
         OBJECT_ID(QUOTENAME(N'dbo') + N'.' + QUOTENAME(N'orders'))",
        "SELECT TOP (1) start_lsn, tran_end_time FROM cdc.lsn_time_mapping ORDER BY start_lsn",
        "SELECT HAS_PERMS_BY_NAME(N'cdc.dbo_orders_CT', N'OBJECT', N'SELECT')",
        "SELECT wait_time_ms FROM sys.dm_exec_session_wait_stats WHERE session_id = @@SPID",
        "SELECT CURRENT_TIMEZONE_ID(), SERVERPROPERTY(N'ProductMajorVersion')",
        "EXEC sys.sp_spaceused @objname = N'[dbo].[orders]'",
        "SELECT c.*, m.tran_end_time FROM cdc.[dbo_orders_CT] AS c JOIN cdc.lsn_time_mapping AS m \
         ON m.start_lsn = c.[__$start_lsn]",
        "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_orders(sys.fn_cdc_get_min_lsn(\
         N'dbo_orders'), sys.fn_cdc_get_max_lsn(), N'all') ORDER BY __$start_lsn, __$seqval",
        "SELECT * FROM cdc.fn_cdc_get_net_changes_dbo_orders(sys.fn_cdc_get_min_lsn(\
         N'dbo_orders'), sys.fn_cdc_get_max_lsn(), N'all')",
    ] {
        let heard = ask(statement);
        assert_eq!(heard.errors, [], "{statement}");
        assert!(!heard.rows.is_empty(), "{statement}");
    }
    for (statement, number) in [
        ("SELECT * FROM cdc.change_tables", 229),
        ("SELECT * FROM cdc.captured_columns", 229),
        ("EXEC sys.sp_cdc_help_jobs", 22_904),
        ("EXEC sys.sp_cdc_get_captured_columns @capture_instance = N'nothing'", 22_981),
        ("DELETE FROM dbo.orders", 229),
        ("EXEC fake.advance_clock 1", 229),
        (
            "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_orders(0x00000000000000000001, \
             sys.fn_cdc_get_max_lsn(), N'all')",
            313,
        ),
    ] {
        let numbers: Vec<_> = ask(statement).errors.into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [number], "{statement}");
    }
    let heard = ask("SELECT COUNT(*) FROM sys.databases WHERE name = N'shop'");
    assert_eq!(heard.rows, [[Value::Int(1)]]);
}

#[test]
fn a_primary_key_is_found_by_the_joins_that_tools_make() {
    let mut rig = Rig::new();
    let heard = rig.run(
        "SELECT STRING_AGG(c.name, N',') WITHIN GROUP (ORDER BY ic.key_ordinal) FROM sys.indexes \
         AS i JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = \
         i.index_id JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = \
         ic.column_id WHERE i.is_primary_key = 1 AND i.object_id = OBJECT_ID(N'dbo.orders')",
    );
    assert_eq!(heard.rows, [[text("id")]]);
    let heard = rig.run(
        "SELECT c.COLUMN_NAME, c.DATA_TYPE, c.NUMERIC_PRECISION, c.NUMERIC_SCALE, c.COLUMN_DEFAULT \
         FROM INFORMATION_SCHEMA.COLUMNS AS c WHERE c.TABLE_NAME = N'orders' ORDER BY \
         c.ORDINAL_POSITION",
    );
    assert_eq!(heard.rows.len(), 3);
    assert_eq!(heard.rows[2][..4], [text("amount"), text("decimal"), 10.into(), 2.into()]);
    let heard = rig.run("SELECT database_guid, family_guid FROM sys.database_recovery_status WHERE database_id = DB_ID()");
    assert!(matches!(heard.rows[0][0], Value::Uuid(_)));
    assert_ne!(heard.rows[0][0], heard.rows[0][1]);
}

#[test]
fn the_clock_moves_and_time_passes_for_capture_and_cleanup_by_control_procedures() {
    let mut rig = Rig::new();
    rig.run("EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 60");
    rig.run("EXEC fake.advance_clock @seconds = 7200");
    rig.run("INSERT INTO dbo.orders (name) VALUES (N'late')");
    rig.run("EXEC fake.run_capture; EXEC fake.run_cleanup");
    let heard = rig.run("SELECT [__$operation], amount FROM cdc.dbo_orders_CT");
    assert_eq!(heard.rows, [[Value::Int(2), Value::decimal(0)]]);
    let heard = rig.run(
        "SELECT CASE WHEN sys.fn_cdc_get_min_lsn(N'dbo_orders') > start_lsn THEN 1 ELSE 0 END \
         FROM cdc.change_tables",
    );
    assert_eq!(heard.rows, [[Value::Int(1)]]);
}

#[test]
fn a_transaction_makes_a_table_enables_it_and_writes_it_or_leaves_nothing() {
    let mut rig = Rig::new();
    let make = "BEGIN TRAN; CREATE TABLE dbo.late (k int PRIMARY KEY, v int); EXEC \
                sys.sp_cdc_enable_table 'dbo', 'late', NULL; INSERT INTO dbo.late VALUES (1, 1);";
    rig.run(&format!("{make} ROLLBACK"));
    let heard = rig.run("SELECT OBJECT_ID(N'dbo.late'), (SELECT COUNT(*) FROM cdc.change_tables)");
    assert_eq!(heard.rows, [[Value::Null, Value::Int(1)]]);
    rig.run(&format!("{make} COMMIT; EXEC fake.run_capture"));
    let heard = rig.run("SELECT [__$operation], k FROM cdc.dbo_late_CT");
    assert_eq!(heard.rows, [[Value::Int(2), Value::Int(1)]]);
}

#[test]
fn a_snapshot_transaction_sees_change_tables_as_they_were_at_its_first_read() {
    let mut rig = Rig::new();
    let count = "SELECT COUNT(*) FROM cdc.dbo_orders_CT";
    rig.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT");
    let heard = Rig::tell(&mut rig.session, count);
    assert_eq!(heard.errors.first().map(|(number, _)| *number), Some(3952));
    rig.run("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON");
    rig.run("BEGIN TRAN");
    assert_eq!(rig.run(count).rows, [[Value::Int(5)]]);
    let mut other = rig.server.owner_session("shop").expect("opens");
    let write = "INSERT INTO dbo.orders (name) VALUES (N'late'); EXEC fake.run_capture";
    assert_eq!(Rig::tell(&mut other, write).errors, []);
    assert_eq!(rig.run(count).rows, [[Value::Int(5)]]);
    assert_eq!(rig.run("SELECT COUNT(*) FROM dbo.orders").rows, [[Value::Int(1)]]);
    let latest = "SELECT CASE WHEN (SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping) = \
                  sys.fn_cdc_get_max_lsn() THEN (SELECT COUNT(*) FROM cdc.lsn_time_mapping) END";
    assert_eq!(rig.run(latest).rows, [[Value::Int(4)]]);
    rig.run("COMMIT");
    assert_eq!(rig.run(count).rows, [[Value::Int(6)]]);
    assert_eq!(rig.run(latest).rows, [[Value::Int(5)]]);
}

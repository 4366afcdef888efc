//! Change data capture through T-SQL: from the first CREATE to the change rows, and the model's
//! own source beside it.

use cdc_core::TableName;
use cdc_fake::{CaptureSchedule, Value};

use super::rig::Rig;

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.run("EXEC sys.sp_cdc_enable_db");
    rig.run("CREATE TABLE dbo.orders (id int PRIMARY KEY, v varchar(20) NULL)");
    rig.run(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', \
         @role_name = NULL, @supports_net_changes = 1",
    );
    rig.server.fake().database("shop").set_capture(CaptureSchedule::AtCommit);
    rig
}

const CHANGES: &str = "SELECT CAST([__$operation] AS int), id, v FROM cdc.dbo_orders_CT \
                       ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]";

#[test]
fn statements_leave_change_rows_with_their_operations() {
    let mut rig = rig();
    rig.run("INSERT dbo.orders VALUES (1, 'a')");
    rig.run("BEGIN TRAN UPDATE dbo.orders SET v = 'b' DELETE dbo.orders COMMIT");
    rig.run("BEGIN TRAN INSERT dbo.orders VALUES (2, 'x') ROLLBACK");
    assert_eq!(
        rig.rows(CHANGES),
        [
            [2.into(), 1.into(), "a".into()],
            [3.into(), 1.into(), "a".into()],
            [4.into(), 1.into(), "b".into()],
            [Value::Int(1), 1.into(), "b".into()],
        ]
    );
}

#[test]
fn changes_are_read_by_the_functions_between_two_positions() {
    let mut rig = rig();
    rig.run("INSERT dbo.orders VALUES (1, 'a'), (2, 'b') DELETE dbo.orders WHERE id = 2");
    let text = "DECLARE @from binary(10) = sys.fn_cdc_get_min_lsn('dbo_orders'), \
                @to binary(10) = sys.fn_cdc_get_max_lsn()
        SELECT CAST([__$operation] AS int) FROM cdc.fn_cdc_get_all_changes_dbo_orders(@from, @to, N'all')";
    assert_eq!(rig.ints(text), [2, 2, 1]);
    let text = text.replace("get_all_changes", "get_net_changes");
    assert_eq!(rig.ints(&text), [2]);
    let bad = "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_orders(0x00, sys.fn_cdc_get_max_lsn(), N'all')";
    assert_eq!(rig.error(bad), 313);
}

#[test]
fn what_statements_wrote_the_models_own_handle_sees_and_the_reverse() {
    let mut rig = rig();
    rig.run("INSERT dbo.orders VALUES (1, 'a')");
    let database = rig.server.fake().database("shop");
    let table = TableName::new("dbo", "orders");
    assert_eq!(database.rows(&table).expect("there"), [[Value::Int(1), "a".into()]]);
    database.transact(|tx| tx.insert(&table, vec![2.into(), "z".into()])).expect("fits");
    assert_eq!(rig.ints("SELECT id FROM dbo.orders ORDER BY id"), [1, 2]);
    assert_eq!(rig.rows(CHANGES).len(), 2);
}

#[test]
fn a_captured_table_refuses_what_the_server_refuses() {
    let mut rig = rig();
    assert_eq!(rig.error("TRUNCATE TABLE dbo.orders"), 4711);
    assert_eq!(rig.error("EXEC sys.sp_cdc_enable_table 'dbo', 'nothing', NULL"), 22_931);
}

#[test]
fn a_schema_change_is_in_the_history_as_it_was_written() {
    let mut rig = rig();
    rig.run("ALTER TABLE dbo.orders\n  ADD extra int NULL");
    let history = rig.rows("EXEC sys.sp_cdc_get_ddl_history @capture_instance = 'dbo_orders'");
    let shown = format!("{history:?}");
    assert!(shown.contains("ALTER TABLE dbo.orders\\n  ADD extra int NULL"), "{shown}");
}

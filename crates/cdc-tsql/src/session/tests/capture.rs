//! Change data capture through T-SQL: from the first CREATE to the change rows, and the model's
//! own source beside it.

use cdc_core::{
    ClosedRange, InstanceName, TableName, TableRef,
    change::ChangeColumns,
    port::{Bound, Catalog, ChangeReader, ChangeRequest, PositionLog},
};
use cdc_fake::{CaptureSchedule, FakeSource, Login, Value};
use futures_executor::block_on;
use futures_util::TryStreamExt;

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

/// The operations that the source of the in-process model reads, from the least position on.
async fn operations(source: &FakeSource) -> Vec<i32> {
    let instance = InstanceName::new("dbo_orders");
    let listed = source.instances(&TableRef::Instance(instance.clone())).await.expect("listed");
    let low = source.low(std::slice::from_ref(&instance)).await.expect("answers")[0];
    let (Bound::At(low), Bound::At(high)) = (low, source.high().await.expect("answers")) else {
        panic!("capture has written nothing")
    };
    let request = ChangeRequest {
        columns: listed[0].columns.clone(),
        instance,
        range: ClosedRange::new(low, high).expect("not inverted"),
        time_before: None,
        batch_rows: 100,
    };
    let batches: Vec<_> =
        source.changes(request).await.expect("opens").try_collect().await.expect("reads");
    let codes = |batch| ChangeColumns::of(batch).expect("changes").operations.values().to_vec();
    batches.iter().flat_map(codes).collect()
}

#[test]
fn the_models_own_source_reads_what_statements_wrote_and_capture_processed() {
    let mut rig = rig();
    let database = rig.server.fake().database("shop");
    let source = FakeSource::new(&database, Login::Owner).expect("a known zone");
    rig.run("INSERT dbo.orders VALUES (1, 'a') UPDATE dbo.orders SET v = 'b'");
    rig.run("BEGIN TRAN DELETE dbo.orders ROLLBACK");
    assert_eq!(block_on(operations(&source)), [2, 3, 4]);
    database.set_capture(CaptureSchedule::Manual);
    rig.run("DELETE dbo.orders");
    assert_eq!(block_on(operations(&source)), [2, 3, 4], "capture has not been there");
    rig.run("EXEC fake.run_capture");
    assert_eq!(block_on(operations(&source)), [2, 3, 4, 1]);
}

#[test]
fn commit_times_are_on_the_servers_clock_which_statements_move() {
    let mut rig = rig();
    rig.run("EXEC fake.advance_clock @seconds = 90 INSERT dbo.orders VALUES (1, 'a')");
    let text = "SELECT CONVERT(varchar(19), MAX(tran_end_time), 126) FROM cdc.lsn_time_mapping";
    assert_eq!(rig.one(text), "2024-03-01T12:01:30".into());
    let position = "SELECT CASE WHEN sys.fn_cdc_map_time_to_lsn('largest less than or equal', \
                    '2024-03-01T12:01:31') = sys.fn_cdc_get_max_lsn() THEN 1 ELSE 0 END";
    assert_eq!(rig.one(position), 1.into());
}

#[test]
fn cleanup_moves_the_low_mark_and_a_restore_forks_the_log() {
    let mut rig = rig();
    rig.run("INSERT dbo.orders VALUES (1, 'a')");
    rig.run("EXEC fake.backup 'before' INSERT dbo.orders VALUES (2, 'b')");
    assert_eq!(rig.rows(CHANGES).len(), 2);
    rig.run("EXEC fake.restore 'before'");
    assert_eq!(rig.ints("SELECT id FROM dbo.orders"), [1]);
    assert_eq!(rig.rows(CHANGES).len(), 1);
    rig.run("EXEC fake.advance_clock @seconds = 400000 INSERT dbo.orders VALUES (3, 'c')");
    rig.run("EXEC fake.run_cleanup");
    assert_eq!(rig.rows(CHANGES).len(), 1, "what is older than three days is gone");
}

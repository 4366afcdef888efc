//! Schema changes of captured tables.

use cdc_core::{
    Length, SqlType, TableRef,
    port::{Catalog, PositionLog, RowRequest, TableReader},
};
use cdc_fake::{CaptureSchedule, ColumnDefinition, EnableOptions, Value};
use futures_util::TryStreamExt;

use arrow_array::Array;

use crate::rig::{Rig, range, row, table};

#[tokio::test]
async fn an_added_column_leaves_the_instance_as_it_is_and_its_updates_leave_no_row() {
    let (rig, instance) = Rig::captured();
    rig.insert(1, 1);
    rig.database
        .add_column(&rig.table, ColumnDefinition::nullable("extra", SqlType::Int), None)
        .expect("new");
    rig.transact(|tx| tx.update(&rig.table, &[1.into()], &[("extra", 5.into())]).map(|_| ()));
    assert_eq!(rig.operations(&instance), [2]);
    assert_eq!(rig.database.instance(&instance).expect("known").columns.len(), 3);
    let history = rig.database.ddl_history(&instance).expect("known");
    assert!(!history[0].captured_column_changed);
    assert!(history[0].statement.contains("ADD [extra] int NULL"));
}

#[tokio::test]
async fn a_dropped_column_stays_captured_and_reads_null_afterwards() {
    let (rig, instance) = Rig::captured();
    rig.insert(1, 1);
    rig.database.drop_column(&rig.table, "v").expect("no key");
    rig.transact(|tx| tx.insert(&rig.table, vec![2.into(), Value::Null]));
    let rows = rig.database.change_rows(&instance).expect("known");
    assert_eq!(rows[0].values[1], Value::Int(1));
    assert_eq!(rows[1].values, [2.into(), Value::Null, Value::Null]);
    assert_eq!(rig.database.instance(&instance).expect("known").columns.len(), 3);
}

#[tokio::test]
async fn a_column_dropped_and_added_again_has_a_new_id() {
    let (rig, instance) = Rig::captured();
    rig.database.drop_column(&rig.table, "v").expect("no key");
    let again = ColumnDefinition::nullable("v", SqlType::Int);
    rig.database.add_column(&rig.table, again, None).expect("free name");
    rig.transact(|tx| tx.insert(&rig.table, vec![1.into(), Value::Null, 9.into()]));
    let old = &rig.database.instance(&instance).expect("known").columns[1];
    let newer = rig.enable("newer");
    let columns = rig.database.instance(&newer).expect("known").columns;
    let new = columns.iter().find(|column| column.name == "v").expect("captured");
    assert_ne!(old.id, new.id);
    // The old instance's column is not the new one of its name; nor is a reader's.
    let rows = rig.database.change_rows(&instance).expect("known");
    assert_eq!(rows[0].values[1], Value::Null);
    let request = RowRequest {
        table: rig.table.clone(),
        columns: vec![old.clone()],
        key: Vec::new(),
        range: cdc_core::port::KeyRange::default(),
        batch_rows: 10,
    };
    let stream = rig.source.rows(request).await.expect("opens");
    let batches: Vec<_> = stream.try_collect().await.expect("read");
    assert_eq!(batches[0].column(0).null_count(), 1);
}

#[tokio::test]
async fn an_altered_type_changes_the_captured_type_and_converts_change_rows() {
    let rig = Rig::new();
    let instance = rig.enable("dbo_t");
    rig.insert(1, 5);
    rig.database.set_capture(CaptureSchedule::Manual);
    let text = SqlType::VarChar(Length::Limited(20));
    rig.database.alter_column(&rig.table, "v", text.clone()).expect("converts");
    let captured = || rig.database.instance(&instance).expect("known").columns[1].clone();
    assert_eq!(captured().sql_type, SqlType::Int, "capture has not met it");
    rig.database.capture();
    assert_eq!(captured().sql_type, text);
    let rows = rig.database.change_rows(&instance).expect("known");
    assert_eq!(rows[0].values[1], Value::text("5"));
    assert!(rig.database.ddl_history(&instance).expect("known")[0].captured_column_changed);
}

#[tokio::test]
async fn renaming_a_captured_column_truncating_and_altering_the_key_are_refused() {
    let (rig, _) = Rig::captured();
    let database = &rig.database;
    let refused = [
        database.rename_column(&rig.table, "v", "w"),
        database.truncate_table(&rig.table),
        database.alter_column(&rig.table, "id", SqlType::BigInt),
        database.drop_column(&rig.table, "id"),
    ];
    let numbers = refused.map(|outcome| outcome.expect_err("refused").number);
    assert_eq!(numbers, [4928, 4711, 4928, 4922]);
}

#[tokio::test]
async fn renaming_the_table_or_an_uncaptured_column_is_allowed_and_unrecorded() {
    let rig = Rig::new();
    let options = EnableOptions::named("dbo_t").columns(&["id", "v"]);
    let instance = rig.database.enable_table(&rig.table, options).expect("allowed");
    rig.database.rename_column(&rig.table, "note", "remark").expect("not captured");
    rig.database.rename_table(&rig.table, "renamed").expect("allowed");
    assert_eq!(rig.database.ddl_history(&instance), Ok(vec![]));
    let listed = rig.source.instances(&TableRef::Instance(instance)).await;
    assert_eq!(listed.expect("listed")[0].table, table("renamed"));
}

#[tokio::test]
async fn a_schema_change_has_its_own_position_that_is_no_commit_and_whole_minutes() {
    let (rig, instance) = Rig::captured();
    let before = rig.insert(1, 1);
    rig.advance(90);
    rig.database.drop_column(&rig.table, "note").expect("no key");
    let after = rig.transact(|tx| tx.insert(&rig.table, vec![2.into(), 2.into()]));
    let changes =
        rig.source.schema_changes(&instance, range(before.lsn, after.lsn)).await.expect("answers");
    assert_eq!(changes.len(), 1);
    assert!(changes[0].at > before.lsn.into() && changes[0].at < after.lsn.into());
    let time = rig.source.commit_time(changes[0].at).await;
    assert_eq!(time.expect("answers"), None);
    assert_eq!(changes[0].time, Some(before.time), "the last commit's");
    let entry = &rig.database.ddl_history(&instance).expect("known")[0];
    assert_eq!(entry.time.as_ticks() % (60 * 300), 0);
    let nothing = rig.source.schema_changes(&instance, range(after.lsn, after.lsn)).await;
    assert_eq!(nothing.expect("answers"), []);
}

#[tokio::test]
async fn a_schema_change_is_visible_once_the_high_position_has_passed_it() {
    let rig = Rig::new();
    let instance = rig.enable("dbo_t");
    rig.database.set_capture(CaptureSchedule::Manual);
    rig.database.drop_column(&rig.table, "note").expect("no key");
    rig.transact(|tx| tx.insert(&rig.table, vec![1.into(), 1.into()]));
    while rig.database.capture_next(1) > 0 {
        let high = rig.high().await.expect("the enable");
        let history = rig.database.ddl_history(&instance).expect("known");
        let passed = rig.database.pending_records() < 2;
        assert_eq!(history.len(), usize::from(passed));
        assert!(history.is_empty() || passed, "high is {high}");
    }
}

#[tokio::test]
async fn an_index_over_nullable_or_uncaptured_columns_is_refused() {
    let rig = Rig::new();
    for options in
        [EnableOptions::named("a").index(&["v"]), EnableOptions::named("b").columns(&["v", "note"])]
    {
        let error = rig.database.enable_table(&rig.table, options);
        assert_eq!(error.expect_err("refused").number, 22942);
    }
}

#[tokio::test]
async fn a_schema_statement_waits_for_open_transactions_that_wrote_the_table() {
    let (rig, _) = Rig::captured();
    let mut open = rig.database.begin();
    open.insert(&rig.table, row(1, 1)).expect("new key");
    let blocked = rig.database.drop_column(&rig.table, "note");
    assert_eq!(blocked.expect_err("blocked").number, 1222);
    open.rollback();
    assert_eq!(rig.database.drop_column(&rig.table, "note"), Ok(()));
}

//! Tests of reads at each isolation level.

use std::{sync::mpsc, thread, time::Duration};

use cdc_core::{SqlType, Timestamp};

use super::*;
use crate::{
    FakeServer, SqlError, TableDefinition, Transaction, VirtualClock, Zone, sql_error::number,
};

fn rig(rows: i64) -> (FakeDatabase, TableName) {
    let clock = VirtualClock::manual(Timestamp::from_micros(0));
    let database = FakeServer::new(clock, Zone::UTC).database("shop");
    let table = TableName::new("dbo", "t");
    let definition = TableDefinition::new("t").column("id", SqlType::Int);
    let definition = definition.column("v", SqlType::Int).primary_key(&["id"]);
    database.create_table(definition).expect("new");
    let rows = (0..rows).map(|id| vec![id.into(), 0.into()]).collect();
    database.transact(|tx| tx.insert_many(&table, rows).map(|_| ())).expect("free");
    (database, table)
}

fn at(isolation: Isolation) -> ReadOptions {
    ReadOptions { isolation, waiting: Waiting::refuse(), ..ReadOptions::default() }
}

fn within(transaction: &Transaction, isolation: Isolation) -> ReadOptions {
    ReadOptions { transaction: Some(transaction.handle()), ..at(isolation) }
}

/// The second column of the rows that a read sees.
fn read(database: &FakeDatabase, table: &TableName, options: ReadOptions) -> SqlResult<Vec<i64>> {
    let rows = database.read_table(table, &KeyBounds::default(), options)?;
    rows.map(|row| Ok(row?.1[1].as_int().expect("a number"))).collect()
}

fn set(transaction: &mut Transaction, table: &TableName, id: i64, to: i64) {
    transaction.update(table, &[id.into()], &[("v", to.into())]).expect("free");
}

#[test]
fn each_level_sees_what_it_should_of_a_writer() {
    let (database, table) = rig(3);
    let mut writer = database.begin();
    set(&mut writer, &table, 1, 9);
    writer.insert(&table, vec![7.into(), 7.into()]).expect("free");
    writer.delete(&table, &[0.into()]).expect("free");
    let uncommitted = read(&database, &table, at(Isolation::ReadUncommitted));
    assert_eq!(uncommitted.expect("never waits"), [9, 0, 7]);
    let held = read(&database, &table, at(Isolation::ReadCommitted)).expect_err("held");
    assert_eq!(held.number, number::LOCK_TIMEOUT);
    let past = ReadOptions { skip_held: true, ..at(Isolation::ReadCommitted) };
    assert_eq!(read(&database, &table, past).expect("skips"), [0]);
    let own = read(&database, &table, within(&writer, Isolation::ReadCommitted));
    assert_eq!(own.expect("its own"), [9, 0, 7]);
    database.set_options(|options| options.read_committed_snapshot = true);
    let versions = read(&database, &table, at(Isolation::ReadCommitted));
    assert_eq!(versions.expect("last committed"), [0, 0, 0]);
    let locking = ReadOptions { locking: true, ..at(Isolation::ReadCommitted) };
    assert_eq!(read(&database, &table, locking).expect_err("held").number, 1222);
    writer.rollback();
    assert_eq!(read(&database, &table, at(Isolation::ReadUncommitted)).expect("free"), [0, 0, 0]);
}

#[test]
fn a_snapshot_stays_where_its_first_read_was() {
    let (database, table) = rig(3);
    let reader = database.begin_at(Isolation::Snapshot, Waiting::refuse());
    let snapshot = || read(&database, &table, within(&reader, Isolation::Snapshot));
    assert_eq!(snapshot().expect_err("not allowed").number, number::SNAPSHOT_NOT_ALLOWED);
    database.set_options(|options| options.allow_snapshot_isolation = true);
    let write = |id: i64, to: i64| {
        database
            .transact(|tx| {
                set(tx, &table, id, to);
                Ok(())
            })
            .expect("free");
    };
    write(0, 1);
    assert_eq!(snapshot().expect("allowed"), [1, 0, 0]);
    write(1, 5);
    write(1, 6);
    database.transact(|tx| tx.delete(&table, &[2.into()]).map(|_| ())).expect("free");
    database.transact(|tx| tx.insert(&table, vec![3.into(), 3.into()])).expect("free");
    assert_eq!(snapshot().expect("allowed"), [1, 0, 0]);
    assert_eq!(read(&database, &table, at(Isolation::Snapshot)).expect("allowed"), [1, 6, 3]);
    drop(reader);
    let state = database.look();
    let kept = state.tables.values().any(|table| !table.history.is_empty());
    assert!(!kept && state.snapshots.is_empty(), "versions outlived their last reader");
}

#[test]
fn a_row_that_changed_behind_a_snapshot_ends_its_writer() {
    let (database, table) = rig(2);
    database.set_options(|options| options.allow_snapshot_isolation = true);
    let mut late = database.begin_at(Isolation::Snapshot, Waiting::refuse());
    let options = within(&late, Isolation::Snapshot);
    let rows = database.read_table(&table, &KeyBounds::default(), options).expect("allowed");
    let (place, _) = rows.map(|row| row.expect("readable")).next().expect("a row");
    database
        .transact(|tx| {
            set(tx, &table, 0, 5);
            Ok(())
        })
        .expect("free");
    let request = crate::UpdateRequest {
        columns: vec!["v".into()],
        rows: vec![(place, vec![Some(8.into())])],
        as_pairs: false,
    };
    let error = late.update_rows(&table, &request).expect_err("conflict");
    assert_eq!(error.number, number::SNAPSHOT_CONFLICT);
    assert!(!late.is_open());
}

#[test]
fn a_repeatable_read_holds_its_rows_and_a_serializable_one_its_table() {
    let (database, table) = rig(2);
    let reader = database.begin_at(Isolation::RepeatableRead, Waiting::refuse());
    let options = within(&reader, Isolation::RepeatableRead);
    assert_eq!(read(&database, &table, options).expect("free"), [0, 0]);
    let mut writer = database.begin();
    let update = writer.update(&table, &[0.into()], &[("v", 1.into())]);
    assert_eq!(update.expect_err("kept").number, 1222);
    writer.insert(&table, vec![9.into(), 9.into()]).expect("a phantom");
    writer.rollback();
    drop(reader);
    let reader = database.begin_at(Isolation::Serializable, Waiting::refuse());
    let options = within(&reader, Isolation::Serializable);
    assert_eq!(read(&database, &table, options).expect("free"), [0, 0]);
    let mut writer = database.begin();
    let insert = writer.insert(&table, vec![9.into(), 9.into()]);
    assert_eq!(insert.expect_err("no phantom").number, 1222);
}

#[test]
fn a_reader_waits_until_the_writer_is_done_or_its_time_is_up() {
    let (database, table) = rig(1);
    let mut writer = database.begin();
    set(&mut writer, &table, 0, 4);
    let (told, heard) = mpsc::sync_channel(2);
    let waiting = |limit| {
        let (database, table, told) = (database.clone(), table.clone(), told.clone());
        let options =
            ReadOptions { waiting: Waiting::limited(limit), ..at(Isolation::ReadCommitted) };
        #[allow(clippy::disallowed_methods, reason = "the test is about two threads")]
        thread::spawn(move || told.send(read(&database, &table, options)))
    };
    let limited = waiting(Some(Duration::from_secs(10)));
    // Its time is up by the server's clock, whenever it began to wait.
    let error = loop {
        database.clock().advance(Duration::from_secs(11));
        if let Ok(result) = heard.recv_timeout(Duration::from_millis(5)) {
            break result.expect_err("held");
        }
    };
    assert_eq!(error, SqlError::lock_timeout());
    limited.join().expect("ended").expect("heard");
    let patient = waiting(None);
    assert!(heard.recv_timeout(Duration::from_millis(20)).is_err(), "still waits");
    writer.commit().expect("open");
    let seen = heard.recv_timeout(Duration::from_secs(10)).expect("woken");
    assert_eq!(seen.expect("free"), [4]);
    patient.join().expect("ended").expect("heard");
}

#[test]
fn bounds_seek_on_leading_key_columns_and_chunks_join_seamlessly() {
    let (database, table) = rig(3000);
    let count = |from: Option<(i64, bool)>, to: Option<(i64, bool)>| {
        let bound = |bound: Option<(i64, bool)>| bound.map(|(id, with)| (vec![id.into()], with));
        let bounds = KeyBounds { from: bound(from), to: bound(to) };
        database.read_table(&table, &bounds, ReadOptions::default()).expect("there").count()
    };
    assert_eq!(count(None, None), 3000);
    assert_eq!(count(Some((10, true)), Some((20, true))), 11);
    assert_eq!(count(Some((10, false)), Some((20, false))), 9);
    assert_eq!(count(Some((20, true)), Some((10, true))), 0);
    assert_eq!(count(Some((2999, false)), None), 0);
}

#[test]
fn own_rows_stand_among_committed_ones_over_many_chunks() {
    let (database, table) = rig(0);
    let insert = |tx: &mut Transaction, ids: Vec<i64>| {
        let rows = ids.into_iter().map(|id| vec![id.into(), id.into()]).collect();
        tx.insert_many(&table, rows).expect("free");
    };
    database
        .transact(|tx| {
            insert(tx, (0..6000).filter(|id| id % 2 == 0).collect());
            Ok(())
        })
        .expect("free");
    let mut writer = database.begin();
    insert(&mut writer, (0..6000).filter(|id| id % 2 == 1).collect());
    writer.delete_where(&table, |row| row.int("id") % 3 == 0).expect("free");
    let seen = read(&database, &table, within(&writer, Isolation::ReadCommitted)).expect("own");
    let expected: Vec<i64> = (0..6000).filter(|id| id % 3 != 0).collect();
    assert_eq!(seen, expected);
}

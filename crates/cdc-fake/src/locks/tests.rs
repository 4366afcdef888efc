//! Tests of locks, waits and deadlocks.

use std::{sync::mpsc, thread, time::Duration};

use cdc_core::{SqlType, TableName};

use crate::{
    FakeDatabase, FakeServer, Isolation, TableDefinition, TableLock, VirtualClock, Waiting, Zone,
    sql_error::number,
};

fn rig() -> (FakeDatabase, TableName) {
    let clock = VirtualClock::manual(cdc_core::Timestamp::from_micros(0));
    let database = FakeServer::new(clock, Zone::UTC).database("shop");
    let table = TableName::new("dbo", "t");
    let definition = TableDefinition::new("t").column("id", SqlType::Int);
    let definition = definition.column("v", SqlType::Int).primary_key(&["id"]);
    database.create_table(definition).expect("new");
    let rows = (0..2).map(|id| vec![id.into(), 0.into()]).collect();
    database.transact(|tx| tx.insert_many(&table, rows).map(|_| ())).expect("free");
    (database, table)
}

#[test]
fn of_two_that_wait_for_each_other_the_younger_is_the_victim() {
    let (database, table) = rig();
    let patient = || database.begin_at(Isolation::ReadCommitted, Waiting::forever());
    let (mut old, mut young) = (patient(), patient());
    old.update(&table, &[0.into()], &[("v", 1.into())]).expect("free");
    young.update(&table, &[1.into()], &[("v", 2.into())]).expect("free");
    let (told, heard) = mpsc::sync_channel(1);
    let there = table.clone();
    #[allow(clippy::disallowed_methods, reason = "the test is about two threads")]
    let waiting = thread::spawn(move || {
        let done = old.update(&there, &[1.into()], &[("v", 1.into())]);
        told.send(done).expect("heard");
        old.commit().expect("open")
    });
    assert!(heard.recv_timeout(Duration::from_millis(30)).is_err(), "waits for the younger");
    let error = young.update(&table, &[0.into()], &[("v", 2.into())]).expect_err("a circle");
    assert_eq!(error.number, number::DEADLOCK);
    assert!(!young.is_open());
    let done = heard.recv_timeout(Duration::from_secs(10)).expect("woken");
    assert_eq!(done.expect("free"), 1);
    waiting.join().expect("ended");
    let rows = database.rows(&table).expect("there");
    assert!(rows.iter().all(|row| row[1] == 1.into()), "the victim left nothing");
}

#[test]
fn a_cancelled_wait_ends() {
    let (database, table) = rig();
    let mut first = database.begin();
    first.update(&table, &[0.into()], &[("v", 1.into())]).expect("free");
    let waiting = Waiting::forever().until(|| true);
    let mut second = database.begin_at(Isolation::ReadCommitted, waiting);
    let error = second.update(&table, &[0.into()], &[("v", 2.into())]).expect_err("cancelled");
    assert_eq!(error.number, number::CANCELLED);
    assert!(second.is_open(), "its transaction goes on");
}

#[test]
fn a_table_lock_keeps_writers_out_and_an_exclusive_one_readers_too() {
    let (database, table) = rig();
    let mut holder = database.begin();
    holder.lock_table(&table, TableLock::Shared).expect("free");
    let mut other = database.begin();
    let update = other.update(&table, &[0.into()], &[("v", 1.into())]);
    assert_eq!(update.expect_err("held").number, number::LOCK_TIMEOUT);
    other.lock_table(&table, TableLock::Shared).expect("shared");
    let error = holder.lock_table(&table, TableLock::Exclusive).expect_err("shared with another");
    assert_eq!(error.number, number::LOCK_TIMEOUT);
    other.rollback();
    holder.lock_table(&table, TableLock::Exclusive).expect("alone");
    let options =
        crate::ReadOptions { waiting: Waiting::refuse(), ..crate::ReadOptions::default() };
    let read = database.read_table(&table, &crate::KeyBounds::default(), options);
    assert_eq!(read.expect_err("held").number, number::LOCK_TIMEOUT);
}

#[test]
fn a_schema_statement_waits_for_who_reads_to_keep() {
    let (database, table) = rig();
    let reader = database.begin_at(Isolation::RepeatableRead, Waiting::refuse());
    let options = crate::ReadOptions {
        isolation: Isolation::RepeatableRead,
        transaction: Some(reader.handle()),
        ..crate::ReadOptions::default()
    };
    let bounds = crate::KeyBounds::default();
    assert_eq!(database.read_table(&table, &bounds, options).expect("free").count(), 2);
    assert_eq!(database.drop_table(&table).expect_err("held").number, number::LOCK_TIMEOUT);
    drop(reader);
    assert!(database.drop_table(&table).is_ok());
}

#[test]
fn a_limited_wait_ends_though_the_servers_clock_stands_still() {
    let (database, table) = rig();
    let mut first = database.begin();
    first.update(&table, &[0.into()], &[("v", 1.into())]).expect("free");
    let waiting = Waiting::limited(Some(Duration::from_millis(40)));
    let mut second = database.begin_at(Isolation::ReadCommitted, waiting);
    let error = second.update(&table, &[0.into()], &[("v", 2.into())]).expect_err("held");
    assert_eq!(error.number, number::LOCK_TIMEOUT);
    assert!(second.is_open(), "its transaction goes on");
}

//! Tests of identity values, defaults, keys and checks.

use std::sync::Arc;

use cdc_core::{SqlType, TableName, Timestamp};

use super::*;
use crate::{
    ColumnDefinition, DefaultDefinition, FakeDatabase, FakeServer, InsertRequest, SchemaChange,
    TableDefinition, Transaction, UpdateRequest, VirtualClock, Zone,
};

fn rig() -> (FakeDatabase, TableName) {
    let clock = VirtualClock::manual(Timestamp::from_micros(0));
    let database = FakeServer::new(clock, Zone::UTC).database("shop");
    let positive = CheckDefinition {
        name: Some("ck_price".into()),
        text: "([price]>(0))".into(),
        reads: vec!["price".into()],
        of: None,
        rule: Arc::new(|row| Ok(row.get("price").as_int().map(|price| price > 0))),
    };
    let definition = TableDefinition::new("t")
        .with(ColumnDefinition::new("id", SqlType::Int).identity(10, 5))
        .with(
            ColumnDefinition::new("price", SqlType::Int)
                .with_default(DefaultDefinition::constant("((7))", 7.into())),
        )
        .nullable("code", SqlType::Int)
        .primary_key(&["id"])
        .index(IndexDefinition::new(IndexKind::UniqueConstraint, &["code"]).named("uq_code"))
        .check(positive);
    database.create_table(definition).expect("new");
    (database, TableName::new("dbo", "t"))
}

fn insert(
    tx: &mut Transaction,
    table: &TableName,
    columns: &[&str],
    values: Vec<Option<Value>>,
    identity_insert: bool,
) -> SqlResult<crate::Inserted> {
    let columns = Some(columns.iter().map(|name| (*name).into()).collect());
    tx.insert_rows(table, &InsertRequest { columns, rows: vec![values], identity_insert })
}

fn code(tx: &mut Transaction, table: &TableName, code: i64) -> SqlResult<crate::Inserted> {
    insert(tx, table, &["code"], vec![Some(code.into())], false)
}

#[test]
fn an_insert_fills_identity_and_defaults_and_tells_what_it_made() {
    let (database, table) = rig();
    database
        .transact(|tx| {
            let first = code(tx, &table, 1)?;
            assert_eq!(first.identity, Some(10));
            assert_eq!(*first.rows[0], [10.into(), 7.into(), 1.into()]);
            let asked = insert(tx, &table, &["price", "code"], vec![None, Some(2.into())], false)?;
            assert_eq!(*asked.rows[0], [15.into(), 7.into(), 2.into()]);
            let given = vec![Some(100.into()), Some(3.into())];
            let refused = insert(tx, &table, &["id", "code"], given.clone(), false);
            assert_eq!(refused.expect_err("off").number, number::IDENTITY_INSERT_OFF);
            insert(tx, &table, &["id", "code"], given, true)?;
            assert_eq!(code(tx, &table, 4)?.identity, Some(105), "goes on behind it");
            let missing = insert(tx, &table, &["code"], vec![Some(9.into())], true);
            assert_eq!(missing.expect_err("on").number, number::IDENTITY_INSERT_MISSING);
            Ok(())
        })
        .expect("free");
}

#[test]
fn a_rolled_back_identity_value_is_not_given_again() {
    let (database, table) = rig();
    let mut first = database.begin();
    code(&mut first, &table, 1).expect("free");
    first.rollback();
    let mut second = database.begin();
    assert_eq!(code(&mut second, &table, 1).expect("free").identity, Some(15));
}

#[test]
fn checks_and_unique_keys_refuse_and_leave_nothing() {
    let (database, table) = rig();
    database.transact(|tx| code(tx, &table, 1).map(|_| ())).expect("free");
    database
        .transact(|tx| {
            let negative = vec![Some((-1).into()), Some(2.into())];
            let refused = insert(tx, &table, &["price", "code"], negative, false);
            assert_eq!(refused.expect_err("checked").number, number::CONSTRAINT_CONFLICT);
            let error = code(tx, &table, 1).expect_err("there already");
            assert_eq!(error.number, number::DUPLICATE_KEY);
            assert!(error.message.contains("UNIQUE KEY constraint 'uq_code'"));
            // NULL counts as a value, once.
            insert(tx, &table, &["code"], vec![Some(Value::Null)], false)?;
            let again = insert(tx, &table, &["code"], vec![Some(Value::Null)], false);
            assert_eq!(again.expect_err("a second NULL").number, number::DUPLICATE_KEY);
            tx.delete(&table, &[10.into()])?;
            code(tx, &table, 1).map(|_| ())
        })
        .expect("free");
    assert_eq!(database.row_count(&table).expect("there"), 2);
}

#[test]
fn values_of_a_unique_key_may_change_places_in_one_statement() {
    let (database, table) = rig();
    database
        .transact(|tx| {
            code(tx, &table, 1)?;
            code(tx, &table, 2).map(|_| ())
        })
        .expect("free");
    let swap = |row: &crate::RowView<'_>| 3 - row.int("code");
    let changed = database.transact(|tx| {
        tx.update_where(
            &table,
            |_| true,
            |edit| {
                let code = swap(&edit.view());
                edit.set("code", code)
            },
        )
        .map(|_| ())
    });
    changed.expect("both move at once");
    let mut writer = database.begin();
    assert_eq!(code(&mut writer, &table, 2).expect_err("taken").number, number::DUPLICATE_KEY);
}

#[test]
fn a_unique_key_that_another_is_writing_is_waited_for() {
    let (database, table) = rig();
    let mut first = database.begin();
    code(&mut first, &table, 1).expect("free");
    let mut second = database.begin();
    assert_eq!(code(&mut second, &table, 1).expect_err("held").number, number::LOCK_TIMEOUT);
    first.rollback();
    assert!(code(&mut second, &table, 1).is_ok());
}

#[test]
fn an_identity_column_takes_no_update_and_a_default_can_be_asked_for() {
    let (database, table) = rig();
    let made = std::cell::RefCell::new(None);
    let take = |tx: &mut Transaction| {
        let row = insert(tx, &table, &["price", "code"], vec![Some(1.into()), None], false)?;
        made.replace(row.identity);
        Ok(())
    };
    database.transact(take).expect("free");
    assert_eq!(made.into_inner(), Some(10));
    let place = {
        let bounds = crate::KeyBounds::default();
        let mut rows =
            database.read_table(&table, &bounds, crate::ReadOptions::default()).expect("there");
        rows.next().expect("a row").expect("readable").0
    };
    let update = |column: &str| UpdateRequest {
        columns: vec![column.into()],
        rows: vec![(place.clone(), vec![None])],
        seen: Vec::new(),
        as_pairs: false,
    };
    let mut tx = database.begin();
    let error = tx.update_rows(&table, &update("id")).expect_err("an identity");
    assert_eq!(error.number, number::IDENTITY_UPDATE);
    let changed = tx.update_rows(&table, &update("price")).expect("free");
    let [(before, after)] = changed.as_slice() else { panic!("one row") };
    assert_eq!((&before[1], &after[1]), (&1.into(), &7.into()));
}

#[test]
fn a_key_added_over_rows_orders_them_and_refuses_doubles() {
    let (database, _) = rig();
    let heap = TableName::new("dbo", "heap");
    let definition = TableDefinition::new("heap").column("k", SqlType::Int);
    database.create_table(definition).expect("new");
    let rows = [3, 1, 2].map(|k: i64| vec![Value::from(k)]).into();
    database.transact(|tx| tx.insert_many(&heap, rows).map(|_| ())).expect("free");
    let add = || SchemaChange::AddIndex {
        table: heap.clone(),
        index: IndexDefinition::new(IndexKind::PrimaryKey, &["k"]).named("pk_heap"),
    };
    database.transact(|tx| tx.insert(&heap, vec![3.into()])).expect("free");
    let error = database.change_schema(add()).expect_err("3 is there twice");
    assert_eq!(error.number, number::KEY_NOT_UNIQUE);
    let three = |row: &crate::RowView<'_>| row.int("k") == 3;
    database.transact(|tx| tx.delete_where(&heap, three).map(|_| ())).expect("free");
    database.change_schema(add()).expect("unique now");
    assert_eq!(database.rows(&heap).expect("there"), [[Value::from(1)], [Value::from(2)]]);
    let drop = SchemaChange::DropConstraint { table: heap.clone(), name: "PK_HEAP".into() };
    database.change_schema(drop).expect("there");
    database.transact(|tx| tx.insert(&heap, vec![1.into()])).expect("a heap again");
}

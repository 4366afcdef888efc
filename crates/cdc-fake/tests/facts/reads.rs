//! Read semantics: order inside a transaction, key updates, large objects, empty and purged ranges.

use arrow_array::{Array, cast::AsArray, types::Int32Type};
use cdc_core::{
    ErrorKind, Length, Lsn, Position, SqlType,
    change::Operation,
    port::{Bound, ChangeReader, PositionLog},
};
use cdc_fake::{Call, ChangeRow, ColumnDefinition, Side, TableDefinition, Value};
use futures_util::StreamExt;

use crate::rig::{Rig, count, operations, range, row, table};

#[tokio::test]
async fn a_transaction_of_several_statements_reads_2_3_4_3_4_1_in_command_order() {
    let (rig, instance) = Rig::captured();
    let commit = rig.transact(|tx| {
        tx.insert(&rig.table, row(1, 0))?;
        tx.update(&rig.table, &[1.into()], &[("v", 1.into())])?;
        tx.update(&rig.table, &[1.into()], &[("v", 2.into())])?;
        tx.delete(&rig.table, &[1.into()])?;
        Ok(())
    });
    let read = rig.read(&instance, commit.lsn, commit.lsn, 100).await;
    assert_eq!(operations(&read.expect("read")), [2, 3, 4, 3, 4, 1]);
    let rows = rig.database.change_rows(&instance).expect("known");
    let commands: Vec<_> = rows.iter().map(|row| row.command).collect();
    assert_eq!(commands, [1, 2, 2, 3, 3, 4]);
    assert_eq!(rows[1].seqval, rows[2].seqval);
}

#[tokio::test]
async fn a_key_update_reads_as_a_delete_of_the_old_key_and_an_insert_of_the_new() {
    let (rig, instance) = Rig::captured();
    rig.insert(10, 7);
    rig.transact(|tx| {
        tx.update(&rig.table, &[10.into()], &[("id", 20.into())])?;
        tx.update(&rig.table, &[20.into()], &[("id", 30.into())])?;
        Ok(())
    });
    let rows = &rig.database.change_rows(&instance).expect("known")[1..];
    let seen: Vec<_> =
        rows.iter().map(|row| (row.operation.code(), row.values[0].as_int())).collect();
    assert_eq!(seen, [(1, Some(10)), (2, Some(20)), (1, Some(20)), (2, Some(30))]);
    // One row's two images share their place in the log.
    assert_eq!(rows[0].seqval, rows[1].seqval);
    assert!(rows[1].command < rows[2].command);
}

#[tokio::test]
async fn the_log_may_hold_a_deferred_updates_insert_before_its_delete() {
    let (rig, instance) = Rig::captured();
    rig.transact(|tx| {
        tx.insert_many(&rig.table, vec![row(1, 1), row(2, 2), row(3, 3)]).map(|_| ())
    });
    rig.transact(|tx| {
        let shift = |edit: &mut cdc_fake::RowEdit<'_>| edit.set("id", edit.view().int("id") + 1);
        tx.update_where(&rig.table, |_| true, shift).map(|_| ())
    });
    let rows = &rig.database.change_rows(&instance).expect("known")[3..];
    let of_key_2 = |operation| -> &ChangeRow {
        let found =
            rows.iter().find(|row| row.values[0].as_int() == Some(2) && row.operation == operation);
        found.expect("present")
    };
    let (delete, insert) = (of_key_2(Operation::Delete), of_key_2(Operation::Insert));
    assert!(insert.seqval < delete.seqval, "the sequence value misleads");
    assert!(delete.command < insert.command, "the command id is right");
}

#[tokio::test]
async fn a_merge_may_read_as_pairs_of_delete_and_insert_of_one_key() {
    let (rig, instance) = Rig::captured();
    rig.transact(|tx| {
        tx.insert_many(&rig.table, vec![row(1, 1), row(2, 2), row(3, 3)]).map(|_| ())
    });
    let changed = rig.database.transact(|tx| {
        let changed = tx.merge_where(&rig.table, |_| true, |edit| edit.set("v", 9))?;
        assert_eq!(changed, 3);
        Ok(())
    });
    changed.expect("committed");
    assert_eq!(rig.operations(&instance)[3..], [1, 2, 1, 2, 1, 2]);
    assert_eq!(rig.database.row_count(&rig.table), Ok(3));
}

#[tokio::test]
async fn the_sequence_value_grows_with_the_log_and_stays_below_the_commit() {
    let (rig, instance) = Rig::captured();
    let commit = rig.transact(|tx| (0..5).try_for_each(|id| tx.insert(&rig.table, row(id, 0))));
    let rows = rig.database.change_rows(&instance).expect("known");
    assert!(rows.windows(2).all(|pair| pair[0].seqval < pair[1].seqval));
    assert!(rows.iter().all(|row| row.seqval < commit.lsn));
}

#[tokio::test]
async fn a_purged_range_reads_as_empty_without_an_error_and_the_low_position_tells() {
    let (rig, instance) = Rig::captured();
    let commits: Vec<_> = (0..6)
        .map(|id| {
            rig.advance(1);
            rig.insert(id, 0)
        })
        .collect();
    let low = commits[4].lsn;
    let removed = rig.database.cleanup_instance(&instance, low);
    assert_eq!(removed, Ok(4));
    let read = rig.read(&instance, commits[0].lsn, commits[3].lsn, 10).await;
    assert_eq!(count(&read.expect("no error")), 0);
    assert_eq!(rig.low(&instance).await, Bound::At(Position::from(low)));
    let ranges = [(instance.clone(), range(commits[0].lsn, commits[3].lsn))];
    let any = rig.source.has_changes(&ranges).await;
    assert_eq!(any.expect("no error"), [false]);
}

#[tokio::test]
async fn rows_that_cleanup_removes_in_the_middle_of_a_read_are_missing_without_an_error() {
    let (rig, instance) = Rig::captured();
    let commits: Vec<_> = (0..10)
        .map(|id| {
            rig.advance(1);
            rig.insert(id, 0)
        })
        .collect();
    let request = rig.request(&instance, commits[0].lsn, commits[9].lsn, 2).await;
    let mut stream = rig.source.changes(request).await.expect("opens");
    let mut read = vec![stream.next().await.expect("a batch").expect("no error")];
    let (name, mark) = (instance.clone(), commits[8].lsn);
    rig.database.on_next(Call::ChangeBatch, Side::Before, move |database| {
        database.cleanup_instance(&name, mark).expect("known mark");
    });
    while let Some(batch) = stream.next().await {
        read.push(batch.expect("no error"));
    }
    assert_eq!(count(&read), 4);
    assert_eq!(rig.low(&instance).await, Bound::At(Position::from(commits[8].lsn)));
}

#[tokio::test]
async fn the_two_images_of_an_update_are_never_in_different_batches() {
    let (rig, instance) = Rig::captured();
    rig.insert(1, 0);
    let first = rig.update(1, 1);
    rig.update(1, 2);
    let last = rig.update(1, 3);
    for batch_rows in 1..6 {
        let read = rig.read(&instance, first.lsn, last.lsn, batch_rows).await;
        let read = read.expect("read");
        assert_eq!(operations(&read), [3, 4, 3, 4, 3, 4]);
        for batch in &read {
            let own = operations(std::slice::from_ref(batch));
            assert_eq!((own[0], own[own.len() - 1]), (3, 4));
            assert!(own.len() <= batch_rows + 1);
        }
    }
}

#[tokio::test]
async fn an_update_of_columns_that_are_not_captured_leaves_no_row() {
    let rig = Rig::new();
    let options = cdc_fake::EnableOptions::named("some").columns(&["id", "v"]);
    let some = rig.database.enable_table(&rig.table, options);
    let some = some.expect("allowed");
    rig.insert(1, 1);
    rig.transact(|tx| tx.update(&rig.table, &[1.into()], &[("note", "x".into())]).map(|_| ()));
    assert_eq!(rig.operations(&some), [2]);
}

#[tokio::test]
async fn large_objects_and_computed_columns_are_null_where_capture_leaves_them_out() {
    let rig = Rig::new();
    let docs = table("docs");
    let definition = TableDefinition::new("docs")
        .column("id", SqlType::Int)
        .nullable("n", SqlType::Int)
        .nullable("doc", SqlType::NVarChar(Length::Max))
        .nullable("memo", SqlType::Text)
        .with(ColumnDefinition::computed("twice", SqlType::Int, |row| Value::Int(row.int("n") * 2)))
        .primary_key(&["id"]);
    rig.database.create_table(definition).expect("new");
    let instance =
        rig.database.enable_table(&docs, cdc_fake::EnableOptions::default()).expect("allowed");
    rig.transact(|tx| {
        tx.insert(&docs, vec![1.into(), 1.into(), "d".into(), "m".into()])?;
        tx.update(&docs, &[1.into()], &[("n", 2.into())])?;
        tx.update(&docs, &[1.into()], &[("doc", "e".into())])?;
        tx.delete(&docs, &[1.into()])?;
        Ok(())
    });
    let rows = rig.database.change_rows(&instance).expect("known");
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            let null = |at: usize| row.values[at].is_null();
            (row.operation.code(), null(2), null(3), null(4))
        })
        .collect();
    assert_eq!(
        seen,
        [
            // operation, doc is NULL, memo is NULL, twice is NULL
            (2, false, false, true),
            (3, true, true, true),
            (4, false, false, true),
            (3, false, true, true),
            (4, false, false, true),
            (1, false, true, true),
        ]
    );
}

#[tokio::test]
async fn a_rolled_back_transaction_leaves_nothing() {
    let (rig, instance) = Rig::captured();
    let mut transaction = rig.database.begin();
    transaction.insert(&rig.table, row(1, 1)).expect("new key");
    transaction.rollback();
    let mut dropped = rig.database.begin();
    dropped.insert(&rig.table, row(1, 1)).expect("nobody holds it");
    drop(dropped);
    assert_eq!(rig.operations(&instance), [0; 0]);
    assert_eq!(rig.database.row_count(&rig.table), Ok(0));
    assert_eq!(rig.database.mapping().len(), 1, "the enable only");
}

#[tokio::test]
async fn columns_come_in_the_order_asked_for_and_unknown_ones_are_refused() {
    let (rig, instance) = Rig::captured();
    let commit = rig.insert(5, 6);
    let mut request = rig.request(&instance, commit.lsn, commit.lsn, 10).await;
    request.columns = vec![request.columns[1].clone(), request.columns[0].clone()];
    let mut stream = rig.source.changes(request.clone()).await.expect("opens");
    let batch = stream.next().await.expect("a batch").expect("no error");
    let number = |name: &str| {
        let column = batch.column_by_name(name).expect("asked for");
        assert!(column.is_valid(0));
        column.as_primitive::<Int32Type>().value(0)
    };
    assert_eq!((number("v"), number("id")), (6, 5));
    assert_eq!(batch.schema().field(5).name(), "v");
    request.columns[0].id = 99;
    let Err(error) = rig.source.changes(request).await else {
        panic!("an unknown column was read");
    };
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn the_nth_commit_counts_every_entry_of_the_mapping() {
    let (rig, _) = Rig::captured();
    let start = rig.high().await.expect("the enable");
    let first = rig.insert(1, 1);
    let idle = rig.database.write_idle_entry().expect("nothing pending");
    let last = rig.insert(2, 2);
    let nth = |count| {
        let source = rig.source.clone();
        async move {
            let answer = source.nth_commit_after(Position::from(start), count).await;
            answer.expect("answers").map(|position| Lsn::try_from(position).expect("an lsn"))
        }
    };
    assert_eq!(nth(1).await, Some(first.lsn));
    assert_eq!(nth(2).await, Some(idle));
    assert_eq!(nth(3).await, Some(last.lsn));
    assert_eq!(nth(9).await, Some(last.lsn));
    let none = rig.source.nth_commit_after(last.lsn.into(), 1).await;
    assert_eq!(none.expect("answers"), None);
}

//! Rows of the tables themselves: extents, bounds, counts and ranges in the source's own order.

use arrow_array::{Array, cast::AsArray, types::Int32Type};
use cdc_core::{
    ErrorKind, Length, SqlType, TableName,
    port::{KeyRange, KeyTuple, RowRequest, TableReader},
};
use cdc_fake::{Call, EnableOptions, Side, TableDefinition, Value, Workload, WorkloadShape};
use futures_util::{StreamExt, TryStreamExt};
use proptest::prelude::*;

use crate::rig::{Rig, row, table};

fn filled(rows: i64) -> Rig {
    let rig = Rig::new();
    rig.transact(|tx| {
        let rows = (0..rows).map(|id| row(id * 2, id % 7)).collect();
        tx.insert_many(&rig.table, rows).map(|_| ())
    });
    rig
}

fn names(key: &[&str]) -> Vec<String> {
    key.iter().map(|name| (*name).to_owned()).collect()
}

fn int(tuple: &KeyTuple) -> i32 {
    tuple.0.column(0).as_primitive::<Int32Type>().value(0)
}

async fn ids(rig: &Rig, key: &[String], range: KeyRange, batch_rows: usize) -> Vec<i32> {
    let columns = rig.database.instance(&rig.enable_once()).expect("known").columns;
    let request = RowRequest {
        table: rig.table.clone(),
        columns: columns[..1].to_vec(),
        key: key.to_vec(),
        range,
        batch_rows,
    };
    let stream = rig.source.rows(request).await.expect("opens");
    let batches: Vec<_> = stream.try_collect().await.expect("read");
    assert!(batches.iter().all(|batch| batch.num_rows() <= batch_rows));
    let ids = batches
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec());
    ids.collect()
}

impl Rig {
    fn enable_once(&self) -> cdc_core::InstanceName {
        let name = cdc_core::InstanceName::new("once");
        if self.database.instance(&name).is_err() {
            self.enable("once");
        }
        name
    }
}

#[tokio::test]
async fn the_extent_is_the_least_and_the_greatest_key_and_nothing_for_an_empty_table() {
    let rig = filled(10);
    let key = names(&["id"]);
    let (first, last) =
        rig.source.key_extent(&rig.table, &key).await.expect("answers").expect("rows");
    assert_eq!((int(&first), int(&last)), (0, 18));
    let empty = Rig::new();
    let extent = empty.source.key_extent(&empty.table, &key).await;
    assert_eq!(extent.expect("answers"), None);
}

#[tokio::test]
async fn bounds_cut_a_table_into_disjoint_ranges_that_hold_every_row() {
    let rig = filled(103);
    for key in [names(&["id"]), names(&["v", "id"]), names(&["v"])] {
        let mut ranges = Vec::new();
        let mut open = KeyRange::default();
        while let Some(bound) =
            rig.source.key_bound(&rig.table, &key, &open, 10).await.expect("answers")
        {
            if open.from.as_ref() == Some(&bound) {
                // More rows than asked for share one key: only a key that is not unique.
                assert_eq!(key, names(&["v"]));
                break;
            }
            let mut closed = open.clone();
            closed.to = Some(bound.clone());
            ranges.push(closed);
            open.from = Some(bound);
        }
        ranges.push(open);
        let mut all = Vec::new();
        for range in ranges {
            let counted = rig.source.count(&rig.table, &key, &range).await.expect("answers");
            let read = ids(&rig, &key, range, 4).await;
            assert_eq!(usize::try_from(counted).expect("small"), read.len());
            all.extend(read);
        }
        all.sort_unstable();
        assert_eq!(all, (0..103).map(|id| id * 2).collect::<Vec<_>>(), "{key:?}");
    }
}

#[tokio::test]
async fn a_bound_leaves_exactly_the_rows_asked_for_below_it() {
    let rig = filled(25);
    let key = names(&["id"]);
    let all = KeyRange::default();
    let bound = |rows| {
        let (source, table, key, all) =
            (rig.source.clone(), rig.table.clone(), key.clone(), all.clone());
        async move { source.key_bound(&table, &key, &all, rows).await.expect("answers") }
    };
    assert_eq!(int(&bound(10).await.expect("more rows")), 20);
    assert_eq!(int(&bound(24).await.expect("more rows")), 48);
    assert_eq!(bound(25).await, None);
}

#[tokio::test]
async fn an_inverted_or_empty_range_holds_nothing() {
    let rig = filled(10);
    let key = names(&["id"]);
    let bound = |rows| {
        let (source, table, key) = (rig.source.clone(), rig.table.clone(), key.clone());
        async move {
            let range = KeyRange::default();
            source.key_bound(&table, &key, &range, rows).await.expect("answers")
        }
    };
    let (low, high) = (bound(2).await, bound(5).await);
    for (from, to) in [(high.clone(), low), (high.clone(), high)] {
        let range = KeyRange { from, to };
        assert_eq!(rig.source.count(&rig.table, &key, &range).await.expect("answers"), 0);
        assert_eq!(ids(&rig, &key, range, 4).await, [0; 0]);
    }
}

#[tokio::test]
async fn an_uncommitted_row_is_not_read() {
    let rig = filled(3);
    let mut open = rig.database.begin();
    open.insert(&rig.table, row(99, 0)).expect("new key");
    open.delete(&rig.table, &[0.into()]).expect("there");
    assert_eq!(rig.database.row_count(&rig.table), Ok(3));
    open.commit().expect("committed");
    assert_eq!(ids(&rig, &names(&["id"]), KeyRange::default(), 10).await, [2, 4, 99]);
}

#[tokio::test]
async fn rows_changed_in_the_middle_of_a_read_are_read_as_they_are_then() {
    let rig = filled(6);
    let columns = rig.database.instance(&rig.enable_once()).expect("known").columns;
    let request = RowRequest {
        table: rig.table.clone(),
        columns,
        key: names(&["id"]),
        range: KeyRange::default(),
        batch_rows: 3,
    };
    let mut stream = rig.source.rows(request).await.expect("opens");
    stream.next().await.expect("a batch").expect("no error");
    let name = rig.table.clone();
    rig.database.on_next(Call::RowBatch, Side::Before, move |database| {
        let outcome = database.transact(|tx| {
            tx.update(&name, &[6.into()], &[("v", 77.into())])?;
            tx.delete(&name, &[8.into()])?;
            Ok(())
        });
        outcome.expect("committed");
    });
    let batch = stream.next().await.expect("a batch").expect("no error");
    assert_eq!(batch.column(1).as_primitive::<Int32Type>().value(0), 77);
    assert_eq!(batch.num_rows(), 2);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn unknown_tables_unknown_columns_and_keys_without_order_are_refused() {
    let rig = filled(1);
    let kind = |table: TableName, key: Vec<String>| {
        let source = rig.source.clone();
        async move { source.key_extent(&table, &key).await.expect_err("refused").kind() }
    };
    assert_eq!(kind(table("missing"), names(&["id"])).await, ErrorKind::Config);
    assert_eq!(kind(rig.table.clone(), names(&["missing"])).await, ErrorKind::Config);
    assert_eq!(kind(rig.table.clone(), names(&["note"])).await, ErrorKind::Unsupported);
    assert_eq!(kind(rig.table.clone(), Vec::new()).await, ErrorKind::Config);
}

#[tokio::test]
async fn a_computed_column_has_its_value_in_the_table() {
    let rig = Rig::new();
    let mut workload = Workload::new(1, WorkloadShape::default());
    let instances = workload.create(&rig.database).expect("new tables");
    workload.run(&rig.database, 20, std::time::Duration::ZERO).expect("runs");
    let columns = rig.database.instance(&instances[0]).expect("known").columns;
    let request = RowRequest {
        table: workload.tables()[0].clone(),
        columns,
        key: Vec::new(),
        range: KeyRange::default(),
        batch_rows: 5,
    };
    let stream = rig.source.rows(request).await.expect("opens");
    let batches: Vec<_> = stream.try_collect().await.expect("read");
    assert!(!batches.is_empty());
    for batch in batches {
        let column = batch.column_by_name("twice").expect("captured");
        assert_eq!(column.null_count(), 0);
    }
}

#[tokio::test]
async fn four_hundred_thousand_rows_load_capture_and_read_in_seconds() {
    const ROWS: i64 = 400_000;
    let rig = Rig::new();
    let wide = table("wide");
    let mut definition = TableDefinition::new("wide").column("id", SqlType::Int);
    for number in 0..19 {
        let sql_type = match number % 3 {
            0 => SqlType::Int,
            1 => SqlType::NVarChar(Length::Limited(20)),
            _ => SqlType::Float,
        };
        definition = definition.nullable(&format!("c{number}"), sql_type);
    }
    rig.database.create_table(definition.primary_key(&["id"])).expect("new");
    let instance = rig.database.enable_table(&wide, EnableOptions::default()).expect("allowed");
    let text = Value::text("some text");
    let mut first = None;
    let mut last = None;
    for chunk in 0..40 {
        let commit = rig.transact(|tx| {
            let rows = (chunk * ROWS / 40..(chunk + 1) * ROWS / 40).map(|id| {
                let mut row = vec![Value::Int(id)];
                row.extend((0..19).map(|number| match number % 3 {
                    0 => Value::Int(id),
                    1 => text.clone(),
                    _ => Value::Float(0.5),
                }));
                row
            });
            tx.insert_many(&wide, rows.collect()).map(|_| ())
        });
        first = first.or(Some(commit.lsn));
        last = Some(commit.lsn);
    }
    let request =
        rig.request(&instance, first.expect("committed"), last.expect("committed"), 10_000).await;
    let mut stream =
        cdc_core::port::ChangeReader::changes(&rig.source, request).await.expect("opens");
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch.expect("no error").num_rows();
    }
    assert_eq!(rows, usize::try_from(ROWS).expect("small"));
    assert_eq!(rig.database.row_count(&wide), Ok(rows));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn text_keys_come_in_the_order_of_the_collation(
        texts in proptest::collection::btree_set("[a-zA-Z]{1,4}", 1..20),
    ) {
        let rig = Rig::new();
        let definition = TableDefinition::new("texts")
            .column("k", SqlType::NVarChar(Length::Limited(10)))
            .primary_key(&["k"]);
        rig.database.create_table(definition).expect("new");
        let name = table("texts");
        let mut folded = std::collections::BTreeSet::new();
        for text in &texts {
            let inserted = rig
                .database
                .transact(|tx| tx.insert(&name, vec![Value::text(text)]));
            // Texts that differ in case alone are one key.
            prop_assert_eq!(inserted.is_ok(), folded.insert(text.to_lowercase()));
        }
        let rows = rig.database.rows(&name).expect("known");
        let read: Vec<String> = rows
            .iter()
            .map(|row| match &row[0] {
                Value::Text(text) => text.to_lowercase(),
                other => panic!("no text: {other:?}"),
            })
            .collect();
        prop_assert_eq!(read, folded.into_iter().collect::<Vec<_>>());
    }
}

//! What comes over TDS is what the fake's own source gives, batch by batch: every type, and commit
//! times around the end of summer time.

use std::{sync::Arc, time::Duration};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use arrow_select::concat::concat_batches;
use cdc_conformance::{
    Cell,
    source::{SourceHarness, Statement},
};
use cdc_core::{
    ClosedRange, Column, InstanceName, Length, SqlType, TableName, TableRef, Timestamp,
    port::{BatchStream, Bound, ChangeRequest, KeyRange, RowRequest, Source},
};
use cdc_fake::{EnableOptions, FakeSource, Login, TableDefinition, Value, Zone};
use cdc_mssql::{BulkReader, Encryption};
use futures_util::TryStreamExt;

use crate::rig::{OverTds, READERS, block_on};

async fn whole(stream: BatchStream) -> RecordBatch {
    let batches: Vec<_> = stream.try_collect().await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() > 0));
    // The last range may hold nothing of this instance.
    let schema = batches.first().map_or_else(|| Schema::empty().into(), RecordBatch::schema);
    concat_batches(&schema, &batches).unwrap()
}

async fn range(source: &dyn Source, instance: &InstanceName) -> ClosedRange {
    let low = source.low(std::slice::from_ref(instance)).await.unwrap()[0];
    let (Bound::At(low), Bound::At(high)) = (low, source.high().await.unwrap()) else {
        panic!("captured")
    };
    ClosedRange::new(low, high).unwrap()
}

/// The fake's own source on the same database.
fn own(rig: &OverTds) -> Arc<dyn Source> {
    Arc::new(FakeSource::new(rig.fake.database(), Login::Owner).unwrap())
}

/// Every type with its extremes: a row for each value, and one of NULLs.
fn samples() -> Vec<(SqlType, Vec<Cell>)> {
    use SqlType as T;
    let decimal = |digits: i128, scale| Cell::Decimal(digits, scale);
    let top = 10_i128.pow(38) - 1;
    let moments = [-62_135_596_800_000_000, -1, 0, 253_402_300_799_999_999];
    let ticks = [-6_847_804_800_000_000, 0, 3_333, 253_402_300_799_996_666];
    let text = |words: &[&str]| words.iter().map(|word| Cell::text(*word)).collect::<Vec<_>>();
    let words = text(&["", " a ", "O'Neil \u{e9}\u{df}", "\u{1F600} \u{3b1}\u{3b2}"]);
    let western = text(&["", " a ", "O'Neil \u{e9}\u{df}", "\u{20ac}"]);
    let bytes = |all: &[&[u8]]| all.iter().map(|one| Cell::Bytes(one.to_vec())).collect::<Vec<_>>();
    let limited = Length::Limited(40);
    // Two units each, so that a packet ends within one.
    let faces = format!("x{}", "\u{1F600}".repeat(100_000));
    vec![
        (T::Bit, vec![Cell::Bool(true), Cell::Bool(false)]),
        (T::TinyInt, [0, 127, 128, 255].map(Cell::Int).to_vec()),
        (T::SmallInt, [-32_768, 32_767].map(Cell::Int).to_vec()),
        (T::Int, [i64::from(i32::MIN), i64::from(i32::MAX)].map(Cell::Int).to_vec()),
        (T::BigInt, [i64::MIN, i64::MAX].map(Cell::Int).to_vec()),
        (T::Real, [f32::MIN, -0.0, 0.1, f32::from_bits(1), f32::MAX].map(Cell::real).to_vec()),
        (T::Float, [f64::MIN, -0.0, 0.1, f64::from_bits(1), f64::MAX].map(Cell::float).to_vec()),
        (T::Decimal { precision: 1, scale: 1 }, vec![decimal(-9, 1), decimal(9, 1)]),
        (T::Decimal { precision: 9, scale: 2 }, vec![decimal(-999_999_999, 2), decimal(0, 2)]),
        (T::Decimal { precision: 10, scale: 0 }, vec![decimal(9_999_999_999, 0)]),
        (T::Decimal { precision: 19, scale: 5 }, vec![decimal(-1, 5), decimal(1, 5)]),
        (T::Decimal { precision: 20, scale: 20 }, vec![decimal(10_i128.pow(20) - 1, 20)]),
        (T::Decimal { precision: 28, scale: 3 }, vec![decimal(1 - 10_i128.pow(28), 3)]),
        (T::Decimal { precision: 29, scale: 1 }, vec![decimal(10_i128.pow(29) - 1, 1)]),
        (T::Decimal { precision: 38, scale: 0 }, vec![decimal(-top, 0), decimal(top, 0)]),
        (T::Decimal { precision: 38, scale: 38 }, vec![decimal(-top, 38), decimal(1, 38)]),
        (T::Money, vec![decimal(i64::MIN.into(), 4), decimal(i64::MAX.into(), 4)]),
        (T::SmallMoney, vec![decimal(i32::MIN.into(), 4), decimal(i32::MAX.into(), 4)]),
        (T::Date, [-719_162, 0, 2_932_896].map(Cell::Date).to_vec()),
        (T::DateTime, ticks.map(Cell::Wall).to_vec()),
        (T::SmallDateTime, [-2_208_988_800_000_000, 60_000_000].map(Cell::Wall).to_vec()),
        (T::DateTime2 { scale: 7 }, moments.map(Cell::Wall).to_vec()),
        (T::DateTime2 { scale: 3 }, [0, 1_000].map(Cell::Wall).to_vec()),
        (T::DateTimeOffset { scale: 7 }, moments.map(Cell::Instant).to_vec()),
        (T::Time { scale: 7 }, text(&["00:00:00.0000000", "23:59:59.9999999"])),
        (T::Time { scale: 3 }, text(&["12:34:56.789"])),
        (T::Time { scale: 0 }, text(&["23:59:59"])),
        (T::Char(5), text(&["ab   ", "abcde"])),
        (T::VarChar(limited), western.clone()),
        (T::VarChar(Length::Limited(8000)), western.clone()),
        (T::VarChar(Length::Max), western.clone()),
        (T::NChar(3), text(&["\u{e4}  "])),
        (T::NVarChar(limited), words.clone()),
        (T::NVarChar(Length::Max), text(&["", &"0123456789".repeat(2_000), &faces])),
        (T::Text, western),
        (T::NText, words),
        (T::Xml, text(&["<a b=\"1\">\u{e9}</a>"])),
        (T::UniqueIdentifier, text(&["6F9619FF-8B86-D011-B42D-00C04FC964FF"])),
        (T::Binary(3), bytes(&[&[1, 0, 0]])),
        (T::VarBinary(limited), bytes(&[&[], &[0, 0xff]])),
        (T::VarBinary(Length::Max), bytes(&[&[], &[7; 70_000], &vec![9; 1 << 20]])),
        (T::Image, bytes(&[&[1, 2]])),
    ]
}

#[test]
fn every_type_gives_the_batches_of_the_fake_source() {
    for reader in READERS {
        block_on(async {
            compare_types(OverTds::plain(Zone::UTC).await.read_by(*reader)).await;
            compare_types(OverTds::encrypted(Encryption::Required).await.read_by(*reader)).await;
        });
    }
}

/// Reads every type over TDS and from the fake's own source.
pub(crate) async fn compare_types(rig: OverTds) {
    let (table, instance) = (TableName::new("dbo", "types"), InstanceName::new("dbo_types"));
    let mut columns = vec![Column::new("id", 1, SqlType::Int, false)];
    let samples = samples();
    for ((sql_type, _), id) in samples.iter().zip(2..) {
        columns.push(Column::new(format!("c{id}"), id, sql_type.clone(), true));
    }
    rig.create_table(&table, &columns, &["id"]).await.unwrap();
    rig.enable(&table, &instance, None).await.unwrap();
    let rows = samples.iter().map(|(_, values)| values.len()).max().unwrap();
    let mut statements = Vec::new();
    for row in 0..=rows {
        let mut cells = vec![Cell::Int(i64::try_from(row).unwrap())];
        let value = |values: &Vec<Cell>| values.get(row).cloned().unwrap_or(Cell::Null);
        cells.extend(samples.iter().map(|(_, values)| value(values)));
        statements.push(Statement::Insert(table.clone(), cells));
    }
    let key = vec![Cell::Int(0)];
    let set = vec![("c2".to_owned(), Cell::Null)];
    statements.push(Statement::Update { table: table.clone(), key: key.clone(), set });
    statements.push(Statement::Delete(table.clone(), key));
    rig.transact(&statements).await.unwrap();
    rig.capture().await.unwrap();
    let wired: Arc<dyn Source> = rig.source().await;
    let own = own(&rig);
    let reference = TableRef::Table(table.clone());
    let told = wired.instances(&reference).await.unwrap();
    assert_eq!(told, own.instances(&reference).await.unwrap());
    let range = range(wired.as_ref(), &instance).await;
    let columns = told[0].columns.clone();
    let changes = ChangeRequest {
        instance,
        columns: columns.clone(),
        range,
        time_before: None,
        batch_rows: 1_000,
    };
    let expected = whole(own.changes(changes.clone()).await.unwrap()).await;
    assert_eq!(whole(wired.changes(changes).await.unwrap()).await, expected);
    let request = RowRequest {
        table,
        columns,
        key: Vec::new(),
        range: KeyRange::default(),
        batch_rows: 1_000,
    };
    let expected = whole(own.rows(request.clone()).await.unwrap()).await;
    assert_eq!(whole(wired.rows(request).await.unwrap()).await, expected);
}

/// What a test of the suite does not write: versions that the server gives, offsets from UTC, and
/// every number of digits behind the second.
#[test]
fn versions_offsets_and_digits_are_those_of_the_fake_source() {
    for reader in READERS {
        block_on(compare_moments(*reader));
    }
}

async fn compare_moments(reader: BulkReader) {
    let rig = OverTds::plain(Zone::UTC).await.read_by(reader);
    let mut definition = TableDefinition::new("moments")
        .column("id", SqlType::Int)
        .column("version", SqlType::RowVersion)
        .primary_key(&["id"]);
    for scale in 0..=7 {
        definition = definition
            .nullable(&format!("m{scale}"), SqlType::DateTime2 { scale })
            .nullable(&format!("o{scale}"), SqlType::DateTimeOffset { scale })
            .nullable(&format!("t{scale}"), SqlType::Time { scale });
    }
    let (table, database) = (TableName::new("dbo", "moments"), rig.fake.database());
    database.create_table(definition).unwrap();
    database.enable_table(&table, EnableOptions::default()).unwrap();
    // 100 ns: the first moment, one before 1970, one with every digit, the last one.
    let ticks = [-621_355_968_000_000_000, -1, 17_800_000_001_234_567, 2_534_023_007_999_999_999];
    for (id, moment) in (0..).zip(ticks) {
        for (at, offset_minutes) in (0..).zip([-840, -150, 0, 330, 840]) {
            let day = 864_000_000_000;
            // The version is the server's.
            let mut row = vec![Value::from(id * 10 + at)];
            for scale in 0..=7_u32 {
                let unit = 10_i64.pow(7 - scale);
                let cut = |ticks: i64| ticks.div_euclid(unit) * unit;
                // The wall clock that an offset shows has to be a moment too.
                let edge = i64::from(offset_minutes) * 600_000_000;
                let utc = cut(moment).clamp(ticks[0] + edge.abs(), cut(ticks[3]) - edge.abs());
                row.push(Value::DateTime2(cut(moment)));
                row.push(Value::DateTimeOffset { utc: cut(utc), offset_minutes });
                row.push(Value::Time(cut(moment.rem_euclid(day))));
            }
            database.transact(|open| open.insert(&table, row)).unwrap();
        }
    }
    rig.capture().await.unwrap();
    let (wired, own) = (rig.source().await, own(&rig));
    let instances = own.instances(&TableRef::Table(table.clone())).await.unwrap();
    let columns = instances[0].columns.clone();
    let request = RowRequest {
        table,
        columns: columns.clone(),
        key: Vec::new(),
        range: KeyRange::default(),
        batch_rows: 7,
    };
    let expected = whole(own.rows(request.clone()).await.unwrap()).await;
    assert_eq!(expected.num_rows(), 20);
    assert_eq!(whole(wired.rows(request).await.unwrap()).await, expected, "{reader:?}");
    let changes = ChangeRequest {
        instance: instances[0].name.clone(),
        columns,
        range: range(own.as_ref(), &instances[0].name).await,
        time_before: None,
        batch_rows: 7,
    };
    let expected = whole(own.changes(changes.clone()).await.unwrap()).await;
    assert_eq!(whole(wired.changes(changes).await.unwrap()).await, expected, "{reader:?}");
}

/// A night in which a clock shows an hour twice: one table commits, the other's commits lie between.
#[test]
fn commit_times_are_those_of_the_fake_source_through_a_repeated_hour() {
    for reader in READERS {
        block_on(compare_times(*reader));
    }
}

async fn compare_times(reader: BulkReader) {
    let rig = OverTds::plain(Zone::Named(chrono_tz::Europe::Berlin)).await.read_by(reader);
    let clock = rig.fake.server().clock().clone();
    let dusk: chrono::DateTime<chrono::Utc> = "2026-10-24T22:00:00Z".parse().unwrap();
    clock.advance_to(Timestamp::from(dusk));
    let columns = vec![Column::new("id", 1, SqlType::Int, false)];
    let tables = ["ours", "theirs"].map(|name| TableName::new("dbo", name));
    let instances = ["dbo_ours", "dbo_theirs"].map(InstanceName::new);
    for (table, instance) in tables.iter().zip(&instances) {
        rig.create_table(table, &columns, &["id"]).await.unwrap();
        rig.enable(table, instance, None).await.unwrap();
    }
    // Every 17 minutes for six hours; ours only each third time.
    for id in 0..21 {
        let table = if id % 3 == 0 { &tables[0] } else { &tables[1] };
        let insert = Statement::Insert(table.clone(), vec![Cell::Int(id)]);
        rig.transact(&[insert]).await.unwrap();
        rig.pass(Duration::from_secs(17 * 60)).await.unwrap();
    }
    rig.capture().await.unwrap();
    let wired = rig.source().await;
    let own = own(&rig);
    for instance in &instances {
        let all = range(wired.as_ref(), instance).await;
        let request = |range| ChangeRequest {
            instance: instance.clone(),
            columns: columns.clone(),
            range,
            time_before: None,
            batch_rows: 2,
        };
        let expected = whole(own.changes(request(all)).await.unwrap()).await;
        assert_eq!(whole(wired.changes(request(all)).await.unwrap()).await, expected);
        // Begun in the middle, the times are the same.
        let mut after = all.from();
        while let Some(next) = own.nth_commit_after(after, 4).await.unwrap() {
            let range = ClosedRange::new(next, all.to()).unwrap();
            let theirs = whole(own.changes(request(range)).await.unwrap()).await;
            let ours = whole(wired.changes(request(range)).await.unwrap()).await;
            assert_eq!(ours, theirs);
            let time = own.commit_time(next).await.unwrap();
            assert_eq!(wired.commit_time(next).await.unwrap(), time);
            let moment = time.unwrap().plus_micros(60_000_000);
            let found = own.position_at(moment).await.unwrap();
            assert_eq!(wired.position_at(moment).await.unwrap(), found);
            after = next;
        }
    }
}

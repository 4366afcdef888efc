//! Values: what a change row and a row of the table say is what was stored.

use std::collections::BTreeMap;

use cdc_core::{
    Column, InstanceName, Length, SqlType, TableName,
    port::{KeyRange, RowRequest},
};

use super::{
    SourceHarness, Statement,
    scene::{self, Scene, range, request},
};
use crate::{
    cell::Cell,
    outcome::{CaseResult, Outcome, same},
};

/// A column under test and the values that it must tell. Every one gets a NULL besides.
type Sample = (&'static str, SqlType, Vec<Cell>);

pub(super) async fn numbers_round_trip(harness: &dyn SourceHarness) -> CaseResult {
    let decimal = |precision, scale| SqlType::Decimal { precision, scale };
    let digits = |precision: u32, scale: i8| {
        let top = 10_i128.saturating_pow(precision).saturating_sub(1);
        let all = [-top, -1, 0, 1, top - 1, top];
        all.map(|digits| Cell::Decimal(digits, scale)).to_vec()
    };
    let ints = |low: i64, high: i64| [low, -1, 0, 1, high].map(Cell::Int).to_vec();
    let money = [i64::MIN, -1, 0, i64::MAX].map(|n| Cell::Decimal(n.into(), 4));
    let small = [-2_147_483_648, 0, 2_147_483_647].map(|n| Cell::Decimal(n, 4));
    let samples = vec![
        ("c_bit", SqlType::Bit, vec![Cell::Bool(false), Cell::Bool(true)]),
        ("c_tinyint", SqlType::TinyInt, [0, 1, 255].map(Cell::Int).to_vec()),
        ("c_smallint", SqlType::SmallInt, ints(-32_768, 32_767)),
        ("c_int", SqlType::Int, ints(-2_147_483_648, 2_147_483_647)),
        ("c_bigint", SqlType::BigInt, ints(i64::MIN, i64::MAX)),
        ("c_real", SqlType::Real, [f32::MIN, 0.1, f32::MAX].map(Cell::real).to_vec()),
        ("c_float", SqlType::Float, [f64::MIN, 0.1, 1.0 / 3.0, f64::MAX].map(Cell::float).to_vec()),
        ("c_d9_2", decimal(9, 2), digits(9, 2)),
        ("c_d38_0", decimal(38, 0), digits(38, 0)),
        ("c_d38_38", decimal(38, 38), digits(38, 38)),
        ("c_money", SqlType::Money, money.to_vec()),
        ("c_smallmoney", SqlType::SmallMoney, small.to_vec()),
    ];
    round_trip(harness, samples).await
}

pub(super) async fn dates_and_times_round_trip(harness: &dyn SourceHarness) -> CaseResult {
    const FIRST_MICROS: i64 = -62_135_596_800_000_000;
    const LAST_MICROS: i64 = 253_402_300_799_999_999;
    let moments = [FIRST_MICROS, -1, 0, 1_383_456_600_123_456, LAST_MICROS];
    let ticks = [-6_847_804_800_000_000, 0, 3_333, 253_402_300_799_996_666];
    let minutes = [-2_208_988_800_000_000, 0, 3_453_235_140_000_000];
    let dates = [-719_162, -1, 0, 2_932_896];
    let offset = SqlType::DateTimeOffset { scale: 7 };
    let seconds = [-62_135_596_800_000_000, 0, 253_402_300_799_000_000];
    let times = ["00:00:00.0000000", "23:59:59.9999999", "12:34:56.7000000"];
    let samples = vec![
        ("c_date", SqlType::Date, dates.map(Cell::Date).to_vec()),
        ("c_datetime", SqlType::DateTime, ticks.map(Cell::Wall).to_vec()),
        ("c_small", SqlType::SmallDateTime, minutes.map(Cell::Wall).to_vec()),
        ("c_datetime2", SqlType::DateTime2 { scale: 7 }, moments.map(Cell::Wall).to_vec()),
        ("c_seconds", SqlType::DateTime2 { scale: 0 }, seconds.map(Cell::Wall).to_vec()),
        ("c_offset", offset, moments.map(Cell::Instant).to_vec()),
        ("c_time", SqlType::Time { scale: 7 }, times.map(Cell::text).to_vec()),
        ("c_time0", SqlType::Time { scale: 0 }, vec![Cell::text("23:59:59")]),
    ];
    round_trip(harness, samples).await
}

pub(super) async fn text_and_bytes_round_trip(harness: &dyn SourceHarness) -> CaseResult {
    let wide = ["", " ", "NULL", "a'b\"c", "Ελληνικά 数量", "\u{1F600}", "line\r\nline\ttab"];
    let wide = wide.map(Cell::text).to_vec();
    let narrow = ["", " ", "NULL", "a'b\"c;--"].map(Cell::text).to_vec();
    let bytes = [vec![], vec![0], vec![0, 0xff, 0x80], b"text".to_vec()];
    let bytes: Vec<_> = bytes.into_iter().map(Cell::Bytes).collect();
    let limited = Length::Limited(40);
    let id = Cell::text("6F9619FF-8B86-D011-B42D-00C04FC964FF");
    let long = Cell::text("0123456789".repeat(2_000));
    let mut max = wide.clone();
    max.push(long);
    let samples = vec![
        ("c_char", SqlType::Char(4), vec![Cell::text("ab  ")]),
        ("c_varchar", SqlType::VarChar(limited), narrow.clone()),
        ("c_varcharmax", SqlType::VarChar(Length::Max), narrow.clone()),
        ("c_nchar", SqlType::NChar(3), vec![Cell::text("ä  ")]),
        ("c_nvarchar", SqlType::NVarChar(limited), wide.clone()),
        ("c_nvarcharmax", SqlType::NVarChar(Length::Max), max),
        ("c_text", SqlType::Text, narrow),
        ("c_ntext", SqlType::NText, wide),
        ("c_guid", SqlType::UniqueIdentifier, vec![id]),
        ("c_binary", SqlType::Binary(3), vec![Cell::Bytes(vec![1, 0, 0])]),
        ("c_varbinary", SqlType::VarBinary(limited), bytes.clone()),
        ("c_varbinarymax", SqlType::VarBinary(Length::Max), bytes.clone()),
        ("c_image", SqlType::Image, bytes),
    ];
    round_trip(harness, samples).await
}

/// Stores every value of every column, and reads it as a change and as a row.
async fn round_trip(harness: &dyn SourceHarness, samples: Vec<Sample>) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let table = TableName::new("dbo", "samples");
    let instance = InstanceName::new("dbo_samples");
    let mut columns = vec![Column::new("id", 1, SqlType::Int, false)];
    let more = samples.iter().zip(2..);
    columns.extend(more.map(|(sample, id)| Column::new(sample.0, id, sample.1.clone(), true)));
    harness.create_table(&table, &columns, &["id"]).await?;
    harness.enable(&table, &instance, None).await?;
    harness.capture().await?;
    let before = scene.high().await?;

    let rows = samples.iter().map(|sample| sample.2.len()).max().unwrap_or(0) + 1;
    let mut expected = Vec::new();
    let mut statements = Vec::new();
    for (at, id) in (0..rows).zip(1..) {
        let mut cells = vec![Cell::Int(id)];
        let value = |sample: &Sample| sample.2.get(at).cloned().unwrap_or(Cell::Null);
        cells.extend(samples.iter().map(value));
        let names = columns.iter().map(|column| column.name.clone());
        expected.push(names.zip(cells.clone()).collect::<BTreeMap<_, _>>());
        statements.push(Statement::Insert(table.clone(), cells));
    }
    let high = scene.commit(&statements).await?;
    let news = range(before.increment(), high)?;
    let changes = scene.request(request(&instance, columns.clone(), news)).await?;
    same("changes", changes.len(), expected.len())?;
    for (change, expected) in changes.iter().zip(&expected) {
        same("a change", &change.cells, expected)?;
    }
    let all =
        RowRequest { table, columns, key: Vec::new(), range: KeyRange::default(), batch_rows: 3 };
    let mut read = Vec::new();
    for batch in scene::whole(scene.source.rows(all).await?).await? {
        read.extend(scene::cells(&batch, 0)?);
    }
    read.sort_by_key(|cells| cells.get("id").cloned());
    same("rows", read.len(), expected.len())?;
    for (row, expected) in read.iter().zip(&expected) {
        same("a row", row, expected)?;
    }
    Ok(Outcome::Passed)
}

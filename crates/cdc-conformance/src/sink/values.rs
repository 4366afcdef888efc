//! Values: what goes in comes out, to the last bit.

use cdc_core::{Column, ErrorKind, Length, SqlType};

use super::{
    Session, SinkHarness,
    session::{WIDTH, order, table},
};
use crate::{
    cell::Cell,
    feed::{self, Feed, commit},
    outcome::{Failure, check, names},
};

type Checked = Result<(), Failure>;

/// A column under test and the values it must keep. Every one gets a NULL besides.
type Sample = (&'static str, SqlType, Vec<Cell>);

pub(super) async fn numbers_keep_their_extremes(harness: &dyn SinkHarness) -> Checked {
    let ints = |low: i64, high: i64| [low, -1, 0, 1, high].map(Cell::Int).to_vec();
    let floats = [f64::MIN, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.0, -0.0, 0.1, 1.0 / 3.0];
    let reals = [f32::MIN, f32::MAX, f32::MIN_POSITIVE, 1e-45, 0.0, -0.0, 0.1];
    round_trip(
        harness,
        vec![
            ("bit", SqlType::Bit, vec![Cell::Bool(false), Cell::Bool(true)]),
            ("tinyint", SqlType::TinyInt, [0, 1, 255].map(Cell::Int).to_vec()),
            ("smallint", SqlType::SmallInt, ints(-32_768, 32_767)),
            ("int", SqlType::Int, ints(-2_147_483_648, 2_147_483_647)),
            ("bigint", SqlType::BigInt, ints(i64::MIN, i64::MAX)),
            ("real", SqlType::Real, reals.map(Cell::real).to_vec()),
            ("float", SqlType::Float, floats.map(Cell::float).to_vec()),
        ],
    )
    .await
}

pub(super) async fn decimals_keep_every_digit(harness: &dyn SinkHarness) -> Checked {
    let decimal = |precision, scale: u8| SqlType::Decimal { precision, scale };
    let digits = |precision: u32, scale: i8| {
        let top = 10_i128.saturating_pow(precision).saturating_sub(1);
        // Neighbours that a detour over floating point would merge.
        [-top, 1 - top, -1, 0, 1, top - 1, top].map(|digits| Cell::Decimal(digits, scale)).to_vec()
    };
    let money = |scale| {
        [i64::MIN, -1, 0, 1, i64::MAX].map(|digits| Cell::Decimal(digits.into(), scale)).to_vec()
    };
    let small = [-2_147_483_648, -1, 0, 2_147_483_647].map(|digits| Cell::Decimal(digits, 4));
    round_trip(
        harness,
        vec![
            ("d1_0", decimal(1, 0), digits(1, 0)),
            ("d9_2", decimal(9, 2), digits(9, 2)),
            ("d18_9", decimal(18, 9), digits(18, 9)),
            ("d19_0", decimal(19, 0), digits(19, 0)),
            ("d38_0", decimal(38, 0), digits(38, 0)),
            ("d38_19", decimal(38, 19), digits(38, 19)),
            ("d38_38", decimal(38, 38), digits(38, 38)),
            ("money", SqlType::Money, money(4)),
            ("smallmoney", SqlType::SmallMoney, small.to_vec()),
        ],
    )
    .await
}

pub(super) async fn dates_and_times_keep_their_extremes(harness: &dyn SinkHarness) -> Checked {
    // Year 1 and year 9999, as days and as microseconds since 1970-01-01.
    const FIRST_DAY: i32 = -719_162;
    const LAST_DAY: i32 = 2_932_896;
    const FIRST_MICROS: i64 = -62_135_596_800_000_000;
    const LAST_MICROS: i64 = 253_402_300_799_999_999;
    const FIRST_DATETIME: i64 = -6_847_804_800_000_000;
    let moments = [FIRST_MICROS, -1, 0, 1, 1_383_456_600_123_456, LAST_MICROS];
    let wall = moments.map(Cell::Wall).to_vec();
    let ticks = [FIRST_DATETIME, 0, 3_333, 6_666, 253_402_300_799_996_666];
    let minutes = [-2_208_988_800_000_000, 0, 3_453_235_140_000_000];
    let times = ["00:00:00.0000000", "23:59:59.9999999", "12:34:56.7000000"];
    round_trip(
        harness,
        vec![
            ("date", SqlType::Date, [FIRST_DAY, -1, 0, 1, LAST_DAY].map(Cell::Date).to_vec()),
            ("datetime", SqlType::DateTime, ticks.map(Cell::Wall).to_vec()),
            ("smalldatetime", SqlType::SmallDateTime, minutes.map(Cell::Wall).to_vec()),
            ("datetime2", SqlType::DateTime2 { scale: 7 }, wall),
            (
                "datetimeoffset",
                SqlType::DateTimeOffset { scale: 7 },
                moments.map(Cell::Instant).to_vec(),
            ),
            ("time", SqlType::Time { scale: 7 }, times.map(Cell::text).to_vec()),
        ],
    )
    .await
}

pub(super) async fn text_is_kept_as_it_is(harness: &dyn SinkHarness) -> Checked {
    let odd = [
        "",
        " ",
        "  both ends  ",
        "NULL",
        "null",
        "\\N",
        "line\r\nline\ttab",
        "'\"`\\/,;",
        "Ελληνικά",
        "\u{1F600} outside the basic plane \u{10FFFF}",
        "e\u{301} is not \u{e9}",
        "\u{FEFF}mark",
        "\u{1}\u{1f}\u{7f}",
    ];
    let odd = odd.map(Cell::text).to_vec();
    let limited = Length::Limited(60);
    let id = Cell::text("6F9619FF-8B86-D011-B42D-00C04FC964FF");
    round_trip(
        harness,
        vec![
            ("char", SqlType::Char(4), vec![Cell::text("ab  "), Cell::text("    ")]),
            ("varchar", SqlType::VarChar(limited), odd.clone()),
            ("varcharmax", SqlType::VarChar(Length::Max), odd.clone()),
            ("nchar", SqlType::NChar(3), vec![Cell::text("ä  ")]),
            ("nvarchar", SqlType::NVarChar(limited), odd.clone()),
            ("nvarcharmax", SqlType::NVarChar(Length::Max), odd.clone()),
            ("text", SqlType::Text, odd.clone()),
            ("ntext", SqlType::NText, odd),
            ("xml", SqlType::Xml, vec![Cell::text("<a b=\"1\">&amp;</a>")]),
            ("uniqueidentifier", SqlType::UniqueIdentifier, vec![id]),
        ],
    )
    .await
}

pub(super) async fn text_with_a_nul_is_kept_or_refused_by_name(
    harness: &dyn SinkHarness,
) -> Checked {
    let columns = vec![
        Column::new("id", 1, SqlType::Int, false),
        Column::new("remark", 2, SqlType::NText, true),
    ];
    let mut session = Session::open(harness, table("nul", columns)).await?;
    let rows = session.feed().insert(10, [Cell::Int(1), Cell::text("a\0b")]);
    if harness.keeps_nul_in_text() {
        session.stage(rows.changes()?).await?;
        session.commit(10).await?;
        return session.check("after the commit").await;
    }
    let result = match session.table.stage(rows.changes()?).await {
        Ok(()) => session.table.commit(commit(feed::mark(WIDTH, 1, 10)?)).await.map(drop),
        refusal => refusal,
    };
    let error = crate::outcome::refused("text with U+0000", result, ErrorKind::InvalidData)?;
    names(&error, "remark")?;
    names(&error, "nul")?;
    session.reattach().await?;
    session.check("after the refusal").await
}

pub(super) async fn bytes_are_kept_as_they_are(harness: &dyn SinkHarness) -> Checked {
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let odd = [vec![], vec![0], vec![0, 0], vec![0xff; 3], b"text".to_vec(), all];
    let odd: Vec<_> = odd.into_iter().map(Cell::Bytes).collect();
    let version = Cell::Bytes(vec![0, 0, 0, 0, 0, 0, 0x07, 0xd1]);
    round_trip(
        harness,
        vec![
            ("binary", SqlType::Binary(3), vec![Cell::Bytes(vec![1, 0, 0])]),
            ("varbinary", SqlType::VarBinary(Length::Limited(300)), odd.clone()),
            ("varbinarymax", SqlType::VarBinary(Length::Max), odd.clone()),
            ("image", SqlType::Image, odd),
            ("rowversion", SqlType::RowVersion, vec![version]),
        ],
    )
    .await
}

pub(super) async fn large_values_are_kept(harness: &dyn SinkHarness) -> Checked {
    const LARGE: usize = 1 << 20;
    let text = Cell::text("0123456789abcdef".repeat(LARGE / 16));
    round_trip(
        harness,
        vec![
            ("text", SqlType::NVarChar(Length::Max), vec![text]),
            ("bytes", SqlType::VarBinary(Length::Max), vec![Cell::Bytes(vec![0xa5; LARGE])]),
        ],
    )
    .await
}

pub(super) async fn columns_of_nothing_but_null_are_kept(harness: &dyn SinkHarness) -> Checked {
    let types = [
        SqlType::Bit,
        SqlType::BigInt,
        SqlType::Float,
        SqlType::Decimal { precision: 38, scale: 38 },
        SqlType::Date,
        SqlType::DateTime2 { scale: 7 },
        SqlType::DateTimeOffset { scale: 7 },
        SqlType::NText,
        SqlType::Image,
    ];
    let samples = types.into_iter().zip(NAMES);
    round_trip(harness, samples.map(|(kind, name)| (name, kind, Vec::new())).collect()).await
}

/// Names for columns that only their type tells apart.
const NAMES: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

pub(super) async fn an_error_never_carries_a_value(harness: &dyn SinkHarness) -> Checked {
    const PLANTED: &str = "planted-4c1d";
    const NUMBER: i128 = 987_654_321;
    let silent = |what: &str, error: cdc_core::Error| {
        let text = format!("{} {} {error:?}", error.report(), error.advice());
        check(
            !text.contains(PLANTED) && !text.contains("987654321") && !text.contains("9876543.21"),
            format!("the error of {what} carries a value"),
        )
    };
    let planted = order(5, PLANTED, NUMBER);

    let mut session = Session::filled(harness).await?;
    let mut columns = session.spec.columns.clone();
    columns.push(Column::new("surprise", 9, SqlType::NText, true));
    let mut cells = planted.clone();
    cells.push(Cell::text(PLANTED));
    let rows = Feed::new(&columns).insert(11, cells).changes()?;
    match session.table.stage(rows).await {
        Err(error) => silent("an unknown column", error)?,
        Ok(()) => return Err(Failure::new("an unknown column was taken")),
    }

    session.reattach().await?;
    let batch = session.feed().insert(11, planted.clone()).changes()?;
    session.table.stage(batch).await?;
    match session.table.commit(commit(feed::mark(WIDTH, 9, 11)?)).await {
        Err(error) => silent("a skipped sequence", error)?,
        Ok(_) => return Err(Failure::new("a skipped sequence was taken")),
    }

    session.reattach().await?;
    let text = Cell::text(format!("{PLANTED}\0"));
    let batch = session.feed().insert(11, [Cell::Int(6), text]).changes()?;
    if let Err(error) = session.table.stage(batch).await {
        silent("text with U+0000", error)?;
    }

    session.reattach().await?;
    let mut old = session.sink.attach(&session.spec).await?.table;
    session.reattach().await?;
    let batch = session.feed().insert(11, planted).changes()?;
    let result = match old.stage(batch).await {
        Ok(()) => old.commit(commit(feed::mark(WIDTH, 2, 11)?)).await.map(drop),
        refusal => refusal,
    };
    match result {
        Err(error) => silent("a fenced runner", error),
        Ok(()) => Err(Failure::new("a fenced runner wrote")),
    }
}

/// Writes every value of every column as a change and as a snapshot row, and reads them back.
async fn round_trip(harness: &dyn SinkHarness, samples: Vec<Sample>) -> Checked {
    let mut columns = vec![Column::new("id", 1, SqlType::Int, false)];
    let more = samples.iter().zip(2..);
    columns.extend(more.map(|(sample, id)| Column::new(sample.0, id, sample.1.clone(), true)));
    let mut session = Session::open(harness, table("values", columns)).await?;
    // One row more than the longest sample, so that every column has a NULL.
    let rows = samples.iter().map(|sample| sample.2.len()).max().unwrap_or(0) + 1;
    let row = |id: i64, at: usize| {
        let cell = |sample: &Sample| sample.2.get(at).cloned().unwrap_or(Cell::Null);
        let mut cells = vec![Cell::Int(id)];
        cells.extend(samples.iter().map(cell));
        cells
    };
    let changes =
        (0..rows).zip(1..).fold(session.feed(), |feed, (at, id)| feed.insert(11, row(id, at)));
    let snapshot =
        (0..rows).zip(1001..).fold(session.feed(), |feed, (at, id)| feed.insert(10, row(id, at)));
    session.stage(snapshot.snapshot(feed::stamp(WIDTH, 10)?)?).await?;
    session.stage(changes.changes()?).await?;
    session.commit(11).await?;
    session.check("after the commit").await
}

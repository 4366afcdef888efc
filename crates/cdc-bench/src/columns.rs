//! The data set's table: twelve columns of mixed types, filled from a seed.
//!
//! Half of the rows come as the two images of an update, which differ in a few columns, as change
//! rows do. Keys repeat; one text column is short and has a thousand values, one is long and has
//! hardly two alike, one is NULL in three rows of four.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int16Array, Int32Array,
    Int64Array, StringArray, TimestampMicrosecondArray,
};
use cdc_core::{Column, Length, SqlType, TableName, TableSpec};
use cdc_fake::{TableDefinition, Value};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Outcome;

/// The seed of every data set.
pub(crate) const SEED: u64 = 20_261_130;

/// Keys in the table.
const KEYS: i64 = 400_000;

const WORDS: [&str; 16] = [
    "harbour", "granite", "meadow", "lantern", "copper", "willow", "summit", "ember", "cobalt",
    "orchard", "quarry", "saffron", "tundra", "velvet", "juniper", "zenith",
];

/// The captured columns.
pub(crate) fn columns() -> Vec<Column> {
    let types = [
        ("id", SqlType::BigInt, false),
        ("customer", SqlType::Int, false),
        ("status", SqlType::TinyInt, false),
        ("active", SqlType::Bit, false),
        ("amount", SqlType::Decimal { precision: 19, scale: 4 }, false),
        ("weight", SqlType::Decimal { precision: 38, scale: 10 }, true),
        ("rate", SqlType::Float, true),
        ("placed", SqlType::DateTime2 { scale: 6 }, false),
        ("due", SqlType::Date, true),
        ("code", SqlType::VarChar(Length::Limited(20)), false),
        ("title", SqlType::NVarChar(Length::Limited(100)), false),
        ("note", SqlType::NVarChar(Length::Limited(400)), true),
    ];
    let column = |((name, sql_type, nullable), id)| Column::new(name, id, sql_type, nullable);
    types.into_iter().zip(1..).map(column).collect()
}

/// The table as a sink keeps it.
pub(crate) fn spec(name: &str) -> Outcome<TableSpec> {
    let source = TableName::new("dbo", name);
    Ok(TableSpec::new(name, source, columns(), vec!["id".into()])?)
}

/// The table as the fake server keeps it.
pub(crate) fn table_definition(name: &str) -> TableDefinition {
    columns().iter().fold(TableDefinition::new(name), |table, column| {
        if column.nullable {
            table.nullable(&column.name, column.sql_type.clone())
        } else {
            table.column(&column.name, column.sql_type.clone())
        }
    })
}

/// A row as a statement gives it.
pub(crate) fn values(row: &Row) -> Vec<Value> {
    let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
    vec![
        row.id.into(),
        row.customer.into(),
        i32::from(row.status).into(),
        row.active.into(),
        Value::decimal(row.amount),
        or_null(row.weight.map(Value::decimal)),
        or_null(row.rate.map(Value::from)),
        // 100 ns, as the server keeps them.
        Value::DateTime2(row.placed.saturating_mul(10)),
        or_null(row.due.map(Value::Date)),
        row.code.as_str().into(),
        row.title.as_str().into(),
        or_null(row.note.as_deref().map(Value::from)),
    ]
}

/// One row's values.
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) customer: i32,
    pub(crate) status: i16,
    pub(crate) active: bool,
    pub(crate) amount: i128,
    pub(crate) weight: Option<i128>,
    pub(crate) rate: Option<f64>,
    pub(crate) placed: i64,
    pub(crate) due: Option<i32>,
    pub(crate) code: String,
    pub(crate) title: String,
    pub(crate) note: Option<String>,
}

/// Rows from a seed, two at a time.
pub(crate) struct Rows {
    random: ChaCha8Rng,
}

impl Rows {
    pub(crate) fn new(part: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(SEED.wrapping_add(part)) }
    }

    /// A row with a new draw of every column.
    pub(crate) fn row(&mut self) -> Row {
        let random = &mut self.random;
        let id = random.random_range(0..KEYS);
        let customers = random.random_range(1..50_000);
        Row {
            id,
            // A few customers have most of the orders.
            customer: random.random_range(0..customers),
            status: random.random_range(0..6),
            active: random.random_bool(0.9),
            amount: i128::from(random.random_range(0..5_000_000_i64)),
            weight: random
                .random_bool(0.8)
                .then(|| i128::from(random.random_range(0..9_000_000_000_000_i64)) * 1_000),
            rate: random.random_bool(0.9).then(|| f64::from(random.random::<f32>())),
            placed: 1_780_000_000_000_000 + random.random_range(0..2_592_000_000_000_i64),
            due: random.random_bool(0.7).then(|| 20_600 + random.random_range(0..90)),
            code: format!("SKU-{:05}", random.random_range(0..1_000) * 97),
            title: self.title(),
            note: self.note(),
        }
    }

    /// The row after an update of `row`.
    pub(crate) fn updated(&mut self, row: &Row) -> Row {
        let random = &mut self.random;
        Row {
            status: (row.status + 1) % 6,
            amount: row.amount + random.random_range(0..10_000),
            rate: row.rate.map(|rate| rate + 0.5),
            code: row.code.clone(),
            title: row.title.clone(),
            note: row.note.clone(),
            ..*row
        }
    }

    fn title(&mut self) -> String {
        let word = self.words(3);
        format!("{word} {}", self.random.random_range(0..100_000))
    }

    fn note(&mut self) -> Option<String> {
        self.random.random_bool(0.25).then(|| self.words(12))
    }

    fn words(&mut self, count: usize) -> String {
        let mut text = String::with_capacity(count * 8);
        for _ in 0..count {
            let at: usize = self.random.random_range(0..WORDS.len());
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(WORDS.get(at).copied().unwrap_or_default());
        }
        text
    }
}

/// What a unit of two rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The two images of an update.
    Update,
    /// Two rows of their own: inserted, or, one of them, deleted.
    Singles,
}

/// Whether a unit is an update, by its number alone.
pub(crate) fn unit(number: usize) -> Unit {
    if number.is_multiple_of(2) { Unit::Update } else { Unit::Singles }
}

/// The captured columns of `rows` rows (an even number), part `part` of the data set.
pub(crate) fn captured(part: u64, rows: usize) -> Outcome<Vec<ArrayRef>> {
    let mut draw = Rows::new(part);
    let mut drawn = Vec::with_capacity(rows);
    for number in 0..rows / 2 {
        let first = draw.row();
        let second = match unit(number) {
            Unit::Update => draw.updated(&first),
            Unit::Singles => draw.row(),
        };
        drawn.push(first);
        drawn.push(second);
    }
    let all = || drawn.iter();
    let amount: Decimal128Array = all().map(|row| Some(row.amount)).collect();
    let weight: Decimal128Array = all().map(|row| row.weight).collect();
    Ok(vec![
        Arc::new(all().map(|row| Some(row.id)).collect::<Int64Array>()),
        Arc::new(all().map(|row| Some(row.customer)).collect::<Int32Array>()),
        Arc::new(all().map(|row| Some(row.status)).collect::<Int16Array>()),
        Arc::new(all().map(|row| Some(row.active)).collect::<BooleanArray>()),
        Arc::new(amount.with_precision_and_scale(19, 4)?),
        Arc::new(weight.with_precision_and_scale(38, 10)?),
        Arc::new(all().map(|row| row.rate).collect::<Float64Array>()),
        Arc::new(all().map(|row| Some(row.placed)).collect::<TimestampMicrosecondArray>()),
        Arc::new(all().map(|row| row.due).collect::<Date32Array>()),
        Arc::new(all().map(|row| Some(row.code.as_str())).collect::<StringArray>()),
        Arc::new(all().map(|row| Some(row.title.as_str())).collect::<StringArray>()),
        Arc::new(all().map(|row| row.note.as_deref()).collect::<StringArray>()),
    ])
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use super::*;

    #[test]
    fn the_same_part_is_the_same_rows_and_another_part_others() {
        let (a, b) = (captured(1, 64).unwrap(), captured(1, 64).unwrap());
        assert_eq!(a, b);
        assert_ne!(a, captured(2, 64).unwrap());
    }

    #[test]
    fn the_arrays_have_the_columns_types() {
        let arrays = captured(1, 8).unwrap();
        let columns = columns();
        assert_eq!((arrays.len(), columns.len()), (12, 12));
        for (array, column) in arrays.iter().zip(&columns) {
            assert_eq!(array.data_type(), column.field().unwrap().data_type(), "{}", column.name);
            assert_eq!(array.len(), 8);
        }
    }
}

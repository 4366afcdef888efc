//! File statistics as the log holds them, with bounds that are right for every reader.
//!
//! A bound may be wider than the values, never narrower. Readers parse the JSON in two ways: as
//! exact decimal text or as a 64-bit float; timestamps to the millisecond. So
//!
//! * a decimal with more than 15 digits is rounded outward to 15 and moved one more unit of the
//!   15th outward, which is more than a float's error;
//! * a timestamp is rounded outward to the millisecond;
//! * a text is cut to 32 characters, a greatest one then raised at its last character;
//! * a bound that JSON or the type cannot say is left out, as is any bound of a column with NaN.

use std::cmp::Ordering;

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch,
    cast::AsArray,
    types::{
        Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
        TimestampMicrosecondType,
    },
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use chrono::{DateTime, Datelike, TimeDelta};
use parquet::file::metadata::RowGroupMetaData;

/// Characters of a text that a bound keeps.
const TEXT_MAX: usize = 32;
/// Digits that a 64-bit float always keeps.
const FLOAT_DIGITS: u32 = 15;

/// The statistics of one data file while it is written.
#[derive(Debug)]
pub(crate) struct FileStats {
    rows: u64,
    columns: Vec<ColumnStats>,
}

#[derive(Debug)]
struct ColumnStats {
    name: String,
    index: usize,
    nulls: u64,
    bounds: Bounds,
}

#[derive(Debug)]
enum Bounds {
    None,
    Whole(Option<(i64, i64)>),
    Decimal(u8, i8, Option<(i128, i128)>),
    Float { range: Option<(f64, f64)>, nan: bool },
    Date(Option<(i64, i64)>),
    Time { zone: bool, range: Option<(i64, i64)> },
    Text(Option<TextRange>),
}

#[derive(Debug)]
struct TextRange {
    least: String,
    greatest: String,
    /// Some text goes on after `greatest`.
    longer: bool,
}

impl FileStats {
    /// Statistics of the columns of `schema` whose names `measured` holds.
    pub(crate) fn new(schema: &Schema, measured: impl Fn(&str) -> bool) -> Self {
        let columns = schema
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| measured(field.name()))
            .map(|(index, field)| ColumnStats::new(index, field));
        Self { rows: 0, columns: columns.collect() }
    }

    /// Takes the rows of a batch.
    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows() as u64;
        for column in &mut self.columns {
            if let Some(array) = batch.columns().get(column.index) {
                column.nulls += array.null_count() as u64;
                column.bounds.add(array);
            }
        }
    }

    /// Takes the bounds of texts from the ended file's own statistics: the writer has compared all
    /// texts once already, and comparing them is dear. Its bounds hold every text, cut or not.
    pub(crate) fn end(&mut self, groups: &[RowGroupMetaData]) {
        for column in &mut self.columns {
            let Bounds::Text(range) = &mut column.bounds else {
                continue;
            };
            for group in groups {
                let statistics = group.columns().get(column.index).and_then(|c| c.statistics());
                let bound = |bytes: Option<&[u8]>| {
                    bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).map(str::to_owned)
                };
                let least = statistics.and_then(|s| bound(s.min_bytes_opt()));
                let greatest = statistics.and_then(|s| bound(s.max_bytes_opt()));
                match least.zip(greatest) {
                    Some((least, greatest)) => {
                        widen_text(range, &least);
                        widen_text(range, &greatest);
                    }
                    // A group of NULLs alone has no bounds and needs none.
                    None if statistics.and_then(|s| s.null_count_opt())
                        == u64::try_from(group.num_rows()).ok() => {}
                    None => {
                        column.bounds = Bounds::None;
                        break;
                    }
                }
            }
        }
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The JSON text of the log.
    pub(crate) fn json(&self) -> String {
        let bounds: Vec<_> = self.columns.iter().map(|c| c.bounds.json()).collect();
        let section = |pick: &dyn Fn(usize) -> Option<String>| {
            let parts: Vec<_> = self
                .columns
                .iter()
                .enumerate()
                .filter_map(|(at, column)| Some(format!("{}:{}", quoted(&column.name), pick(at)?)))
                .collect();
            parts.join(",")
        };
        let least = section(&|at| bounds.get(at)?.0.clone());
        let greatest = section(&|at| bounds.get(at)?.1.clone());
        let nulls = section(&|at| Some(self.columns.get(at)?.nulls.to_string()));
        format!(
            "{{\"numRecords\":{},\"minValues\":{{{least}}},\"maxValues\":{{{greatest}}},\
             \"nullCount\":{{{nulls}}}}}",
            self.rows
        )
    }
}

impl ColumnStats {
    fn new(index: usize, field: &Field) -> Self {
        let bounds = match field.data_type() {
            DataType::Int16 | DataType::Int32 | DataType::Int64 => Bounds::Whole(None),
            DataType::Decimal128(precision, scale) => Bounds::Decimal(*precision, *scale, None),
            DataType::Float32 | DataType::Float64 => Bounds::Float { range: None, nan: false },
            DataType::Date32 => Bounds::Date(None),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                Bounds::Time { zone: zone.is_some(), range: None }
            }
            DataType::Utf8 => Bounds::Text(None),
            _ => Bounds::None,
        };
        Self { name: field.name().clone(), index, nulls: 0, bounds }
    }
}

impl Bounds {
    fn add(&mut self, array: &ArrayRef) {
        match self {
            Self::None => {}
            Self::Whole(range) => match array.data_type() {
                DataType::Int16 => widen_by::<Int16Type, _>(range, array, i64::from),
                DataType::Int32 => widen_by::<Int32Type, _>(range, array, i64::from),
                _ => widen_by::<Int64Type, _>(range, array, |value| value),
            },
            Self::Decimal(_, _, range) => {
                widen_by::<Decimal128Type, _>(range, array, |value| value);
            }
            Self::Date(range) => widen_by::<Date32Type, _>(range, array, i64::from),
            Self::Time { range, .. } => {
                widen_by::<TimestampMicrosecondType, _>(range, array, |value| value);
            }
            Self::Float { range, nan } => {
                if let Some(values) = array.as_primitive_opt::<Float32Type>() {
                    floats(range, nan, values.iter().flatten().map(f64::from));
                } else if let Some(values) = array.as_primitive_opt::<Float64Type>() {
                    floats(range, nan, values.iter().flatten());
                }
            }
            // See [`FileStats::end`].
            Self::Text(_) => {}
        }
    }

    /// The least and greatest bound as JSON text.
    fn json(&self) -> (Option<String>, Option<String>) {
        match self {
            Self::Whole(Some((least, greatest))) => {
                (Some(least.to_string()), Some(greatest.to_string()))
            }
            Self::Decimal(precision, scale, Some((least, greatest))) => (
                decimal_bound(*least, *precision, *scale, false),
                decimal_bound(*greatest, *precision, *scale, true),
            ),
            Self::Float { range: Some((least, greatest)), nan: false } => {
                (float_bound(*least), float_bound(*greatest))
            }
            Self::Date(Some((least, greatest))) => (date_bound(*least), date_bound(*greatest)),
            Self::Time { zone, range: Some((least, greatest)) } => (
                time_bound(least.checked_sub(least.rem_euclid(1_000)), *zone),
                time_bound(ceil_millis(*greatest), *zone),
            ),
            Self::Text(Some(range)) => (Some(quoted(&range.least)), greatest_text(range)),
            _ => (None, None),
        }
    }
}

fn widen_by<T: ArrowPrimitiveType<Native: Ord>, N: Ord + Copy>(
    range: &mut Option<(N, N)>,
    array: &ArrayRef,
    widen: impl Fn(T::Native) -> N,
) {
    let Some(values) = array.as_any().downcast_ref::<PrimitiveArray<T>>() else {
        return;
    };
    let found = if values.null_count() == 0 {
        extremes(values.values().iter().copied())
    } else {
        extremes(values.iter().flatten())
    };
    if let Some((low, high)) = found.map(|(low, high)| (widen(low), widen(high))) {
        *range = Some(match *range {
            None => (low, high),
            Some((least, greatest)) => (least.min(low), greatest.max(high)),
        });
    }
}

/// The least and the greatest value.
fn extremes<N: Ord + Copy>(mut values: impl Iterator<Item = N>) -> Option<(N, N)> {
    let first = values.next()?;
    Some(
        values.fold((first, first), |(least, greatest), value| {
            (least.min(value), greatest.max(value))
        }),
    )
}

fn floats(range: &mut Option<(f64, f64)>, nan: &mut bool, values: impl Iterator<Item = f64>) {
    for value in values {
        if value.is_nan() {
            *nan = true;
            continue;
        }
        // Readers order the two zeros in different ways: the bounds take both in.
        let (low, high) = if value == 0.0 { (-0.0, 0.0) } else { (value, value) };
        *range = Some(match *range {
            None => (low, high),
            Some((least, greatest)) => (
                if low.total_cmp(&least) == Ordering::Less { low } else { least },
                if high.total_cmp(&greatest) == Ordering::Greater { high } else { greatest },
            ),
        });
    }
}

fn float_bound(value: f64) -> Option<String> {
    // Nothing for the infinities. The shortest text that parses to the same float.
    serde_json::Number::from_f64(value).map(|number| number.to_string())
}

fn date_bound(days: i64) -> Option<String> {
    let day = DateTime::UNIX_EPOCH.date_naive().checked_add_signed(TimeDelta::try_days(days)?)?;
    (1..=9999).contains(&day.year()).then(|| format!("\"{}\"", day.format("%Y-%m-%d")))
}

fn ceil_millis(micros: i64) -> Option<i64> {
    match micros.rem_euclid(1_000) {
        0 => Some(micros),
        part => micros.checked_add(1_000 - part),
    }
}

fn time_bound(micros: Option<i64>, zone: bool) -> Option<String> {
    let moment = DateTime::from_timestamp_micros(micros?)?;
    let zone = if zone { "Z" } else { "" };
    (1..=9999)
        .contains(&moment.year())
        .then(|| format!("\"{}{zone}\"", moment.format("%Y-%m-%dT%H:%M:%S%.3f")))
}

fn decimal_bound(value: i128, precision: u8, scale: i8, up: bool) -> Option<String> {
    let digits = value.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    let bound = if digits <= FLOAT_DIGITS {
        value
    } else {
        let unit = 10i128.checked_pow(digits - FLOAT_DIGITS)?;
        let down = value.checked_sub(value.rem_euclid(unit))?;
        if up { down.checked_add(unit.checked_mul(2)?)? } else { down.checked_sub(unit)? }
    };
    let limit = 10u128.checked_pow(u32::from(precision))?;
    (bound.unsigned_abs() < limit).then(|| decimal_text(bound, scale))
}

/// The exact decimal text of `value` / 10^`scale`.
pub(crate) fn decimal_text(value: i128, scale: i8) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = value.unsigned_abs().to_string();
    let Ok(scale) = usize::try_from(scale) else {
        let zeros = usize::from(scale.unsigned_abs());
        return format!("{sign}{digits}{}", "0".repeat(zeros));
    };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, part) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{part}")
}

fn widen_text(range: &mut Option<TextRange>, text: &str) {
    let kept = head(text);
    let longer = kept.len() < text.len();
    match range {
        None => {
            *range = Some(TextRange { least: kept.to_owned(), greatest: kept.to_owned(), longer });
        }
        Some(range) => {
            if kept < range.least.as_str() {
                kept.clone_into(&mut range.least);
            }
            match kept.cmp(range.greatest.as_str()) {
                Ordering::Less => {}
                Ordering::Equal => range.longer |= longer,
                Ordering::Greater => {
                    kept.clone_into(&mut range.greatest);
                    range.longer = longer;
                }
            }
        }
    }
}

/// The first characters of a text.
fn head(text: &str) -> &str {
    if text.len() <= TEXT_MAX {
        return text;
    }
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// The greatest text, raised at its last character that has a next one when it was cut.
fn greatest_text(range: &TextRange) -> Option<String> {
    if !range.longer {
        return Some(quoted(&range.greatest));
    }
    let mut text = range.greatest.clone();
    while let Some(last) = text.pop() {
        // The range steps over the surrogates, which are no characters.
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Some(quoted(&text));
        }
    }
    None
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;

//! Every bound holds every value, whichever way a reader parses it.

use std::sync::Arc;

use arrow_array::{
    Date32Array, Decimal128Array, Float32Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;

use super::*;

/// The bounds of one column as a reader of the JSON text finds them, still as text.
fn bounds(array: ArrayRef) -> (Option<String>, Option<String>) {
    let field = Field::new("c", array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let mut stats = FileStats::new(&schema, |_| true);
    let rows = array.len();
    let nulls = array.null_count();
    // In two batches, as a file is written.
    let middle = rows / 2;
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), None).unwrap();
    for part in [array.slice(0, middle), array.slice(middle, rows - middle)] {
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![part]).unwrap();
        stats.add(&batch);
        writer.write(&batch).unwrap();
        writer.flush().unwrap();
    }
    stats.end(writer.finish().unwrap().row_groups());
    let text = stats.json();
    let json: serde_json::Value = serde_json::from_str(&text).expect(&text);
    assert_eq!(json["numRecords"], rows);
    assert_eq!(json["nullCount"]["c"], nulls);
    let raw = stats.columns[0].bounds.json();
    assert_eq!(json["minValues"].get("c").is_some(), raw.0.is_some());
    raw
}

/// A decimal text as a whole number of units of 10^-`scale`.
fn units(text: &str, scale: i8) -> i128 {
    let digits: String = text.chars().filter(|c| *c != '.').collect();
    let part = text.split_once('.').map_or(0, |(_, part)| part.len());
    assert_eq!(part, usize::try_from(scale).unwrap());
    digits.parse().unwrap()
}

/// Compares a float with `value` / 10^`scale` exactly: the float's own decimal expansion is
/// finite, so its text with all digits is exact.
fn float_cmp(float: f64, value: i128, scale: i8) -> Ordering {
    let text = format!("{:.1080}", float.abs());
    let (whole, part) = text.split_once('.').unwrap();
    let exact = format!("{whole}{part}");
    let zeros = "0".repeat(1080 - usize::try_from(scale).unwrap());
    let own = format!("{}{zeros}", value.unsigned_abs());
    let trim = |text: &str| text.trim_start_matches('0').to_owned();
    let (a, b) = (trim(&exact), trim(&own));
    let magnitude = a.len().cmp(&b.len()).then_with(|| a.cmp(&b));
    match (float < 0.0, value < 0) {
        (false, false) => magnitude,
        (true, true) => magnitude.reverse(),
        (true, false) if a.is_empty() && b.is_empty() => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

fn decimals() -> impl Strategy<Value = (u8, i8, Vec<Option<i128>>)> {
    (1u8..=38).prop_flat_map(|precision| (Just(precision), 0..=precision)).prop_flat_map(
        |(precision, scale)| {
            let limit = 10i128.pow(u32::from(precision));
            let value = prop_oneof![
                (1 - limit)..limit,
                Just(limit - 1),
                Just(1 - limit),
                -9i128.min(limit - 1)..9.min(limit),
            ];
            (
                Just(precision),
                Just(i8::try_from(scale).unwrap()),
                prop::collection::vec(prop::option::of(value), 1..20),
            )
        },
    )
}

proptest! {
    #[test]
    fn decimal_bounds_hold_for_exact_readers_and_for_floats((precision, scale, values) in decimals()) {
        let array = Decimal128Array::from(values.clone())
            .with_precision_and_scale(precision, scale)
            .unwrap();
        let (least, greatest) = bounds(Arc::new(array));
        for value in values.into_iter().flatten() {
            for (bound, side) in [(&least, Ordering::Less), (&greatest, Ordering::Greater)] {
                let Some(text) = bound else { continue };
                let exact = units(text, scale).cmp(&value);
                prop_assert!(exact == side || exact == Ordering::Equal, "{text} {value}");
                let float: f64 = text.parse().unwrap();
                let digits = units(text, scale).unsigned_abs().to_string().len();
                if digits <= 15 {
                    // Such a reader turns the value into a float too, or the bound back.
                    let own: f64 = decimal_text(value, scale).parse().unwrap();
                    let order = float.total_cmp(&own);
                    prop_assert!(order == side || float == own, "{text} {value}");
                    let back = format!("{float:.*}", usize::try_from(scale).unwrap());
                    prop_assert_eq!(units(&back, scale), units(text, scale));
                } else {
                    prop_assert_eq!(float_cmp(float, value, scale), side, "{} {}", text, value);
                }
            }
        }
    }

    #[test]
    fn whole_number_bounds_are_exact(values in prop::collection::vec(any::<i64>(), 1..20)) {
        let (least, greatest) = bounds(Arc::new(Int64Array::from(values.clone())));
        prop_assert_eq!(least, values.iter().min().map(ToString::to_string));
        prop_assert_eq!(greatest, values.iter().max().map(ToString::to_string));
    }

    #[test]
    fn float_bounds_hold_every_float(values in prop::collection::vec(any::<f64>(), 1..20)) {
        let (least, greatest) = bounds(Arc::new(Float64Array::from(values.clone())));
        for value in values {
            for (bound, side) in [(&least, Ordering::Less), (&greatest, Ordering::Greater)] {
                if let Some(text) = bound {
                    let order = text.parse::<f64>().unwrap().total_cmp(&value);
                    prop_assert!(order == side || order == Ordering::Equal, "{text} {value}");
                }
            }
        }
    }

    #[test]
    fn short_float_bounds_hold_as_both_widths(values in prop::collection::vec(any::<f32>(), 1..20)) {
        let (least, greatest) = bounds(Arc::new(Float32Array::from(values.clone())));
        for value in values {
            for (bound, side) in [(&least, Ordering::Less), (&greatest, Ordering::Greater)] {
                if let Some(text) = bound {
                    let wide = text.parse::<f64>().unwrap().total_cmp(&f64::from(value));
                    prop_assert!(wide == side || wide == Ordering::Equal, "{text} {value}");
                    let own = text.parse::<f32>().unwrap().total_cmp(&value);
                    prop_assert!(own == side || own == Ordering::Equal, "{text} {value}");
                }
            }
        }
    }

    #[test]
    fn time_bounds_hold_to_the_millisecond(
        values in prop::collection::vec(-62_135_596_800_000_000i64..253_402_300_800_000_000, 1..20),
        zone in any::<bool>(),
    ) {
        let array = TimestampMicrosecondArray::from(values.clone());
        let array = if zone { array.with_timezone("UTC") } else { array };
        let (least, greatest) = bounds(Arc::new(array));
        let parse = |text: &String| {
            let bare = text.trim_matches('"');
            prop_assert_eq!(bare.ends_with('Z'), zone);
            let wall: chrono::NaiveDateTime = bare.trim_end_matches('Z').parse().unwrap();
            Ok(wall.and_utc().timestamp_micros())
        };
        let floor = |micros: i64| micros - micros.rem_euclid(1_000);
        for value in values {
            if let Some(text) = &least {
                prop_assert!(parse(text)? <= value);
            }
            if let Some(text) = &greatest {
                // A reader that cuts the bound to the millisecond sees the same.
                prop_assert!(floor(parse(text)?) >= value);
            }
        }
    }

    #[test]
    fn date_bounds_hold(values in prop::collection::vec(-719_162i32..2_932_897, 1..20)) {
        let (least, greatest) = bounds(Arc::new(Date32Array::from(values.clone())));
        let day = |days: &i32| DateTime::UNIX_EPOCH.date_naive() + TimeDelta::days(i64::from(*days));
        prop_assert_eq!(least, values.iter().map(day).min().map(|day| format!("\"{day}\"")));
        prop_assert_eq!(greatest, values.iter().map(day).max().map(|day| format!("\"{day}\"")));
    }

    #[test]
    fn text_bounds_hold_and_are_short(
        values in prop::collection::vec("[a\u{10ffff}\u{d7ff}é\"\\\\]{0,40}", 1..20),
    ) {
        let (least, greatest) = bounds(Arc::new(StringArray::from(values.clone())));
        let parse = |text: String| serde_json::from_str::<String>(&text).unwrap();
        let least = parse(least.expect("always"));
        let greatest = greatest.map(parse);
        for value in &values {
            prop_assert!(least <= *value);
            prop_assert!(greatest.as_ref().is_none_or(|greatest| greatest >= value));
        }
        prop_assert!(least.chars().count() <= TEXT_MAX);
        prop_assert!(greatest.is_none_or(|text| text.chars().count() <= TEXT_MAX));
    }
}

#[test]
fn texts_that_the_writer_cut_keep_their_bounds_over_row_groups_of_nulls() {
    let long = |first: char| Some(format!("{first}{}", "\u{1F600}".repeat(40)));
    let values = [None, None, long('b'), long('a')];
    let (least, greatest) = bounds(Arc::new(StringArray::from_iter(values)));
    let least: String = serde_json::from_str(&least.expect("known")).unwrap();
    let greatest: String = serde_json::from_str(&greatest.expect("known")).unwrap();
    assert!(least <= long('a').unwrap() && least.starts_with('a'));
    assert!(greatest >= long('b').unwrap() && greatest.starts_with('b'));
    let nothing = bounds(Arc::new(StringArray::from(vec![None::<&str>, None])));
    assert_eq!(nothing, (None, None));
}

#[test]
fn what_json_cannot_say_is_left_out() {
    let floats = |values: &[f64]| bounds(Arc::new(Float64Array::from(values.to_vec())));
    assert_eq!(floats(&[1.0, f64::NAN]), (None, None));
    assert_eq!(floats(&[f64::NEG_INFINITY, 1.5]), (None, Some("1.5".into())));
    assert_eq!(floats(&[f64::INFINITY, 1.5]), (Some("1.5".into()), None));
    assert_eq!(floats(&[0.0]), (Some("-0.0".into()), Some("0.0".into())));
    let nothing = bounds(Arc::new(Int64Array::from(vec![None, None])));
    assert_eq!(nothing, (None, None));
    let last = TimestampMicrosecondArray::from(vec![253_402_300_799_999_999]);
    let (least, greatest) = bounds(Arc::new(last));
    assert_eq!(least.as_deref(), Some("\"9999-12-31T23:59:59.999\""));
    assert_eq!(greatest, None);
}

#[test]
fn a_cut_text_is_raised_past_the_surrogates_and_left_out_at_the_end() {
    let texts = |text: String| bounds(Arc::new(StringArray::from(vec![text]))).1;
    let long = |last: char| format!("{}{last}x", "a".repeat(31));
    assert_eq!(texts(long('\u{d7ff}')), Some(format!("\"{}\u{e000}\"", "a".repeat(31))));
    assert_eq!(texts(long(char::MAX)), Some(format!("\"{}b\"", "a".repeat(30))));
    assert_eq!(texts(char::MAX.to_string().repeat(33)), None);
}

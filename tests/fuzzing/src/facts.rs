//! Facts of a batch in the user metadata of a commit.

use arbitrary::{Result, Unstructured};
use arrow_array::{Array, Int64Array, cast::AsArray};
use cdc_core::{BatchEvent, BatchEventKind, BatchFacts, Commit, Stamp, Timestamp};
use cdc_delta::fuzzing::Facts;
use serde_json::Value;

use crate::draw;

const SEQUENCE: u64 = 7;

/// Runs one input: as somebody's text, and as a commit of our own.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        foreign(text);
    }
    if let Ok(commit) = commit(&mut Unstructured::new(data)) {
        own(&commit);
    }
}

/// Text is the facts of the batch that it says it is of; it survives a round trip and makes rows.
fn foreign(text: &str) {
    if let Some(facts) = Facts::of_text(text, SEQUENCE) {
        let again = facts.text().unwrap();
        same(&facts, &Facts::of_text(&again, SEQUENCE).unwrap());
        assert_eq!(Facts::of_text(&again, SEQUENCE + 1), None);
        rows(&facts, SEQUENCE);
    }
}

/// What a commit carries comes back.
fn own(commit: &Commit) {
    let facts = Facts::of_commit("dbo.t", commit);
    let text = facts.text().unwrap();
    let sequence = commit.mark.sequence;
    same(&facts, &Facts::of_text(&text, sequence).unwrap());
    assert_eq!(facts.events(), commit.events.len());
    rows(&facts, sequence);
}

/// The same cells; a fraction to fifteen digits, which is more than any figure here has.
fn same(a: &Facts, b: &Facts) {
    let value = |facts: &Facts| serde_json::from_str::<Value>(&facts.text().unwrap()).unwrap();
    assert!(alike(&value(a), &value(b)), "{a:?} {b:?}");
}

fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= a.abs() * 1e-15
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && alike(a.1, b.1))
        }
        (a, b) => a == b,
    }
}

fn rows(facts: &Facts, sequence: u64) {
    let rows = facts.rows(Timestamp::from_micros(1)).unwrap();
    assert_eq!(rows.num_rows(), 1 + facts.events());
    let numbers: &Int64Array = rows.column_by_name("batch_id").unwrap().as_primitive();
    assert!(numbers.is_valid(0));
    assert_eq!(u64::try_from(numbers.value(0)), Ok(sequence));
}

fn commit(input: &mut Unstructured<'_>) -> Result<Commit> {
    let mark = draw::mark(input)?;
    let mut facts = BatchFacts::begun(Timestamp::from_micros(input.arbitrary()?));
    facts.counts.rows = input.arbitrary()?;
    facts.counts.updates = input.arbitrary()?;
    if input.arbitrary()? {
        facts.counts.first = Some(stamp(input)?);
        facts.counts.last = Some(stamp(input)?);
    }
    facts.duration_ms = input.arbitrary()?;
    facts.read_seconds = input.arbitrary()?;
    facts.read_bytes = input.arbitrary()?;
    facts.retention_watermark = draw::moment(input)?;
    facts.source_commit_time = draw::moment(input)?;
    facts.capture_lag_seconds = input.arbitrary()?;
    for _ in 0..input.int_in_range(0..=2)? {
        facts.warnings.push(input.arbitrary()?);
    }
    let mut events = Vec::new();
    for _ in 0..input.int_in_range(0..=2)? {
        let kinds = [
            BatchEventKind::SchemaChange,
            BatchEventKind::CaptureInstanceSwitched,
            BatchEventKind::DataSkipped,
        ];
        let lost = if input.arbitrary()? {
            Some((draw::moment(input)?, draw::moment(input)?))
        } else {
            None
        };
        let kind = *input.choose(&kinds)?;
        events.push(BatchEvent { kind, at: stamp(input)?, lost, detail: input.arbitrary()? });
    }
    Ok(Commit { mark, facts, events })
}

fn stamp(input: &mut Unstructured<'_>) -> Result<Stamp> {
    Ok(Stamp { position: draw::position(input)?, commit_time: draw::moment(input)? })
}

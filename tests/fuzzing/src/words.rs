//! The small languages of the configuration and the rows of sample files.

use cdc_cli::fuzzing::{duration, sample_rows, sample_tables, size, table_name};
use cdc_core::{ErrorKind, Granularity};

/// What no message may repeat from a file of rows.
const PLANTED: &str = "planted7";

/// Runs one input: the first byte says what the rest is.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    if kind % 8 >= 4 {
        return rows(usize::from(kind % 4), rest);
    }
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    match kind % 4 {
        0 => name(text),
        1 => pause(text),
        2 => bytes(text),
        _ => period(text),
    }
}

/// A name has two parts, and reads back from brackets.
fn name(text: &str) {
    match table_name(text) {
        Ok(name) => {
            assert!(!name.schema.is_empty() && !name.name.is_empty());
            let part = |part: &str| format!("[{}]", part.replace(']', "]]"));
            let quoted = format!("{}.{}", part(&name.schema), part(&name.name));
            assert_eq!(table_name(&quoted).as_ref(), Ok(&name), "{quoted}");
        }
        Err(message) => assert!(message.contains("schema.table")),
    }
}

/// A duration is the sum of its parts, in whole milliseconds.
fn pause(text: &str) {
    let Some(found) = duration(text) else {
        return;
    };
    let millis = found.as_millis();
    assert_eq!(duration(&format!("{millis}ms")), Some(found));
    let longer = duration(&format!("{text} 1ms")).map(|longer| longer.as_millis());
    assert_eq!(longer, u64::try_from(millis + 1).ok().map(u128::from), "{text:?}");
}

/// A size is the sum of its parts.
fn bytes(text: &str) {
    let Some(found) = size(text) else {
        return;
    };
    assert_eq!(size(&format!("{found}B")), Some(found));
    assert_eq!(size(&format!("1B{text}")), found.checked_add(1), "{text:?}");
}

fn period(text: &str) {
    match text.parse::<Granularity>() {
        Ok(period) => assert_eq!(period.to_string(), text),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Config);
            assert_eq!(error.context("setting"), Some("granularity"));
        }
    }
}

/// A row has a cell for each column; what is refused is refused with its place and not its text.
fn rows(table: usize, bytes: &[u8]) {
    let tables = sample_tables();
    let (_, columns) = &tables[table];
    match sample_rows(table, bytes).unwrap() {
        Ok(rows) => assert!(rows.iter().all(|cells| *cells == columns.len())),
        Err(error) => {
            let kind = error.kind();
            assert!(matches!(kind, ErrorKind::Config | ErrorKind::InvalidData), "{kind}");
            assert!(error.context("line").or(error.context("column")).is_some());
            assert!(!error.report().contains(PLANTED), "{}", error.report());
        }
    }
}

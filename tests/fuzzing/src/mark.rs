//! Marks in `txn` entries, positions in the text of control, and directories of tables.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use cdc_core::ErrorKind;
use cdc_delta::fuzzing::{directory_name, entries_of, entry_names, mark_of, position_bytes};

use crate::draw;

const TABLE: &str = "dbo.t";

/// Runs one input: the first byte says what the rest is.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    let text = || String::from_utf8_lossy(rest);
    match kind % 4 {
        0 => position(&text()),
        1 => directory(&text()),
        _ => {
            let mut input = Unstructured::new(rest);
            if let Ok(entries) = entries(&mut input) {
                read(&entries);
            }
        }
    }
}

/// The entries of a mark, some of them overwritten, removed or strange.
fn entries(input: &mut Unstructured<'_>) -> Result<BTreeMap<String, i64>> {
    let mark = draw::mark(input)?;
    let mut entries: BTreeMap<String, i64> =
        entries_of(TABLE, &mark).unwrap().into_iter().collect();
    assert_eq!(mark_of(TABLE, &entries).unwrap(), Some(mark));
    let names = entry_names(TABLE);
    for _ in 0..input.int_in_range(0..=6)? {
        let name = input.choose(&names)?.clone();
        let number = input.arbitrary::<i64>()? >> input.int_in_range(0..=63u32)?;
        if input.ratio(1, 4)? {
            entries.remove(&name);
        } else {
            entries.insert(name, number);
        }
    }
    Ok(entries)
}

/// A mark that is read is the one that these entries say, bit for bit; anything else is damage
/// that names its entry.
fn read(entries: &BTreeMap<String, i64>) {
    match mark_of(TABLE, entries) {
        Ok(Some(mark)) => {
            for (name, number) in entries_of(TABLE, &mark).unwrap() {
                // A time that is not known may hold anything.
                let unknown = name.ends_with("/commit_time") && mark.commit_time.is_none();
                assert!(unknown || entries.get(&name) == Some(&number), "{name}");
            }
        }
        Ok(None) => assert!(!entries.contains_key("cdc/dbo.t/sequence")),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{}", error.report());
            assert_eq!(error.context("table"), Some(TABLE));
            assert!(error.context("entry").is_some_and(|name| name.starts_with("cdc/dbo.t/")));
        }
    }
}

/// A stored position is pairs of hex digits behind `0x`, and nothing else is one.
fn position(text: &str) {
    let digits = text.strip_prefix("0x").filter(|digits| {
        digits.len() % 2 == 0 && digits.chars().all(|digit| digit.is_ascii_hexdigit())
    });
    let found = position_bytes(text);
    assert_eq!(found.is_some(), digits.is_some(), "{text:?}");
    if let (Some(bytes), Some(digits)) = (found, digits) {
        let again: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(again, digits.to_ascii_lowercase());
    }
}

/// A table's directory is one plain step down, and tells its table.
fn directory(table: &str) {
    let name = directory_name(table);
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.@".contains(c);
    assert!(name.chars().all(plain) && !name.starts_with('.'), "{name}");
    assert_eq!(name.is_empty(), table.is_empty());
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'@', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap().to_owned();
                (u8::from_str_radix(&digits, 16).unwrap(), after)
            }
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    assert_eq!(bytes, table.as_bytes());
}

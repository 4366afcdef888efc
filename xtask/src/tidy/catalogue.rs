//! What must be written down: an invariant for each crate, an entry for each fixture.

use std::collections::BTreeMap;

use crate::{Finding, Tree};

const MAP: &str = "ARCHITECTURE.md";
const FIXTURES: &str = "fixtures/";
const CATALOGUE: &str = "fixtures/README.md";

/// `ARCHITECTURE.md` has one line with "Invariant:" for each crate under `crates/`, which names the
/// crate in backticks.
#[must_use]
pub fn each_crate_has_an_invariant(tree: &Tree) -> Vec<Finding> {
    const RULE: &str = "each-crate-has-an-invariant";
    let mut lines: BTreeMap<&str, Vec<usize>> = tree
        .paths()
        .filter_map(|path| {
            let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            Some((name, Vec::new()))
        })
        .collect();
    let mut findings = Vec::new();
    for (index, line) in tree.text(MAP).unwrap_or_default().lines().enumerate() {
        let Some((_, sentence)) = line.split_once("Invariant:") else {
            continue;
        };
        // The line's subject is the first name in backticks, before or behind the word.
        let subject = ticked(line).or_else(|| ticked(sentence)).unwrap_or_default();
        match lines.get_mut(subject) {
            Some(found) => found.push(index + 1),
            None => findings.push(Finding::new(
                MAP,
                index + 1,
                RULE,
                "name the crate in backticks first; no crate has this name",
            )),
        }
    }
    for (name, found) in lines {
        match found.as_slice() {
            [_] => {}
            [] => findings.push(Finding::new(
                MAP,
                1,
                RULE,
                format!("add a line \"Invariant: `{name}` …\" that says what is absent there"),
            )),
            [_, again, ..] => findings.push(Finding::new(
                MAP,
                *again,
                RULE,
                format!("keep one invariant line for `{name}`"),
            )),
        }
    }
    findings
}

/// `fixtures/README.md` has one table row for each file under `fixtures/`, whose first cell is the
/// file's path in backticks, and no row without its file.
#[must_use]
pub fn fixtures_are_catalogued(tree: &Tree) -> Vec<Finding> {
    const RULE: &str = "fixtures-are-catalogued";
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    let mut findings = Vec::new();
    for (index, line) in tree.text(CATALOGUE).unwrap_or_default().lines().enumerate() {
        let Some(path) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) else {
            continue;
        };
        if rows.insert(path, index + 1).is_some() {
            findings.push(Finding::new(
                CATALOGUE,
                index + 1,
                RULE,
                format!("keep one row for {path}"),
            ));
        }
    }
    let fixtures = tree
        .paths()
        .filter(|path| *path != CATALOGUE)
        .filter_map(|path| path.strip_prefix(FIXTURES));
    for fixture in fixtures {
        if rows.remove(fixture).is_none() {
            findings.push(Finding::new(
                &format!("{FIXTURES}{fixture}"),
                1,
                RULE,
                format!("add it to {CATALOGUE}: what it shows, its origin and licence, its users"),
            ));
        }
    }
    findings.extend(rows.into_iter().map(|(path, line)| {
        Finding::new(
            CATALOGUE,
            line,
            RULE,
            format!("remove the row or add the file: {path} does not exist"),
        )
    }));
    findings
}

/// The first text in backticks.
fn ticked(line: &str) -> Option<&str> {
    line.split('`').nth(1)
}

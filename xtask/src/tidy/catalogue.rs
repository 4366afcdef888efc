//! What must be written down: an invariant for each crate, an entry for each fixture, a reason for
//! each dependency, a link to each page.

use std::collections::BTreeMap;

use toml::Table;

use crate::{Finding, Tree};

const MANIFEST: &str = "Cargo.toml";
const REASONS: &str = "adr/0004-dependencies-and-build-cost.md";
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

/// Each dependency of the workspace that is not its own package stands in the table of reasons, in
/// backticks in the first cell of a row, and each first cell there names dependencies.
#[must_use]
pub fn dependencies_have_a_reason(tree: &Tree) -> Vec<Finding> {
    const RULE: &str = "dependencies-have-a-reason";
    let manifest = tree.text(MANIFEST).unwrap_or_default();
    let table = manifest.parse::<Table>().unwrap_or_default();
    let declared = table
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(toml::Value::as_table);
    let mut left: BTreeMap<&str, ()> = declared
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.get("path").is_none())
        .map(|(name, _)| (name.as_str(), ()))
        .collect();
    let mut findings = Vec::new();
    for (index, line) in tree.text(REASONS).unwrap_or_default().lines().enumerate() {
        let Some(cell) = line.strip_prefix("| `").and_then(|rest| rest.split(" |").next()) else {
            continue;
        };
        // A package's name on its registry stands in parentheses behind the dependency's.
        for part in cell.split(", ") {
            let name = part.trim_start_matches('`').split('`').next().unwrap_or_default();
            if left.remove(name).is_none() {
                findings.push(Finding::new(
                    REASONS,
                    index + 1,
                    RULE,
                    format!("remove {name}: it is no dependency, or has a row already"),
                ));
            }
        }
    }
    findings.extend(left.into_keys().map(|name| {
        let line = manifest.lines().position(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
        });
        let advice = format!("say in {REASONS} what {name} is for");
        Finding::new(MANIFEST, line.map_or(1, |index| index + 1), RULE, advice)
    }));
    findings
}

/// Each page in a directory below `docs/` is linked by that directory's `README.md`.
#[must_use]
pub fn pages_are_linked(tree: &Tree) -> Vec<Finding> {
    tree.paths()
        .filter(|path| path.starts_with("docs/") && path.ends_with(".md"))
        .filter_map(|path| path.rsplit_once('/').map(|(directory, page)| (path, directory, page)))
        .filter(|(_, directory, page)| *directory != "docs" && *page != "README.md")
        .filter_map(|(path, directory, page)| {
            let list = format!("{directory}/README.md");
            let linked = tree.text(&list).is_some_and(|text| text.contains(&format!("]({page})")));
            (!linked)
                .then(|| Finding::new(path, 1, "pages-are-linked", format!("link it in {list}")))
        })
        .collect()
}

/// The first text in backticks.
fn ticked(line: &str) -> Option<&str> {
    line.split('`').nth(1)
}

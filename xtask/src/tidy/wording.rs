//! The project speaks of itself alone: no path of the machine it was written on.

use crate::{Finding, Tree};

/// Beginnings of absolute paths that no user has. Split, so that this file does not hold them.
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// No text file names a path of a machine.
#[must_use]
pub fn no_machine_paths(tree: &Tree) -> Vec<Finding> {
    tree.texts()
        .flat_map(|(path, text)| {
            text.lines().enumerate().filter_map(move |(index, line)| {
                let named = MACHINE_PATHS.iter().find(|machine| holds(line, machine))?;
                Some(Finding::new(
                    path,
                    index + 1,
                    "no-machine-paths",
                    format!("write a path relative to the checkout instead of {named}…"),
                ))
            })
        })
        .collect()
}

/// Whether `line` holds `path` as the start of an absolute path, not in the middle of another.
fn holds(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-' | '}' | '>'))
    })
}

//! Many simulations in a row: the kept scripts first, then fresh seeds, with what they met.

use std::{
    collections::BTreeMap,
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use crate::{
    coverage,
    invariant::{Invariant, Violation},
    script::Script,
    shrink::shrink,
    world::{Outcome, play},
};

/// The directory of the kept scripts: each broke an invariant once.
#[must_use]
pub fn regressions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions")
}

/// The kept scripts by name, in order.
///
/// # Errors
/// When a file cannot be read or is no script.
pub fn kept() -> io::Result<Vec<(String, Script)>> {
    let mut scripts = Vec::new();
    for entry in fs::read_dir(regressions())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            scripts.push((name, read(&path)?));
        }
    }
    scripts.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(scripts)
}

/// A script from its file.
///
/// # Errors
/// When the file cannot be read or is no script.
pub fn read(path: &Path) -> io::Result<Script> {
    let wrong = |error| io::Error::other(format!("{}: {error}", path.display()));
    serde_json::from_str(&fs::read_to_string(path)?).map_err(wrong)
}

/// Plays a script; a panic is a broken invariant too.
#[must_use]
pub fn guarded(script: &Script) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| play(script))).unwrap_or_else(|panic| {
        let told = panic.downcast_ref::<String>().cloned();
        let told = told.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Outcome {
            violation: Some(Violation {
                invariant: Invariant::NoPanic,
                detail: told.unwrap_or_default(),
            }),
            ..Outcome::default()
        }
    })
}

/// What many simulations came to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Simulations.
    pub plays: u64,
    /// Steps of their scripts.
    pub steps: u64,
    /// Events in their traces.
    pub events: u64,
    /// What was met, and how often.
    pub counts: BTreeMap<String, u64>,
}

impl Summary {
    /// Takes one more simulation.
    pub fn add(&mut self, outcome: &Outcome) {
        self.plays += 1;
        self.steps += outcome.steps;
        self.events += outcome.events;
        for (what, times) in &outcome.counts {
            *self.counts.entry(what.clone()).or_default() += times;
        }
    }

    /// What should have been met and was not.
    #[must_use]
    pub fn never_met(&self) -> Vec<String> {
        coverage::wanted().into_iter().filter(|what| !self.counts.contains_key(what)).collect()
    }
}

/// A failing script, shrunk.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What it breaks.
    pub violation: Violation,
    /// The shrunk script.
    pub script: Script,
    /// The events of the shrunk script.
    pub lines: Vec<String>,
}

/// Shrinks a script that breaks an invariant.
#[must_use]
pub fn explain(script: &Script, violation: Violation) -> Failure {
    let script = shrink(script, violation.invariant);
    let outcome = guarded(&script);
    Failure { violation: outcome.violation.unwrap_or(violation), script, lines: outcome.lines }
}

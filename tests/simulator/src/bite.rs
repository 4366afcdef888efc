//! The proof that the simulator bites: with each planted bug, how many seeds it takes until an
//! invariant breaks.

use std::collections::BTreeMap;

use cdc_core::planted::{self, Planted};

use crate::{campaign::guarded, draw::draw, invariant::Violation, script::Script};

/// The seed that catches a bug, as the last campaign found it.
#[must_use]
pub fn caught_by(bug: Planted) -> Option<u64> {
    let seeds: BTreeMap<String, u64> = serde_json::from_str(include_str!("../bites.json")).ok()?;
    seeds.get(bug.name()).copied()
}

/// What became of one planted bug.
#[derive(Clone, Debug)]
pub struct Bite {
    /// The bug.
    pub bug: Planted,
    /// The seed that caught it, and what it broke.
    pub caught: Option<(u64, Violation)>,
}

/// Plays fresh seeds from `first` on with a bug, until one is caught. Nothing stays planted.
#[must_use]
pub fn bite(bug: Planted, first: u64, seeds: u64) -> Bite {
    let caught = (first..first.saturating_add(seeds))
        .find_map(|seed| broken(Some(bug), &draw(seed)).map(|violation| (seed, violation)));
    Bite { bug, caught }
}

/// What a script breaks with a bug.
#[must_use]
pub fn broken(bug: Option<Planted>, script: &Script) -> Option<Violation> {
    planted::set(bug);
    let outcome = guarded(script);
    planted::set(None);
    outcome.violation
}

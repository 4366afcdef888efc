//! The rules of the source tree. Each is a function from a [`Tree`] to its breaches, so a test can
//! plant one.

mod ban;
mod catalogue;
mod contract;
mod dependency;
mod escape;
mod layout;
mod manifest;
mod panics;
mod signature;
mod wording;

#[cfg(test)]
mod tests;

pub use ban::{DETERMINISTIC, bans_are_listed};
pub use catalogue::{
    dependencies_have_a_reason, each_crate_has_an_invariant, fixtures_are_catalogued,
    pages_are_linked,
};
pub use contract::ports_state_their_contract;
pub use dependency::{core_stays_small, dependencies_point_inwards, lints_are_shared};
pub use escape::bans_are_not_waived;
pub use layout::{
    files_are_short, files_say_what_they_are_for, functions_are_short, lines_are_short,
    long_tests_have_their_own_file, modules_are_nouns,
};
pub use panics::{nothing_panics, tests_are_not_ignored};
pub use signature::drivers_stay_inside;
pub use wording::no_machine_paths;

use crate::{Finding, Tree};

/// A rule: what it looks at is the tree alone.
pub type Rule = fn(&Tree) -> Vec<Finding>;

/// Every rule.
pub const RULES: [Rule; 20] = [
    core_stays_small,
    dependencies_point_inwards,
    lints_are_shared,
    bans_are_listed,
    bans_are_not_waived,
    drivers_stay_inside,
    modules_are_nouns,
    files_say_what_they_are_for,
    files_are_short,
    long_tests_have_their_own_file,
    functions_are_short,
    lines_are_short,
    nothing_panics,
    tests_are_not_ignored,
    each_crate_has_an_invariant,
    fixtures_are_catalogued,
    dependencies_have_a_reason,
    pages_are_linked,
    ports_state_their_contract,
    no_machine_paths,
];

/// Every breach of every rule, in the order of the files.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = tree.unreadable().to_vec();
    findings.extend(RULES.iter().flat_map(|rule| rule(tree)));
    findings.sort();
    findings
}

//! The simulator replays, its kept scripts hold, and it bites.

use cdc_sim::{
    campaign::{guarded, kept},
    draw::draw,
    world::play,
};

#[test]
fn every_kept_script_holds() {
    for (name, script) in kept().expect("readable") {
        let violation = guarded(&script).violation;
        assert!(violation.is_none(), "{name}: {}", violation.expect("broken"));
    }
}

#[test]
fn two_plays_of_a_seed_give_the_same_trace() {
    for seed in [1, 2, 7, 11] {
        let script = draw(seed);
        let (one, other) = (play(&script), play(&script));
        let differing = one.lines.iter().zip(&other.lines).find(|(one, other)| one != other);
        assert_eq!(differing, None, "seed {seed}");
        assert_eq!(one.hash, other.hash, "seed {seed}");
        assert_eq!(one.counts, other.counts, "seed {seed}");
        assert!(one.events > 100, "seed {seed} does something");
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn each_planted_bug_is_caught_by_its_seed() {
    use cdc_core::planted::Planted;
    use cdc_sim::bite::{broken, caught_by};

    for bug in Planted::ALL {
        let seed = caught_by(*bug).unwrap_or_else(|| panic!("no seed is known for {bug}"));
        assert!(broken(Some(*bug), &draw(seed)).is_some(), "{bug} passes seed {seed}");
    }
}

//! Makes a failing script short: the same invariant is still broken, by fewer steps.

use crate::{
    campaign::guarded,
    invariant::Invariant,
    script::{Script, Start, Step, Trouble},
};

/// Plays that shrinking may take.
pub const PLAYS_MAX: u32 = 600;

/// A shorter script that breaks the same invariant.
#[must_use]
pub fn shrink(script: &Script, invariant: Invariant) -> Script {
    let mut best = script.clone();
    let mut plays = 0;
    let mut fails = |candidate: &Script| {
        plays += 1;
        plays <= PLAYS_MAX
            && guarded(candidate).violation.is_some_and(|found| found.invariant == invariant)
    };
    loop {
        let before = best.clone();
        shorten(&mut best, &mut fails);
        simplify(&mut best, &mut fails);
        if best == before {
            return best;
        }
    }
}

/// Leaves steps out: halves first, then single ones.
fn shorten(best: &mut Script, fails: &mut impl FnMut(&Script) -> bool) {
    let mut chunk = best.steps.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        while at < best.steps.len() {
            let mut candidate = best.clone();
            let end = (at + chunk).min(candidate.steps.len());
            candidate.steps.drain(at..end);
            if fails(&candidate) {
                *best = candidate;
            } else {
                at += chunk;
            }
        }
        chunk /= 2;
    }
}

/// Makes the world and the runs plainer.
fn simplify(best: &mut Script, fails: &mut impl FnMut(&Script) -> bool) {
    let plainer: [fn(&mut Script); 6] = [
        |script| script.world.tables.truncate(1),
        |script| script.world.parts = false,
        |script| script.world.lag = 0,
        |script| script.world.checkpoints = 50,
        |script| script.world.start = Start::Before,
        |script| script.world.place = crate::script::Place::UtcYearEnd,
    ];
    for change in plainer {
        try_change(best, fails, change);
    }
    for index in 0..best.steps.len() {
        let runs: [fn(&mut crate::script::Run); 8] = [
            |run| run.trouble = Trouble::NONE,
            |run| run.trouble.aim = None,
            |run| run.trouble = Trouble { aim: run.trouble.aim, ..Trouble::NONE },
            |run| run.two = false,
            |run| run.seconds = None,
            |run| run.commits_max = None,
            |run| run.rows_max = 1_000,
            |run| run.batch_rows = 100,
        ];
        for change in runs {
            try_change(best, fails, |script| {
                if let Some(Step::Run(run)) = script.steps.get_mut(index) {
                    change(run);
                }
            });
        }
    }
}

fn try_change(
    best: &mut Script,
    fails: &mut impl FnMut(&Script) -> bool,
    change: impl Fn(&mut Script),
) {
    let mut candidate = best.clone();
    change(&mut candidate);
    if candidate != *best && fails(&candidate) {
        *best = candidate;
    }
}

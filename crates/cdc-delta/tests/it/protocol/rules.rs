//! The rules that hold in every state of the protocol.

use super::{
    steps::{Protocol, Reply},
    world::{Kind, Phase, World, bit},
};

pub(crate) const ONCE: &str = "each batch is in the log once, in order";
pub(crate) const TOGETHER: &str = "rows and mark appear in one version";
pub(crate) const FENCE: &str = "no older runner commits above a newer fence";
pub(crate) const BELIEVED: &str = "what a runner believes committed is in the log";
pub(crate) const DISCARDED: &str = "no version names a file that was deleted";
pub(crate) const BELOW: &str = "facts and verdict rest on a durable mark";
pub(crate) const ALARM: &str = "no runner stops for a reason that is not there";
pub(crate) const ALONE: &str = "a runner that is left alone gets everything done";

/// Steps that a lone runner needs at most: two attaches and every batch.
const ALONE_MAX: usize = 100;

impl Protocol {
    pub(super) fn rule_broken(&mut self, world: &World) -> Option<&'static str> {
        let (mut rows, mut marks, mut owner, mut visible) = (0, 0, 0, 0);
        for entry in world.log() {
            if entry.kind == Kind::Foreign {
                continue;
            }
            if entry.kind == Kind::Fence {
                owner = entry.runner;
                continue;
            }
            if entry.runner != owner {
                return Some(FENCE);
            }
            if entry.kind != Kind::Mark {
                if entry.sequence != rows + 1 {
                    return Some(ONCE);
                }
                rows += 1;
                visible |= bit(entry.runner, entry.sequence);
            }
            if entry.kind != Kind::Rows {
                marks = entry.sequence;
            }
            if rows != marks {
                return Some(TOGETHER);
            }
        }
        if world.believed & !visible != 0 || world.runners.iter().any(|own| own.mark > marks) {
            return Some(BELIEVED);
        }
        if world.discarded & visible != 0 {
            return Some(DISCARDED);
        }
        if world.facts > marks || world.verdict > marks {
            return Some(BELOW);
        }
        if world.alarm {
            return Some(ALARM);
        }
        if self.looks_ahead && !(self.finishes_alone(world, 0) && self.finishes_alone(world, 1)) {
            return Some(ALONE);
        }
        None
    }

    /// True when the runner at `index` gets everything done while nothing else happens. One that
    /// is refused is started again.
    fn finishes_alone(&mut self, world: &World, index: usize) -> bool {
        let mut walked = Vec::new();
        let (mut world, mut index) = (*world, index);
        while !self.finishes[index].contains(&world) {
            let all = self.bounds.batches;
            let done = world.mark(world.len) == all && world.facts == all && world.verdict == all;
            if walked.len() > ALONE_MAX || world.alarm {
                return false;
            }
            walked.push((index, world));
            if done {
                break;
            }
            let before = world.len;
            self.act(&mut world, index, Reply::Plain);
            let own = world.runners[index];
            world = world.settled(before);
            index = usize::from(world.runners[0] != own);
            debug_assert!(own.phase == Phase::Out || world.runners[index].id == own.id);
        }
        for (index, world) in walked {
            self.finishes[index].insert(world);
        }
        true
    }
}

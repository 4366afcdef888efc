//! The state of the model: a log that is written by put-if-absent, two runners, what is on its
//! way, and the ledgers that follow the mark.

use std::hash::{Hash, Hasher};

/// Room for the entries of a log; what the bounds allow is less.
const ROOM: usize = 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A writer that is no runner.
    #[default]
    Foreign,
    /// A runner took the table.
    Fence,
    /// The rows of a batch and its mark.
    Batch,
    /// Rows alone, as no correct protocol writes them.
    Rows,
    /// A mark alone, as no correct protocol writes it.
    Mark,
}

/// One version of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// The runner that wrote it.
    pub(crate) runner: u8,
    pub(crate) fence: u8,
    /// The batch.
    pub(crate) sequence: u8,
}

impl Entry {
    fn number(self) -> u64 {
        u64::from_le_bytes([self.kind as u8, self.runner, self.fence, self.sequence, 0, 0, 0, 0])
    }
}

/// What a runner does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Not there: not started, ended, refused, or dead.
    #[default]
    Out,
    /// Attach: see that the table is not older than that.
    FirstLook,
    /// Attach: see the newest fence and the mark.
    Look,
    /// Attach: put the fence right above what was seen.
    Claim,
    /// Attach: open the table that the put created, as no correct protocol does.
    Open,
    /// Attach: write the facts that a dead runner owes.
    Repair,
    /// Rows are staged: see that the version below the next is there.
    Confirm,
    /// Put rows and mark right above the newest version known.
    Put,
    /// Put the second half, as no correct protocol does.
    Second,
    /// The put did not succeed, or its reply was lost: read the log.
    Reload,
    /// Write the facts of the batch.
    Facts,
    /// See that the fence is still the own one before a verdict.
    Owner,
    /// Write the verdict.
    Verdict,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Runner {
    /// Counted over all starts, so that a runner that starts again is another one.
    pub(crate) id: u8,
    pub(crate) phase: Phase,
    /// Versions in its snapshot: the number of the next one.
    pub(crate) seen: u8,
    pub(crate) fence: u8,
    /// The last batch that it knows to be durable.
    pub(crate) mark: u8,
    /// What the ledgers said at the attach.
    pub(crate) facts: u8,
    pub(crate) known: u8,
    pub(crate) attempt: u8,
    /// The log may name its files, or may do so later.
    pub(crate) named: bool,
}

impl Runner {
    fn number(self) -> u64 {
        let flags = u8::from(self.named) << 7 | self.attempt;
        u64::from_le_bytes([
            self.id,
            self.phase as u8,
            self.seen,
            self.fence,
            self.mark,
            self.facts,
            self.known,
            flags,
        ])
    }

    /// Between a look at the log and the put that rests on it.
    fn rests_on_a_look(self) -> bool {
        matches!(self.phase, Phase::Claim | Phase::Open | Phase::Put | Phase::Second)
    }
}

/// What a put found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Done {
    Made,
    Taken,
    /// It filled a gap that a cleanup left. The store cannot tell that from a success.
    Gap,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct World {
    entries: [Entry; ROOM],
    pub(crate) len: u8,
    /// Versions below are no files any more: a checkpoint holds their content.
    pub(crate) gone: u8,
    /// Gaps below `gone` that a put filled, as bits.
    gaps: u32,
    pub(crate) runners: [Runner; 2],
    /// Puts whose sender has given up waiting. Each may still arrive.
    pub(crate) late: [Entry; 2],
    /// What the ledgers rest on.
    pub(crate) facts: u8,
    pub(crate) verdict: u8,
    /// Batches that a runner believes to be in the log, by runner and sequence.
    pub(crate) believed: u32,
    /// Batches whose files were deleted.
    pub(crate) discarded: u32,
    /// A runner stopped for a reason that is not there.
    pub(crate) alarm: bool,
    pub(crate) starts: u8,
    pub(crate) crashes: u8,
    pub(crate) lost: u8,
    pub(crate) foreign: u8,
    pub(crate) cleanups: u8,
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for entry in self.log() {
            state.write_u64(entry.number());
        }
        for runner in self.runners {
            state.write_u64(runner.number());
        }
        for entry in self.late {
            state.write_u64(entry.number());
        }
        let small = [self.len, self.gone, self.facts, self.verdict, u8::from(self.alarm)];
        let spent = [self.starts, self.crashes, self.lost, self.foreign, self.cleanups];
        for numbers in [small, spent] {
            let [a, b, c, d, e] = numbers;
            state.write_u64(u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]));
        }
        state.write_u64(u64::from(self.gaps));
        state.write_u64(u64::from(self.believed) << 32 | u64::from(self.discarded));
    }
}

/// The bit of a runner's batch.
pub(crate) fn bit(runner: u8, sequence: u8) -> u32 {
    1 << (runner * 4 + sequence)
}

impl World {
    /// What a reader sees, checkpoint or not.
    pub(crate) fn log(&self) -> &[Entry] {
        &self.entries[..self.len as usize]
    }

    /// The number of the newest fence in the first `versions` versions.
    pub(crate) fn fence(&self, versions: u8) -> u8 {
        self.newest(versions, |entry| entry.fence)
    }

    /// The newest durable mark in the first `versions` versions.
    pub(crate) fn mark(&self, versions: u8) -> u8 {
        self.newest(versions, |entry| if entry.kind == Kind::Rows { 0 } else { entry.sequence })
    }

    fn newest(&self, versions: u8, what: impl Fn(Entry) -> u8) -> u8 {
        let mut version = versions as usize;
        while version > 0 {
            version -= 1;
            let found = what(self.entries[version]);
            if found > 0 {
                return found;
            }
        }
        0
    }

    /// True when the file of a version is in the log.
    pub(crate) fn has(&self, version: u8) -> bool {
        version < self.len && version >= self.gone || self.gaps & (1 << version) != 0
    }

    /// Creates the file of a version unless it is there.
    pub(crate) fn put(&mut self, version: u8, entry: Entry) -> Done {
        if version == self.len {
            self.entries[version as usize] = entry;
            self.len += 1;
            return Done::Made;
        }
        assert!(version < self.len, "a put beyond the log: {self:?}");
        if self.has(version) {
            return Done::Taken;
        }
        self.gaps |= 1 << version;
        Done::Gap
    }

    /// As [`World::put`], but a file that is there is replaced.
    pub(crate) fn replace(&mut self, version: u8, entry: Entry) -> Done {
        if version < self.len {
            self.entries[version as usize] = entry;
            return Done::Made;
        }
        self.put(version, entry)
    }

    /// A checkpoint of the newest version, and the removal of the files below. No cleanup is so
    /// quick that it takes what somebody has just looked at. False when nothing goes.
    pub(crate) fn clean(&mut self) -> bool {
        let mut gone = self.len.saturating_sub(1);
        for runner in self.runners {
            if runner.rests_on_a_look() {
                gone = gone.min(runner.seen);
            }
        }
        let more = gone > self.gone;
        self.gone = gone.max(self.gone);
        more
    }

    /// Puts the next version's request among those on their way. False when there is no room.
    pub(crate) fn delay(&mut self, entry: Entry) -> bool {
        let room = self.late.iter_mut().find(|late| **late == Entry::default());
        room.map(|room| *room = entry).is_some()
    }

    /// The state in the one form that stands for all that differ in names alone, and without
    /// what can have no effect any more.
    pub(crate) fn settled(mut self, before: u8) -> Self {
        if self.len != before {
            // Every request on its way is for the version that was the next one.
            self.late = Default::default();
        }
        if self.late[0] > self.late[1] {
            self.late.swap(0, 1);
        }
        if self.runners[0] > self.runners[1] {
            self.runners.swap(0, 1);
        }
        self
    }
}

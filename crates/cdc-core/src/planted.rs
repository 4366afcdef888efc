//! Mistakes that are made on purpose, to see that the simulator finds them. For tests only.
//!
//! Each mistake has one switch and sits as close as it can to the line it spoils. Without the
//! feature `planted-bugs` no switch can be turned, [`is`] is a constant, and the compiler leaves
//! the mistakes out. With the feature and no switch turned nothing changes.
//!
//! A switch belongs to the thread that turned it: work that a sink gives to other threads does not
//! see it.

#[cfg(feature = "planted-bugs")]
use std::cell::Cell;
use std::{fmt, str::FromStr};

use crate::error::{Error, ErrorKind};

macro_rules! planted {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A mistake that can be planted: what is wrong and what a user would see; then where it
        /// sits, what must find it, and the least story that shows it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Planted {
            $($(#[$doc])* $variant,)*
        }

        impl Planted {
            /// Every mistake.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name on a command line and in a table of results.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

planted! {
    /// The low position is not compared after the read: rows that cleanup took meanwhile are
    /// missing without an error, and a quiet table is moved over a purged range.
    ///
    /// Site: `retention::guard_after`. Finds it: a purged range is never an empty result; no loss.
    /// Story: cleanup runs between the guard before the read and the first rows.
    SecondGuardSkipped = "second-guard-skipped",
    /// A range begins two positions after the mark: a commit right behind the mark is lost, as the
    /// oldest one still held is when a copy starts at the earliest change.
    ///
    /// Site: `ClosedRange::after`. Finds it: no loss. Story: cleanup ends at a commit of the table,
    /// then a copy starts at the earliest change.
    LowBoundPlusTwo = "low-bound-plus-two",
    /// The end of a range is not read, yet marked: the last commit of a cycle is lost.
    ///
    /// Site: the engine's request for changes. Finds it: no loss. Story: one insert, one run.
    UpperBoundExclusive = "upper-bound-exclusive",
    /// A batch ends at the row that reaches a limit, in the middle of a commit that is then marked
    /// as copied: the rest of the commit is lost.
    ///
    /// Site: `Cutter::next`. Finds it: no loss; every version is a prefix of the commits. Story: a
    /// commit of three rows and a limit of two.
    CommitSplit = "commit-split",
    /// The mark is put into the log in a commit of its own before the rows: a reader sees a mark
    /// ahead of its rows, and a crash in between loses them.
    ///
    /// Site: the Delta sink's commit. Finds it: every version is a prefix of the commits; no loss.
    /// Story: a crash between the two commits.
    MarkBeforeRows = "mark-before-rows",
    /// A commit without a reply is taken for one that did not happen: its rows are written anew and
    /// committed at the next version, so they are there twice.
    ///
    /// Site: the Delta sink's attempts to commit. Finds it: no double effect. Story: the put of a
    /// commit happens and its reply is lost.
    LostReplyTakenAsFailure = "lost-reply-taken-as-failure",
    /// The low position of the newest instance is compared for every part of a range: a copy stops
    /// with a loss that is none as soon as a second instance is enabled.
    ///
    /// Site: the engine's query for low positions. Finds it: every stop names the right kind.
    /// Story: a second instance is enabled while the copy is behind its start.
    GuardOnNewestInstance = "guard-on-newest-instance",
    /// The low position of the oldest instance is compared for every part of a range: what was
    /// purged of the newer instance is lost without an error.
    ///
    /// Site: the engine's query for low positions. Finds it: a purged range is never an empty
    /// result. Story: two instances, a copy behind both, and a cleanup of the newer one alone.
    GuardOnOldestInstance = "guard-on-oldest-instance",
    /// The zero that the server gives for an unknown low position is taken for "nothing was
    /// purged": a run without the right to see the low position goes on over purged ranges.
    ///
    /// Site: `retention`, both guards. Finds it: every stop names the right kind (here none); a
    /// purged range is never an empty result. Story: the gating role is taken from the login, the
    /// right to the change table stays.
    ZeroLowIsNothingPurged = "zero-low-is-nothing-purged",
    /// The first pass of a repeated hour is read as the second: times and verdict run an hour ahead
    /// of the data.
    ///
    /// Site: `CommitClock`. Finds it: the verdict never covers a commit that is not in the target;
    /// times are never after the truth. Story: a commit in the first pass, a run, a later commit in
    /// the first pass.
    RepeatedHourReadLate = "repeated-hour-read-late",
    /// A reading in a spring gap is moved forward: times and verdict run an hour ahead of the data.
    ///
    /// Site: `CommitClock`. Finds it: as for the repeated hour. Only a clock that is put forward
    /// too early shows such a reading. Story: a server in `Europe/Chisinau`, which went forward an
    /// hour before the other zones of its offset, is configured as `Europe/Athens`, on 2021-03-28
    /// between 00:00 and 01:00 UTC, both excluded: a gap begins behind its first reading.
    SpringGapRoundedForward = "spring-gap-rounded-forward",
    /// A mark ends at the last row's commit and never at an idle entry or at another table's
    /// commit: quiet tables do not move, their verdicts stand still, and a run that copies
    /// everything never ends.
    ///
    /// Site: the engine's choice of a batch's end, and its step for quiet tables. Finds it: quiet
    /// sink equals quiet source, in mark and verdict; every run ends. Story: one insert, then
    /// silence.
    IdleEndDropped = "idle-end-dropped",
    /// The verdict follows the last row instead of the mark: it stands still where nothing happens.
    ///
    /// Site: the engine's commit. Finds it: quiet sink equals quiet source, in the verdict. Story:
    /// one insert, then an hour of idle entries in one run.
    VerdictFromLastRow = "verdict-from-last-row",
    /// A runner that meets another commit puts its own behind it, whoever owns the table by now:
    /// two runners write the same rows.
    ///
    /// Site: the Delta sink's attempts to commit, and its look at the log. Finds it: no double
    /// effect; every stop names the right kind. Story: a second runner attaches and commits while
    /// the first has staged.
    FenceIgnored = "fence-ignored",
    /// Files of a batch that was given up stay in the sink's hands and are named by the table's
    /// next commit: rows are there twice.
    ///
    /// Site: the Delta sink's `discard` and commit. Finds it: no double effect. Story: the
    /// connection is lost after some rows were staged; the batch is tried again in the same
    /// process.
    AbortedStagingVisible = "aborted-staging-visible",
    /// A record batch that is one row longer than was asked for is cut: the second image of an
    /// update at its end is lost.
    ///
    /// Site: the engine's read. Finds it: no loss, change by change. Story: record batches of one
    /// row, one update.
    UpdatePairCut = "update-pair-cut",
    /// A delete right before an insert of the same commit is taken for the first half of an update
    /// and dropped: the old key of a key update stays.
    ///
    /// Site: the Delta sink's `stage`. Finds it: no loss, change by change; quiet sink equals quiet
    /// source. Story: an update of a key.
    KeyDeleteLost = "key-delete-lost",
    /// Each table asks for the newest position anew: tables of one cycle end at different commits,
    /// and a table that was quiet up to the first bound is marked up to the second unread.
    ///
    /// Site: the engine's step. Finds it: every version is a prefix of the commits, across tables;
    /// no loss. Story: a commit to a quiet table between the look for changes and its step.
    TwoUpperBounds = "two-upper-bounds",

    /// A range begins at the mark itself: the mark's commit is read twice, or looks purged.
    ///
    /// Site: `ClosedRange::after`. Finds it: no double effect; every stop names the right kind.
    /// Story: an insert, a run, an insert, a run.
    LowBoundInclusive = "low-bound-inclusive",
    /// An error in the middle of a read is taken for the end of the rows: the rest of the range is
    /// lost.
    ///
    /// Site: the engine's read. Finds it: no loss. Story: the connection is killed in a read.
    ReadErrorTakenAsEnd = "read-error-taken-as-end",
    /// The instances are not listed again before a quiet table is moved: changes that only a newer
    /// instance captures are lost.
    ///
    /// Site: the engine's progress. Finds it: no loss. Story: in one run, a newer instance with one
    /// more column is enabled, and only that column is updated.
    ProgressWithoutListing = "progress-without-listing",
    /// The time of the mark's entry is asked for after the low position: cleanup in between looks
    /// like a restored source.
    ///
    /// Site: the engine's guard after the read. Finds it: every stop names the right kind. Story:
    /// cleanup takes the mark's entry between the two queries.
    LineageReadAfterLow = "lineage-read-after-low",
    /// A mark above everything the source has, or without its entry, is taken for being up to date:
    /// after a restore, changes at positions that were used before are lost.
    ///
    /// Site: `plan::plan` and `plan::check_lineage`. Finds it: every stop names the right kind; no
    /// loss. Story: a restore to an earlier moment, then new commits.
    RestoreNotNoticed = "restore-not-noticed",
    /// What was known to be quiet stays so when the mark moves, although the log may be another by
    /// then: changes of the restored log that lie where the replaced one was quiet are lost.
    ///
    /// Site: the engine's look for changes. Finds it: no loss. Story: in one run, a table is quiet
    /// while others are not, the source is restored, and the table is changed.
    SilenceRemembered = "silence-remembered",
    /// A column that a newer instance brings is added to the target, but not asked for: its values
    /// are NULL until the table is attached again.
    ///
    /// Site: the engine's step that takes up columns. Finds it: no loss, value by value. Story: in
    /// one run, a newer instance with one more column is enabled, and a row is inserted.
    LateColumnNotRead = "late-column-not-read",
    /// The limit of commits lets one more pass: batches are greater than the setting says.
    ///
    /// Site: the engine's plan. Finds it: limits hold. Story: a limit of one commit, two inserts.
    CommitLimitOffByOne = "commit-limit-off-by-one",
    /// A mark takes its end's time as it is read: after the clock was put back, marks go back in
    /// time.
    ///
    /// Site: the engine's commit. Finds it: marks never go back, in time. Story: an insert, the
    /// server's clock is put back an hour, an insert.
    MarkTimeGoesBack = "mark-time-goes-back",
    /// The verdict is published before its commit: a crash or a refusal in between leaves a verdict
    /// that covers what is not there.
    ///
    /// Site: the engine's commit, and the Delta sink's check of a verdict. Finds it: the verdict
    /// never covers a commit that is not in the target. Story: a crash between verdict and commit.
    VerdictBeforeCommit = "verdict-before-commit",
    /// A batch without rows keeps the number of the batch before it: the sink refuses the mark.
    ///
    /// Site: the engine's commit. Finds it: every stop names the right kind. Story: one insert,
    /// then silence.
    SequenceReused = "sequence-reused",
    /// An attach keeps the fence that it finds: the runner before it is not stopped, and both stop
    /// at each other's marks as if the target had been rewound.
    ///
    /// Site: the Delta sink's attach. Finds it: every stop names the right kind. Story: a second
    /// runner attaches and commits while the first runs.
    FenceNotRaised = "fence-not-raised",
    /// The files of a commit that failed are removed although it may have happened: the table names
    /// files that are gone.
    ///
    /// Site: the Delta sink's commit. Finds it: nothing acknowledged is lost; readers fail. Story:
    /// the put of a commit happens, its reply is lost, and the next look at the log fails.
    StagingRemovedInDoubt = "staging-removed-in-doubt",
    /// Facts that a crash kept from being written are not written by the next attach.
    ///
    /// Site: the Delta sink's attach. Finds it: every batch has its facts. Story: a crash between a
    /// commit and its facts.
    FactsNotRepaired = "facts-not-repaired",
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Planted {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.iter().copied().find(|planted| planted.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|planted| planted.name()).collect();
            Error::new(ErrorKind::Config, "no mistake of this name can be planted")
                .with("name", text)
                .remedy(format!("name one of {}", names.join(", ")))
        })
    }
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static ACTIVE: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// Plants a mistake on this thread, in the place of another, or removes it.
#[cfg(feature = "planted-bugs")]
pub fn set(planted: Option<Planted>) {
    ACTIVE.set(planted);
}

/// Does `work` with a mistake planted on this thread, and puts back what was planted before, even
/// when `work` panics.
#[cfg(feature = "planted-bugs")]
pub fn with<T>(planted: Option<Planted>, work: impl FnOnce() -> T) -> T {
    struct Restored(Option<Planted>);
    impl Drop for Restored {
        fn drop(&mut self) {
            set(self.0);
        }
    }
    let _restored = Restored(ACTIVE.replace(planted));
    work()
}

/// True when the mistake is planted on this thread.
#[cfg(feature = "planted-bugs")]
#[must_use]
pub fn is(planted: Planted) -> bool {
    ACTIVE.get() == Some(planted)
}

/// False: nothing can be planted without the feature.
#[cfg(not(feature = "planted-bugs"))]
#[must_use]
pub const fn is(_planted: Planted) -> bool {
    false
}

#[cfg(test)]
mod tests;

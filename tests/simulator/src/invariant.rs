//! The invariants, and what breaks one.

use std::fmt;

/// A rule that holds in every simulated history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// Once everything is quiet, the newest image of every key equals the source's row.
    QuietEqualsSource,
    /// Every commit holds exactly the changes between the mark before and its own.
    PrefixOfSource,
    /// No change is in the target twice.
    NothingTwice,
    /// Rows that hold what the source's change held.
    SameValues,
    /// A mark never goes back, and its number grows by one.
    MarkForward,
    /// A verdict never goes back.
    VerdictForward,
    /// A verdict never covers a commit that is not in the target.
    VerdictCovered,
    /// After a run that ended well, mark and verdict are where the source was.
    VerdictFollows,
    /// A commit time is never later than the commit.
    TimeNeverLate,
    /// A range that cleanup took is an error, never an empty result.
    PurgedIsNoEmpty,
    /// Rows of a log that a restore replaced are not mixed with the other's.
    OneLineage,
    /// What a runner was told is durable stays.
    AcknowledgedStays,
    /// No runner commits above a newer runner's fence.
    FenceHolds,
    /// The two images of an update are in one staged batch, in order.
    PairWhole,
    /// All tables of a cycle share one upper bound.
    OneBoundACycle,
    /// Every stop has the kind of its reason.
    StopKind,
    /// Rows, tables and uploads in hand stay within their settings.
    Limits,
    /// A source that fell silent is told within its limit.
    SilenceTold,
    /// Every run ends, and a stop is followed.
    RunEnds,
    /// Facts hold every batch at most once, and the last one after a calm run.
    FactsOnce,
    /// A row of facts says what its batch holds.
    FactsTrue,
    /// Nothing panics.
    NoPanic,
    /// A file that the log names is there and holds what the log says.
    LogReadable,
}

impl Invariant {
    /// Every invariant.
    pub const ALL: [Self; 23] = [
        Self::QuietEqualsSource,
        Self::PrefixOfSource,
        Self::NothingTwice,
        Self::SameValues,
        Self::MarkForward,
        Self::VerdictForward,
        Self::VerdictCovered,
        Self::VerdictFollows,
        Self::TimeNeverLate,
        Self::PurgedIsNoEmpty,
        Self::OneLineage,
        Self::AcknowledgedStays,
        Self::FenceHolds,
        Self::PairWhole,
        Self::OneBoundACycle,
        Self::StopKind,
        Self::Limits,
        Self::SilenceTold,
        Self::RunEnds,
        Self::FactsOnce,
        Self::FactsTrue,
        Self::NoPanic,
        Self::LogReadable,
    ];

    /// The name in traces, reports and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QuietEqualsSource => "quiet-equals-source",
            Self::PrefixOfSource => "prefix-of-source",
            Self::NothingTwice => "nothing-twice",
            Self::SameValues => "same-values",
            Self::MarkForward => "mark-forward",
            Self::VerdictForward => "verdict-forward",
            Self::VerdictCovered => "verdict-covered",
            Self::VerdictFollows => "verdict-follows",
            Self::TimeNeverLate => "time-never-late",
            Self::PurgedIsNoEmpty => "purged-is-no-empty",
            Self::OneLineage => "one-lineage",
            Self::AcknowledgedStays => "acknowledged-stays",
            Self::FenceHolds => "fence-holds",
            Self::PairWhole => "pair-whole",
            Self::OneBoundACycle => "one-bound-a-cycle",
            Self::StopKind => "stop-kind",
            Self::Limits => "limits",
            Self::SilenceTold => "silence-told",
            Self::RunEnds => "run-ends",
            Self::FactsOnce => "facts-once",
            Self::FactsTrue => "facts-true",
            Self::NoPanic => "no-panic",
            Self::LogReadable => "log-readable",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub invariant: Invariant,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.detail)
    }
}

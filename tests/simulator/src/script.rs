//! What one simulated history is: a world and the steps that happen in it. A script is data: it is
//! drawn from a seed, shrunk, written to a file and played again.

mod trouble;

use cdc_core::{Granularity, Timestamp};
use cdc_fake::{Call, Zone};
use serde::{Deserialize, Serialize};

pub use trouble::{Aim, Mishap, PortCall, Target, Trouble};

/// One simulated history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// Shuffles what the steps leave open: which process runs next, and what chance brings.
    pub seed: u64,
    /// How the world begins.
    pub world: Shape,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// How a world begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// When and where.
    pub place: Place,
    /// The key of each table.
    pub tables: Vec<Key>,
    /// Where the copies begin.
    pub start: Start,
    /// Seconds that capture is behind.
    pub lag: u32,
    /// Minutes that cleanup keeps.
    pub retention: u32,
    /// Commits between two checkpoints of a log.
    pub checkpoints: u64,
    /// True when uploads go in parts of few bytes.
    pub parts: bool,
}

impl Shape {
    /// The moment that the copies begin at, where they begin at a moment.
    #[must_use]
    pub const fn since(&self) -> Option<Timestamp> {
        match self.start {
            Start::Since(seconds) => {
                Some(self.place.begin().plus_micros(seconds as i64 * 1_000_000))
            }
            _ => None,
        }
    }
}

/// A moment and a zone around which clocks change, or do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Place {
    NewYorkFall,
    NewYorkSpring,
    NewYorkFallEarly,
    NewYorkSpringEarly,
    BerlinFall,
    LordHoweFall,
    LordHoweSpring,
    UtcYearEnd,
    FixedKathmandu,
}

impl Place {
    /// Every place.
    pub const ALL: [Self; 9] = [
        Self::NewYorkFall,
        Self::NewYorkSpring,
        Self::NewYorkFallEarly,
        Self::NewYorkSpringEarly,
        Self::BerlinFall,
        Self::LordHoweFall,
        Self::LordHoweSpring,
        Self::UtcYearEnd,
        Self::FixedKathmandu,
    ];

    /// The moment: half an hour before the clock changes.
    #[must_use]
    pub const fn begin(self) -> Timestamp {
        Timestamp::from_micros(match self {
            // 2026-11-01T05:30Z and 2026-03-08T06:30Z.
            Self::NewYorkFall | Self::NewYorkFallEarly => 1_793_511_000_000_000,
            Self::NewYorkSpring | Self::NewYorkSpringEarly => 1_772_951_400_000_000,
            // 2026-10-25T00:30Z.
            Self::BerlinFall => 1_792_888_200_000_000,
            // 2026-04-04T14:30Z and 2026-10-03T15:00Z.
            Self::LordHoweFall => 1_775_313_000_000_000,
            Self::LordHoweSpring => 1_791_039_600_000_000,
            // 2026-12-31T23:30Z.
            Self::UtcYearEnd | Self::FixedKathmandu => 1_798_759_800_000_000,
        })
    }

    /// The length of the interval that the server's clock shows twice.
    #[must_use]
    pub const fn repeated_micros(self) -> i64 {
        match self {
            Self::NewYorkFall | Self::NewYorkFallEarly | Self::BerlinFall => 3_600_000_000,
            Self::LordHoweFall => 1_800_000_000,
            _ => 0,
        }
    }

    /// How much earlier than the moment a commit may read at most: by the interval that the clock
    /// shows twice, or where the clock changes early by the hour and ten minutes that this takes.
    #[must_use]
    pub const fn early_micros(self) -> i64 {
        match self {
            Self::NewYorkFallEarly | Self::NewYorkSpringEarly => 4_200_000_000,
            _ => self.repeated_micros(),
        }
    }

    /// The zone of the server's clock.
    #[must_use]
    pub fn zone(self) -> Zone {
        use chrono_tz::{America::New_York, Australia::Lord_Howe, Europe::Berlin};
        match self {
            Self::NewYorkFall | Self::NewYorkSpring => Zone::Named(New_York),
            Self::NewYorkFallEarly | Self::NewYorkSpringEarly => Zone::Early(New_York, 600),
            Self::BerlinFall => Zone::Named(Berlin),
            Self::LordHoweFall | Self::LordHoweSpring => Zone::Named(Lord_Howe),
            Self::UtcYearEnd => Zone::UTC,
            Self::FixedKathmandu => Zone::Named(chrono_tz::Asia::Kathmandu),
        }
    }
}

/// The key of a table: all have the columns `id`, `k`, `a` and `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// `id`.
    Number,
    /// `k`, a text.
    Text,
    /// `k` and `id`.
    Both,
    /// None.
    Heap,
}

/// Where the copies of a world begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// A calm run first, before anything happens: every change belongs to the copy.
    Before,
    /// At the first run, with the oldest change the source holds then.
    Earliest,
    /// At the first run, with the first change after it.
    Latest,
    /// At the first run, with the first change after this many seconds from the begin.
    Since(u32),
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Something at the source, now.
    Now(Act),
    /// Something at the source before a call of a coming run.
    At {
        /// The call.
        call: CallName,
        /// How many such calls pass before.
        skip: u8,
        /// What happens.
        act: Act,
    },
    /// Something at the source so many milliseconds after the next run begins.
    After {
        /// Milliseconds.
        millis: u32,
        /// What happens.
        act: Act,
    },
    /// The connection of the next stream of changes is killed after so many rows.
    Kill(u32),
    /// A run of the engine.
    Run(Run),
}

/// A call of the source at which something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of the port's methods")]
pub enum CallName {
    High,
    Low,
    Instances,
    SchemaChanges,
    CommitTime,
    NthCommit,
    HasChanges,
    Changes,
    ChangeBatch,
}

impl CallName {
    /// Every call.
    pub const ALL: [Self; 9] = [
        Self::High,
        Self::Low,
        Self::Instances,
        Self::SchemaChanges,
        Self::CommitTime,
        Self::NthCommit,
        Self::HasChanges,
        Self::Changes,
        Self::ChangeBatch,
    ];
}

impl From<CallName> for Call {
    fn from(name: CallName) -> Self {
        match name {
            CallName::High => Self::High,
            CallName::Low => Self::Low,
            CallName::Instances => Self::Instances,
            CallName::SchemaChanges => Self::SchemaChanges,
            CallName::CommitTime => Self::CommitTime,
            CallName::NthCommit => Self::NthCommit,
            CallName::HasChanges => Self::HasChanges,
            CallName::Changes => Self::Changes,
            CallName::ChangeBatch => Self::ChangeBatch,
        }
    }
}

/// Something at the source. Tables are named by their number, taken modulo how many there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// One transaction that deletes rows and inserts them anew, in one or all tables.
    Put {
        /// The table; none for all.
        table: Option<u8>,
        /// The keys.
        keys: Keys,
        /// What the rows hold.
        value: i64,
    },
    /// Updates in place.
    Set {
        /// The table.
        table: u8,
        /// The keys.
        keys: Keys,
        /// What the rows hold.
        value: i64,
    },
    /// Updates of the column that was added last, alone.
    SetLast {
        /// The table.
        table: u8,
        /// The keys.
        keys: Keys,
        /// What the rows hold.
        value: i64,
    },
    /// Updates that are logged as deletes and inserts although the keys stay.
    Merge {
        /// The table.
        table: u8,
        /// The keys.
        keys: Keys,
        /// What the rows hold.
        value: i64,
    },
    /// Exchanges the keys of two rows in one statement.
    Swap {
        /// The table.
        table: u8,
        /// One key.
        one: i64,
        /// The other.
        other: i64,
    },
    /// Gives rows new keys, out of the old ones' way.
    Move {
        /// The table.
        table: u8,
        /// The keys.
        keys: Keys,
    },
    /// Deletes rows.
    Remove {
        /// The table.
        table: u8,
        /// The keys.
        keys: Keys,
    },
    /// Many statements in one transaction.
    Busy {
        /// The table.
        table: u8,
        /// How many.
        statements: u8,
    },
    /// A transaction that changes nothing.
    Empty,
    /// A transaction that is rolled back.
    Rollback {
        /// The table.
        table: u8,
    },
    /// Time passes: milliseconds.
    Pass(u32),
    /// The clock is put back: milliseconds.
    SetBack(u32),
    /// Capture writes an idle entry.
    Idle,
    /// Cleanup runs to its end.
    Cleanup,
    /// Cleanup does so many of its steps.
    CleanupSteps(u8),
    /// Cleanup of the newest instance alone, up to the newest entry.
    CleanupNewest(u8),
    /// The login loses its right to the table.
    Revoke(u8),
    /// The login loses its right to the table, and its newest instance is cleaned: its rows go, but
    /// not the entries of the mapping that other instances need.
    Lockout(u8),
    /// The login has its right to the table again.
    Grant(u8),
    /// The capture job stops.
    StopCapture,
    /// The capture job starts.
    StartCapture,
    /// Capture is so many seconds behind from now on.
    Lag(u32),
    /// A column is added.
    AddColumn(u8),
    /// An added column is dropped.
    DropColumn(u8),
    /// The last column's type changes.
    AlterColumn(u8),
    /// A second capture instance with the present columns.
    SecondInstance(u8),
    /// The older of two capture instances is dropped.
    DropOldInstance(u8),
    /// The last capture instance goes, and another comes.
    Recapture(u8),
    /// A backup.
    Backup,
    /// The last backup is restored.
    Restore,
}

/// Keys from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// The first.
    pub first: i64,
    /// How many.
    pub count: i64,
}

impl Keys {
    /// The keys as a range.
    #[must_use]
    pub const fn range(self) -> std::ops::Range<i64> {
        self.first..self.first.saturating_add(self.count)
    }
}

/// One run of the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// None for a run that ends by itself; else it is stopped after so many seconds.
    pub seconds: Option<u32>,
    /// Rows after which a batch ends.
    pub rows_max: u64,
    /// Entries of the mapping after which a batch ends.
    pub commits_max: Option<u64>,
    /// Rows of a record batch.
    pub batch_rows: u32,
    /// Tables at once.
    pub tables_at_once: u32,
    /// True for two runners from the begin.
    pub two: bool,
    /// What goes wrong.
    pub trouble: Trouble,
}

impl Run {
    /// A run that nothing disturbs.
    pub const CALM: Self = Self {
        seconds: None,
        rows_max: 1_000,
        commits_max: None,
        batch_rows: 100,
        tables_at_once: 4,
        two: false,
        trouble: Trouble::NONE,
    };
}

/// The periods that verdicts of the simulation are about.
pub const GRANULARITY: Granularity = Granularity::Minute;

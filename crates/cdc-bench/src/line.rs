//! The lines that can be run, by name.

use clap::ValueEnum;

use crate::{Figure, Outcome, lines};

/// How large a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The sizes that the targets are about.
    Full,
    /// Sizes that show whether the measurement itself still works, in seconds. Its figures mean
    /// nothing.
    Quick,
}

impl Scale {
    pub(crate) fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

/// A question that is measured in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Line {
    /// Bronze append against a plain Parquet writer, on one core and on two.
    Append,
    /// The engine against its source and its sink alone.
    Engine,
    /// One huge commit: memory, and speed against many small ones.
    Huge,
    /// An idle cycle, and a cycle with one change each, over many tables.
    Cycles,
    /// Attach, mark look-up and commit while the log grows; requests to the store.
    Log,
    /// A commit to a table of many live files.
    LiveFiles,
    /// Small commits.
    Small,
    /// Commit times to UTC.
    Time,
    /// The in-memory server over a socket: rows, connections, first row, memory.
    Server,
    /// From the wire to Arrow and to a bronze table.
    Wire,
    /// The sink on PostgreSQL against a bare copy and against single upserts.
    Postgres,
    /// Settings of the Parquet files: size, write time, scan time. Not part of a run of all lines.
    Parquet,
}

impl Line {
    /// The lines that a run without names takes.
    pub const TARGETS: [Self; 11] = [
        Self::Append,
        Self::Engine,
        Self::Huge,
        Self::Cycles,
        Self::Log,
        Self::LiveFiles,
        Self::Small,
        Self::Time,
        Self::Server,
        Self::Wire,
        Self::Postgres,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Measures, and gives each figure as soon as it is there.
    ///
    /// # Errors
    /// What the parts under measurement fail with.
    pub fn measure(self, scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
        match self {
            Self::Append => lines::append::measure(scale, report),
            Self::Engine => lines::engine::measure(scale, report),
            Self::Huge => lines::huge::measure(scale, report),
            Self::Cycles => lines::cycles::measure(scale, report),
            Self::Log => lines::log::measure(scale, report),
            Self::LiveFiles => lines::live_files::measure(scale, report),
            Self::Small => lines::small::measure(scale, report),
            Self::Time => lines::time::measure(scale, report),
            Self::Server => lines::server::measure(scale, report),
            Self::Wire => lines::wire::measure(scale, report),
            Self::Postgres => lines::postgres::measure(scale, report),
            Self::Parquet => lines::parquet::measure(scale, report),
        }
    }
}

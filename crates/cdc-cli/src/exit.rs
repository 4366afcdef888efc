//! Exit codes: what a script learns from the process without reading its output.

use cdc_core::ErrorKind;

/// How the process ends. `docs/reference/exit-codes.md` says what to do about each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Everything that was asked for is done.
    Done,
    /// Something failed that is neither of the following.
    Failed,
    /// The command line or the configuration is wrong; nothing was written.
    BadConfiguration,
    /// The source no longer holds what was not copied yet, or is another log.
    DataLoss,
    /// A newer runner owns a table.
    Fenced,
}

impl Exit {
    /// Every way to end, worst last.
    pub const ALL: [Self; 5] =
        [Self::Done, Self::BadConfiguration, Self::Failed, Self::Fenced, Self::DataLoss];

    /// The number that the process ends with.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::BadConfiguration => 2,
            Self::DataLoss => 3,
            Self::Fenced => 4,
        }
    }

    /// The word that the report holds.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::BadConfiguration => "bad_configuration",
            Self::DataLoss => "data_loss",
            Self::Fenced => "fenced",
        }
    }

    /// How the process ends when an error of this kind stopped it.
    #[must_use]
    pub const fn of(kind: ErrorKind) -> Self {
        match kind {
            // What was named cannot be copied: the file has to change.
            ErrorKind::Config | ErrorKind::Unsupported => Self::BadConfiguration,
            ErrorKind::DataLoss | ErrorKind::LineageBroken => Self::DataLoss,
            ErrorKind::Fenced => Self::Fenced,
            // `ErrorKind` may grow; a kind that is not known here is a failure. The test below
            // holds every kind that exists.
            ErrorKind::Unavailable
            | ErrorKind::Conflict
            | ErrorKind::SchemaChanged
            | ErrorKind::InvalidData
            | ErrorKind::Unauthorized
            | ErrorKind::Cancelled
            | ErrorKind::Bug
            | _ => Self::Failed,
        }
    }

    /// The worse of two: data at risk first, then a table that another runner owns, then other
    /// failures, then a wrong configuration.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let rank = |exit| Self::ALL.iter().position(|known| *known == exit);
        if rank(other) > rank(self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_exit_code() {
        let expected = |kind| match kind {
            ErrorKind::Config | ErrorKind::Unsupported => 2,
            ErrorKind::DataLoss | ErrorKind::LineageBroken => 3,
            ErrorKind::Fenced => 4,
            _ => 1,
        };
        for kind in ErrorKind::ALL {
            assert_eq!(Exit::of(kind).code(), expected(kind), "{kind}");
        }
        assert_eq!(ErrorKind::ALL.len(), 12, "a new kind needs its exit code");
    }

    #[test]
    fn data_loss_outranks_every_other_end() {
        for exit in Exit::ALL {
            assert_eq!(exit.worse(Exit::DataLoss), Exit::DataLoss);
            assert_eq!(Exit::DataLoss.worse(exit), Exit::DataLoss);
            assert_eq!(exit.worse(Exit::Done), exit);
        }
        assert_eq!(Exit::BadConfiguration.worse(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Fenced.worse(Exit::Failed), Exit::Fenced);
    }
}

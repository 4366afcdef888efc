//! What is durable of a table, and the rules by which it may change: who owns it, which mark
//! follows which, what a verdict may say. Pure; the same for the server and for a model of it.

use cdc_core::{Committed, Error, ErrorKind, Mark, Result, TableSpec, Verdict, mark};

use crate::name;

/// What is durable of a table beside its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The table at the source that the target belongs to.
    pub(crate) source: String,
    /// The names of the captured columns.
    pub(crate) columns: Vec<String>,
    /// The names of the key's columns.
    pub(crate) key: Vec<String>,
    /// Counts the attaches; the runner of the last one owns the table.
    pub(crate) runner: i64,
    /// The number that the handle of the last attach drew.
    pub(crate) handle: i64,
    /// The durable mark.
    pub(crate) mark: Option<Mark>,
    /// The published verdict.
    pub(crate) verdict: Option<Verdict>,
}

impl Record {
    /// What a new target starts with, before its first runner.
    pub(crate) fn first(spec: &TableSpec) -> Self {
        Self {
            source: spec.source.to_string(),
            columns: spec.columns.iter().map(|column| column.name.clone()).collect(),
            key: spec.key.clone(),
            runner: 0,
            handle: 0,
            mark: None,
            verdict: None,
        }
    }

    /// The record after an attach: the runner of it owns the table.
    ///
    /// # Errors
    /// `InvalidData` when the count of runners is at its end.
    pub(crate) fn taken_over(mut self, table: &str, handle: i64) -> Result<Self> {
        self.runner = self.runner.checked_add(1).ok_or_else(|| {
            Error::new(ErrorKind::InvalidData, "the count of runners is at its end")
                .with("table", table)
        })?;
        self.handle = handle;
        Ok(self)
    }

    /// Fails when the target belongs to another table of the source.
    pub(crate) fn belongs_to(&self, spec: &TableSpec) -> Result<()> {
        let source = spec.source.to_string();
        if self.source == source {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Config, "the target belongs to another table of the source")
            .with("table", &spec.name)
            .with("belongs_to", &self.source)
            .with("source", source)
            .remedy("give the table another target"))
    }

    /// Fails when the target has another key.
    pub(crate) fn has_key_of(&self, spec: &TableSpec) -> Result<()> {
        let alike = self.key.len() == spec.key.len()
            && self.key.iter().all(|own| spec.key.iter().any(|key| name::same(own, key)));
        if alike {
            return Ok(());
        }
        Err(Error::new(ErrorKind::SchemaChanged, "the table's key is no longer the target's")
            .with("table", &spec.name)
            .with("target_key", self.key.join(", "))
            .with("captured_key", spec.key.join(", "))
            .remedy("copy the table into a new target"))
    }

    /// Fails when a newer runner owns the table.
    pub(crate) fn is_owned_by(&self, table: &str, runner: i64) -> Result<()> {
        if self.runner == runner {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Fenced, "a newer runner attached the table")
            .with("table", table)
            .with("runner", runner)
            .with("owner", self.runner))
    }

    /// What a commit of `mark` does behind the durable one.
    ///
    /// # Errors
    /// `Bug` for a mark that may not follow.
    pub(crate) fn follows(&self, table: &str, mark: &Mark) -> Result<Committed> {
        let bug = |message: &str| {
            Err(Error::bug(message)
                .with("table", table)
                .with("sequence", mark.sequence)
                .with("position", mark.end))
        };
        match &self.mark {
            Some(old) if old.sequence == mark.sequence && old.end == mark.end => {
                Ok(Committed::Before)
            }
            old if mark.sequence != mark::next_sequence(old.as_ref()) => {
                bug("mark does not follow the durable one")
            }
            Some(old) if mark.generation < old.generation => {
                bug("generation of the mark goes back")
            }
            Some(old) if mark.generation == old.generation && mark.end < old.end => {
                bug("end of the mark goes back")
            }
            _ => Ok(Committed::Now),
        }
    }

    /// What is stored when this verdict is published: its moment never goes back.
    ///
    /// # Errors
    /// `Bug` for a verdict beyond the durable mark.
    pub(crate) fn allows(&self, table: &str, verdict: Verdict) -> Result<Verdict> {
        let stored = self.verdict.and_then(|stored| stored.finalized_until);
        let reached = self.mark.and_then(|mark| mark.commit_time);
        let beyond = self.mark.is_none_or(|mark| verdict.end.position > mark.end);
        if beyond || verdict.finalized_until > stored.max(reached) {
            return Err(Error::bug("verdict is beyond the durable mark")
                .with("table", table)
                .with("position", verdict.end.position));
        }
        Ok(Verdict { finalized_until: stored.max(verdict.finalized_until), end: verdict.end })
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::{Epoch, Lsn, Position, Stamp, Timestamp};

    use super::*;

    fn at(number: u128) -> Position {
        Lsn::from_u128(number).expect("small").into()
    }

    fn mark(sequence: u64, end: u128, generation: u32) -> Mark {
        let commit_time = Some(Timestamp::from_micros(i64::try_from(end).expect("small")));
        Mark { sequence, end: at(end), commit_time, entry_time: commit_time, generation }
    }

    fn record(mark: Option<Mark>) -> Record {
        Record {
            source: "dbo.t".into(),
            columns: vec!["id".into()],
            key: vec!["id".into()],
            runner: 3,
            handle: 9,
            mark,
            verdict: None,
        }
    }

    #[test]
    fn a_mark_follows_only_its_neighbour() {
        let durable = record(Some(mark(4, 10, 1)));
        for (next, allowed) in [
            (mark(5, 10, 1), Some(Committed::Now)),
            (mark(5, 11, 1), Some(Committed::Now)),
            (mark(5, 9, 1), None),
            (mark(5, 9, 2), Some(Committed::Now)),
            (mark(5, 11, 0), None),
            (mark(4, 10, 1), Some(Committed::Before)),
            (mark(4, 11, 1), None),
            (mark(6, 11, 1), None),
            (mark(3, 11, 1), None),
        ] {
            assert_eq!(durable.follows("t", &next).ok(), allowed, "{next:?}");
        }
        assert_eq!(record(None).follows("t", &mark(1, 5, 0)).ok(), Some(Committed::Now));
        assert!(record(None).follows("t", &mark(2, 5, 0)).is_err());
        let mut later = mark(5, 1, 1);
        later.end = later.end.in_epoch(Epoch(1));
        assert_eq!(durable.follows("t", &later).ok(), Some(Committed::Now));
    }

    #[test]
    fn only_the_last_runner_owns_the_table() {
        let record = record(None).taken_over("t", 77).expect("counts on");
        assert_eq!((record.runner, record.handle), (4, 77));
        assert!(record.is_owned_by("t", 4).is_ok());
        let error = record.is_owned_by("t", 3).expect_err("an older runner");
        assert_eq!(error.kind(), ErrorKind::Fenced);
    }

    #[test]
    fn a_verdict_never_goes_back_and_never_passes_its_mark() {
        let verdict = |moment: i64, end: u128| Verdict {
            finalized_until: Some(Timestamp::from_micros(moment)),
            end: Stamp { position: at(end), commit_time: None },
        };
        assert!(record(None).allows("t", verdict(1, 1)).is_err());
        let mut record = record(Some(mark(1, 10, 0)));
        assert!(record.allows("t", verdict(11, 10)).is_err());
        assert!(record.allows("t", verdict(10, 11)).is_err());
        let stored = record.allows("t", verdict(8, 10)).expect("allowed");
        record.verdict = Some(stored);
        let kept = record.allows("t", verdict(3, 10)).expect("allowed");
        assert_eq!(kept.finalized_until, Some(Timestamp::from_micros(8)));
    }
}

//! The observer of one runner: writes down what the engine tells and holds it against the rules.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cdc_core::{
    Position, Timestamp,
    port::{Event, Observer},
};

use crate::{audit::Auditor, hub::ProcessId, invariant::Invariant, record::Record};

/// What one runner told.
pub struct Witness {
    process: ProcessId,
    record: Record,
    auditor: Auditor,
    /// A source that is silent for longer must be told; none for runs that end by themselves,
    /// whose bound is not the source's newest entry.
    silence_max: Option<Duration>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    bound: Option<Position>,
    newest: Option<Timestamp>,
    /// A warning came since the last look.
    warned: bool,
    told: bool,
    silent: bool,
}

impl Witness {
    /// The witness of a runner.
    #[must_use]
    pub fn new(
        process: ProcessId,
        record: &Record,
        auditor: &Auditor,
        silence_max: Option<Duration>,
    ) -> Self {
        let (record, auditor) = (record.clone(), auditor.clone());
        Self { process, record, auditor, silence_max, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn silence(&self, newest: Option<Timestamp>, now: Timestamp) {
        let (Some(limit), Some(newest)) = (self.silence_max, newest) else { return };
        let mut inner = self.inner();
        let warned = std::mem::take(&mut inner.warned);
        let silent = u64::try_from(now.micros_since(newest)).unwrap_or_default();
        let silent = Duration::from_micros(silent);
        // A warning counts for as long as the silence goes on.
        inner.told = warned || (inner.told && inner.silent);
        inner.silent = silent > limit || warned;
        // The clock may have passed the limit between the engine's look and this one.
        let again = inner.newest.replace(newest) == Some(newest);
        let told = inner.told;
        drop(inner);
        self.record.check(silent <= limit || told || !again, Invariant::SilenceTold, || {
            format!("p{}: the source has been silent for {silent:?}", self.process)
        });
    }

    fn say(&self, what: &str, rest: String) {
        self.record.note(format!("p{} {what} {rest}", self.process));
        self.record.count(format!("engine:{what}"));
    }
}

impl Observer for Witness {
    fn on(&self, event: &Event<'_>) {
        match event {
            Event::Attached { table, mark: None } => self.say("attached-new", (*table).into()),
            Event::Attached { table, mark: Some(mark) } => {
                self.say("attached", format!("{table} {}@{}", mark.sequence, mark.end));
            }
            Event::CycleStarted { high, now } => {
                self.inner().bound = Some(high.position);
                self.auditor.cycle(self.process);
                self.silence(high.commit_time, *now);
                self.say("cycle", high.position.to_string());
            }
            Event::Idle { high, now } => {
                self.auditor.cycle(self.process);
                self.silence(high.and_then(|high| high.commit_time), *now);
                self.say("idle", String::new());
            }
            Event::WaitingForCapture { table } => self.say("waiting", (*table).into()),
            Event::Staged { table, rows, .. } => self.say("staged", format!("{table} {rows}")),
            Event::Committed { table, mark, facts } => {
                let bound = self.inner().bound;
                self.record.check(bound >= Some(mark.end), Invariant::OneBoundACycle, || {
                    format!("{table}: {} is above the cycle's bound {bound:?}", mark.end)
                });
                let rows = facts.counts.rows;
                self.say("committed", format!("{table} {}@{} {rows}", mark.sequence, mark.end));
                if bound != Some(mark.end) {
                    self.record.count("engine:committed-cut");
                }
                self.auditor.acknowledged(table, mark);
            }
            Event::Discarded { table } => self.say("discarded", (*table).into()),
            Event::VerdictPublished { table, verdict } => {
                self.say("verdict", format!("{table} {:?}", verdict.finalized_until));
            }
            Event::Retrying { table, error, attempt, pause_ms } => {
                self.record.count(format!("engine:retrying-{}", error.kind()));
                let whose = table.unwrap_or("source");
                self.say("retrying", format!("{whose} {} {attempt} {pause_ms}", error.report()));
            }
            Event::TableStopped { table, error } => {
                self.record.count(format!("engine:stopped-{}", error.kind()));
                self.say("stopped", format!("{table} {}", error.report()));
            }
            Event::Warning { message, .. } => {
                self.inner().warned = true;
                self.say("warning", (*message).into());
            }
            other => self.say("other", format!("{other:?}")),
        }
    }
}

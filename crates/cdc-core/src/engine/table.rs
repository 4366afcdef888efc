//! One table of a run: found at the source, attached at the sink, with its durable state.

use std::time::Duration;

use super::{Engine, StartAt, TableConfig, TableReport, batch::Edge, retry::Attempts};
use crate::{
    batch::{BatchFacts, Commit, Committed, Stamp},
    error::{Error, ErrorKind, Result, Retry},
    mark::{self, Mark},
    plan,
    port::{Bound, Event, TableSink, TargetState},
    position::Position,
    retention, schema,
    table::{CaptureInstance, TableRef, TableSpec},
    time::Timestamp,
    verdict::{self, Hold},
};

/// A table of a run.
pub(super) struct Table {
    pub(super) config: TableConfig,
    pub(super) attempts: Attempts,
    /// What is known once the table was attached; gone after an error.
    pub(super) open: Option<Open>,
    /// The last durable state that was seen.
    pub(super) state: TargetState,
    /// When the last mark became durable, on this side's clock.
    pub(super) marked_at: Option<Timestamp>,
    pub(super) rows: u64,
    pub(super) batches: u64,
    /// The table was attached in this run.
    pub(super) owned: bool,
    /// Capture has not reached the table's instance.
    pub(super) waiting: bool,
    /// In this cycle the mark moves even without a change: what is known to be quiet begins at it.
    pub(super) moves: bool,
    /// The table stopped for this run.
    pub(super) stopped: Option<Error>,
}

/// An attached table.
pub(super) struct Open {
    pub(super) spec: TableSpec,
    pub(super) instances: Vec<CaptureInstance>,
    pub(super) sink: Box<dyn TableSink>,
    /// Everything at or before this is durable.
    pub(super) mark: Mark,
    /// No instance in `instances` has a change after the mark and at or before this.
    pub(super) quiet_until: Position,
}

impl Open {
    /// The first position whose changes are neither durable nor known to be none.
    pub(super) fn known_until(&self) -> Position {
        self.mark.end.max(self.quiet_until)
    }
}

impl Table {
    pub(super) fn new(config: TableConfig) -> Self {
        Self {
            config,
            attempts: Attempts::default(),
            open: None,
            state: TargetState::default(),
            marked_at: None,
            rows: 0,
            batches: 0,
            owned: false,
            waiting: false,
            moves: false,
            stopped: None,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.config.target
    }

    /// True when a cycle should work on the table now.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.stopped.is_none() && self.attempts.wait(now) == Duration::ZERO
    }

    pub(super) fn report(self) -> TableReport {
        TableReport {
            table: self.config.target,
            mark: self.state.mark,
            verdict: self.state.verdict,
            rows: self.rows,
            batches: self.batches,
            error: self.stopped,
        }
    }
}

impl Engine {
    /// Finds the table at the source and attaches its target. A target without a mark gets its
    /// first one, so that a restart begins where this run did.
    ///
    /// Leaves the table closed and waiting while capture has not reached it.
    pub(super) async fn open(&self, table: &mut Table, high: Bound) -> Result<()> {
        let instances = self.list(&table.config.source).await?;
        let Some(oldest) = instances.first() else {
            return Err(Error::new(ErrorKind::Config, "nothing is captured under this name")
                .with("table", &table.config.source));
        };
        let key = instances.last().map(|newest| newest.key.clone()).unwrap_or_default();
        let columns = schema::union(&instances)?;
        let spec = TableSpec::new(table.name(), oldest.table.clone(), columns, key)?;
        // Known before anything is written: a start that cannot be read must leave no trace.
        let held = self.sink.inspect(&spec).await?.and_then(|state| state.mark);
        let start = match held {
            Some(_) => None,
            None => match self.start(&table.config, &instances, high).await {
                Ok(Some(start)) => Some(start),
                Ok(None) => {
                    table.waiting = true;
                    self.observer.on(&Event::WaitingForCapture { table: table.name() });
                    return Ok(());
                }
                Err(error) => return Err(self.moved_or(&spec, None, error).await),
            },
        };
        if let Some(mark) = held
            && let Err(error) = self.check_mark(&mark, &instances, high).await
        {
            return Err(self.moved_or(&spec, held, error).await);
        }
        if table.owned && self.sink.is_superseded(&spec).await? {
            return Err(Error::new(ErrorKind::Fenced, "a newer runner attached")
                .with("table", table.name()));
        }
        let attached = self.sink.attach(&spec).await?;
        table.owned = true;
        table.state = attached.state;
        self.observer
            .on(&Event::Attached { table: table.name(), mark: attached.state.mark.as_ref() });
        let mut sink = attached.table;
        let mark = match (attached.state.mark, start) {
            (Some(mark), _) => {
                if let Err(error) = self.check_mark(&mark, &instances, high).await {
                    return Err(self.moved_or(&spec, Some(mark), error).await);
                }
                mark
            }
            (None, Some(start)) => {
                let mark = self.first_mark(sink.as_mut(), start).await?;
                table.state.mark = Some(mark);
                mark
            }
            (None, None) => {
                return Err(Error::new(ErrorKind::Conflict, "the target's mark has disappeared")
                    .with("table", table.name()));
            }
        };
        if self.sink.capabilities().add_columns {
            // The target may be older than the newest instance.
            sink.evolve(&spec.columns).await?;
        }
        table.marked_at = Some(self.clock.now());
        table.open = Some(Open { spec, instances, sink, mark, quiet_until: mark.end });
        table.waiting = false;
        self.publish(table, Stamp { position: mark.end, commit_time: mark.commit_time }).await
    }

    async fn first_mark(&self, sink: &mut dyn TableSink, start: Stamp) -> Result<Mark> {
        let entry_time = match start.commit_time {
            Some(_) => self.source.entry_time(start.position).await?,
            // It is no entry, or none that stays.
            None => None,
        };
        let mark = Mark {
            sequence: mark::next_sequence(None),
            end: start.position,
            commit_time: start.commit_time,
            entry_time,
            generation: 0,
        };
        let facts = BatchFacts::begun(self.clock.now());
        let _: Committed = sink.commit(Commit { mark, facts, events: Vec::new() }).await?;
        Ok(mark)
    }

    /// Checks that a mark belongs to the source's log and that what follows it is still there.
    async fn check_mark(
        &self,
        mark: &Mark,
        instances: &[CaptureInstance],
        high: Bound,
    ) -> Result<()> {
        let Some(holder) = plan::holder(mark.end, instances) else {
            return Ok(());
        };
        self.check_order(mark.end, high, holder.start).await?;
        // Before the low position, which cleanup moves before it removes an entry.
        let observed = self.source.entry_time(mark.end).await?;
        let bounds = self.source.low(std::slice::from_ref(&holder.name)).await?;
        match bounds.first() {
            Some(Bound::At(low)) => self.check_lineage(mark, *low, observed).await,
            _ => Ok(()),
        }
    }

    /// Checks that a mark belongs to the log. Its entry is asked for again before it does not: a
    /// restore between the two questions makes answers that fit neither log.
    pub(super) async fn check_lineage(
        &self,
        mark: &Mark,
        low: Position,
        observed: Option<Timestamp>,
    ) -> Result<()> {
        let Err(error) = plan::check_lineage(mark, low, observed) else {
            return Ok(());
        };
        if self.source.entry_time(mark.end).await? == observed {
            return Err(error);
        }
        Err(replaced(mark.end).caused_by(error))
    }

    /// Checks that the source has what a mark's end stands for. The high position of a cycle may be
    /// older than a mark that another runner has moved meanwhile, so it is asked for again before
    /// a mark above it counts as another log's.
    async fn check_order(&self, end: Position, high: Bound, start: Position) -> Result<()> {
        let Err(error) = plan::plan(end, high, None, start) else {
            return Ok(());
        };
        if error.kind() != ErrorKind::LineageBroken {
            return Err(error);
        }
        plan::plan(end, self.source.high().await?, None, start)?;
        Err(Error::new(ErrorKind::Conflict, "another runner has moved the mark meanwhile")
            .with("mark", end))
    }

    /// The position that a copy without a mark begins after; none while capture has not reached
    /// the table.
    async fn start(
        &self,
        config: &TableConfig,
        instances: &[CaptureInstance],
        high: Bound,
    ) -> Result<Option<Stamp>> {
        let Some(oldest) = instances.first() else {
            return Ok(None);
        };
        let low = self.source.low(std::slice::from_ref(&oldest.name)).await?;
        let low = low.first().copied().unwrap_or(Bound::Null);
        if !retention::reached(oldest, high) && !matches!(low, Bound::At(_)) {
            return Ok(None);
        }
        let Bound::At(low) = low else {
            // Refused with the grant that may be missing.
            let range = crate::ClosedRange::new(oldest.start, oldest.start);
            let range = range.ok_or_else(|| Error::bug("a range of one position is empty"))?;
            retention::guard_after(oldest, range, low)?;
            return Ok(None);
        };
        let before_low = low.decrement();
        let position = match config.start {
            StartAt::Earliest => before_low,
            StartAt::Latest => match high {
                Bound::At(high) => high.max(before_low),
                Bound::Null | Bound::Zero => before_low,
            },
            StartAt::After(position) => position.in_epoch(low.epoch()),
            StartAt::Since(moment) => self.since(&config.target, moment, low).await?,
        };
        self.check_start(config, position, low, high).await?;
        if position < low {
            // An entry there may go at any time, and would be looked for.
            return Ok(Some(Stamp { position, commit_time: None }));
        }
        let commit_time = self.source.commit_time(position).await?;
        let is_entry = matches!(config.start, StartAt::Latest | StartAt::Since(_));
        if is_entry && commit_time.is_none() {
            return Err(replaced(position));
        }
        Ok(Some(Stamp { position, commit_time }))
    }

    /// The position at a moment of the past.
    async fn since(&self, table: &str, moment: Timestamp, low: Position) -> Result<Position> {
        let wrong = |kind, message| {
            Error::new(kind, message)
                .with("table", table)
                .with("setting", "start")
                .with("start", moment)
        };
        let now = self.clock.now();
        if moment > now {
            // The newest entry would be found for it, and what comes before the moment copied.
            return Err(wrong(ErrorKind::Config, "the start lies in the future")
                .with("now", now)
                .remedy("start at a moment that has passed, or at latest"));
        }
        self.source.position_at(moment).await?.ok_or_else(|| {
            wrong(ErrorKind::DataLoss, "the source holds nothing as old as the start")
                .with("low", low)
                .remedy("start later, or at earliest")
        })
    }

    async fn check_start(
        &self,
        config: &TableConfig,
        start: Position,
        low: Position,
        high: Bound,
    ) -> Result<()> {
        let place = |error: Error| {
            error.with("table", &config.target).with("setting", "start").with("start", start)
        };
        if start < low.decrement() {
            return Err(place(Error::new(
                ErrorKind::DataLoss,
                "changes after the start were already removed at the source",
            ))
            .with("low", low)
            .remedy("start at earliest, or load the table from a snapshot first"));
        }
        if !matches!(high, Bound::At(high) if start > high) {
            return Ok(());
        }
        // The high position of a cycle is older than an answer that came after it.
        match self.source.high().await? {
            Bound::At(newer) if start <= newer => {
                Err(place(Error::new(ErrorKind::Conflict, "the source has reached the start now"))
                    .with("high", newer)
                    .remedy("nothing: the table is opened again"))
            }
            Bound::At(high) => {
                Err(place(Error::new(ErrorKind::Config, "the start lies in the source's future"))
                    .with("high", high)
                    .remedy("start at a position the source has reached, or at latest"))
            }
            Bound::Null | Bound::Zero => Err(replaced(start)),
        }
    }

    /// Publishes the verdict that the end of the table's mark allows, when it says more than the
    /// stored one.
    pub(super) async fn publish(&self, table: &mut Table, end: Stamp) -> Result<()> {
        if !self.sink.capabilities().stores_verdict {
            return Ok(());
        }
        let Some(open) = table.open.as_mut() else {
            return Ok(());
        };
        let before = table.state.verdict;
        let verdict = verdict::advance(before, end, self.settings.granularity, Hold::Free);
        if before.is_some_and(|before| before.finalized_until == verdict.finalized_until) {
            return Ok(());
        }
        let stored = open.sink.publish(verdict).await?;
        table.state.verdict = Some(stored);
        self.observer.on(&Event::VerdictPublished { table: table.name(), verdict: &stored });
        Ok(())
    }

    /// The table's instances in the order of the log: what the source says of their creation is by
    /// its clock, which may have been put back.
    async fn list(&self, table: &TableRef) -> Result<Vec<CaptureInstance>> {
        let mut instances = self.source.instances(table).await?;
        instances.sort_by_key(|instance| instance.start);
        Ok(instances)
    }

    /// Lists the table's instances again, under the table's own name: the configured instance may
    /// be gone. True when the list has changed.
    pub(super) async fn relist(&self, open: &mut Open) -> Result<bool> {
        let table = TableRef::Table(open.spec.source.clone());
        let found = self.list(&table).await.map_err(|error| match error.kind() {
            // It was there when the table was opened.
            ErrorKind::Config => Error::new(ErrorKind::DataLoss, "the table is no longer captured")
                .with("table", &open.spec.source)
                .with("mark", open.mark.end)
                .remedy(
                    "give the login back SELECT on the table and its gating role if it lost them; \
                     else enable capture again, and copy the table into a new target from there",
                )
                .caused_by(error),
            _ => error,
        })?;
        let changed = found != open.instances;
        open.instances = found;
        if changed {
            // What was known to be quiet was known of the instances before.
            open.quiet_until = open.mark.end;
        }
        Ok(changed)
    }

    /// What an error means that may come from an instance that was dropped while its table was
    /// opened: the table is opened again.
    pub(super) async fn gone_or(&self, table: &TableRef, error: Error) -> Error {
        let Some(instance) = error.context("instance") else {
            return error;
        };
        match self.list(table).await {
            Ok(found) if found.iter().all(|one| one.name.to_string() != instance) => {
                let changed = "the table's capture instances changed while it was opened";
                Error::new(ErrorKind::Conflict, changed).with("table", table).caused_by(error)
            }
            _ => error,
        }
    }

    /// What an error means that may come from an instance that was dropped during the step, or
    /// from a restore to a moment before its start: the step is planned again.
    pub(super) async fn dropped_or(&self, table: &mut Table, upper: Edge, error: Error) -> Error {
        let Some(open) = table.open.as_mut() else {
            return error;
        };
        let changed = match self.relist(open).await {
            Err(gone) if gone.kind() == ErrorKind::DataLoss => return gone,
            Ok(true) => "the table's capture instances changed in a read",
            Ok(false) => match self.source.high().await {
                Ok(Bound::At(high)) if high >= upper.stamp.position => return error,
                Ok(_) => "the source's log went back in a read",
                Err(_) => return error,
            },
            Err(_) => return error,
        };
        Error::new(ErrorKind::Conflict, changed).with("table", &open.spec.source).caused_by(error)
    }

    /// What a start or a mark that the source does not have means while a table is opened: nothing
    /// when another runner has moved the mark meanwhile, and cleanup followed it.
    async fn moved_or(&self, spec: &TableSpec, held: Option<Mark>, error: Error) -> Error {
        if error.kind().retry() != Retry::Stop {
            return error;
        }
        match self.sink.inspect(spec).await {
            Ok(found) if found.and_then(|state| state.mark) != held => {
                Error::new(ErrorKind::Conflict, "another runner has moved the mark meanwhile")
                    .with("table", &spec.name)
                    .caused_by(error)
            }
            // Not known yet: the table is opened and looked at again.
            Err(second) if second.kind().retry() != Retry::Stop => second.with("table", &spec.name),
            _ => error,
        }
    }

    /// What a loss or another log means that was found behind an attached table's mark: nothing
    /// when a newer runner has the table by now. That one has moved the mark on, and cleanup may
    /// take what lies behind it.
    pub(super) async fn superseded_or(&self, table: &mut Table, error: Error) -> Error {
        let alarms = matches!(error.kind(), ErrorKind::DataLoss | ErrorKind::LineageBroken);
        let Some(open) = table.open.as_mut().filter(|_| alarms) else {
            return error;
        };
        match self.sink.is_superseded(&open.spec).await {
            Ok(true) => Error::new(ErrorKind::Fenced, "a newer runner attached")
                .with("table", table.name())
                .caused_by(error),
            Ok(false) => error,
            // Not known yet: the table is opened and looked at again.
            Err(second) if second.kind().retry() != Retry::Stop => {
                second.with("table", table.name())
            }
            Err(_) => error,
        }
    }
}

/// What is said when answers of one cycle are of two logs: nothing of it is kept, and the table is
/// opened again, which tells whether its mark is of the log that there is now.
pub(super) fn replaced(at: Position) -> Error {
    Error::new(ErrorKind::Conflict, "the source's log was replaced while it was read")
        .with("position", at)
        .remedy("nothing while the source is being restored: the table is read again")
}

//! The loop: one high position a cycle, all tables up to it, retries, and the stop.

use std::time::Duration;

use futures_util::{
    StreamExt,
    future::{BoxFuture, Either, FutureExt, select},
    stream,
};

use super::{
    Engine, RunReport, TableConfig,
    batch::{Edge, Step, seconds},
    retry::{Attempts, millis},
    table::{Open, Table, replaced},
};
use crate::{
    batch::Stamp,
    error::{Error, ErrorKind, Result},
    plan,
    planted::{self, Planted},
    port::{Bound, Event, Shutdown},
    position::{ClosedRange, Position},
    table::InstanceName,
};

/// What a run remembers from cycle to cycle.
struct Run {
    tables: Vec<Table>,
    /// The newest high position and its time, so that an idle cycle is one query.
    high: Option<Edge>,
    attempts: Attempts,
    /// Stop when every table has reached this.
    target: Option<Position>,
    silent: bool,
}

/// Whether a cycle found anything to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cycle {
    Idle,
    /// Something moved, or is still behind: no pause.
    Busy,
    Finished,
}

impl Engine {
    /// Copies until a stop is asked for or every table has stopped.
    pub async fn run(&self, tables: Vec<TableConfig>, shutdown: &Shutdown) -> RunReport {
        self.drive(tables, false, shutdown).await
    }

    /// Copies everything that the source has when the run begins, then ends.
    pub async fn run_once(&self, tables: Vec<TableConfig>, shutdown: &Shutdown) -> RunReport {
        self.drive(tables, true, shutdown).await
    }

    async fn drive(&self, tables: Vec<TableConfig>, once: bool, shutdown: &Shutdown) -> RunReport {
        let mut run = Run {
            tables: tables.into_iter().map(Table::new).collect(),
            high: None,
            attempts: Attempts::default(),
            target: None,
            silent: false,
        };
        while !shutdown.is_requested() && run.tables.iter().any(|table| table.stopped.is_none()) {
            let pause = match self.cycle(&mut run, once, shutdown).await {
                Ok(Cycle::Finished) => break,
                Ok(Cycle::Busy) => {
                    run.attempts.succeeded();
                    Duration::ZERO
                }
                Ok(Cycle::Idle) => {
                    run.attempts.succeeded();
                    self.shortest_wait(&run).unwrap_or(self.settings.poll_interval)
                }
                Err(error) => match self.source_failed(&mut run, error) {
                    Some(pause) => pause,
                    None => break,
                },
            };
            self.rest(pause, shutdown).await;
        }
        if once && shutdown.is_requested() {
            Self::own_up(&mut run);
        }
        self.finish(run).await
    }

    async fn cycle(&self, run: &mut Run, once: bool, shutdown: &Shutdown) -> Result<Cycle> {
        let high = self.source.high().await?;
        let now = self.clock.now();
        let Some(upper) = self.upper(run, high).await? else {
            // Capture has never written: tables can only be looked for.
            self.open_all(run, high).await;
            self.look_back(run, high).await?;
            self.observer.on(&Event::Idle { high: None, now });
            let done = once
                && run
                    .tables
                    .iter()
                    .all(|table| table.waiting || table.open.is_some() || table.stopped.is_some());
            return Ok(if done { Cycle::Finished } else { Cycle::Idle });
        };
        if once {
            run.target.get_or_insert(upper.stamp.position);
        }
        let upper = match run.target {
            // A run that ends reads up to where the source was when it began, not further.
            Some(target) if target < upper.stamp.position => {
                let bound = self.edge(target).await?;
                if bound.entry_time.is_some() || self.all_at(run, bound) {
                    bound
                } else {
                    // The log was replaced since, or cleanup is far ahead, which a guard tells.
                    run.target = Some(upper.stamp.position);
                    upper
                }
            }
            _ => upper,
        };
        self.open_all(run, high).await;
        self.look_back(run, high).await?;
        if self.all_at(run, upper) {
            self.observer.on(&Event::Idle { high: Some(&upper.stamp), now });
            return Ok(if once { Cycle::Finished } else { Cycle::Idle });
        }
        self.observer.on(&Event::CycleStarted { high: &upper.stamp, now });
        let news = self.find_news(run, upper, once).await?;
        let moved = self.work(run, &news, upper, shutdown).await;
        if once && self.all_at(run, upper) {
            return Ok(Cycle::Finished);
        }
        Ok(if moved { Cycle::Busy } else { Cycle::Idle })
    }

    /// The bound of this cycle. Its time is asked for only when the position has moved, or when a
    /// table failed: the log may have been replaced by one that reaches as far.
    async fn upper(&self, run: &mut Run, high: Bound) -> Result<Option<Edge>> {
        let Bound::At(position) = high else {
            return Ok(None);
        };
        let tried = |table: &Table| table.stopped.is_none() && table.attempts.count() > 0;
        let doubted = run.tables.iter().any(tried);
        let upper = match run.high {
            Some(upper) if upper.stamp.position == position && !doubted => upper,
            _ => self.edge(position).await?,
        };
        if upper.entry_time.is_none() {
            // The newest position is an entry as long as the log is the same.
            return Err(replaced(position));
        }
        run.high = Some(upper);
        self.watch_silence(run, upper.stamp);
        Ok(Some(upper))
    }

    /// A position as where something ends, with its times.
    pub(super) async fn edge(&self, position: Position) -> Result<Edge> {
        let commit_time = self.source.commit_time(position).await?;
        let entry_time = self.source.entry_time(position).await?;
        Ok(Edge { stamp: Stamp { position, commit_time }, entry_time })
    }

    /// Warns once when the source has been silent for longer than its idle entries explain.
    fn watch_silence(&self, run: &mut Run, newest: Stamp) {
        let Some(time) = newest.commit_time else {
            return;
        };
        let lag = seconds(self.clock.now().micros_since(time));
        let silent = lag > self.settings.silence_max.as_secs_f64();
        if silent && !run.silent {
            let message = format!(
                "the source's newest entry is {lag:.0} s old: check that the capture job runs \
                 position={} time={time}",
                newest.position
            );
            self.observer.on(&Event::Warning { table: None, message: &message });
        }
        run.silent = silent;
    }

    /// Opens what is due and not open.
    async fn open_all(&self, run: &mut Run, high: Bound) {
        let now = self.clock.now();
        let due: Vec<BoxFuture<'_, bool>> = run
            .tables
            .iter_mut()
            .filter(|table| table.open.is_none() && table.is_due(now))
            .map(|table| self.open_or_fail(table, high).boxed())
            .collect();
        self.several(due).await;
    }

    async fn open_or_fail(&self, table: &mut Table, high: Bound) -> bool {
        let opened = match self.open(table, high).await {
            Err(error) if is_about_an_instance(&error) => {
                Err(self.gone_or(&table.config.source, error).await)
            }
            opened => opened,
        };
        // Not yet a success: what failed before is still to be done.
        self.settle(table, opened.map(|()| false))
    }

    /// Stops the tables whose mark lies above what the source has now: it was restored while the
    /// run went on. A table that waited for its instance is looked at again.
    async fn look_back(&self, run: &mut Run, high: Bound) -> Result<()> {
        let judged = |open: &Open, high| {
            plan::holder(open.mark.end, &open.instances)
                .map_or(Ok(()), |at| plan::plan(open.mark.end, high, None, at.start).map(|_| ()))
        };
        let is_doubtful = run
            .tables
            .iter()
            .filter_map(|table| table.open.as_ref())
            .any(|open| judged(open, high).is_err());
        // A table may have been opened long after the high position was asked for.
        let high = if is_doubtful { self.source.high().await? } else { high };
        for table in &mut run.tables {
            let Some(open) = &table.open else { continue };
            match judged(open, high) {
                Ok(()) => table.waiting = false,
                Err(error) => self.table_failed(table, error.with("table", &table.config.target)),
            }
        }
        Ok(())
    }

    /// Drives the tables' futures, several at a time. True when one of them moved.
    async fn several(&self, work: Vec<BoxFuture<'_, bool>>) -> bool {
        stream::iter(work)
            .buffer_unordered(self.settings.tables_at_once.get())
            .fold(false, async |any, moved| any | moved)
            .await
    }

    /// Takes the outcome of a table's step: whether it moved. Only a mark that became durable
    /// counts as a success: a table whose every try fails stops, whatever goes well in between.
    fn settle(&self, table: &mut Table, outcome: Result<bool>) -> bool {
        match outcome {
            Ok(moved) => {
                if moved || table.waiting {
                    table.attempts.succeeded();
                }
                moved
            }
            Err(error) => {
                self.table_failed(table, error);
                false
            }
        }
    }

    /// True when every table that still runs has its mark at the bound, or waits for capture.
    fn all_at(&self, run: &Run, upper: Edge) -> bool {
        run.tables.iter().filter(|table| table.stopped.is_none()).all(|table| {
            table.waiting
                || table.open.as_ref().is_some_and(|open| open.mark.end >= upper.stamp.position)
        })
    }

    /// For every table, whether it has changes up to the bound: one query for all.
    async fn find_news(&self, run: &mut Run, upper: Edge, once: bool) -> Result<Vec<bool>> {
        let now = self.clock.now();
        let mut asked: Vec<(InstanceName, ClosedRange)> = Vec::new();
        let mut asked_by = Vec::new();
        for (index, table) in run.tables.iter_mut().enumerate() {
            table.moves = false;
            if table.open.is_none() || !table.is_due(now) {
                continue;
            }
            // What was known to be quiet was known of the log as it was then: a mark that will move
            // needs an answer of this cycle.
            table.moves = once || self.progress_is_due(table);
            let Some(open) = &table.open else { continue };
            let anew = table.moves && !planted::is(Planted::SilenceRemembered);
            let after = if anew { open.mark.end } else { open.known_until() };
            let Some(range) = ClosedRange::after(after, upper.stamp.position) else {
                continue;
            };
            for piece in plan::pieces(range, &open.instances) {
                asked.push((piece.instance.name.clone(), piece.range));
                asked_by.push(index);
            }
        }
        let mut news = vec![false; run.tables.len()];
        if asked.is_empty() {
            return Ok(news);
        }
        let answers = match self.source.has_changes(&asked).await {
            // One of the instances is gone or hidden: each table finds out for itself, so that
            // only the one concerned stops.
            Err(error) if is_about_an_instance(&error) => vec![true; asked.len()],
            answers => answers?,
        };
        if answers.len() != asked.len() {
            return Err(Error::bug("source gave another number of answers than was asked"));
        }
        for (index, has) in asked_by.iter().zip(answers) {
            if let Some(entry) = news.get_mut(*index) {
                *entry |= has;
            }
        }
        for index in asked_by {
            let quiet = news.get(index) == Some(&false);
            let table = run.tables.get_mut(index).filter(|_| quiet);
            if let Some(open) = table.and_then(|table| table.open.as_mut()) {
                open.quiet_until = upper.stamp.position;
            }
        }
        Ok(news)
    }

    /// Works on every table that is behind. True when one moved.
    async fn work(&self, run: &mut Run, news: &[bool], upper: Edge, shutdown: &Shutdown) -> bool {
        let now = self.clock.now();
        let work: Vec<BoxFuture<'_, bool>> = run
            .tables
            .iter_mut()
            .zip(news)
            .filter(|(table, _)| {
                table.is_due(now)
                    && table.open.as_ref().is_some_and(|open| open.mark.end < upper.stamp.position)
            })
            .map(|(table, news)| self.step_or_fail(table, *news, upper, shutdown).boxed())
            .collect();
        self.several(work).await
    }

    async fn step_or_fail(
        &self,
        table: &mut Table,
        has_changes: bool,
        upper: Edge,
        shutdown: &Shutdown,
    ) -> bool {
        let outcome = match self.step(table, has_changes, upper, shutdown).await {
            Err(error) if is_about_an_instance(&error) => {
                Err(self.dropped_or(table, upper, error).await)
            }
            outcome => outcome,
        };
        let outcome = match outcome {
            Err(error) => Err(self.superseded_or(table, error).await),
            outcome => outcome,
        };
        self.settle(table, outcome)
    }

    async fn step(
        &self,
        table: &mut Table,
        has_changes: bool,
        upper: Edge,
        shutdown: &Shutdown,
    ) -> Result<bool> {
        let upper = if planted::is(Planted::TwoUpperBounds) {
            self.asked_anew(upper).await?
        } else {
            upper
        };
        if !has_changes {
            if planted::is(Planted::IdleEndDropped) || !table.moves {
                return Ok(false);
            }
            if self.record_progress(table, upper).await? {
                return Ok(true);
            }
        }
        let step = self.advance(table, upper, shutdown).await?;
        table.waiting = step == Step::Waiting;
        Ok(step == Step::Advanced)
    }

    /// The newest position at this moment, for [`Planted::TwoUpperBounds`] only.
    async fn asked_anew(&self, upper: Edge) -> Result<Edge> {
        let Bound::At(position) = self.source.high().await? else {
            return Ok(upper);
        };
        self.edge(position).await
    }

    fn progress_is_due(&self, table: &Table) -> bool {
        let Some(marked_at) = table.marked_at else {
            return true;
        };
        match u64::try_from(self.clock.now().micros_since(marked_at)) {
            Ok(passed) => Duration::from_micros(passed) >= self.settings.progress_interval,
            // The clock jumped back.
            Err(_) => true,
        }
    }

    /// Counts a table's failure: it is tried again after a pause, or stops for this run. Either
    /// way the next try attaches again and reads what is durable.
    fn table_failed(&self, table: &mut Table, error: Error) {
        table.open = None;
        let now = self.clock.now();
        let pause = table.attempts.failed(&error, &self.settings.retry, now, self.entropy.as_ref());
        match pause {
            Some(pause) => self.observer.on(&Event::Retrying {
                table: Some(&table.config.target),
                error: &error,
                attempt: table.attempts.count(),
                pause_ms: millis(pause),
            }),
            None if error.kind() == ErrorKind::Cancelled => table.stopped = Some(error),
            None => {
                self.observer
                    .on(&Event::TableStopped { table: &table.config.target, error: &error });
                table.stopped = Some(error);
            }
        }
    }

    /// Counts a failure that concerns the whole source. None when all tables have to stop.
    fn source_failed(&self, run: &mut Run, error: Error) -> Option<Duration> {
        let now = self.clock.now();
        let pause = run.attempts.failed(&error, &self.settings.retry, now, self.entropy.as_ref());
        if let Some(pause) = pause {
            let (attempt, pause_ms) = (run.attempts.count(), millis(pause));
            self.observer.on(&Event::Retrying { table: None, error: &error, attempt, pause_ms });
            return Some(pause);
        }
        for table in run.tables.iter_mut().filter(|table| table.stopped.is_none()) {
            let copy = Error::new(error.kind(), error.report()).with("source", self.source.name());
            self.observer.on(&Event::TableStopped { table: &table.config.target, error: &copy });
            table.stopped = Some(copy);
        }
        None
    }

    /// The shortest time until a failed table is due again.
    fn shortest_wait(&self, run: &Run) -> Option<Duration> {
        let now = self.clock.now();
        run.tables
            .iter()
            .filter(|table| table.stopped.is_none())
            .map(|table| table.attempts.wait(now))
            .filter(|wait| *wait > Duration::ZERO)
            .min()
            .map(|wait| wait.min(self.settings.poll_interval))
    }

    async fn rest(&self, pause: Duration, shutdown: &Shutdown) {
        if pause > Duration::ZERO && !shutdown.is_requested() {
            let stop = std::pin::pin!(shutdown.requested());
            match select(self.clock.sleep(pause), stop).await {
                Either::Left(_) | Either::Right(_) => {}
            }
        }
    }

    /// Marks the tables that a stop kept from being copied to the end: a run that ends by itself
    /// must not look complete when it was stopped.
    fn own_up(run: &mut Run) {
        let target = run.target;
        for table in run.tables.iter_mut().filter(|table| table.stopped.is_none()) {
            let mark = table.state.mark.map(|mark| mark.end);
            if table.waiting || target.is_some_and(|target| mark >= Some(target)) {
                continue;
            }
            let error = Error::new(ErrorKind::Cancelled, "stopped before everything was copied");
            table.stopped = Some(error.with("table", &table.config.target));
        }
    }

    async fn finish(&self, run: Run) -> RunReport {
        let mut report = RunReport::default();
        for mut table in run.tables {
            if let Some(open) = table.open.take()
                && let Err(error) = open.sink.close().await
            {
                tracing::debug!(table = table.name(), error = %error.report(), "not given back");
            }
            report.tables.push(table.report());
        }
        report
    }
}

/// True for errors that a source gives for an instance that is gone or hidden.
fn is_about_an_instance(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Config | ErrorKind::Unauthorized)
}

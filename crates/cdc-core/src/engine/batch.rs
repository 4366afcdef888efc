//! One batch of one table: planned, read, guarded, committed.

use std::pin::pin;

use std::time::Duration;

use futures_util::{
    FutureExt, StreamExt,
    future::{Either, select},
};

use super::{
    Engine,
    table::{Open, Table, replaced},
};
use crate::{
    batch::{BatchEvent, BatchEventKind, BatchFacts, Commit, Origin, Stamp, TableBatch},
    change::ChangeColumns,
    error::{Error, Result},
    mark::Mark,
    plan::{self, Cut, Cutter, Piece, Plan},
    planted::{self, Planted},
    port::{Bound, ChangeRequest, Event, Shutdown},
    position::{ClosedRange, Position},
    retention::{self, Readiness},
    schema,
    table::{CaptureInstance, TableSpec},
    time::Timestamp,
};

/// What became of a table in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to do up to the bound.
    UpToDate,
    /// Capture has not reached the instance.
    Waiting,
    /// A batch was committed; there may be more up to the bound.
    Advanced,
}

/// Where what is read ends: the upper bound that all tables of a cycle share, or the end of a
/// batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) stamp: Stamp,
    /// The time of the entry there by its own reading; none when there is no such entry.
    pub(super) entry_time: Option<Timestamp>,
}

/// Where reading a batch came to.
struct ReadOut {
    facts: BatchFacts,
    /// The batch ended before its range did, at this commit.
    cut_at: Option<Stamp>,
}

impl Engine {
    /// Reads and commits the next batch of an open table.
    pub(super) async fn advance(
        &self,
        table: &mut Table,
        upper: Edge,
        shutdown: &Shutdown,
    ) -> Result<Step> {
        let (started_at, begun) = (self.clock.now(), self.clock.elapsed());
        let name = table.config.target.clone();
        let Some(open) = table.open.as_mut() else {
            return Ok(Step::Waiting);
        };
        self.relist(open).await?;
        let range = match self.plan(open.mark.end, &open.instances, upper).await? {
            Plan::Read(range) => range,
            Plan::UpToDate => return Ok(Step::UpToDate),
            Plan::WaitingForCapture => return Ok(Step::Waiting),
        };
        let instances = open.instances.clone();
        let pieces = plan::pieces(range, &instances);
        if !self.guard(&pieces, upper).await? {
            self.observer.on(&Event::WaitingForCapture { table: &name });
            return Ok(Step::Waiting);
        }
        let mut events = self.follow_schema(open, &pieces).await?;
        let mut facts = BatchFacts::begun(started_at);
        facts.source_commit_time = upper.stamp.commit_time;
        let read = self.read(&name, open, &pieces, facts, shutdown).await;
        let ReadOut { mut facts, cut_at } = match read {
            Ok(read) => read,
            Err(error) => return Err(self.give_up(&name, open, error).await),
        };
        let end = match self.end(range, upper, cut_at, &facts).await {
            Ok(end) => end,
            Err(error) => return Err(self.give_up(&name, open, error).await),
        };
        let read_range = ClosedRange::new(range.from(), end.stamp.position)
            .ok_or_else(|| Error::bug("batch ends before it begins"))?;
        let pieces: Vec<_> = plan::pieces(read_range, &instances);
        if let Err(error) = self.guard_read(&open.mark, end, upper, &pieces, &mut facts).await {
            return Err(self.give_up(&name, open, error).await);
        }
        events.retain(|event| event.at.position <= end.stamp.position);
        self.commit(table, end, facts, events, begun).await?;
        Ok(Step::Advanced)
    }

    /// Moves the mark of a table that has no change up to the bound. False when it has to be read
    /// after all, because its instances are not those that were asked.
    pub(super) async fn record_progress(&self, table: &mut Table, upper: Edge) -> Result<bool> {
        let (started_at, begun) = (self.clock.now(), self.clock.elapsed());
        let Some(open) = table.open.as_mut() else {
            return Ok(true);
        };
        let Some(range) = ClosedRange::after(open.mark.end, upper.stamp.position) else {
            return Ok(true);
        };
        // A newer instance may hold changes of columns that the older one does not capture.
        if !planted::is(Planted::ProgressWithoutListing) && self.relist(open).await? {
            return Ok(false);
        }
        let instances = open.instances.clone();
        let pieces = plan::pieces(range, &instances);
        let high = Bound::At(upper.stamp.position);
        if !pieces.iter().all(|piece| retention::reached(piece.instance, high)) {
            return Ok(false);
        }
        let mut facts = BatchFacts::begun(started_at);
        facts.source_commit_time = upper.stamp.commit_time;
        let events = self.follow_schema(open, &pieces).await?;
        self.guard_read(&open.mark, upper, upper, &pieces, &mut facts).await?;
        self.commit(table, upper, facts, events, begun).await?;
        Ok(true)
    }

    async fn plan(
        &self,
        after: Position,
        instances: &[CaptureInstance],
        upper: Edge,
    ) -> Result<Plan> {
        let nth = match self.settings.limits.commits_max {
            Some(count) if after < upper.stamp.position => {
                let more = u64::from(planted::is(Planted::CommitLimitOffByOne));
                self.source.nth_commit_after(after, count.get() + more).await?
            }
            _ => None,
        };
        let start = plan::holder(after, instances)
            .map(|holder| holder.start)
            .ok_or_else(|| Error::bug("table has no capture instance"))?;
        plan::plan(after, Bound::At(upper.stamp.position), nth, start)
    }

    /// The guard before the read, on the instance of every piece. False while capture has not
    /// reached one.
    async fn guard(&self, pieces: &[Piece<'_>], upper: Edge) -> Result<bool> {
        let lows = self.lows(pieces).await?;
        let high = Bound::At(upper.stamp.position);
        for (piece, low) in pieces.iter().zip(lows) {
            match retention::guard_before(piece.instance, piece.range, low, high)? {
                Readiness::Readable(_) => {}
                Readiness::WaitingForCapture => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The low position of every piece's instance: one query.
    async fn lows(&self, pieces: &[Piece<'_>]) -> Result<Vec<Bound>> {
        let names: Vec<_> = pieces
            .iter()
            .map(|piece| {
                if planted::is(Planted::GuardOnNewestInstance) {
                    pieces.last().unwrap_or(piece)
                } else if planted::is(Planted::GuardOnOldestInstance) {
                    pieces.first().unwrap_or(piece)
                } else {
                    piece
                }
            })
            .map(|piece| piece.instance.name.clone())
            .collect();
        let lows = self.source.low(&names).await?;
        if lows.len() != names.len() {
            return Err(Error::bug("source gave another number of low positions"));
        }
        Ok(lows)
    }

    /// The guard after the read, on the instance of every piece: nothing was removed, and the log
    /// is still the one that the mark was taken from and that the cycle's bound is of.
    async fn guard_read(
        &self,
        mark: &Mark,
        end: Edge,
        upper: Edge,
        pieces: &[Piece<'_>],
        facts: &mut BatchFacts,
    ) -> Result<()> {
        // Before the low position, which cleanup moves before it removes an entry.
        let observed = self.source.entry_time(mark.end).await?;
        let bound = self.source.entry_time(upper.stamp.position).await?;
        let lows = self.lows(pieces).await?;
        let observed = if planted::is(Planted::LineageReadAfterLow) {
            self.source.entry_time(mark.end).await?
        } else {
            observed
        };
        let mut last = None;
        for (piece, low) in pieces.iter().zip(lows) {
            let low = retention::guard_after(piece.instance, piece.range, low)?;
            if last.is_none() {
                self.check_lineage(mark, low, observed).await?;
            }
            last = Some(low);
        }
        // A restore in the middle: the mark's entry may be older than it, and what was read is not.
        if bound != upper.entry_time || end.entry_time.is_none() {
            return Err(replaced(upper.stamp.position));
        }
        if let Some(low) = last {
            facts.retention_watermark = self.source.commit_time(low).await?;
        }
        Ok(())
    }

    /// Takes up changes of the columns inside the pieces before anything of them is read.
    async fn follow_schema(
        &self,
        open: &mut Open,
        pieces: &[Piece<'_>],
    ) -> Result<Vec<BatchEvent>> {
        let mut events: Vec<BatchEvent> = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            for change in self.source.schema_changes(&piece.instance.name, piece.range).await? {
                if events.iter().any(|event| event.at.position == change.at) {
                    continue;
                }
                events.push(BatchEvent {
                    kind: BatchEventKind::SchemaChange,
                    at: Stamp { position: change.at, commit_time: change.time },
                    lost: None,
                    detail: change.statement,
                });
            }
            self.take_up_columns(open, piece.instance).await?;
            if let Some(older) = index.checked_sub(1).and_then(|before| pieces.get(before)) {
                events.push(self.switched(older.instance, piece).await?);
            }
        }
        Ok(events)
    }

    /// Makes the target ready for the columns of an instance that appeared in this run. What came
    /// before was added when the table was opened.
    async fn take_up_columns(&self, open: &mut Open, instance: &CaptureInstance) -> Result<()> {
        let added = schema::missing(instance, &open.spec.columns)?;
        if added.is_empty() {
            return Ok(());
        }
        let TableSpec { name, source, mut columns, key } = open.spec.clone();
        columns.extend(added.iter().cloned());
        // The rules of a new table hold for late columns too.
        let spec = TableSpec::new(name, source, columns, key)?;
        if !planted::is(Planted::LateColumnNotRead) {
            open.spec = spec;
        }
        open.sink.evolve(&added).await
    }

    async fn switched(&self, older: &CaptureInstance, newer: &Piece<'_>) -> Result<BatchEvent> {
        let lost: Vec<_> = older
            .columns
            .iter()
            .filter(|column| newer.instance.column(&column.name).is_none())
            .map(|column| column.name.as_str())
            .collect();
        let mut detail = format!("{} -> {}", older.name, newer.instance.name);
        if !lost.is_empty() {
            detail.push_str(&format!("; no longer captured: {}", lost.join(", ")));
        }
        let position = newer.instance.start;
        let commit_time = self.source.commit_time(position).await?;
        Ok(BatchEvent {
            kind: BatchEventKind::CaptureInstanceSwitched,
            at: Stamp { position, commit_time },
            lost: None,
            detail,
        })
    }

    async fn read(
        &self,
        name: &str,
        open: &mut Open,
        pieces: &[Piece<'_>],
        mut facts: BatchFacts,
        shutdown: &Shutdown,
    ) -> Result<ReadOut> {
        let mut cutter = Cutter::new(&self.settings.limits);
        let epoch = open.mark.epoch();
        for piece in pieces {
            let request = ChangeRequest {
                instance: piece.instance.name.clone(),
                columns: schema::wanted(piece.instance, &open.spec.columns),
                range: asked(piece.range),
                time_before: facts
                    .counts
                    .last
                    .map_or(open.mark.commit_time, |last| last.commit_time),
                batch_rows: self.settings.batch_rows.get(),
            };
            let mut stream = unless_stopped(shutdown, self.source.changes(request)).await?;
            loop {
                let asked = self.clock.elapsed();
                let next = stream.next().map(Option::transpose);
                let next = unless_stopped(shutdown, next).await;
                if next.is_err() && planted::is(Planted::ReadErrorTakenAsEnd) {
                    break;
                }
                let Some(records) = next? else {
                    break;
                };
                facts.read_seconds += self.clock.elapsed().saturating_sub(asked).as_secs_f64();
                let bytes = records.get_array_memory_size() as u64;
                let cut = cutter.next(ChangeColumns::of(&records)?.commits, bytes)?;
                let (records, bytes) = match cut {
                    Cut::Take if planted::is(Planted::UpdatePairCut) => {
                        let rows = records.num_rows().min(self.settings.batch_rows.get());
                        (records.slice(0, rows), bytes)
                    }
                    Cut::Take => (records, bytes),
                    Cut::Stop(rows) => {
                        let share = bytes * rows as u64 / (records.num_rows().max(1) as u64);
                        (records.slice(0, rows), share)
                    }
                };
                facts.counts.add(epoch, &records)?;
                let rows = records.num_rows() as u64;
                if rows > 0 {
                    facts.read_bytes += bytes;
                    let instance = piece.instance.name.clone();
                    open.sink
                        .stage(TableBatch { instance, origin: Origin::Changes, records })
                        .await?;
                    self.observer.on(&Event::Staged { table: name, rows, bytes });
                }
                if matches!(cut, Cut::Stop(_)) {
                    return Ok(ReadOut { cut_at: facts.counts.last, facts });
                }
            }
        }
        Ok(ReadOut { facts, cut_at: None })
    }

    /// Where a batch ends: at the cut, at the bound, at the last row, or at the range's end.
    async fn end(
        &self,
        range: ClosedRange,
        upper: Edge,
        cut_at: Option<Stamp>,
        facts: &BatchFacts,
    ) -> Result<Edge> {
        let dropped = planted::is(Planted::IdleEndDropped);
        let last = facts.counts.last.filter(|last| last.position == range.to() || dropped);
        if cut_at.is_none() && range.to() == upper.stamp.position && !(dropped && last.is_some()) {
            return Ok(upper);
        }
        match cut_at.or(last) {
            Some(stamp) => {
                Ok(Edge { stamp, entry_time: self.source.entry_time(stamp.position).await? })
            }
            None => self.edge(range.to()).await,
        }
    }

    /// Commits what is staged with the mark that ends at `end`, then publishes the verdict.
    async fn commit(
        &self,
        table: &mut Table,
        end: Edge,
        mut facts: BatchFacts,
        events: Vec<BatchEvent>,
        begun: Duration,
    ) -> Result<()> {
        if planted::is(Planted::VerdictBeforeCommit) {
            self.publish(table, end.stamp).await?;
        }
        let Some(open) = table.open.as_mut() else {
            return Ok(());
        };
        let now = self.clock.now();
        let mark = next_mark(&open.mark, end, &facts);
        let took = self.clock.elapsed().saturating_sub(begun);
        facts.duration_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        facts.capture_lag_seconds =
            facts.source_commit_time.map(|newest| seconds(now.micros_since(newest)).max(0.0));
        open.sink.commit(Commit { mark, facts: facts.clone(), events }).await?;
        open.mark = mark;
        table.state.mark = Some(mark);
        table.marked_at = Some(now);
        table.rows += facts.counts.rows;
        table.batches += u64::from(facts.counts.rows > 0);
        let name = table.name();
        self.observer.on(&Event::Committed { table: name, mark: &mark, facts: &facts });
        if planted::is(Planted::VerdictFromLastRow) {
            return match facts.counts.last {
                Some(last) => self.publish(table, last).await,
                None => Ok(()),
            };
        }
        self.publish(table, Stamp { position: mark.end, commit_time: mark.commit_time }).await
    }

    async fn give_up(&self, name: &str, open: &mut Open, error: Error) -> Error {
        // What cannot be removed stays invisible; the first error is the one to report.
        if let Err(second) = open.sink.discard().await {
            tracing::debug!(table = name, error = %second.report(), "staged rows were not removed");
        }
        self.observer.on(&Event::Discarded { table: name });
        error
    }
}

/// The mark after `mark` of a batch that ends at `end`.
fn next_mark(mark: &Mark, end: Edge, facts: &BatchFacts) -> Mark {
    let reused = planted::is(Planted::SequenceReused) && facts.counts.rows == 0;
    Mark {
        sequence: mark.sequence.saturating_add(u64::from(!reused)),
        end: end.stamp.position,
        // Times never go back in log order, whatever a later reading says.
        commit_time: if planted::is(Planted::MarkTimeGoesBack) {
            end.stamp.commit_time
        } else {
            end.stamp.commit_time.max(mark.commit_time)
        },
        entry_time: end.entry_time,
        generation: mark.generation,
    }
}

/// What is asked of the source for a piece: all of it.
fn asked(range: ClosedRange) -> ClosedRange {
    if planted::is(Planted::UpperBoundExclusive) {
        return ClosedRange::new(range.from(), range.to().decrement()).unwrap_or(range);
    }
    range
}

/// What a wait for rows comes to; a stop that is asked for ends it.
async fn unless_stopped<T>(
    shutdown: &Shutdown,
    wait: impl Future<Output = Result<T>>,
) -> Result<T> {
    shutdown.check()?;
    let (wait, stop) = (pin!(wait), pin!(shutdown.requested()));
    match select(wait, stop).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(((), wait)) => {
            shutdown.check()?;
            wait.await
        }
    }
}

pub(super) fn seconds(micros: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a figure to report")]
    let micros = micros as f64;
    micros / 1_000_000.0
}

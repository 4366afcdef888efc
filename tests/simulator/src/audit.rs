//! The auditor: looks at every commit of the lake in the moment it becomes visible, and compares
//! it with what the source really committed.

mod origin;
mod reread;
mod shared;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arrow_array::RecordBatch;
use cdc_conformance::cell::Cell;
use cdc_core::{Lsn, Mark, Position, Timestamp};
use cdc_fake::{ArchivedCommit, FakeDatabase};
use object_store::{memory::InMemory, path::Path};

use crate::{
    book::{self, Entry},
    bronze::{Row, rows_of},
    hub::ProcessId,
    invariant::Invariant,
    ledger::Told,
    oracle::{self, Truth},
    record::Record,
    script::GRANULARITY,
    stage::{BASE, Fork, Stage},
    target::{Book, Broken, fence, forward},
};
use origin::{Asked, Origin};
use reread::Logged;

/// Microseconds that a reading may be after the moment: half a tick of `datetime`, rounded up.
const TICK: i64 = 2_000;

/// Looks at every commit. Clones are the same auditor.
#[derive(Clone)]
pub struct Auditor {
    objects: Arc<InMemory>,
    database: FakeDatabase,
    stage: Stage,
    record: Record,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    books: BTreeMap<String, Book>,
    /// By directory.
    logs: BTreeMap<String, Logged>,
    run_begin: Option<Timestamp>,
    commits_max: Option<u64>,
    /// By runner.
    asked: BTreeMap<ProcessId, Asked>,
    /// A write may happen after it was answered with an error.
    lates: bool,
}

/// What a capture instance captures.
struct Captured {
    start: Lsn,
    columns: BTreeSet<String>,
}

fn base() -> BTreeSet<String> {
    BASE.iter().map(|name| (*name).to_owned()).collect()
}

/// The first captured column that a row does not hold as the change held it.
fn differing<'a>(row: &Row, truth: &Truth, captured: &'a BTreeSet<String>) -> Option<&'a String> {
    captured.iter().find(|name| {
        row.cells.get(*name).unwrap_or(&Cell::Null) != truth.cells.get(*name).unwrap_or(&Cell::Null)
    })
}

impl Auditor {
    /// An auditor of the lake in `objects`.
    #[must_use]
    pub fn new(
        objects: Arc<InMemory>,
        database: &FakeDatabase,
        stage: &Stage,
        record: &Record,
    ) -> Self {
        Self {
            objects,
            database: database.clone(),
            stage: stage.clone(),
            record: record.clone(),
            inner: Arc::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a table.
    #[must_use]
    pub fn book(&self, table: &str) -> Book {
        self.inner().books.get(table).cloned().unwrap_or_default()
    }

    /// True when the table's mark belongs to a log that a restore has replaced.
    #[must_use]
    pub fn is_replaced(&self, table: &str) -> bool {
        self.book(table).is_replaced(&self.stage.forks())
    }

    /// True when it may belong to one: a restore came before its commit, and nothing tells.
    #[must_use]
    pub fn may_be_replaced(&self, table: &str) -> bool {
        let book = self.book(table);
        book.doubtful || book.is_replaced(&self.stage.forks())
    }

    /// A run begins: batches that are read from now on are of the log as it is now.
    /// A batch takes at most `commits` entries of the mapping; with `lates` a write may happen late.
    pub fn run_begins(&self, now: Timestamp, commits: Option<u64>, lates: bool) {
        let mut inner = self.inner();
        inner.run_begin = Some(now);
        inner.commits_max = commits;
        inner.lates = lates;
    }

    /// Looks at an object that became visible.
    pub fn look(&self, process: ProcessId, path: &Path, bytes: &[u8]) {
        let parts: Vec<String> = path.parts().map(|part| part.as_ref().to_owned()).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let outcome = match parts.as_slice() {
            [place @ .., "_delta_log", file] if is_entry(file) => {
                self.entry(process, place, file, bytes)
            }
            [.., "_delta_log", file] if file.ends_with(".parquet") => {
                self.record.count("engine:checkpoint");
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err((invariant, detail)) = outcome {
            self.record.broken(invariant, detail);
        }
    }

    /// Looks at a commit of a log.
    fn entry(
        &self,
        process: ProcessId,
        place: &[&str],
        file: &str,
        bytes: &[u8],
    ) -> Result<(), Broken> {
        let entry = Entry::parse(bytes).map_err(readable)?;
        let path = place.join("/");
        let version = file.trim_end_matches(".json").parse();
        {
            let mut inner = self.inner();
            let logged = inner.logs.entry(path.clone()).or_default();
            logged.version = version.map_err(|_| readable(format!("{path}: {file}")))?;
            logged.files.extend(entry.add.iter().cloned());
            logged.files.retain(|file| !entry.remove.contains(file));
        }
        let path = Path::from(path);
        match place {
            [_, "bronze", table] => self.bronze(process, table, &path, entry),
            [_, "control"] => self.control(&path, &entry),
            [_, "facts"] => self.facts(&path, &entry),
            _ => Ok(()),
        }
    }

    /// A runner was told that a mark is durable.
    pub fn acknowledged(&self, table: &str, mark: &Mark) {
        let book = self.book(table);
        let number = i64::try_from(mark.sequence).unwrap_or_default();
        let landed = book.landed.get(&number).is_some_and(|batch| batch.ends_at(mark));
        let kept =
            landed && book.mark.is_some_and(|kept| kept.sequence > mark.sequence || kept == *mark);
        self.record.check(kept, Invariant::AcknowledgedStays, || {
            format!("{table}: told {mark:?}, the log has {:?}", book.mark)
        });
    }

    fn bronze(
        &self,
        process: ProcessId,
        table: &str,
        place: &Path,
        entry: Entry,
    ) -> Result<(), Broken> {
        let mark = entry.mark(table).map_err(readable)?;
        let mut inner = self.inner();
        let (commits_max, forks) = (inner.commits_max, self.stage.forks());
        let recent = Self::recent(&inner, process, &forks);
        let book = inner.books.entry(table.to_owned()).or_default();
        self.record.note(format!(
            "log p{process} {table} {} fence {:?} mark {} files {}",
            entry.operation,
            entry.number(table, "fence"),
            mark.map_or_else(|| "-".into(), |mark| format!("{}@{}", mark.sequence, mark.end)),
            entry.add.len(),
        ));
        self.record.count(format!("log:{}", entry.operation));
        fence(book, table, &entry)?;
        let mut batches = Vec::new();
        for file in &entry.add {
            batches.extend(book::rows(&self.objects, place, file).map_err(readable)?);
        }
        let rows = rows_of(&batches).map_err(readable)?;
        let before = book.mark;
        let replaced = book.is_replaced(&forks);
        let Some(mark) = mark else {
            let bare = format!("{table}: {} rows without a mark", rows.len());
            return if rows.is_empty() { Ok(()) } else { Err((Invariant::PrefixOfSource, bare)) };
        };
        forward(table, before.as_ref(), &mark)?;
        let origin = self.origin(before.as_ref(), &mark, recent.clone());
        book.mark = Some(mark);
        book.forks = forks.len();
        book.doubtful = origin == Origin::Unknown;
        let number = i64::try_from(mark.sequence).unwrap_or_default();
        book.landed.insert(number, Told::of(&mark, &rows));
        let Some(before) = before else {
            book.first = Some(mark.end);
            book.foreign = origin == Origin::Replaced;
            let early = format!("{table}: {} rows with the first mark", rows.len());
            return if rows.is_empty() { Ok(()) } else { Err((Invariant::PrefixOfSource, early)) };
        };
        if rows.is_empty() {
            self.record.count("engine:committed-progress");
        } else {
            self.limit(table, &before, &mark, commits_max)?;
        }
        let foreign = self.compare(table, &before, &mark, &rows, book, replaced, recent)?;
        book.foreign |= foreign || origin == Origin::Replaced;
        self.times(table, book, &rows, &mark)?;
        book.files.extend(entry.add);
        book.rows += rows.len() as u64;
        Ok(())
    }

    /// Compares the rows between two marks with the log that they were read from. True when that
    /// log was replaced while they were on their way. `replaced` is true when the mark before
    /// belongs to a replaced one.
    #[allow(clippy::too_many_arguments, reason = "what a batch is, and the logs it may be of")]
    fn compare<'a>(
        &self,
        table: &str,
        before: &Mark,
        mark: &Mark,
        rows: &[Row],
        book: &mut Book,
        replaced: bool,
        recent: impl Iterator<Item = &'a Fork>,
    ) -> Result<bool, Broken> {
        let archive = self.database.archive(0);
        let own = self.matches(table, before, mark, rows, book, &archive);
        if !replaced && own.is_ok() {
            book.seen.extend(rows.iter().map(|row| (row.commit, row.seqval, row.operation)));
            return Ok(false);
        }
        // Read before a restore, committed after it.
        for fork in recent {
            if self.matches(table, before, mark, rows, book, &fork.archive).is_ok() {
                return Ok(true);
            }
        }
        match own {
            Err(broken) => Err(broken),
            Ok(()) => {
                let detail = format!("{table}: {} follows the replaced {}", mark.end, before.end);
                Err((Invariant::OneLineage, detail))
            }
        }
    }

    fn matches(
        &self,
        table: &str,
        before: &Mark,
        mark: &Mark,
        rows: &[Row],
        book: &Book,
        archive: &[Arc<ArchivedCommit>],
    ) -> Result<(), Broken> {
        let instances = self.instances(table);
        let newest = |commit: Lsn| {
            let held = instances.values().filter(|instance| instance.start <= commit);
            let newest = held.max_by_key(|instance| instance.start);
            newest.map_or_else(base, |instance| instance.columns.clone())
        };
        let truths = oracle::changes(archive, table, before.end, mark.end, &newest);
        let mut left = truths.iter();
        let range = format!("{table} ({}, {}]", before.end, mark.end);
        for row in rows {
            let identity = (row.commit, row.seqval, row.operation);
            let show = format!("{range}: {} {} {}", row.commit, row.seqval, row.operation);
            let truth = loop {
                match left.next() {
                    Some(truth) if truth.identity() == identity => break truth,
                    Some(truth) if truth.required && !truths_has(&truths, identity) => {
                        return Err(unexpected(book, identity, show));
                    }
                    Some(truth) if truth.required => {
                        return Err(self.missing(table, &range, truth));
                    }
                    Some(_) => {}
                    None => return Err(unexpected(book, identity, show)),
                }
            };
            let captured = match &row.instance {
                Cell::Text(name) => instances.get(name).map(|instance| &instance.columns),
                _ => None,
            };
            if let Some(name) = differing(row, truth, captured.unwrap_or(&base())) {
                return Err((Invariant::SameValues, format!("{show}: column {name}")));
            }
            let batch = Cell::Int(i64::try_from(mark.sequence).unwrap_or_default());
            if row.batch != batch {
                return Err((Invariant::SameValues, format!("{show}: batch {:?}", row.batch)));
            }
            if let Some(late) = self.late(row.time, truth.moment) {
                return Err((Invariant::TimeNeverLate, format!("{show}: {late} us late")));
            }
            if self.early(row.time, truth.moment) {
                let detail = format!("{show}: {:?} for {}", row.time, truth.moment);
                return Err((Invariant::TimeNeverLate, detail));
            }
        }
        match left.find(|truth| truth.required) {
            Some(truth) => Err(self.missing(table, &range, truth)),
            None => Ok(()),
        }
    }

    /// What the instances of a table that exist capture.
    fn instances(&self, table: &str) -> BTreeMap<String, Captured> {
        let look = |name: cdc_core::InstanceName| {
            let state = self.database.instance(&name).ok()?;
            let columns = state.columns.iter().map(|column| column.name.clone()).collect();
            Some((name.to_string(), Captured { start: state.start, columns }))
        };
        self.stage.instances_of(table).into_iter().filter_map(look).collect()
    }

    /// How much later a time is than the moment it stands for.
    fn late(&self, time: Option<i64>, moment: Timestamp) -> Option<i64> {
        let late = time?.saturating_sub(self.effective(moment).as_micros());
        (late > TICK).then_some(late)
    }

    /// True for a time that is unknown, or earlier than a reading of the moment can be.
    fn early(&self, time: Option<i64>, moment: Timestamp) -> bool {
        let least = moment.as_micros() - self.stage.early_micros() - TICK;
        time.is_none_or(|time| time < least)
    }

    /// What a moment reads as at most. Times go on where the clock was before it was put back; and
    /// a clock that is put back inside an hour that it shows twice looks like the second pass.
    fn effective(&self, moment: Timestamp) -> Timestamp {
        match self.stage.clock_max() {
            Some(before) => moment.max(before).plus_micros(self.stage.repeated_micros()),
            None => moment,
        }
    }

    fn missing(&self, table: &str, range: &str, truth: &Truth) -> Broken {
        let detail = format!(
            "{range}: missing {} {} {}",
            truth.commit,
            truth.seqval,
            truth.operation.code()
        );
        // The instances that are read for a commit begin at or before it.
        let commit = Position::from(truth.commit);
        let held = self.stage.held_by(table);
        let reader = held.iter().rev().find(|one| one.start <= commit).or(held.first());
        let purged = reader.is_some_and(|one| one.low.is_some_and(|low| low > commit));
        let invariant = if purged { Invariant::PurgedIsNoEmpty } else { Invariant::PrefixOfSource };
        (invariant, detail)
    }

    /// A batch with rows takes no more entries of the mapping than it may.
    fn limit(
        &self,
        table: &str,
        before: &Mark,
        mark: &Mark,
        commits_max: Option<u64>,
    ) -> Result<(), Broken> {
        let Some(most) = commits_max else { return Ok(()) };
        let mapping = self.database.mapping();
        let inside = mapping.iter().map(|entry| Position::from(entry.lsn));
        let entries = inside.filter(|at| *at > before.end && *at <= mark.end).count() as u64;
        if entries > most {
            let detail = format!("{table}: a batch of {entries} entries, {most} allowed");
            return Err((Invariant::Limits, detail));
        }
        Ok(())
    }

    /// No row comes into a period that was called complete, and the mark's time is not late.
    fn times(&self, table: &str, book: &Book, rows: &[Row], mark: &Mark) -> Result<(), Broken> {
        let least = rows.iter().filter_map(|row| row.time).min();
        if let (Some(until), Some(least)) = (book.finalized, least)
            && least < until.as_micros()
        {
            let detail = format!("{table}: a row of {least} after {until} was complete");
            return Err((Invariant::VerdictCovered, detail));
        }
        let now = self.database.clock().time();
        if let Some(late) = mark.commit_time.and_then(|time| self.late(Some(time.as_micros()), now))
        {
            let detail = format!("{table}: the mark's time is {late} us in the future");
            return Err((Invariant::TimeNeverLate, detail));
        }
        Ok(())
    }

    /// After a calm run: mark and verdict are where the source is, and the facts are written.
    pub fn settled(&self, table: &str, high: Position, moment: Timestamp) {
        let book = self.book(table);
        let Some(mark) = book.mark else { return };
        self.record.check(mark.end == high, Invariant::VerdictFollows, || {
            format!("{table}: the mark is at {}, the source at {high}", mark.end)
        });
        let time = mark.commit_time.map(Timestamp::as_micros);
        self.record.check(!self.early(time, moment), Invariant::VerdictFollows, || {
            format!("{table}: the mark is of {time:?}, the source's newest entry of {moment}")
        });
        let due = mark.commit_time.map(|time| GRANULARITY.truncate(time));
        self.record.check(book.finalized == due, Invariant::VerdictFollows, || {
            format!("{table}: complete until {:?}, due {due:?}", book.finalized)
        });
        let last = i64::try_from(mark.sequence).unwrap_or_default();
        let lacking = (1..=last).find(|batch| !book.facts.contains(batch));
        self.record.check(lacking.is_none(), Invariant::FactsOnce, || {
            format!("{table}: batch {lacking:?} has no facts")
        });
    }

    /// Every row of a table.
    ///
    /// # Errors
    /// Why a file cannot be read.
    pub fn history(&self, table: &str) -> Result<Vec<RecordBatch>, String> {
        let place = Path::from(format!("lake/bronze/{table}"));
        let mut batches = Vec::new();
        for file in self.book(table).files {
            batches.extend(book::rows(&self.objects, &place, &file)?);
        }
        Ok(book::widened(&batches))
    }
}

fn truths_has(truths: &[Truth], identity: (Lsn, Lsn, i32)) -> bool {
    truths.iter().any(|truth| truth.identity() == identity)
}

fn unexpected(book: &Book, identity: (Lsn, Lsn, i32), show: String) -> Broken {
    if book.seen.contains(&identity) {
        (Invariant::NothingTwice, show)
    } else {
        (Invariant::PrefixOfSource, format!("{show} is not of this range, or out of order"))
    }
}

fn readable(detail: String) -> Broken {
    (Invariant::LogReadable, detail)
}

fn is_entry(file: &str) -> bool {
    file.len() == 25 && file.ends_with(".json")
}

//! The capture job: reads the log some time after the commits and fills change tables and mapping.

use std::time::Duration;

use cdc_core::{Lsn, ServerTime, Timestamp};

use crate::{
    database::{DatabaseState, FakeDatabase},
    instance::{ChangeEntry, DdlEntry, slot_of},
    log::{DdlEffect, InstanceId, LogChange, LogEvent, LogRecord, TableId},
    mapping::MappingEntry,
};

/// Microseconds without an entry in the mapping after which the next scan writes an idle one.
const IDLE_AFTER: i64 = 300_000_000;

/// When capture reads the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureSchedule {
    /// Only when [`FakeDatabase::capture`] is called; no idle entries by itself.
    Manual,
    /// With each commit; no idle entries by itself.
    AtCommit,
    /// Every `interval`, whatever is older than `lag`; an idle entry when there was none for
    /// more than 300 s.
    Every {
        /// The polling interval.
        interval: Duration,
        /// How far capture is behind.
        lag: Duration,
    },
}

impl CaptureSchedule {
    /// What the server does by default: every 5 s, without a lag.
    pub const DEFAULT: Self = Self::Every { interval: Duration::from_secs(5), lag: Duration::ZERO };
}

/// The state of the capture job.
#[derive(Clone, Debug)]
pub(crate) struct CaptureJob {
    schedule: CaptureSchedule,
    running: bool,
    /// Scans happen at this moment plus whole intervals.
    started: Timestamp,
    scanned: Timestamp,
    last_entry: Timestamp,
    /// The job exists once a table was enabled.
    exists: bool,
}

impl CaptureJob {
    pub(crate) const fn new(now: Timestamp) -> Self {
        Self {
            schedule: CaptureSchedule::DEFAULT,
            running: true,
            started: now,
            scanned: now,
            last_entry: now,
            exists: false,
        }
    }

    /// The job is created with the first table that is enabled.
    pub(crate) fn create(&mut self, now: Timestamp) {
        if !self.exists {
            self.exists = true;
            self.restart(now);
        }
    }

    /// The job begins again, with its next scan one interval from now.
    pub(crate) const fn restart(&mut self, now: Timestamp) {
        self.started = now;
        self.scanned = now;
        self.last_entry = now;
    }

    pub(crate) const fn runs(&self) -> bool {
        self.running
    }

    /// Seconds from a captured commit, the newest entry, to the scan that captured it; 0 for an
    /// idle one.
    pub(crate) fn latency_seconds(&self, newest: Option<&MappingEntry>) -> i64 {
        let captured = newest.filter(|entry| !entry.idle);
        captured.map_or(0, |entry| self.last_entry.micros_since(entry.moment).div_euclid(1_000_000))
    }

    /// The first scan at or after `moment` that has not been.
    fn scan_at(&self, moment: Timestamp, interval: i64) -> Timestamp {
        let elapsed = moment.max(self.scanned.plus_micros(1)).micros_since(self.started);
        let scans = elapsed.saturating_add(interval - 1).div_euclid(interval);
        self.started.plus_micros(scans.saturating_mul(interval))
    }
}

impl FakeDatabase {
    /// Sets when capture reads the log.
    pub fn set_capture(&self, schedule: CaptureSchedule) {
        let now = self.now();
        let mut state = self.state();
        state.capture.schedule = schedule;
        state.capture.started = now;
        state.capture.scanned = now;
        state.capture_at_commit(now);
    }

    /// When capture reads the log.
    #[must_use]
    pub fn capture_schedule(&self) -> CaptureSchedule {
        self.look().capture.schedule
    }

    /// Stops the capture job; the log keeps what it has not read.
    pub fn stop_capture(&self) {
        self.state().capture.running = false;
    }

    /// Starts the capture job again.
    pub fn start_capture(&self) {
        let now = self.now();
        let mut state = self.state();
        state.capture.running = true;
        state.capture.started = now;
        state.capture.scanned = now;
        state.capture_at_commit(now);
    }

    /// True while the capture job runs.
    #[must_use]
    pub fn capture_runs(&self) -> bool {
        self.state().capture.running
    }

    /// Seconds from the newest entry of the mapping, when it is a commit, to the scan that
    /// captured it.
    #[must_use]
    pub fn scan_latency_seconds(&self) -> i64 {
        let state = self.look();
        state.capture.latency_seconds(state.mapping.last())
    }

    /// Lets capture read the whole log now, whatever its schedule. Returns the newest LSN of the
    /// mapping.
    pub fn capture(&self) -> Option<Lsn> {
        self.capture_next(usize::MAX);
        self.max_lsn()
    }

    /// Lets capture read the next `records` records of the log. Returns how many there were.
    pub fn capture_next(&self, records: usize) -> usize {
        let now = self.now();
        let mut state = self.state();
        let mut done = 0;
        while done < records && state.process_next(now) {
            done += 1;
        }
        done
    }

    /// Records of the log that capture has not read.
    #[must_use]
    pub fn pending_records(&self) -> usize {
        self.state().log.pending.len()
    }

    /// The LSN of the newest record of the log, whether capture has read it or not. No server tells
    /// it; tests compare with it.
    #[must_use]
    pub fn newest_record(&self) -> Option<Lsn> {
        let state = self.state();
        let pending = state.log.pending.back().map(|record| record.lsn);
        pending.max(state.high())
    }

    /// Writes an idle entry now, as a scan does that found nothing for some time. Returns its
    /// LSN, or nothing when capture has not read the whole log.
    pub fn write_idle_entry(&self) -> Option<Lsn> {
        let now = self.now();
        let mut state = self.state();
        state.log.pending.is_empty().then(|| state.idle(now))
    }
}

impl DatabaseState {
    /// Does what the capture job was due to do by `now`.
    pub(crate) fn capture_until(&mut self, now: Timestamp) {
        let CaptureSchedule::Every { interval, lag } = self.capture.schedule else {
            return;
        };
        if !self.capture.running || !self.capture.exists {
            return;
        }
        let interval = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX).max(1);
        let lag = i64::try_from(lag.as_micros()).unwrap_or(i64::MAX);
        // Scans that find nothing to do are skipped; each round here does something.
        loop {
            let due = match self.log.pending.front() {
                Some(record) => record.time.plus_micros(lag),
                None => self.capture.last_entry.plus_micros(IDLE_AFTER + 1),
            };
            let scan = self.capture.scan_at(due, interval);
            if scan > now {
                // A scan due at this very moment has been: it does not see what comes now.
                self.capture.scanned = self.capture.scanned.max(now);
                return;
            }
            self.capture.scanned = scan;
            if self.log.pending.is_empty() {
                self.idle(scan);
                continue;
            }
            while self
                .log
                .pending
                .front()
                .is_some_and(|record| record.time.plus_micros(lag) <= scan)
            {
                self.process_next(scan);
            }
        }
    }

    /// Puts a record into the log for capture to read.
    pub(crate) fn append(&mut self, record: LogRecord) {
        let now = record.time;
        self.log.pending.push_back(record);
        self.capture_at_commit(now);
    }

    fn capture_at_commit(&mut self, now: Timestamp) {
        if self.capture.schedule == CaptureSchedule::AtCommit && self.capture.running {
            while self.process_next(now) {}
        }
    }

    fn idle(&mut self, now: Timestamp) -> Lsn {
        let lsn = self.log.commit_lsn();
        let time = self.zone.reading(now);
        let entry =
            MappingEntry { lsn, time, moment: now, idle: true, began: time, transaction: 0 };
        self.map(entry, now);
        lsn
    }

    fn map(&mut self, entry: MappingEntry, scan: Timestamp) {
        self.mapping.push(entry);
        self.capture.last_entry = scan;
        self.version += 1;
    }

    fn map_record(
        &mut self,
        record: &LogRecord,
        began: ServerTime,
        transaction: u32,
        scan: Timestamp,
    ) {
        let entry = MappingEntry {
            lsn: record.lsn,
            time: record.local,
            moment: record.time,
            idle: false,
            began,
            transaction,
        };
        self.map(entry, scan);
    }

    /// Processes the next record of the log; false when there is none.
    fn process_next(&mut self, scan: Timestamp) -> bool {
        let Some(mut record) = self.log.pending.pop_front() else {
            return false;
        };
        self.version += 1;
        match &mut record.event {
            LogEvent::Commit { changes, began, transaction } => {
                let (began, transaction) = (*began, *transaction);
                if self.capture_commit(record.lsn, std::mem::take(changes)) {
                    self.map_record(&record, began, transaction, scan);
                }
            }
            LogEvent::Enable(id) => {
                if let Some(instance) = self.instances.get_mut(id) {
                    instance.low = Some(record.lsn);
                    let (began, transaction) = (record.local, instance.id.0);
                    self.map_record(&record, began, transaction, scan);
                }
            }
            LogEvent::Ddl { table, .. } => {
                let table = *table;
                self.capture_ddl(&record, table);
            }
        }
        true
    }

    /// Writes a commit's change rows; false when no instance takes any of its changes.
    ///
    /// Command ids count the operations of the transaction once for each instance that takes
    /// them, so each instance of a table has its own.
    fn capture_commit(&mut self, commit: Lsn, changes: Vec<LogChange>) -> bool {
        let mut command = 0_i32;
        let mut taken = false;
        let mut last: Option<(TableId, Vec<InstanceId>)> = None;
        for change in changes {
            let takers = match last.take() {
                Some((table, takers)) if table == change.table => takers,
                _ => self
                    .instances_of(change.table)
                    .filter(|instance| instance.start < commit)
                    .map(|instance| instance.id)
                    .collect(),
            };
            for id in &takers {
                taken = true;
                command = command.saturating_add(1);
                let Some(instance) = self.instances.get_mut(id) else {
                    continue;
                };
                if instance.records(&change.change) {
                    instance.entries.push_back(ChangeEntry {
                        commit,
                        seqval: change.seqval,
                        command,
                        change: change.change.clone(),
                    });
                }
            }
            last = Some((change.table, takers));
        }
        taken
    }

    fn capture_ddl(&mut self, record: &LogRecord, table: TableId) {
        let LogEvent::Ddl { statement, effect, .. } = &record.event else { return };
        let minute = 60 * ServerTime::TICKS_A_SECOND;
        let ticks = record.local.as_ticks();
        let time = ServerTime::from_ticks(ticks - ticks.rem_euclid(minute));
        for instance in self.instances.values_mut() {
            if instance.table != table || instance.start > record.lsn {
                continue;
            }
            let mut changed = false;
            if let DdlEffect::Alter { column_id, from, to } = effect {
                let captured = instance.columns.iter_mut().find(|column| column.id == *column_id);
                if let Some(column) = captured {
                    column.sql_type = to.clone();
                    let slot = slot_of(column);
                    changed = true;
                    // What the table's own rows could not follow was refused at the statement;
                    // older images may still not fit and then read NULL.
                    let convert = |value: &crate::value::Value| {
                        Ok(value.converted(from, to).unwrap_or(crate::value::Value::Null))
                    };
                    if let Err(error) = instance.convert(slot, convert) {
                        tracing::error!(%error, instance = %instance.name, "conversion failed");
                    }
                }
            }
            instance.ddl.push(DdlEntry {
                lsn: record.lsn,
                statement: statement.clone(),
                time,
                captured_column_changed: changed,
            });
        }
    }
}

//! What happens at the server, transaction by transaction, in the order of its clock.
//!
//! The history is a function of the rows and the seed, and a shorter one is the begin of a longer
//! one: a copy of a part goes on where it stopped.

use std::collections::VecDeque;

use cdc_core::{Result, Timestamp};
use cdc_fake::{FakeDatabase, RowEdit, RowView, SqlResult, Transaction, Value};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    csv_file,
    table::{FLIGHTS, TABLES},
};
use crate::config::FakeConfig;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
/// 2013-11-03T05:00Z: New York's clocks show 01:00 for the first time.
const FALL_BACK: i64 = 1_383_454_800 * SECOND;
/// Most rows that one transaction inserts, as an application that loads in pages does.
const ROWS_A_TRANSACTION: usize = 200;
/// The large transaction changes flights since this long before the repeated hour.
const LARGE_FROM: i64 = FALL_BACK - 10 * 24 * HOUR;
/// Flights that the live workload still changes: about half a day.
const RECENT: usize = 500;

type Work = Box<dyn FnOnce(&FakeDatabase, &mut Option<Transaction>) -> SqlResult<()> + Send>;

/// One thing that happens.
struct Step {
    at: Timestamp,
    work: Work,
    /// Flights it adds.
    flights: u64,
}

/// What has not happened yet.
pub(crate) struct History {
    begin: Timestamp,
    last: Timestamp,
    steps: VecDeque<Step>,
    total: usize,
    /// The large transaction, while it is open.
    large: Option<Transaction>,
}

impl History {
    /// The whole history of a configuration.
    ///
    /// # Errors
    /// `Config` and `InvalidData` for rows that cannot be read.
    pub(super) fn new(config: &FakeConfig, flights_max: Option<u64>) -> Result<Self> {
        let mut tables = Vec::new();
        for table in TABLES {
            tables.push(csv_file::rows(&config.data, table)?);
        }
        let mut flights = tables.pop().unwrap_or_default();
        let place = FLIGHTS.at("time_hour");
        let hour_of = |row: &Vec<Value>| row.get(place).and_then(Value::micros).unwrap_or(0);
        flights.sort_by_key(hour_of);
        if let Some(most) = flights_max {
            flights.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        let first = flights.first().map_or(FALL_BACK, hour_of);
        let begin = Timestamp::from_micros(first - 2 * HOUR);
        let mut writer = Writer {
            random: ChaCha8Rng::seed_from_u64(config.seed),
            recent: VecDeque::new(),
            steps: Vec::new(),
            workload: config.workload,
            fallen_back: false,
        };
        writer.load_references(tables, first - HOUR);
        let mut hour = Vec::new();
        let mut flights = flights.into_iter().peekable();
        while let Some(row) = flights.next() {
            let at = hour_of(&row);
            hour.push(row);
            if flights.peek().is_none_or(|next| hour_of(next) != at) {
                writer.live_hour(std::mem::take(&mut hour), at);
            }
        }
        writer.fall_back();
        let mut steps = writer.steps;
        // Stable: what was written first at one moment happens first.
        steps.sort_by_key(|step| step.at);
        if let Some(most) = config.rows {
            cut_after(&mut steps, most);
        }
        let last = steps.last().map_or(begin, |step| step.at);
        Ok(Self { begin, last, total: steps.len(), steps: steps.into(), large: None })
    }

    /// When the server starts.
    pub(super) const fn begin(&self) -> Timestamp {
        self.begin
    }

    pub(super) const fn steps(&self) -> usize {
        self.total
    }

    /// Flights that the rest of the history inserts.
    pub(super) fn flights(&self) -> u64 {
        self.steps.iter().map(|step| step.flights).sum()
    }

    /// Lets everything up to `moment` happen, or all. Returns when the last thing happens.
    pub(super) fn play_until(
        &mut self,
        database: &FakeDatabase,
        moment: Option<Timestamp>,
    ) -> Result<Timestamp> {
        let due = |step: &Step| moment.is_none_or(|moment| step.at <= moment);
        while self.steps.front().is_some_and(due) {
            self.play_next(database)?;
        }
        Ok(self.last)
    }

    /// Lets the next thing happen, at its time. False when there is none.
    pub(super) fn play_next(&mut self, database: &FakeDatabase) -> Result<bool> {
        let Some(step) = self.steps.pop_front() else {
            return Ok(false);
        };
        database.clock().advance_to(step.at);
        (step.work)(database, &mut self.large)?;
        Ok(true)
    }
}

/// Ends a history with the transaction that brings the flight number `most`.
fn cut_after(steps: &mut Vec<Step>, most: u64) {
    let mut flights = 0;
    let end = steps.iter().position(|step| {
        flights += step.flights;
        flights >= most
    });
    if let Some(end) = end {
        steps.truncate(end + 1);
    }
}

/// Writes the steps of a history.
struct Writer {
    random: ChaCha8Rng,
    /// Keys of the flights that the live workload may change.
    recent: VecDeque<Vec<Value>>,
    steps: Vec<Step>,
    workload: bool,
    /// The repeated hour is written.
    fallen_back: bool,
}

impl Writer {
    fn step(
        &mut self,
        at: i64,
        flights: usize,
        work: impl FnOnce(&mut Transaction) -> SqlResult<()> + Send + 'static,
    ) {
        let at = Timestamp::from_micros(at);
        let work: Work = Box::new(|database, _| database.transact(work).map(|_| ()));
        self.steps.push(Step { at, work, flights: flights as u64 });
    }

    /// The tables that flights refer to, loaded before the first flight.
    fn load_references(&mut self, tables: Vec<Vec<Vec<Value>>>, begin: i64) {
        let mut at = begin;
        for (table, rows) in TABLES.into_iter().zip(tables) {
            for rows in chunks(rows) {
                let name = table.table_name();
                self.step(at, 0, move |open| open.insert_many(&name, rows).map(|_| ()));
                at += 2 * SECOND;
            }
        }
    }

    /// The flights of one hour, and what changes in it.
    fn live_hour(&mut self, rows: Vec<Vec<Value>>, hour: i64) {
        if hour >= FALL_BACK {
            self.fall_back();
        }
        let keys: Vec<Vec<Value>> = rows.iter().map(|row| key_of(row)).collect();
        let mut at = hour;
        for rows in chunks(rows) {
            let (name, count) = (FLIGHTS.table_name(), rows.len());
            self.step(at, count, move |open| open.insert_many(&name, rows).map(|_| ()));
            at += SECOND;
        }
        if !self.workload {
            return;
        }
        let changes = keys.len() / 4;
        self.recent.extend(keys);
        while self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        for _ in 0..changes {
            let at = hour + MINUTE + self.random.random_range(0..58 * 60) * SECOND;
            self.change(at);
        }
        // Steps of one hour may touch one flight in another order than they were written, which
        // is why a change never depends on an earlier one.
    }

    /// One short transaction: mostly updates of one flight, some deletes, key updates and
    /// changes of planes.
    fn change(&mut self, at: i64) {
        let name = FLIGHTS.table_name();
        let dice = self.random.random_range(0..100);
        let delay = self.random.random_range(-20_i64..400);
        let Some(at_key) = self.recent.len().checked_sub(1) else {
            return;
        };
        let chosen = self.random.random_range(0..=at_key);
        match dice {
            0..6 => {
                let Some(key) = self.recent.remove(chosen) else { return };
                self.step(at, 0, move |open| open.delete(&name, &key).map(|_| ()));
            }
            6..14 => {
                // A flight number changes: the log holds a delete and an insert.
                let Some(key) = self.recent.remove(chosen) else { return };
                let number = key.get(4).and_then(Value::as_int).unwrap_or(0) + 10_000;
                self.step(at, 0, move |open| {
                    open.update(&name, &key, &[("flight", number.into())]).map(|_| ())
                });
            }
            14..18 => {
                let planes = TABLES[2].table_name();
                let share = self.random.random_range(0..97);
                self.step(at, 0, move |open| {
                    let some = |row: &RowView<'_>| row.int("seats") % 97 == share;
                    let more = |row: &mut RowEdit<'_>| {
                        let seats = row.view().int("seats");
                        row.set("seats", seats % 400 + 1)
                    };
                    open.update_where(&planes, some, more).map(|_| ())
                });
            }
            _ => {
                let Some(key) = self.recent.get(chosen).cloned() else { return };
                let tail = if dice == 99 { Value::Null } else { Value::text("N00CDC") };
                self.step(at, 0, move |open| {
                    open.update(&name, &key, &[("dep_delay", delay.into())])?;
                    if dice > 90 {
                        // A second statement of the same transaction on the same row.
                        open.update(&name, &key, &[("tailnum", tail)])?;
                    }
                    Ok(())
                });
            }
        }
    }

    /// Two hours of commits while the clock shows 01:00 to 02:00 twice, and one large transaction
    /// from the first pass to the second. It changes odd flight numbers, the short ones even
    /// ones: none waits for a lock of the other.
    fn fall_back(&mut self) {
        if self.fallen_back || !self.workload {
            return;
        }
        self.fallen_back = true;
        let even =
            |key: &Vec<Value>| key.get(4).and_then(Value::as_int).is_some_and(|n| n % 2 == 0);
        self.recent.retain(even);
        for second in (0..2 * 3_600).step_by(75) {
            self.change(FALL_BACK + second * SECOND);
        }
        let open: Work = Box::new(|database, large| {
            let mut transaction = database.begin();
            change_many(&mut transaction)?;
            *large = Some(transaction);
            Ok(())
        });
        let commit: Work = Box::new(|_, large| match large.take() {
            Some(transaction) => transaction.commit().map(|_| ()),
            None => Ok(()),
        });
        for (minutes, work) in [(20, open), (95, commit)] {
            let at = Timestamp::from_micros(FALL_BACK + minutes * MINUTE);
            self.steps.push(Step { at, work, flights: 0 });
        }
    }
}

/// What the large transaction does: every flight of more than a week, in two statements, and
/// the deletion of some.
fn change_many(transaction: &mut Transaction) -> SqlResult<()> {
    let name = FLIGHTS.table_name();
    let old = |row: &RowView<'_>| {
        let hour = row.get("time_hour").micros().unwrap_or(0);
        (LARGE_FROM..FALL_BACK).contains(&hour) && row.int("flight") % 2 == 1
    };
    let shift = |column: &'static str| {
        move |row: &mut RowEdit<'_>| match row.view().get(column).as_int() {
            Some(minutes) => row.set(column, minutes + 1),
            None => Ok(()),
        }
    };
    transaction.update_where(&name, old, shift("arr_delay"))?;
    let of_one = |row: &RowView<'_>| old(row) && row.int("flight") % 7 == 3;
    transaction.update_where(&name, of_one, shift("air_time"))?;
    let cancelled = |row: &RowView<'_>| old(row) && row.get("dep_time").is_null();
    transaction.delete_where(&name, cancelled)?;
    Ok(())
}

fn key_of(row: &[Value]) -> Vec<Value> {
    FLIGHTS.key.iter().filter_map(|name| row.get(FLIGHTS.at(name)).cloned()).collect()
}

fn chunks(rows: Vec<Vec<Value>>) -> Vec<Vec<Vec<Value>>> {
    let mut chunks = Vec::new();
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        chunks.push(rows.by_ref().take(ROWS_A_TRANSACTION).collect());
    }
    chunks
}

//! Between a moment and the rows of the mapping: the argument of a look-up by time, and the rows
//! that must be read to tell which pass of a repeated interval a reading belongs to.

use super::{
    ServerTime, ServerZone, Timestamp,
    transition::{DAY, OFFSET_LIMIT, Stretches},
};

/// No reading later than this after a moment can be below the moment's own: offsets differ by less
/// than two days.
const AHEAD_MICROS: i64 = 2 * OFFSET_LIMIT;

/// How far [`lookback`] searches for the start of repeated intervals that overlap: five times what
/// two changes need to touch each other's readings.
const BEHIND_MICROS: i64 = 10 * DAY;

/// The argument `t` of the server's `fn_cdc_map_time_to_lsn('largest less than or equal', t)` that
/// finds a commit not after `moment`: whole seconds on the server's clock, always below what the
/// clock shows at `moment` or at any later time.
///
/// **Never after the moment.** Let `least` be the least reading of all times from `moment` on: the
/// moment's own, or, when the clock is put back later, the first reading after that change. Commits
/// after the moment have readings of at least `least`, cut to the tick, and the argument is smaller
/// than that. So no row that the server looks at is a commit after the moment, whether it picks the
/// row with the greatest time or the one with the greatest LSN. In the first pass of a repeated
/// interval this is the second before the interval; in the second pass it is the moment's own
/// reading, which stands for the first pass too.
///
/// **Misses little.** A row is passed over only when the clock was put back between it and the
/// moment or behind the moment, or when it lies in the second (and tick) that is cut: the pick is
/// earlier by at most the length of the repeated interval, and only near one.
///
/// The argument can be a reading in a spring gap. No row lies in the gap, so the server finds the
/// last row ahead of it.
#[must_use]
pub fn lookup_argument(zone: ServerZone, moment: Timestamp) -> ServerTime {
    let from = moment.as_micros();
    let ahead = Stretches::between(zone, from, from.saturating_add(AHEAD_MICROS));
    argument(&ahead, from)
}

/// The reading at or after which rows of the mapping must be read, up to the LSN and in LSN order,
/// to convert the LSN's own reading with a new [`CommitClock`](super::CommitClock): its last result
/// is then the one that all rows from the beginning would give. `None` when the reading has one
/// moment only and needs no other row.
///
/// The answer cuts the clock's history cleanly: before some moment all readings are below it, from
/// that moment on none is. So every moment that a row left out can stand for is at or before every
/// moment of the rows that are read, and a row left out rules none of these out.
///
/// Where cleanup has removed rows of that range, the result is still not after the truth, but it
/// can be the first pass instead of the second.
#[must_use]
pub fn lookback(zone: ServerZone, reading: ServerTime) -> Option<ServerTime> {
    let local = reading.local_micros();
    let around = Stretches::between(
        zone,
        local.saturating_sub(BEHIND_MICROS),
        local.saturating_add(AHEAD_MICROS + OFFSET_LIMIT),
    );
    clean_cut(&around, local).map(ServerTime::floor_local_micros)
}

/// The greatest whole second that lies a tick or more below every reading from `moment` on.
fn argument(ahead: &Stretches, moment: i64) -> ServerTime {
    let least = ahead.least_reading_from(moment);
    let ticks = ServerTime::floor_local_micros(least).as_ticks();
    let cut = ticks.saturating_sub(1).div_euclid(ServerTime::TICKS_A_SECOND);
    ServerTime::from_ticks(cut.saturating_mul(ServerTime::TICKS_A_SECOND))
}

fn clean_cut(around: &Stretches, local: i64) -> Option<i64> {
    let mut candidates = around.candidates(local);
    let mut from = candidates.next()?;
    candidates.next()?;
    loop {
        let cut = around.least_reading_from(from);
        match around.earliest_moment_from(cut) {
            // Each turn's cut is lower, and the first reading of another stretch: the turns are no
            // more than the stretches.
            Some(earlier) if earlier < from => from = earlier,
            _ => return Some(cut),
        }
    }
}

#[cfg(test)]
mod tests;

//! Change rows of an instance.

use async_trait::async_trait;
use cdc_core::{
    ClosedRange, Column, Error, ErrorKind, InstanceName, Lsn, Result, ServerTime, Timestamp,
    change::change_schema,
    diagnosis::Access,
    port::{BatchStream, ChangeReader, ChangeRequest},
    time::{CommitClock, ServerZone},
};

use super::{MssqlSource, change_stream, lsns};
use crate::{
    driver::{Form, LSN_WIDTH, ResultColumn},
    name::{Identifier, ObjectName},
    sql::{self, changes::Entries, position},
};

/// Pairs of one statement: two parameters each at most.
const PAIRS_MAX: usize = sql::PARAMETERS_MAX / 2;

/// What a clock knows before a range is read.
struct RangeFacts {
    clock: CommitClock,
    entries: Entries,
}

#[async_trait]
impl ChangeReader for MssqlSource {
    async fn has_changes(&self, ranges: &[(InstanceName, ClosedRange)]) -> Result<Vec<bool>> {
        let mut found = vec![false; ranges.len()];
        for (part, places) in ranges.chunks(PAIRS_MAX).zip(found.chunks_mut(PAIRS_MAX)) {
            let pairs = part
                .iter()
                .map(|(name, range)| lsns(*range).map(|(from, to)| (name, from, to)))
                .collect::<Result<Vec<_>>>()?;
            let answer = match self.ask(sql::changes::has_changes(&pairs)?).await {
                Ok(answer) => answer,
                Err(fault) => return Err(self.first_unreadable(part, fault).await),
            };
            for row in answer.rows() {
                let place = row.int(0)?.and_then(|place| usize::try_from(place).ok());
                if let Some(place) = place.and_then(|place| places.get_mut(place)) {
                    *place = row.int(1)? == Some(1);
                }
            }
        }
        Ok(found)
    }

    async fn changes(&self, request: ChangeRequest) -> Result<BatchStream> {
        let (from, to) = lsns(request.range)?;
        let schema = change_schema(LSN_WIDTH, &request.columns)?;
        let captured = self.captured(&request.instance).await?;
        let columns = request
            .columns
            .iter()
            .map(|wanted| read(&captured, wanted, &request.instance))
            .collect::<Result<Vec<_>>>()?;
        let facts = self.facts(from, to, request.time_before).await?;
        let statement = sql::changes::changes(&sql::changes::Wanted {
            instance: &request.instance,
            columns,
            range: (from, to),
            entries: facts.entries,
            batch_rows: request.batch_rows.max(1),
        })?;
        match self.server.stream(statement).await {
            Ok(batches) => {
                Ok(change_stream::assembled(batches, schema, facts.clock, request.instance))
            }
            Err(fault) => Err(self.instance_error(&request.instance, fault).await),
        }
    }
}

/// The expression that reads a wanted column, and what becomes of it.
fn read(
    captured: &[Column],
    wanted: &Column,
    instance: &InstanceName,
) -> Result<(String, ResultColumn)> {
    let own = captured.iter().find(|own| own.id == wanted.id).ok_or_else(|| {
        Error::new(ErrorKind::Config, "column is not captured")
            .with("instance", instance)
            .with("column", &wanted.name)
    })?;
    let name = Identifier::new(&own.name)?;
    let column = ResultColumn::new(&wanted.name, Form::Sql(wanted.sql_type.clone()));
    Ok((sql::column::read("c", &name, &own.sql_type), column))
}

impl MssqlSource {
    /// The first instance of a list that stands in the way of a question about all of them.
    async fn first_unreadable(
        &self,
        ranges: &[(InstanceName, ClosedRange)],
        fault: crate::fault::Fault,
    ) -> Error {
        let objects: Result<Vec<_>> =
            ranges.iter().map(|(name, _)| ObjectName::of_changes(name)).collect();
        if let Ok(objects) = objects
            && let Ok(access) = self.access(&objects).await
            && let Some(((name, _), _)) =
                ranges.iter().zip(access).find(|(_, access)| *access != Access::Allowed)
        {
            return self.instance_error(name, fault).await;
        }
        fault.into()
    }

    /// The clock for commits from `from` on, behind the time the caller knows or behind the last
    /// entry of the mapping before the range; and the entries it has to see.
    async fn facts(&self, from: Lsn, to: Lsn, known: Option<Timestamp>) -> Result<RangeFacts> {
        let zone = self.zone().await?;
        let answer = self.ask(position::range_facts(from, to)).await?;
        let row = answer.first().ok_or_else(|| Error::bug("an aggregate without a row"))?;
        let before = match (row.lsn(0)?, row.reading(1)?) {
            (Some(lsn), Some(reading)) => Some(self.moment(zone, lsn, reading).await?),
            _ => None,
        };
        let clock = match before.max(known) {
            Some(time) => CommitClock::resume(zone, time),
            None => CommitClock::new(zone),
        };
        let straight = row.int(4)?.unwrap_or(0) == 0;
        let quiet = match (row.reading(2)?, row.reading(3)?) {
            (Some(least), Some(greatest)) => is_quiet(zone, least, greatest),
            _ => true,
        };
        let entries = if straight && quiet { Entries::Own } else { Entries::All };
        Ok(RangeFacts { clock, entries })
    }
}

/// Readings further apart are not looked through.
const QUIET_MICROS_MAX: i64 = 31 * 86_400_000_000;
/// More than a reading can differ from its moment.
const OFFSET_MICROS_MAX: i64 = 48 * 3_600_000_000;
/// No zone has changed its clock twice in so short a time.
const STEP_MICROS: i64 = 6 * 3_600_000_000;

/// True when every reading between two stands for one moment, at one and the same offset. Then,
/// with readings that never go back, each moment depends on its own reading alone and on what was
/// known before the range: entries without changes of the instance need not be seen.
fn is_quiet(zone: ServerZone, least: ServerTime, greatest: ServerTime) -> bool {
    let micros = |reading: ServerTime| reading.wall().map(|wall| wall.and_utc().timestamp_micros());
    let (Some(least), Some(greatest)) = (micros(least), micros(greatest)) else { return false };
    if greatest - least > QUIET_MICROS_MAX {
        return false;
    }
    let offset = |moment: i64| {
        let shown = zone.wall(Timestamp::from_micros(moment))?;
        Some(shown.and_utc().timestamp_micros() - moment)
    };
    let mut at = least - OFFSET_MICROS_MAX;
    let first = offset(at);
    while at <= greatest + OFFSET_MICROS_MAX {
        if first.is_none() || offset(at) != first {
            return false;
        }
        at += STEP_MICROS;
    }
    offset(greatest + OFFSET_MICROS_MAX) == first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> ServerTime {
        ServerTime::nearest(text.parse().expect("a date and a time"))
    }

    #[test]
    fn a_range_is_quiet_when_no_change_of_the_clock_is_near() {
        let berlin = ServerZone::parse("zone", "Europe/Berlin").expect("known");
        let quiet = |from, to| is_quiet(berlin, reading(from), reading(to));
        assert!(quiet("2025-07-01T00:00:00", "2025-07-20T00:00:00"));
        assert!(!quiet("2025-10-26T02:30:00", "2025-10-26T02:30:00"));
        assert!(!quiet("2025-10-20T00:00:00", "2025-10-30T00:00:00"));
        assert!(!quiet("2025-10-27T01:00:00", "2025-10-27T02:00:00"));
        assert!(quiet("2025-10-29T01:00:00", "2025-10-29T02:00:00"));
        // Summer to the next summer: one offset at both ends, another between.
        assert!(!quiet("2025-07-01T00:00:00", "2026-07-01T00:00:00"));
        assert!(is_quiet(
            ServerZone::UTC,
            reading("2025-10-26T02:30:00"),
            reading("2025-10-27T02:30:00")
        ));
    }
}

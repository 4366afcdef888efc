//! The log's positions and times.

use async_trait::async_trait;
use cdc_core::{
    InstanceName, Lsn, Position, Result, ServerTime, Timestamp,
    port::{Bound, PositionLog},
    time::{CommitClock, ServerZone, lookback, lookup_argument},
};
use futures_util::TryStreamExt;

use super::{Answer, MssqlSource};
use crate::sql::{self, position};

#[async_trait]
impl PositionLog for MssqlSource {
    async fn high(&self) -> Result<Bound> {
        let lsn = self.ask(position::high()).await?.first_lsn()?;
        Ok(self.bound(lsn))
    }

    async fn low(&self, instances: &[InstanceName]) -> Result<Vec<Bound>> {
        let mut bounds = vec![Bound::Null; instances.len()];
        for (part, places) in
            instances.chunks(sql::PARAMETERS_MAX).zip(bounds.chunks_mut(sql::PARAMETERS_MAX))
        {
            for row in self.ask(position::low(part)).await?.rows() {
                let place = row.int(0)?.and_then(|place| usize::try_from(place).ok());
                if let Some(place) = place.and_then(|place| places.get_mut(place)) {
                    *place = self.bound(row.lsn(1)?);
                }
            }
        }
        Ok(bounds)
    }

    async fn commit_time(&self, at: Position) -> Result<Option<Timestamp>> {
        let lsn = Lsn::try_from(at)?;
        let answer = self.ask(position::reading_at(lsn)).await?;
        self.moment_of(&answer).await
    }

    async fn entry_time(&self, at: Position) -> Result<Option<Timestamp>> {
        let answer = self.ask(position::reading_at(Lsn::try_from(at)?)).await?;
        let Some(row) = answer.first() else { return Ok(None) };
        match row.reading(1)? {
            Some(reading) => Ok(Some(CommitClock::new(self.zone().await?).next(reading))),
            None => Ok(None),
        }
    }

    async fn position_at(&self, moment: Timestamp) -> Result<Option<Position>> {
        let argument = lookup_argument(self.zone().await?, moment);
        let lsn = self.ask(position::position_at(argument)).await?.first_lsn()?;
        Ok(lsn.filter(|lsn| !lsn.is_zero()).map(|lsn| self.position(lsn)))
    }

    async fn nth_commit_after(&self, after: Position, count: u64) -> Result<Option<Position>> {
        let after = Lsn::try_from(after)?;
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let lsn = self.ask(position::nth_after(after, count)).await?.first_lsn()?;
        Ok(lsn.map(|lsn| self.position(lsn)))
    }
}

impl MssqlSource {
    fn bound(&self, lsn: Option<Lsn>) -> Bound {
        match lsn {
            None => Bound::Null,
            Some(lsn) if lsn.is_zero() => Bound::Zero,
            Some(lsn) => Bound::At(self.position(lsn)),
        }
    }

    /// The moment of the entry that an answer holds as position and reading.
    pub(super) async fn moment_of(&self, answer: &Answer) -> Result<Option<Timestamp>> {
        let Some(row) = answer.first() else { return Ok(None) };
        match (row.lsn(0)?, row.reading(1)?) {
            (Some(lsn), Some(reading)) => {
                self.moment(self.zone().await?, lsn, reading).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The moment of an entry, from its reading and as many entries before it as tell which pass of
    /// a repeated interval the reading belongs to: as a rule none.
    pub(super) async fn moment(
        &self,
        zone: ServerZone,
        lsn: Lsn,
        reading: ServerTime,
    ) -> Result<Timestamp> {
        let mut clock = CommitClock::new(zone);
        if let Some(from) = lookback(zone, reading) {
            let mut batches = self.server.stream(position::readings_before(from, lsn)).await?;
            while let Some(batch) = batches.try_next().await? {
                for row in Answer::new(vec![batch]).rows() {
                    if let Some(reading) = row.reading(0)? {
                        clock.next(reading);
                    }
                }
            }
        }
        Ok(clock.next(reading))
    }
}

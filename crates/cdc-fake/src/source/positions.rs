//! The log's positions and times, by the rules that every source for SQL Server follows.

use async_trait::async_trait;
use cdc_core::{
    InstanceName, Lsn, Position, Result, Timestamp,
    port::{Bound, PositionLog},
    time::{CommitClock, ServerZone, lookback, lookup_argument},
};

use super::FakeSource;
use crate::{database::DatabaseState, injection::Call, mapping::MappingEntry};

#[async_trait]
impl PositionLog for FakeSource {
    async fn high(&self) -> Result<Bound> {
        self.ask(Call::High, |state| {
            Ok(state.high().map_or(Bound::Null, |lsn| Bound::At(self.position(lsn))))
        })
        .await
    }

    async fn low(&self, instances: &[InstanceName]) -> Result<Vec<Bound>> {
        self.ask(Call::Low, |state| {
            let low = |name| {
                let instance = state.instance(name)?;
                self.sees(state, instance).then_some(instance.low)?
            };
            Ok(instances
                .iter()
                .map(|name| low(name).map_or(Bound::Zero, |lsn| Bound::At(self.position(lsn))))
                .collect())
        })
        .await
    }

    async fn commit_time(&self, at: Position) -> Result<Option<Timestamp>> {
        let lsn = Lsn::try_from(at)?;
        self.ask(Call::CommitTime, |state| {
            let entry = state.mapping.get(lsn);
            Ok(entry.map(|entry| moment(state, self.zone, entry)))
        })
        .await
    }

    async fn entry_time(&self, at: Position) -> Result<Option<Timestamp>> {
        let lsn = Lsn::try_from(at)?;
        self.ask(Call::CommitTime, |state| {
            let entry = state.mapping.get(lsn);
            Ok(entry.map(|entry| CommitClock::new(self.zone).next(entry.time)))
        })
        .await
    }

    async fn position_at(&self, moment: Timestamp) -> Result<Option<Position>> {
        let argument = lookup_argument(self.zone, moment);
        self.ask(Call::PositionAt, |state| {
            Ok(state.mapping.at_time(argument).map(|lsn| self.position(lsn)))
        })
        .await
    }

    async fn nth_commit_after(&self, after: Position, count: u64) -> Result<Option<Position>> {
        let after = Lsn::try_from(after)?;
        self.ask(Call::NthCommit, |state| {
            Ok(state.mapping.nth_after(after, count).map(|lsn| self.position(lsn)))
        })
        .await
    }
}

/// The moment of an entry of the mapping, from its reading and as many rows before it as tell
/// which pass of a repeated interval the reading belongs to.
pub(super) fn moment(state: &DatabaseState, zone: ServerZone, entry: &MappingEntry) -> Timestamp {
    let mut clock = CommitClock::new(zone);
    if let Some(from) = lookback(zone, entry.time) {
        for time in state.mapping.readings_since(from, entry.lsn) {
            clock.next(time);
        }
    }
    clock.next(entry.time)
}

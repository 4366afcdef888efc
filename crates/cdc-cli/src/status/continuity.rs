//! Whether a copy can go on from its mark: the engine's own rules over what the source reports
//! now. Nothing is written.

use cdc_core::{
    CaptureInstance, Error, Mark, Position, Result,
    plan::{self, Plan},
    port::{Bound, Source},
    retention,
};

/// What the source says of a table's mark.
#[derive(Debug)]
pub(super) struct Continuity {
    /// Where the instance that holds the next change begins to be readable.
    pub(super) low: Option<Position>,
    /// Why the copy cannot go on.
    pub(super) broken: Option<Error>,
}

/// Asks the source about a mark that was read before, so that the log has reached it.
///
/// # Errors
/// What the source answers instead of a position.
pub(super) async fn check(
    source: &dyn Source,
    mark: &Mark,
    instances: &[CaptureInstance],
) -> Result<Continuity> {
    let Some(holder) = plan::holder(mark.end, instances) else {
        return Ok(Continuity { low: None, broken: None });
    };
    let high = source.high().await?;
    // Before the low positions, which cleanup moves before it removes an entry.
    let observed = source.entry_time(mark.end).await?;
    let names: Vec<_> = instances.iter().map(|instance| instance.name.clone()).collect();
    let answers = source.low(&names).await?;
    if answers.len() != names.len() {
        return Err(Error::bug("source gave another number of low positions"));
    }
    let lows: Vec<_> = instances.iter().zip(answers).collect();
    let low = match low_of(holder, &lows) {
        Bound::At(low) => Some(low),
        Bound::Null | Bound::Zero => None,
    };
    let broken = plan::plan(mark.end, high, None, holder.start)
        .and_then(|plan| {
            if let Some(low) = low {
                plan::check_lineage(mark, low, observed)?;
            }
            held(plan, instances, &lows, high)
        })
        .err();
    Ok(Continuity { low, broken })
}

/// Checks that every instance still holds its part of what was not copied yet.
fn held(
    plan: Plan,
    instances: &[CaptureInstance],
    lows: &[(&CaptureInstance, Bound)],
    high: Bound,
) -> Result<()> {
    let Plan::Read(range) = plan else {
        return Ok(());
    };
    for piece in plan::pieces(range, instances) {
        let low = low_of(piece.instance, lows);
        retention::guard_before(piece.instance, piece.range, low, high)?;
    }
    Ok(())
}

fn low_of(instance: &CaptureInstance, lows: &[(&CaptureInstance, Bound)]) -> Bound {
    let found = lows.iter().find(|(known, _)| known.name == instance.name);
    found.map_or(Bound::Null, |(_, low)| *low)
}

//! The engine against the sum of its parts: the fake source's stream read and dropped, and the same
//! batches staged and committed from memory.

use cdc_core::Timestamp;
use cdc_fake::{FakeServer, FakeSource, Login, VirtualClock, Zone};

use crate::{
    Figure, Outcome, Scale, Target,
    figure::{Turns, rows_a_second},
    machine::one_thread,
    passage::{Passage, fill},
};

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let rows = scale.pick(1_000_000, 2_000);
    let dir = tempfile::tempdir()?;
    let passage = Passage { source: source(rows)?, dir: dir.path(), rows };
    let runtime = one_thread()?;
    let batches = runtime.block_on(passage.read())?.0;
    let mut pairs = Vec::new();
    let mut shares = Vec::new();
    for turn in 0..scale.pick(7, 1) {
        let whole = runtime.block_on(passage.run(turn))?;
        let (_, read) = runtime.block_on(passage.read())?;
        let written = runtime.block_on(passage.write(turn, &batches))?;
        pairs.push((whole.cpu, read.cpu + written.cpu));
        shares.push((read.cpu, written.cpu));
    }
    let (of, shares) = (Turns::of(pairs), Turns::of(shares));
    report(
        Figure::ratio(
            format!("engine from the fake source to Delta, {rows} rows, by CPU time"),
            rows_a_second(rows, of.ours),
            format!(
                "{} for source ({}) and sink ({}) alone",
                rows_a_second(rows, of.reference),
                rows_a_second(rows, shares.ours),
                rows_a_second(rows, shares.reference)
            ),
            of.ratio,
        )
        .with_target(Target::AtMost(1.1)),
    );
    Ok(())
}

/// A fake server's table with `rows` inserts.
fn source(rows: usize) -> Outcome<FakeSource> {
    let clock = VirtualClock::auto(Timestamp::from_micros(1_780_272_000_000_000));
    let zone = Zone::Named(chrono_tz::Europe::Berlin);
    let database = FakeServer::new(clock, zone).database("bench");
    fill(&database, rows)?;
    Ok(FakeSource::new(&database, Login::Owner)?)
}

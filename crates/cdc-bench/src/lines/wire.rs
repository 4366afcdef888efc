//! From the wire to Arrow, and on to a bronze table: the SQL Server source against a server that
//! says recorded bytes at the speed of memory.
//!
//! The client runs on one thread, and its CPU time is what is measured; the server's threads do not
//! count. Two decoders read the same bytes beside it: tiberius' rows, and one written by hand for
//! these columns alone.

mod decoder;
mod foreign;
mod latency;
mod replay;
mod stage;
mod whole;

use std::{io::Write, net::TcpStream, sync::Arc};

use cdc_mssql::{BulkReader, MssqlSource};
use tokio::runtime::Runtime;

use self::{
    replay::{Recording, Replay},
    stage::{READERS, Stage, name},
};
use crate::{
    Figure, Outcome, Scale, Target,
    changes::BATCH_ROWS,
    figure::{Turns, median, rows_a_second, short},
    machine::{Watch, forget_peak, one_thread, peak_mib, thread_cpu_seconds, two_threads},
};

/// The rates and the memory that are to be reached.
const ROWS_A_SECOND: f64 = 1_300_000.0;
const TIMES_TIBERIUS: f64 = 4.5;
const SHARE_OF_HAND: f64 = 0.5;
const PEAK_MIB: f64 = 200.0;

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let rows = scale.pick(20_000, 500);
    let wire = Wire::record(rows)?;
    // First, so that nothing else has left its mark on the process's memory.
    wire.memory(scale.pick((25, 250), (1, 4)), report)?;
    wire.speed(scale.pick(25, 2), scale.pick(9, 1), report)?;
    wire.connections(scale.pick(50, 2), scale.pick(7, 1), report)?;
    whole::measure(scale, report)?;
    latency::measure(scale, report)?;
    foreign::measure(scale, report)
}

/// What the server said to each reader, and how much that is.
struct Wire {
    rows: usize,
    recordings: Vec<(BulkReader, Arc<Recording>)>,
    bytes_a_row: f64,
}

impl Wire {
    fn record(rows: usize) -> Outcome<Self> {
        let stage = Stage::with_rows(rows)?;
        let mut recordings = Vec::new();
        for reader in READERS {
            let recording = Recording::of(stage.address, |address| {
                let source = stage::source(address, *reader);
                match one_thread()?.block_on(stage::read(&source, drop))? {
                    read if read == rows => Ok(()),
                    read => Err(format!("{read} rows were recorded, not {rows}").into()),
                }
            })?;
            recordings.push((*reader, recording));
        }
        let (_, first) = recordings.first().ok_or("no reader")?;
        let bytes_a_row = each(first.largest()?.len(), rows);
        Ok(Self { rows, recordings, bytes_a_row })
    }

    /// Readers of the recorded rows, each said `times` times.
    fn readers(&self, times: usize) -> Outcome<Vec<Reader>> {
        let all = self.recordings.iter();
        all.map(|(reader, recording)| Reader::new(*reader, recording, times)).collect()
    }

    fn what(&self, rows: usize) -> String {
        format!(
            "{rows} rows of 12 columns, {:.0} bytes each on the wire, to Arrow",
            self.bytes_a_row
        )
    }

    fn speed(&self, times: usize, turns: usize, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
        let rows = self.rows * times;
        let readers = self.readers(times)?;
        let hand = Hand::new(&readers, &self.recordings)?;
        let runtime = one_thread()?;
        let mut costs = vec![Vec::new(); readers.len()];
        let mut by_hand = Vec::new();
        for turn in 0..=turns {
            for (reader, costs) in readers.iter().zip(&mut costs) {
                let cost = reader.cost(&runtime, rows)?;
                // The first turn connects.
                if turn > 0 {
                    costs.push(cost);
                }
            }
            let cost = hand.cost(rows)?;
            if turn > 0 {
                by_hand.push(cost);
            }
        }
        let told = |costs: &[f64]| rows_a_second(rows, median(costs.to_vec()));
        let hand_told = format!("{} by hand", told(&by_hand));
        for (reader, costs) in readers.iter().zip(&costs) {
            let what = format!("{} by {}, one core", self.what(rows), name(reader.reader));
            let value = each(rows, 1) / median(costs.clone());
            let figure =
                Figure::value(what, told(costs), value, "rows/s").beside(hand_told.clone());
            let is_bulk = reader.reader != BulkReader::Tiberius;
            let target = if is_bulk { Target::AtLeast(ROWS_A_SECOND) } else { Target::None };
            report(figure.with_target(target));
        }
        if let ([bulk, _], [ours, theirs]) = (readers.as_slice(), costs.as_slice()) {
            for (beside, others, least) in [
                ("tiberius' rows", theirs, TIMES_TIBERIUS),
                ("a decoder written by hand", &by_hand, SHARE_OF_HAND),
            ] {
                let pairs = ours.iter().zip(others).map(|(ours, other)| (1.0 / ours, 1.0 / other));
                let of = Turns::of(pairs.collect());
                let what = format!("the same by {}, against {beside}", name(bulk.reader));
                let (ours, other) = (told(ours), told(others));
                let figure = Figure::ratio(what, ours, other, of.ratio);
                report(figure.with_target(Target::AtLeast(least)));
            }
        }
        Ok(())
    }

    /// A result, and one ten times as large.
    fn memory(&self, times: (usize, usize), report: &mut dyn FnMut(Figure)) -> Outcome<()> {
        let runtime = one_thread()?;
        for (reader, recording) in &self.recordings {
            let mut peaks = Vec::new();
            for times in [times.0, times.1] {
                let reader = Reader::new(*reader, recording, times)?;
                forget_peak()?;
                reader.cost(&runtime, self.rows * times)?;
                peaks.push(peak_mib()?);
            }
            let [small, large] = *peaks.as_slice() else { return Err("two sizes".into()) };
            let what = format!("{} by {}", self.what(self.rows * times.1), name(*reader));
            let told = |peak: f64| format!("{} MiB", short(peak));
            report(
                Figure::value(format!("{what}: peak memory"), told(large), large, "MiB")
                    .with_target(Target::AtMost(PEAK_MIB)),
            );
            let reference = format!("{} with {} rows", told(small), self.rows * times.0);
            let figure =
                Figure::ratio(format!("{what}: growth"), told(large), reference, large / small);
            report(figure.with_target(Target::AtMost(1.1)));
        }
        Ok(())
    }

    /// Two results at once, over a connection each.
    fn connections(
        &self,
        times: usize,
        turns: usize,
        report: &mut dyn FnMut(Figure),
    ) -> Outcome<()> {
        let rows = self.rows * times;
        let readers = self.readers(times)?;
        let reader = readers.first().ok_or("no reader")?;
        let runtime = two_threads()?;
        let both = || {
            runtime.block_on(async {
                let tasks = [0, 1].map(|_| {
                    let source = reader.source.clone();
                    tokio::spawn(async move { stage::read(&source, drop).await })
                });
                for task in tasks {
                    check(task.await??, rows)?;
                }
                Outcome::Ok(())
            })
        };
        let alone = || {
            runtime.block_on(async {
                let source = reader.source.clone();
                let task = tokio::spawn(async move { stage::read(&source, drop).await });
                check(task.await??, rows)
            })
        };
        // Connections are made once.
        both()?;
        let mut pairs = Vec::new();
        for _ in 0..turns {
            let watch = Watch::start();
            alone()?;
            let one = watch.stop().wall;
            let watch = Watch::start();
            both()?;
            pairs.push((2.0 / watch.stop().wall, 1.0 / one));
        }
        let of = Turns::of(pairs);
        let what = format!(
            "{} by {} over two connections on two cores, by wall time",
            self.what(rows),
            name(reader.reader)
        );
        let ours = rows_a_second(rows, 1.0 / of.ours);
        let reference = format!("{} over one", rows_a_second(rows, 1.0 / of.reference));
        let figure = Figure::ratio(what, ours, reference, of.ratio);
        report(figure.with_target(Target::AtLeast(1.7)));
        Ok(())
    }
}

fn check(read: usize, rows: usize) -> Outcome<()> {
    if read == rows { Ok(()) } else { Err(format!("{read} rows were read, not {rows}").into()) }
}

/// A source in front of a server that replays.
struct Reader {
    reader: BulkReader,
    source: MssqlSource,
    replay: Replay,
}

impl Reader {
    fn new(reader: BulkReader, recording: &Arc<Recording>, times: usize) -> Outcome<Self> {
        let replay = Replay::serve(recording, times)?;
        let source = stage::source(replay.address(), reader);
        Ok(Self { reader, source, replay })
    }

    /// CPU seconds of the one thread that reads all rows.
    fn cost(&self, runtime: &Runtime, rows: usize) -> Outcome<f64> {
        let begun = thread_cpu_seconds();
        let read = runtime.block_on(stage::read(&self.source, drop))?;
        let cost = thread_cpu_seconds() - begun;
        check(read, rows)?;
        Ok(cost)
    }
}

/// The decoder written by hand, on a socket that asks for nothing else.
struct Hand {
    replay: std::net::SocketAddr,
    request: Vec<u8>,
}

impl Hand {
    fn new(readers: &[Reader], recordings: &[(BulkReader, Arc<Recording>)]) -> Outcome<Self> {
        let (reader, (_, recording)) =
            readers.first().zip(recordings.first()).ok_or("no reader")?;
        Ok(Self { replay: reader.replay.address(), request: recording.largest_request()? })
    }

    fn cost(&self, rows: usize) -> Outcome<f64> {
        let mut socket = TcpStream::connect(self.replay)?;
        socket.write_all(&self.request)?;
        let begun = thread_cpu_seconds();
        let read = decoder::read(&mut socket, BATCH_ROWS, &mut drop)?;
        let cost = thread_cpu_seconds() - begun;
        check(read, rows)?;
        Ok(cost)
    }
}

#[allow(clippy::cast_precision_loss, reason = "a figure to report")]
fn each(amount: usize, count: usize) -> f64 {
    amount as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use arrow_select::concat::concat_batches;

    use super::*;

    #[test]
    fn every_decoder_reads_the_same_columns_from_the_same_bytes() {
        let wire = Wire::record(300).expect("recorded");
        let runtime = one_thread().expect("a runtime");
        for reader in wire.readers(3).expect("readers") {
            let mut batches: Vec<RecordBatch> = Vec::new();
            let read = stage::read(&reader.source, |batch| batches.push(batch));
            assert_eq!(runtime.block_on(read).expect("read"), 900);
            let ours = concat_batches(&batches[0].schema(), &batches).expect("one schema");
            let mut socket = TcpStream::connect(reader.replay.address()).expect("connects");
            let recording = wire.recordings.iter().find(|(own, _)| *own == reader.reader);
            let request = recording.expect("recorded").1.largest_request().expect("recorded");
            socket.write_all(&request).expect("sent");
            let mut columns = Vec::new();
            let read = decoder::read(&mut socket, 1_000, &mut |batch| columns.push(batch));
            assert_eq!((read.expect("read"), columns.len()), (900, 1));
            for (ours, theirs) in ours.columns().iter().zip(&columns[0]) {
                assert_eq!(ours, theirs);
            }
        }
    }
}

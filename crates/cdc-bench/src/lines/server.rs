//! The in-memory server over a socket: change rows to a client as a reader of changes asks for
//! them, the same again, many connections, the time to the first row, and memory.
//!
//! The client runs in this process on a thread of its own. What it costs is taken off: "server CPU
//! time" is that of all other threads.

mod client;
pub(in crate::lines) mod rig;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use cdc_core::Lsn;

use self::{
    client::{Client, Reply},
    rig::{ACCOUNT, CHANGE_TABLE, Rig},
};
use crate::{
    Figure, Outcome, Scale, Target,
    figure::{median, millis, quantile, rows_a_second, short},
    machine::{Cost, Watch, forget_peak, peak_mib, thread_cpu_seconds},
};

/// Bytes that the plain writer gives to its socket at once.
const WRITE_BYTES: usize = 64 << 10;
/// Commits' rows: of the table that is read, and of the one that is large.
const ROWS_A_COMMIT: usize = 10;
const ROWS_A_LARGE_COMMIT: usize = 1_000;

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    // First, so that nothing else has left its mark on the process's memory.
    memory(scale.pick(10_000_000, 20_000), report)?;
    let rows = scale.pick(500_000, 2_000);
    let rig = Rig::start(rows, ROWS_A_COMMIT)?;
    stream(&rig, rows, scale.pick(7, 1), report)?;
    first_row(&rig, scale.pick(300, 5), report)?;
    connections(&rig, scale.pick(200, 20), report)
}

/// What a client reads of changes: a range of commits in order, nine columns.
fn send_range(client: &mut Client, turn: usize, to: [u8; 10]) -> Outcome<()> {
    let text = format!(
        "SELECT __$start_lsn, __$command_id, __$seqval, __$operation, id, customer, title, amount, \
         placed FROM {CHANGE_TABLE} WHERE __$start_lsn > @from AND __$start_lsn <= @to \
         ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation /* {turn} */"
    );
    client.send_call(&text, &[("@from", *Lsn::ZERO.as_bytes()), ("@to", to)])
}

/// Runs what a client does; its own CPU time is taken off.
fn served<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Cost)> {
    let (watch, own) = (Watch::start(), thread_cpu_seconds());
    let done = work()?;
    let own = thread_cpu_seconds() - own;
    let Cost { wall, cpu } = watch.stop();
    Ok((done, Cost { wall, cpu: cpu - own }))
}

fn stream(rig: &Rig, rows: usize, turns: usize, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let mut client = Client::log_in(rig.address(), &ACCOUNT)?;
    let to = *Lsn::MAX.as_bytes();
    let expected = Some(u64::try_from(rows)?);
    let check = |reply: &Reply| match reply.rows_of_call() {
        found if found == expected => Ok(()),
        found => Err(format!("the server gave {found:?} rows, not {rows}")),
    };
    let mut bytes = 0;
    let (mut first, mut again, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..turns {
        let mut kept = Vec::new();
        let mut ask = |keep: bool, kept: &mut Vec<u8>| {
            served(|| {
                send_range(&mut client, turn, to)?;
                match keep {
                    true => client.receive_into(&mut |part| kept.extend_from_slice(part)),
                    false => client.receive(),
                }
            })
        };
        let (reply, cost) = ask(false, &mut kept)?;
        check(&reply)?;
        first.push(cost);
        let (same, cost) = ask(false, &mut kept)?;
        if same != reply {
            return Err("the second reply is another than the first".into());
        }
        again.push(cost);
        ask(true, &mut kept)?;
        bytes = kept.len();
        plain.push(plainly(kept)?);
    }
    let cpu = |costs: &[Cost]| median(costs.iter().map(|cost| cost.cpu).collect());
    let wall = |costs: &[Cost]| median(costs.iter().map(|cost| cost.wall).collect());
    let reference = format!(
        "{} the same {:.0} bytes a row by a plain writer (wall {})",
        rows_a_second(rows, cpu(&plain)),
        each(bytes, rows),
        millis(wall(&plain))
    );
    for (what, costs, target) in [("first time", &first, 300_000.0), ("again", &again, 1_500_000.0)]
    {
        let seconds = cpu(costs);
        let ours = format!("{} (wall {})", rows_a_second(rows, seconds), millis(wall(costs)));
        report(
            Figure::value(
                format!("{rows} change rows of 9 columns to a client, {what}, by server CPU time"),
                ours,
                each(rows, 1) / seconds,
                "rows/s",
            )
            .beside(reference.clone())
            .with_target(Target::AtLeast(target)),
        );
    }
    Ok(())
}

/// The same bytes through a socket, without anything else.
fn plainly(bytes: Vec<u8>) -> Outcome<Cost> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let length = bytes.len();
    let writer = thread::spawn(move || {
        let (mut socket, _) = listener.accept()?;
        let mut go = [0];
        socket.read_exact(&mut go)?;
        bytes.chunks(WRITE_BYTES).try_for_each(|part| socket.write_all(part))
    });
    let mut socket = TcpStream::connect(address)?;
    let mut buffer = vec![0; client::READ_BYTES];
    let ((), cost) = served(|| {
        socket.write_all(&[1])?;
        let mut read = 0;
        while read < length {
            match socket.read(&mut buffer)? {
                0 => return Err("the plain writer stopped".into()),
                count => read += count,
            }
        }
        // Its last CPU time counts.
        writer.join().map_err(|_| "the plain writer failed")??;
        Ok(())
    })?;
    Ok(cost)
}

/// From nothing to the first row: connection, login, a query that was never asked before.
fn first_row(rig: &Rig, turns: usize, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let mut times = Vec::new();
    let mut cpu = Vec::new();
    for turn in 0..turns {
        let ((), cost) = served(|| {
            let mut client = Client::log_in(rig.address(), &ACCOUNT)?;
            client.send_batch(&format!("SELECT TOP (1) id FROM {CHANGE_TABLE} /* {turn} */"))?;
            match client.receive()?.rows_of_batch() {
                Some(1) => Ok(()),
                other => Err(format!("the server gave {other:?} rows, not one").into()),
            }
        })?;
        times.push(cost.wall);
        cpu.push(cost.cpu);
    }
    let value = median(times.clone()) * 1_000.0;
    let ours = format!(
        "{} ms; 95 % within {}; {} of server CPU time",
        short(value),
        millis(quantile(times, 0.95)),
        millis(median(cpu))
    );
    report(
        Figure::value("from connection over login to the first row, median", ours, value, "ms")
            .with_target(Target::AtMost(5.0)),
    );
    Ok(())
}

/// Connections that are all open at once, each logged in and answered.
fn connections(rig: &Rig, count: usize, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let ((mut clients, answered), cost) = served(|| {
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.push(Client::connect(rig.address())?);
        }
        for client in &mut clients {
            client.receive()?;
            client.send_login(&ACCOUNT)?;
        }
        for (number, client) in clients.iter_mut().enumerate() {
            client.receive()?;
            client.send_batch(&format!(
                "SELECT TOP ({}) id, title FROM {CHANGE_TABLE} /* all */",
                number + 1
            ))?;
        }
        let mut answered = 0_usize;
        for (number, client) in clients.iter_mut().enumerate() {
            let rows = client.receive()?.rows_of_batch();
            answered += usize::from(rows == Some(u64::try_from(number + 1)?));
        }
        Ok((clients, answered))
    })?;
    // All of them are still there.
    let last = clients.last_mut().ok_or("no client")?;
    last.send_batch("SELECT session_id FROM sys.dm_exec_sessions WHERE is_user_process = 1")?;
    let open = last.receive()?.rows_of_batch().unwrap_or(0);
    if open < u64::try_from(count)? {
        return Err(format!("the server has {open} sessions, not {count}").into());
    }
    let value = each(answered, 1);
    let ours = format!(
        "{answered} in {}, {} of server CPU time each",
        millis(cost.wall),
        millis(cost.cpu / each(count, 1))
    );
    report(
        Figure::value(format!("{count} connections at once, each answered"), ours, value, "")
            .with_target(Target::AtLeast(each(count, 1))),
    );
    Ok(())
}

/// A large change table: what the process holds, and what it comes to when a client reads it all.
fn memory(rows: usize, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    forget_peak()?;
    let before = peak_mib()?;
    let rig = Rig::start(rows, ROWS_A_LARGE_COMMIT)?;
    let filled = peak_mib()?;
    let mut client = Client::log_in(rig.address(), &ACCOUNT)?;
    let (reply, cost) = served(|| {
        send_range(&mut client, 0, *Lsn::MAX.as_bytes())?;
        client.receive()
    })?;
    if reply.rows_of_call() != Some(u64::try_from(rows)?) {
        return Err("the large table was not read whole".into());
    }
    let peak = peak_mib()?;
    let ours = format!(
        "{} GiB; {:.0} bytes a row before it was read; then {} by server CPU time",
        short(peak / 1_024.0),
        (filled - before) * 1_048_576.0 / each(rows, 1),
        rows_a_second(rows, cost.cpu)
    );
    let what = format!("{rows} rows in a table and its change table, all read: peak memory");
    report(
        Figure::value(what, ours, peak / 1_024.0, "GiB")
            .beside(format!("{:.0} bytes a row on the wire", each(reply.bytes, rows)))
            .with_target(Target::AtMost(4.0)),
    );
    forget_peak()?;
    let (read, cost) = rig.read_in_process()?;
    if read != rows {
        return Err(format!("the in-process source gave {read} rows, not {rows}").into());
    }
    let peak = peak_mib()? / 1_024.0;
    let ours = format!("{} GiB; {} by CPU time", short(peak), rows_a_second(rows, cost.cpu));
    let what = format!("the same {rows} rows read by the in-process source: peak memory");
    report(Figure::value(what, ours, peak, "GiB").with_target(Target::AtMost(4.0)));
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn each(count: usize, among: usize) -> f64 {
    count as f64 / among as f64
}

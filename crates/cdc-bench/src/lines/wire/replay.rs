//! A server that says again what another one said once, at the speed of memory.
//!
//! Requests are known by their bytes. What comes before the login, and the login itself, are known
//! by their kind and length, since drivers put something new into each.

use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use super::decoder::row_ends;
use crate::{Outcome, machine::thread_cpu_seconds};

const HEADER: usize = 8;
const REPLY: u8 = 4;
const LOGIN: u8 = 0x10;
const PRELOGIN: u8 = 0x12;
/// Bytes of a packet that rows are sent in.
const PACKET_BYTES: usize = 16_383;
/// Bytes that are given to the socket at once.
const WRITE_BYTES: usize = 256 << 10;

/// What requests are known by, with their packets and the packets that answer them.
type Answers = HashMap<Vec<u8>, (Vec<u8>, Arc<[u8]>)>;

/// What was said.
#[derive(Debug, Default)]
pub(super) struct Recording(Mutex<Answers>);

impl Recording {
    /// Lets `drive` talk to a server through this, and keeps the answers.
    pub(super) fn of(
        server: SocketAddr,
        drive: impl FnOnce(SocketAddr) -> Outcome<()>,
    ) -> Outcome<Arc<Self>> {
        let recording = Arc::new(Self::default());
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let kept = Arc::clone(&recording);
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let kept = Arc::clone(&kept);
                // A client that goes away ends its connection alone.
                thread::spawn(move || kept.relay(client, server).ok());
            }
        });
        drive(address)?;
        Ok(recording)
    }

    fn relay(&self, mut client: TcpStream, server: SocketAddr) -> Outcome<()> {
        let mut server = TcpStream::connect(server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        while let Some(request) = message(&mut client)? {
            server.write_all(&request)?;
            let reply = message(&mut server)?.ok_or("the server went away")?;
            // Kept before the client goes on: it may end with this answer.
            let answer: Arc<[u8]> = reply.as_slice().into();
            self.kept().insert(key(&request)?, (request, answer));
            client.write_all(&reply)?;
        }
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request with the largest answer, and the answer's tokens.
    fn most(&self) -> Outcome<(Vec<u8>, Vec<u8>)> {
        let kept = self.kept();
        let most = kept.values().max_by_key(|(_, packets)| packets.len());
        let (request, packets) = most.ok_or("nothing was recorded")?;
        Ok((request.clone(), tokens(packets)?))
    }

    /// The tokens of the largest answer.
    pub(super) fn largest(&self) -> Outcome<Vec<u8>> {
        self.most().map(|(_, tokens)| tokens)
    }

    /// The packets of the request that it answers.
    pub(super) fn largest_request(&self) -> Outcome<Vec<u8>> {
        self.most().map(|(request, _)| request)
    }
}

/// The largest answer, whose rows are said again and again.
#[derive(Debug)]
struct Repeated {
    /// What its request is known by.
    key: Vec<u8>,
    tokens: Vec<u8>,
    /// Where its rows begin and end.
    rows: (usize, usize),
    times: usize,
}

/// A server that replays.
#[derive(Debug)]
pub(super) struct Replay {
    address: SocketAddr,
    /// CPU time of the threads that answered, in nanoseconds.
    spent: Arc<AtomicU64>,
}

impl Replay {
    /// Serves what was recorded, the rows of the largest answer `times` times.
    pub(super) fn serve(recording: &Arc<Recording>, times: usize) -> Outcome<Self> {
        let repeated = if times == 1 { None } else { Some(repeated(recording, times)?) };
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (recording, repeated) = (Arc::clone(recording), Arc::new(repeated));
        let spent = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&spent);
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let (recording, repeated) = (Arc::clone(&recording), Arc::clone(&repeated));
                let sum = Arc::clone(&sum);
                thread::spawn(move || answer(client, &recording, &repeated, &sum).ok());
            }
        });
        Ok(Self { address, spent })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// CPU seconds that were spent on answers so far.
    pub(super) fn cpu(&self) -> f64 {
        std::time::Duration::from_nanos(self.spent.load(Ordering::Acquire)).as_secs_f64()
    }
}

fn repeated(recording: &Recording, times: usize) -> Outcome<Repeated> {
    let (request, tokens) = recording.most()?;
    let ends = row_ends(&tokens)?;
    let (first, last) = (ends.first().copied(), ends.last().copied());
    let rows = first.zip(last).ok_or("the largest answer has no rows")?;
    Ok(Repeated { key: key(&request)?, tokens, rows, times })
}

/// Answers a client until it goes away.
fn answer(
    mut client: TcpStream,
    recording: &Recording,
    repeated: &Option<Repeated>,
    spent: &AtomicU64,
) -> Outcome<()> {
    client.set_nodelay(true)?;
    let mut counted = thread_cpu_seconds();
    while let Some(request) = message(&mut client)? {
        let key = key(&request)?;
        match repeated {
            Some(repeated) if repeated.key == key => repeated.say(&mut client)?,
            _ => {
                let kept = recording.kept().get(&key).map(|(_, reply)| Arc::clone(reply));
                let reply = kept.ok_or("a request that was not recorded")?;
                reply.chunks(WRITE_BYTES).try_for_each(|part| client.write_all(part))?;
            }
        }
        let now = thread_cpu_seconds();
        let nanos = std::time::Duration::from_secs_f64((now - counted).max(0.0)).as_nanos();
        spent.fetch_add(u64::try_from(nanos)?, Ordering::AcqRel);
        counted = now;
    }
    Ok(())
}

impl Repeated {
    fn say(&self, client: &mut TcpStream) -> Outcome<()> {
        let (first, last) = self.rows;
        let (head, rest) = self.tokens.split_at_checked(first).ok_or("no such place")?;
        let (rows, tail) = rest.split_at_checked(last - first).ok_or("no such place")?;
        let mut packets = Packets { client, buffer: Vec::with_capacity(2 * WRITE_BYTES), room: 0 };
        packets.put(head)?;
        for _ in 0..self.times {
            packets.put(rows)?;
        }
        packets.put(tail)?;
        packets.end()
    }
}

/// Tokens on their way into packets.
struct Packets<'a> {
    client: &'a mut TcpStream,
    buffer: Vec<u8>,
    /// Bytes that the last packet still takes.
    room: usize,
}

impl Packets<'_> {
    fn put(&mut self, mut tokens: &[u8]) -> Outcome<()> {
        while !tokens.is_empty() {
            if self.room == 0 {
                self.flush_at(WRITE_BYTES)?;
                let [high, low] = u16::try_from(PACKET_BYTES)?.to_be_bytes();
                self.buffer.extend([REPLY, 0, high, low, 0, 0, 1, 0]);
                self.room = PACKET_BYTES - HEADER;
            }
            let (part, rest) = tokens.split_at(self.room.min(tokens.len()));
            self.buffer.extend_from_slice(part);
            self.room -= part.len();
            tokens = rest;
        }
        Ok(())
    }

    fn flush_at(&mut self, bytes: usize) -> Outcome<()> {
        if self.buffer.len() >= bytes {
            self.client.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Closes the last packet.
    fn end(mut self) -> Outcome<()> {
        let length = PACKET_BYTES - self.room;
        let at = self.buffer.len().checked_sub(length).ok_or("the last packet has left")?;
        let [high, low] = u16::try_from(length)?.to_be_bytes();
        let header = self.buffer.get_mut(at..at + HEADER).ok_or("no header")?;
        header.copy_from_slice(&[REPLY, 1, high, low, 0, 0, 1, 0]);
        self.flush_at(0)
    }
}

/// What a request is known by: its kind, and what is in its packets, which are numbered. Of a login
/// it is the length: it tells one driver's from another's.
fn key(request: &[u8]) -> Outcome<Vec<u8>> {
    let kind = request.first().copied().ok_or("an empty request")?;
    let mut key = vec![kind];
    match kind {
        LOGIN | PRELOGIN => key.extend(request.len().to_le_bytes()),
        _ => key.extend(tokens(request)?),
    }
    Ok(key)
}

/// The packets of the next message; none at the end.
fn message(from: &mut TcpStream) -> Outcome<Option<Vec<u8>>> {
    let mut whole = Vec::new();
    loop {
        let mut header = [0; HEADER];
        match from.read_exact(&mut header) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && whole.is_empty() => {
                return Ok(None);
            }
            other => other?,
        }
        let [_, status, high, low, ..] = header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let left = u64::try_from(length.checked_sub(HEADER).ok_or("no packet")?)?;
        whole.extend(header);
        if u64::try_from(from.take(left).read_to_end(&mut whole)?)? != left {
            return Err("a packet ends too soon".into());
        }
        if status & 1 != 0 {
            return Ok(Some(whole));
        }
    }
}

/// What is in packets.
fn tokens(mut packets: &[u8]) -> Outcome<Vec<u8>> {
    let mut tokens = Vec::with_capacity(packets.len());
    while let [_, _, high, low, ..] = packets {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (packet, rest) = packets.split_at_checked(length).ok_or("a packet ends too soon")?;
        tokens.extend_from_slice(packet.get(HEADER..).unwrap_or_default());
        packets = rest;
    }
    Ok(tokens)
}

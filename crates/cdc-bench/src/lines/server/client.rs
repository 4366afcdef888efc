//! A client that costs hardly anything: it sends requests as bytes, and looks at no more of a reply
//! than its packets' headers and its end.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use crate::Outcome;

/// Packet types.
const BATCH: u8 = 1;
const CALL: u8 = 3;
const LOGIN: u8 = 16;
const PRELOGIN: u8 = 18;
/// The packet size that drivers ask for unless they are told another.
const PACKET_BYTES: u16 = 4_096;
/// Bytes asked of the socket at once.
pub(super) const READ_BYTES: usize = 256 << 10;
/// What stands at the end of a call's reply: the end of its statement, its status, its own end.
const TAIL: usize = 13 + 5 + 13;
/// The header in front of a request: no open transaction.
const HEADERS: [u8; 22] = [22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

/// What is known of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Bytes of its tokens.
    pub(super) bytes: usize,
    tail: [u8; TAIL],
}

impl Reply {
    /// The rows that a call's only statement gave; none when it failed or is no call's reply.
    pub(super) fn rows_of_call(&self) -> Option<u64> {
        let [
            0xFF,
            _,
            _,
            _,
            _,
            rows @ ..,
            0x79,
            _,
            _,
            _,
            _,
            0xFE,
            0,
            0,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
        ] = self.tail
        else {
            return None;
        };
        Some(u64::from_le_bytes(rows))
    }

    /// The rows that a batch's last statement gave; none when it failed.
    pub(super) fn rows_of_batch(&self) -> Option<u64> {
        let (_, end) = self.tail.split_last_chunk::<13>()?;
        let [0xFD, 0x10, 0, _, _, rows @ ..] = *end else { return None };
        Some(u64::from_le_bytes(rows))
    }
}

/// A connection.
pub(super) struct Client {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects, and sends what comes before the login.
    pub(super) fn connect(address: SocketAddr) -> Outcome<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let mut client = Self { socket, buffer: vec![0; READ_BYTES] };
        // Version and encryption, which is not supported.
        let body = [0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xFF, 9, 0, 0, 0, 0, 0, 2];
        client.send(PRELOGIN, &body)?;
        Ok(client)
    }

    /// Connects and logs in.
    pub(super) fn log_in(address: SocketAddr, login: &Account) -> Outcome<Self> {
        let mut client = Self::connect(address)?;
        client.receive()?;
        client.send_login(login)?;
        client.receive()?;
        Ok(client)
    }

    /// Sends a login.
    pub(super) fn send_login(&mut self, login: &Account) -> Outcome<()> {
        let scrambled = units(login.password).into_iter().map(|byte| byte.rotate_left(4) ^ 0xA5);
        let none = Vec::new;
        let texts = [
            none(),
            units(login.user),
            scrambled.collect(),
            units("bench"),
            none(),
            none(),
            none(),
            none(),
            units(login.database),
        ];
        let mut fixed = Vec::new();
        for number in [0x7400_0004, u32::from(PACKET_BYTES), 7, 1, 0] {
            fixed.extend(u32::to_le_bytes(number));
        }
        fixed.extend([224, 3, 0, 0]);
        fixed.extend([0; 8]);
        let mut data = Vec::new();
        for text in texts {
            fixed.extend(u16::try_from(94 + data.len())?.to_le_bytes());
            fixed.extend(u16::try_from(text.len() / 2)?.to_le_bytes());
            data.extend(text);
        }
        fixed.resize(90, 0);
        let length = u32::try_from(94 + data.len())?;
        self.send(LOGIN, &[&length.to_le_bytes()[..], &fixed, &data].concat())
    }

    /// Sends a batch.
    pub(super) fn send_batch(&mut self, text: &str) -> Outcome<()> {
        self.send(BATCH, &[&HEADERS[..], &units(text)].concat())
    }

    /// Sends `sp_executesql` of a text with parameters of type `binary(10)`.
    pub(super) fn send_call(&mut self, text: &str, parameters: &[(&str, [u8; 10])]) -> Outcome<()> {
        let declared: Vec<String> =
            parameters.iter().map(|(name, _)| format!("{name} binary(10)")).collect();
        let mut body = [&HEADERS[..], &[0xFF, 0xFF, 10, 0, 0, 0]].concat();
        for text in [text, &declared.join(", ")] {
            let units = units(text);
            // An unnamed nvarchar(4000) in Latin1_General_CI_AS.
            body.extend([0, 0, 0xE7, 0x40, 0x1F, 9, 4, 0xD0, 0, 0x34]);
            body.extend(u16::try_from(units.len())?.to_le_bytes());
            body.extend(units);
        }
        for (name, value) in parameters {
            let units = units(name);
            body.push(u8::try_from(units.len() / 2)?);
            body.extend(units);
            body.extend([0, 0xAD, 10, 0, 10, 0]);
            body.extend(value);
        }
        self.send(CALL, &body)
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> Outcome<()> {
        let mut parts = body.chunks(usize::from(PACKET_BYTES) - 8).peekable();
        while let Some(part) = parts.next() {
            let [high, low] = u16::try_from(part.len() + 8)?.to_be_bytes();
            let last = u8::from(parts.peek().is_none());
            self.socket.write_all(&[&[kind, last, high, low, 0, 0, 0, 0], part].concat())?;
        }
        Ok(())
    }

    /// Reads a reply to its end.
    pub(super) fn receive(&mut self) -> Outcome<Reply> {
        self.receive_into(&mut |_| {})
    }

    /// Reads a reply to its end, and hands over its tokens in pieces.
    pub(super) fn receive_into(&mut self, take: &mut dyn FnMut(&[u8])) -> Outcome<Reply> {
        let mut packets = Packets::default();
        while !packets.ended {
            let count = self.socket.read(&mut self.buffer)?;
            if count == 0 {
                return Err("the server closed the connection within a reply".into());
            }
            packets.walk(self.buffer.get(..count).unwrap_or_default(), take)?;
        }
        Ok(Reply { bytes: packets.bytes, tail: packets.tail })
    }
}

/// Who logs in, and where.
pub(super) struct Account {
    pub(super) user: &'static str,
    pub(super) password: &'static str,
    pub(super) database: &'static str,
}

/// The packets of one reply.
#[derive(Default)]
struct Packets {
    header: [u8; 8],
    /// Bytes of the header that are there.
    read: usize,
    /// Bytes of the payload that are not.
    left: usize,
    ended: bool,
    bytes: usize,
    tail: [u8; TAIL],
}

impl Packets {
    fn walk(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(&[u8])) -> Outcome<()> {
        while !bytes.is_empty() {
            if self.ended {
                return Err("the server sent more than was asked for".into());
            }
            if let Some(missing) = self.header.get_mut(self.read..)
                && !missing.is_empty()
            {
                let (part, rest) = bytes.split_at(missing.len().min(bytes.len()));
                for (place, byte) in missing.iter_mut().zip(part) {
                    *place = *byte;
                }
                self.read += part.len();
                bytes = rest;
                let [kind, _, high, low, ..] = self.header;
                if self.read == self.header.len() {
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    self.left = length.checked_sub(8).filter(|_| kind == 4).ok_or("no reply")?;
                }
            } else {
                let (part, rest) = bytes.split_at(self.left.min(bytes.len()));
                take(part);
                self.keep_tail(part);
                self.bytes += part.len();
                self.left -= part.len();
                bytes = rest;
            }
            if self.read == self.header.len() && self.left == 0 {
                let [_, status, ..] = self.header;
                self.ended = status & 1 != 0;
                self.read = 0;
            }
        }
        Ok(())
    }

    fn keep_tail(&mut self, part: &[u8]) {
        match part.last_chunk::<TAIL>() {
            Some(tail) => self.tail = *tail,
            None => {
                self.tail.rotate_left(part.len());
                for (place, byte) in self.tail.iter_mut().rev().zip(part.iter().rev()) {
                    *place = *byte;
                }
            }
        }
    }
}

fn units(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_walked_wherever_the_socket_cuts_it() {
        let mut tokens = vec![7; 100];
        tokens.extend([0xFF, 0x10, 0, 0xC1, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0x79, 0, 0, 0, 0]);
        tokens.extend([0xFE, 0, 0, 0xE0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut sent = Vec::new();
        for (at, part) in tokens.chunks(50).enumerate() {
            let [high, low] = u16::try_from(part.len() + 8).expect("short").to_be_bytes();
            sent.extend([4, u8::from((at + 1) * 50 >= tokens.len()), high, low, 0, 0, 0, 0]);
            sent.extend(part);
        }
        for size in 1..sent.len() {
            let (mut packets, mut seen) = (Packets::default(), Vec::new());
            for piece in sent.chunks(size) {
                packets.walk(piece, &mut |part| seen.extend_from_slice(part)).expect("a reply");
            }
            assert!(packets.ended && seen == tokens);
            let reply = Reply { bytes: packets.bytes, tail: packets.tail };
            assert_eq!((reply.bytes, reply.rows_of_call()), (tokens.len(), Some(265)));
            assert_eq!(reply.rows_of_batch(), None);
            assert!(packets.walk(&[4], &mut |_| {}).is_err());
        }
    }
}

//! Packets: the eight bytes in front of each, messages put together from them and cut into them.

use crate::{
    fault::{Fault, Read},
    input::Input,
};

/// Bytes of a packet's header.
pub(crate) const HEADER_BYTES: usize = 8;
/// The size that packets have until a login has agreed on another, and the server's default.
pub(crate) const DEFAULT_SIZE: u16 = 4096;
/// The least size that a login can agree on.
pub(crate) const SIZE_MIN: u16 = 512;
/// The greatest one.
pub(crate) const SIZE_MAX: u16 = 32_767;

/// What a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketKind {
    /// A batch of statements.
    Batch,
    /// Calls of procedures.
    Call,
    /// The server's tokens.
    Reply,
    /// The end of the running request is asked for.
    Attention,
    /// Rows of a bulk load.
    BulkLoad,
    /// A request of the transaction manager.
    Transaction,
    /// The login record.
    Login,
    /// A token of integrated authentication.
    Sspi,
    /// What is settled before the login; also the wrapping of a TLS handshake.
    PreLogin,
}

impl PacketKind {
    /// The kind's number on the wire.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Batch => 1,
            Self::Call => 3,
            Self::Reply => 4,
            Self::Attention => 6,
            Self::BulkLoad => 7,
            Self::Transaction => 14,
            Self::Login => 16,
            Self::Sspi => 17,
            Self::PreLogin => 18,
        }
    }

    fn from_number(number: u8) -> Read<Self> {
        Ok(match number {
            1 => Self::Batch,
            3 => Self::Call,
            4 => Self::Reply,
            6 => Self::Attention,
            7 => Self::BulkLoad,
            14 => Self::Transaction,
            16 => Self::Login,
            17 => Self::Sspi,
            18 => Self::PreLogin,
            _ => return Err(Fault::Malformed("a packet is of no known type")),
        })
    }
}

/// The bits of a packet's status.
pub(crate) mod status {
    /// The last packet of its message.
    pub(crate) const END: u8 = 0x01;
    /// The message is to be ignored; with [`END`].
    pub(crate) const IGNORE: u8 = 0x02;
    /// The session is to be reset first.
    pub(crate) const RESET: u8 = 0x08;
    /// The same, and an open transaction is kept.
    pub(crate) const RESET_KEEPING_TRANSACTION: u8 = 0x10;
}

/// The front of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// What it belongs to.
    pub(crate) kind: PacketKind,
    /// Its status bits.
    pub(crate) status: u8,
    /// Bytes that follow the header.
    pub(crate) payload: u16,
}

impl Header {
    /// Reads a header.
    pub(crate) fn read(bytes: &[u8; HEADER_BYTES]) -> Read<Self> {
        let mut input = Input::new(bytes);
        let (kind, status, length) = (input.u8()?, input.u8()?, input.u16_big()?);
        let payload =
            length.checked_sub(8).ok_or(Fault::Malformed("a packet is shorter than its header"))?;
        Ok(Self { kind: PacketKind::from_number(kind)?, status, payload })
    }

    /// The header's bytes, for the `id`th packet of a message.
    pub(crate) fn bytes(self, id: u8) -> [u8; HEADER_BYTES] {
        let [high, low] = self.payload.saturating_add(8).to_be_bytes();
        [self.kind.number(), self.status, high, low, 0, 0, id, 0]
    }
}

/// A message, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// What it is.
    pub(crate) kind: PacketKind,
    /// The status bits of its first packet, with [`status::IGNORE`] of the last.
    pub(crate) status: u8,
    /// Its bytes.
    pub(crate) body: Vec<u8>,
}

/// Puts messages together.
#[derive(Debug)]
pub(crate) struct Assembler {
    limit: usize,
    open: Option<Incoming>,
}

impl Assembler {
    /// Messages of at most `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, open: None }
    }

    /// Takes the next packet; gives the message that ends with it.
    ///
    /// An attention may come between the packets of a message, which it ends.
    pub(crate) fn take(&mut self, header: Header, payload: &[u8]) -> Read<Option<Incoming>> {
        if header.kind == PacketKind::Attention {
            self.open = None;
            let body = Vec::new();
            return Ok(Some(Incoming { kind: header.kind, status: header.status, body }));
        }
        let mut message = match self.open.take() {
            Some(open) if open.kind == header.kind => open,
            Some(_) => return Err(Fault::Malformed("packets of two messages are mixed")),
            None => Incoming { kind: header.kind, status: header.status, body: Vec::new() },
        };
        if message.body.len().saturating_add(payload.len()) > self.limit {
            return Err(Fault::TooLarge {
                what: "a request",
                limit: self.limit,
                setting: "request_bytes_max",
            });
        }
        message.body.extend_from_slice(payload);
        if header.status & status::END == 0 {
            self.open = Some(message);
            return Ok(None);
        }
        message.status |= header.status & status::IGNORE;
        Ok(Some(message))
    }
}

/// Cuts a message into packets. What is written can be taken away whenever it is enough; the
/// packet that is being filled stays, because only the message's end tells whether it is the last.
#[derive(Debug)]
pub(crate) struct Framer {
    kind: PacketKind,
    payload: u16,
    /// Packets that are complete, then the one being filled.
    out: Vec<u8>,
    /// Where the packet being filled begins in `out`.
    start: usize,
    /// Bytes that it still takes.
    room: usize,
    id: u8,
}

impl Framer {
    /// Messages of `kind` in packets of `size` bytes with their header.
    pub(crate) fn new(kind: PacketKind, size: u16) -> Self {
        let payload = size.clamp(SIZE_MIN, SIZE_MAX).saturating_sub(8);
        Self { kind, payload, out: Vec::new(), start: 0, room: 0, id: 0 }
    }

    /// Appends to the message.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.room == 0 {
                self.open();
            }
            let (now, later) = bytes.split_at_checked(self.room).unwrap_or((bytes, &[]));
            self.out.extend_from_slice(now);
            self.room = self.room.saturating_sub(now.len());
            bytes = later;
        }
    }

    /// The packets that are complete, once they have `least` bytes or more.
    pub(crate) fn packets(&mut self, least: usize) -> Option<Vec<u8>> {
        if self.start < least.max(1) {
            return None;
        }
        let mut next = Vec::with_capacity(self.out.capacity());
        next.extend_from_slice(self.out.get(self.start..).unwrap_or_default());
        self.out.truncate(self.start);
        self.start = 0;
        Some(std::mem::replace(&mut self.out, next))
    }

    /// Ends the message and gives its last packets. The next message may follow.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        if self.id == 0 {
            self.open();
        }
        self.close(status::END);
        (self.start, self.room, self.id) = (0, 0, 0);
        std::mem::take(&mut self.out)
    }

    fn open(&mut self) {
        if self.id != 0 {
            self.close(0);
        }
        self.start = self.out.len();
        self.out.extend_from_slice(&[0; HEADER_BYTES]);
        self.room = usize::from(self.payload);
        // Numbers start at 1 and wrap; 0 stands for a message not begun.
        self.id = self.id.checked_add(1).unwrap_or(1);
    }

    fn close(&mut self, status: u8) {
        let filled = usize::from(self.payload).saturating_sub(self.room);
        let payload = u16::try_from(filled).unwrap_or(self.payload);
        let header = Header { kind: self.kind, status, payload }.bytes(self.id);
        if let Some(place) = self.out.get_mut(self.start..self.start.saturating_add(HEADER_BYTES)) {
            place.copy_from_slice(&header);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The packets in `bytes`.
    fn cut(mut bytes: &[u8]) -> Vec<(Header, &[u8])> {
        let mut packets = Vec::new();
        while let Some((header, rest)) = bytes.split_first_chunk() {
            let header = Header::read(header).expect("a header");
            let (payload, rest) = rest.split_at(header.payload.into());
            packets.push((header, payload));
            bytes = rest;
        }
        packets
    }

    proptest! {
        #[test]
        fn a_message_that_is_cut_into_packets_is_put_together_again(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..8),
            size in 0u16..5000,
            least in 0usize..4000,
        ) {
            let mut framer = Framer::new(PacketKind::Batch, size);
            for _ in 0..2 {
                let mut sent = Vec::new();
                for part in &parts {
                    framer.write(part);
                    sent.extend(framer.packets(least).unwrap_or_default());
                }
                sent.extend(framer.finish());
                let packets = cut(&sent);
                let mut assembler = Assembler::new(1 << 20);
                for (at, (header, payload)) in packets.iter().enumerate() {
                    let last = at + 1 == packets.len();
                    prop_assert!(payload.len() + 8 <= usize::from(size.clamp(SIZE_MIN, SIZE_MAX)));
                    let message = assembler.take(*header, payload).expect("valid");
                    prop_assert_eq!(message.is_some(), last);
                    if let Some(message) = message {
                        prop_assert_eq!(message.body, parts.concat());
                    }
                }
            }
        }

        #[test]
        fn any_packets_give_messages_or_an_error_within_the_limit(
            packets in prop::collection::vec(
                (any::<[u8; 8]>(), prop::collection::vec(any::<u8>(), 0..100)), 0..20)
        ) {
            let mut assembler = Assembler::new(500);
            for (header, payload) in &packets {
                let Ok(header) = Header::read(header) else { continue };
                match assembler.take(header, payload) {
                    Ok(Some(message)) => prop_assert!(message.body.len() <= 500),
                    Ok(None) => {}
                    Err(_) => break,
                }
            }
        }
    }

    #[test]
    fn an_attention_ends_the_message_it_comes_into() {
        let mut assembler = Assembler::new(100);
        let packet = |kind, status| Header { kind, status, payload: 1 };
        assert_eq!(assembler.take(packet(PacketKind::Batch, 0), &[1]), Ok(None));
        let attention = assembler.take(packet(PacketKind::Attention, status::END), &[]);
        assert_eq!(attention.expect("read").expect("whole").kind, PacketKind::Attention);
        let batch = assembler.take(packet(PacketKind::Batch, status::END), &[2]);
        assert_eq!(batch.expect("read").expect("whole").body, [2]);
    }

    #[test]
    fn a_message_beyond_the_limit_and_a_mix_of_two_are_refused() {
        let packet = |kind, status| Header { kind, status, payload: 2 };
        let mut assembler = Assembler::new(3);
        assert_eq!(assembler.take(packet(PacketKind::Call, 0), &[1, 2]), Ok(None));
        let error = assembler.take(packet(PacketKind::Call, 0), &[3, 4]);
        assert!(matches!(error, Err(Fault::TooLarge { setting: "request_bytes_max", .. })));
        let mut assembler = Assembler::new(9);
        assert_eq!(assembler.take(packet(PacketKind::Call, 0), &[1, 2]), Ok(None));
        assert!(assembler.take(packet(PacketKind::Batch, 0), &[3, 4]).is_err());
        assert!(Header::read(&[1, 1, 0, 7, 0, 0, 0, 0]).is_err());
    }
}

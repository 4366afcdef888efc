//! A client as small as one can be: it sends packets, and reads tokens for what the tests look at.

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use crate::stub::Server;

pub(crate) fn units(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The headers in front of a request.
pub(crate) const HEADERS: [u8; 22] =
    [22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

pub(crate) const BATCH: u8 = 1;
pub(crate) const CALL: u8 = 3;
pub(crate) const ATTENTION: u8 = 6;
pub(crate) const BULK: u8 = 7;
pub(crate) const TRANSACTION: u8 = 14;
pub(crate) const LOGIN: u8 = 16;
pub(crate) const PRELOGIN: u8 = 18;

/// A token of a reply, as far as the tests look into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Columns,
    Row,
    Error(i32),
    Info(i32),
    Change(u8),
    LoginAck,
    Status(i32),
    Value(u16),
    /// The token's number, its status bits, and the rows.
    Done(u8, u16, u64),
}

pub(crate) struct Client<S> {
    pub(crate) stream: S,
    packet_size: usize,
}

/// Options of a pre-login that asks for `encryption`.
pub(crate) fn prelogin(encryption: u8) -> Vec<u8> {
    let mut bytes = vec![0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xFF];
    bytes.extend([9, 0, 0, 0, 0, 0, encryption]);
    bytes
}

pub(crate) fn login(user: &str, password: &str, packet: u32) -> Vec<u8> {
    let scrambled = units(password).iter().map(|b| b.rotate_left(4) ^ 0xA5).collect::<Vec<_>>();
    let texts = [
        vec![],
        units(user),
        scrambled,
        units("it"),
        vec![],
        vec![],
        vec![],
        vec![],
        units("shop"),
    ];
    let mut fixed = Vec::new();
    for number in [0x7400_0004, packet, 7, 1, 0] {
        fixed.extend(u32::to_le_bytes(number));
    }
    fixed.extend([224, 3, 0, 0]);
    fixed.extend([0; 8]);
    let mut data = Vec::new();
    for text in texts {
        fixed.extend(u16::try_from(94 + data.len()).unwrap().to_le_bytes());
        fixed.extend(u16::try_from(text.len() / 2).unwrap().to_le_bytes());
        data.extend(text);
    }
    fixed.resize(90, 0);
    let length = u32::try_from(94 + data.len()).unwrap();
    [length.to_le_bytes().to_vec(), fixed, data].concat()
}

impl Client<TcpStream> {
    pub(crate) async fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, packet_size: 4096 }
    }

    /// A session without TLS.
    pub(crate) async fn log_in(server: &Server) -> Self {
        let mut client = Self::connect(server).await;
        client.send(PRELOGIN, 0, &prelogin(2)).await;
        client.receive().await;
        let tokens = client.enter("sa", "P\u{e4}ss1!").await;
        assert!(tokens.contains(&Token::LoginAck), "{tokens:?}");
        client
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, packet_size: 4096 }
    }

    pub(crate) async fn enter(&mut self, user: &str, password: &str) -> Vec<Token> {
        self.send(LOGIN, 0, &login(user, password, 8000)).await;
        tokens(&self.receive().await)
    }

    pub(crate) async fn send(&mut self, kind: u8, status: u8, body: &[u8]) {
        let parts = body.chunks(self.packet_size - 8).collect::<Vec<_>>();
        let count = parts.len().max(1);
        for at in 0..count {
            let part = parts.get(at).copied().unwrap_or_default();
            let [high, low] = u16::try_from(part.len() + 8).unwrap().to_be_bytes();
            let last = u8::from(at + 1 == count);
            let first = if at == 0 { status } else { 0 };
            let packet = [&[kind, last | first, high, low, 0, 0, 0, 0], part].concat();
            self.stream.write_all(&packet).await.unwrap();
        }
        self.stream.flush().await.unwrap();
    }

    /// The bytes of the next message.
    pub(crate) async fn receive(&mut self) -> Vec<u8> {
        self.try_receive().await.expect("a message")
    }

    pub(crate) async fn try_receive(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let mut header = [0; 8];
            self.stream.read_exact(&mut header).await?;
            assert_eq!(header[0], 4, "a reply");
            let length = usize::from(u16::from_be_bytes([header[2], header[3]])) - 8;
            let start = body.len();
            body.resize(start + length, 0);
            self.stream.read_exact(&mut body[start..]).await?;
            if header[1] & 1 != 0 {
                return Ok(body);
            }
        }
    }

    pub(crate) async fn batch(&mut self, text: &str) -> Vec<u8> {
        self.batch_with(0, text).await
    }

    pub(crate) async fn batch_with(&mut self, status: u8, text: &str) -> Vec<u8> {
        self.send(BATCH, status, &[HEADERS.to_vec(), units(text)].concat()).await;
        self.receive().await
    }

    pub(crate) async fn tokens(&mut self, text: &str) -> Vec<Token> {
        tokens(&self.batch(text).await)
    }
}

struct Walk<'a>(&'a [u8]);

impl Walk<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    fn skip(&mut self, bytes: u64) {
        self.take(usize::try_from(bytes).unwrap());
    }

    /// Takes a type; gives how its values tell their length: in 0 bytes (then so many follow), 1,
    /// 2 or 8.
    fn kind(&mut self) -> (u8, u64) {
        let number = u8::try_from(self.number(1)).unwrap();
        match number {
            0x30 | 0x32 => (0, 1),
            0x34 => (0, 2),
            0x38 | 0x3A | 0x3B | 0x7A => (0, 4),
            0x3C | 0x3D | 0x3E | 0x7F => (0, 8),
            0x28 => (1, 0),
            0x24 | 0x26 | 0x68 | 0x6D | 0x6E | 0x6F | 0x29 | 0x2A | 0x2B => {
                self.skip(1);
                (1, 0)
            }
            0x6A => {
                self.skip(3);
                (1, 0)
            }
            0xA5 | 0xAD | 0xA7 | 0xAF | 0xE7 | 0xEF => {
                let length = self.number(2);
                if !matches!(number, 0xA5 | 0xAD) {
                    self.skip(5);
                }
                (if length == 0xFFFF { 8 } else { 2 }, 0)
            }
            other => panic!("a type that these tests do not read: {other:#x}"),
        }
    }

    fn value(&mut self, (prefix, fixed): (u8, u64)) {
        match prefix {
            0 => self.skip(fixed),
            1 => {
                let length = self.number(1);
                self.skip(length);
            }
            2 => match self.number(2) {
                0xFFFF => {}
                length => self.skip(length),
            },
            _ => {
                if self.number(8) == u64::MAX {
                    return;
                }
                loop {
                    match self.number(4) {
                        0 => return,
                        length => self.skip(length),
                    }
                }
            }
        }
    }

    fn short_text(&mut self) {
        let units = self.number(1);
        self.skip(units * 2);
    }
}

/// The tokens of a reply. It panics when the bytes are no tokens.
pub(crate) fn tokens(bytes: &[u8]) -> Vec<Token> {
    let mut walk = Walk(bytes);
    let mut found = Vec::new();
    let mut kinds = Vec::new();
    while !walk.0.is_empty() {
        let number = u8::try_from(walk.number(1)).unwrap();
        found.push(match number {
            0x81 => {
                kinds.clear();
                for _ in 0..walk.number(2) {
                    walk.skip(6);
                    kinds.push(walk.kind());
                    walk.short_text();
                }
                Token::Columns
            }
            0xD1 => {
                for kind in &kinds {
                    walk.value(*kind);
                }
                Token::Row
            }
            0xD2 => {
                let nulls = walk.take(kinds.len().div_ceil(8));
                for (at, kind) in kinds.iter().enumerate() {
                    if nulls[at / 8] >> (at % 8) & 1 == 0 {
                        walk.value(*kind);
                    }
                }
                Token::Row
            }
            0xAA | 0xAB | 0xAD | 0xE3 => {
                let length = usize::try_from(walk.number(2)).unwrap();
                let data = walk.take(length);
                let code = data.first_chunk().map_or(0, |code| i32::from_le_bytes(*code));
                match number {
                    0xAA => Token::Error(code),
                    0xAB => Token::Info(code),
                    0xAD => Token::LoginAck,
                    _ => Token::Change(data[0]),
                }
            }
            0x79 => Token::Status(i32::from_le_bytes(walk.take(4).try_into().unwrap())),
            0xAC => {
                let place = u16::try_from(walk.number(2)).unwrap();
                walk.short_text();
                walk.skip(7);
                let kind = walk.kind();
                walk.value(kind);
                Token::Value(place)
            }
            0xFD..=0xFF => {
                let status = u16::try_from(walk.number(2)).unwrap();
                walk.skip(2);
                Token::Done(number, status, walk.number(8))
            }
            other => panic!("a token that these tests do not read: {other:#x} in {found:?}"),
        });
    }
    found
}

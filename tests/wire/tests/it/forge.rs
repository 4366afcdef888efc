//! A server between source and server that answers some statements with bytes of its own: what no
//! server of ours would say.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf},
    sync::Mutex,
};

/// A statement that contains this is answered with these tokens.
#[derive(Clone, Debug)]
pub(crate) struct Forged {
    pub(crate) part: String,
    pub(crate) tokens: Vec<u8>,
}

const CALL: u8 = 3;
const REPLY: u8 = 4;
const HEADER: usize = 8;
const PAYLOAD: usize = 4_000;

/// Where the forging server listens.
pub(crate) async fn before(server: SocketAddr, forged: Vec<Forged>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let forged = Arc::new(forged);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(server).await.unwrap();
            tokio::spawn(serve(client, server, Arc::clone(&forged)));
        }
    });
    address
}

async fn serve(client: TcpStream, server: TcpStream, forged: Arc<Vec<Forged>>) {
    let (mut client_reads, client_writes) = client.into_split();
    let (mut server_reads, mut server_writes) = server.into_split();
    let client_writes = Arc::new(Mutex::new(client_writes));
    let back = Arc::clone(&client_writes);
    let copying = tokio::spawn(async move {
        let mut bytes = vec![0; 4_096];
        while let Ok(read @ 1..) = server_reads.read(&mut bytes).await {
            if back.lock().await.write_all(&bytes[..read]).await.is_err() {
                break;
            }
        }
    });
    while let Some((kind, message)) = message(&mut client_reads).await {
        let found = forged.iter().find(|forged| {
            let part: Vec<u8> = forged.part.encode_utf16().flat_map(u16::to_le_bytes).collect();
            kind == CALL && message.windows(part.len()).any(|window| window == part)
        });
        let gone = match found {
            Some(forged) => {
                let reply = packets(&forged.tokens);
                client_writes.lock().await.write_all(&reply).await.is_err()
            }
            None => server_writes.write_all(&message).await.is_err(),
        };
        if gone {
            break;
        }
    }
    copying.abort();
}

/// The kind and the packets of the next message.
async fn message(from: &mut OwnedReadHalf) -> Option<(u8, Vec<u8>)> {
    let mut whole = Vec::new();
    loop {
        let mut header = [0; HEADER];
        from.read_exact(&mut header).await.ok()?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let mut payload = vec![0; length - HEADER];
        from.read_exact(&mut payload).await.ok()?;
        whole.extend(header);
        whole.extend(payload);
        if header[1] & 1 != 0 {
            return Some((header[0], whole));
        }
    }
}

fn packets(tokens: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    let mut parts = tokens.chunks(PAYLOAD).peekable();
    while let Some(part) = parts.next() {
        let [high, low] = u16::try_from(part.len() + HEADER).unwrap().to_be_bytes();
        sent.extend([REPLY, u8::from(parts.peek().is_none()), high, low, 0, 0, 1, 0]);
        sent.extend(part);
    }
    sent
}

fn units(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The columns of a result: names, and types as the wire spells them.
pub(crate) fn columns(columns: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut token = vec![0x81];
    token.extend(u16::try_from(columns.len()).unwrap().to_le_bytes());
    for (name, kind) in columns {
        // No user type; it may be NULL.
        token.extend([0, 0, 0, 0, 9, 0]);
        token.extend(kind);
        token.push(u8::try_from(name.encode_utf16().count()).unwrap());
        token.extend(units(name));
    }
    token
}

/// A row of values as the wire spells them.
pub(crate) fn row(values: &[Vec<u8>]) -> Vec<u8> {
    let mut token = vec![0xD1];
    token.extend(values.concat());
    token
}

/// The end of a call that gave so many rows.
pub(crate) fn end(rows: u64) -> Vec<u8> {
    let mut tokens = vec![0xFF, 0x11, 0, 0xC1, 0];
    tokens.extend(rows.to_le_bytes());
    tokens.extend([0x79, 0, 0, 0, 0]);
    tokens.extend([0xFE, 0, 0, 0xE0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    tokens
}

/// `int` that may be NULL, and a value of it.
pub(crate) fn int() -> Vec<u8> {
    vec![0x26, 4]
}

pub(crate) fn int_value(number: i32) -> Vec<u8> {
    [&[4][..], &number.to_le_bytes()].concat()
}

/// `nvarchar(4000)`, and a value of it in UTF-16 units.
pub(crate) fn nvarchar() -> Vec<u8> {
    vec![0xE7, 0x40, 0x1F, 9, 4, 0xD0, 0, 0x34]
}

pub(crate) fn nvarchar_value(units: &[u16]) -> Vec<u8> {
    let mut value = u16::try_from(units.len() * 2).unwrap().to_le_bytes().to_vec();
    value.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    value
}

pub(crate) fn text_value(text: &str) -> Vec<u8> {
    nvarchar_value(&text.encode_utf16().collect::<Vec<_>>())
}

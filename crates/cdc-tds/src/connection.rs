//! One connection: what is settled before the login, TLS, the login record; then a reader and a
//! writer between the socket and the session's thread.

use std::{
    io,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use cdc_tsql::talk::{Service, VERSION};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::mpsc::{self, Receiver, Sender},
    time::timeout,
};
use tokio_rustls::server::TlsStream;

use crate::{
    cache::ReplyCache,
    fault::Fault,
    login::{LOGIN_BYTES_MAX, Login},
    packet::{Assembler, DEFAULT_SIZE, Framer, HEADER_BYTES, Header, Incoming, PacketKind},
    prelogin::{Extent, PreLogin},
    session::{self, CancelSlot, Inbound, SessionStart},
    settings::{Encryption, Settings},
    tls::{Acceptors, Wrapped},
};

/// The first byte of a connection that begins with TLS.
const TLS_HANDSHAKE: u8 = 0x16;
/// Bytes of what is settled before the login.
const PRELOGIN_BYTES_MAX: usize = 8 << 10;
/// Requests between the reader and the thread. A client waits for its reply before it asks again;
/// only an attention comes between.
const REQUESTS_WAITING_MAX: usize = 8;
/// Pieces of replies between the thread and the writer: some 64 KiB each.
const PIECES_WAITING_MAX: usize = 8;
/// Bytes that the reader asks the socket for.
const READ_BYTES: usize = 16 << 10;
/// The stack of a session's thread: statements nest.
const STACK_BYTES: usize = 16 << 20;
/// How long a last message may take to reach a client that is then left.
const FAREWELL: Duration = Duration::from_secs(2);

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) settings: Settings,
    pub(crate) acceptors: Option<Acceptors>,
    pub(crate) cache: Arc<ReplyCache>,
}

/// Serves a connection to its end.
pub(crate) async fn run(socket: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    // Replies are written whole; waiting for more to send would only delay them.
    socket.set_nodelay(true)?;
    let limit = shared.settings.login_timeout;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no login within login_timeout");
    let (transport, login) =
        timeout(limit, Box::pin(enter(socket, &shared))).await.map_err(late)??;
    match transport {
        Transport::Plain(stream) => converse(stream, login, &shared).await,
        Transport::Inner(stream) => converse(stream, login, &shared).await,
        Transport::Outer(stream) => converse(stream, login, &shared).await,
    }
}

/// What carries a connection after its login.
enum Transport {
    Plain(TcpStream),
    Inner(Box<TlsStream<Wrapped<TcpStream>>>),
    Outer(Box<TlsStream<TcpStream>>),
}

async fn enter(socket: TcpStream, shared: &Shared) -> io::Result<(Transport, Login)> {
    let mut first = [0];
    if socket.peek(&mut first).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match (first, &shared.acceptors) {
        ([TLS_HANDSHAKE], Some(acceptors)) => {
            let mut stream = acceptors.outer.accept(socket).await?;
            let client = prelogin(&mut stream).await?;
            answer(&mut stream, client, client.encryption).await?;
            let login = login(&mut stream).await?;
            Ok((Transport::Outer(Box::new(stream)), login))
        }
        ([TLS_HANDSHAKE], None) => Err(io::Error::other("a client wants TLS, which is off")),
        _ => enter_plainly(socket, shared).await,
    }
}

async fn enter_plainly(mut socket: TcpStream, shared: &Shared) -> io::Result<(Transport, Login)> {
    let client = prelogin(&mut socket).await?;
    let offered = match &shared.acceptors {
        None => Encryption::Off,
        Some(_) => shared.settings.encryption,
    };
    let (extent, byte) = client.agree(offered);
    answer(&mut socket, client, byte).await?;
    match (extent, &shared.acceptors) {
        (None, _) => Err(io::Error::other("client and server cannot agree on encryption")),
        (Some(Extent::Nothing), _) | (_, None) => {
            let login = login(&mut socket).await?;
            Ok((Transport::Plain(socket), login))
        }
        (Some(extent), Some(acceptors)) => {
            let mut stream = acceptors.inner.accept(Wrapped::new(socket)).await?;
            stream.get_mut().0.unwrap_from_here();
            let login = login(&mut stream).await?;
            if extent == Extent::Login {
                let (wrapped, _) = stream.into_inner();
                return Ok((Transport::Plain(wrapped.into_inner()), login));
            }
            Ok((Transport::Inner(Box::new(stream)), login))
        }
    }
}

async fn prelogin<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<PreLogin> {
    let message = message(stream, &mut Assembler::new(PRELOGIN_BYTES_MAX)).await?;
    if message.kind != PacketKind::PreLogin {
        return Err(io::Error::other("a connection begins with something else than a pre-login"));
    }
    PreLogin::read(&message.body).map_err(io::Error::other)
}

async fn answer<S: AsyncWrite + Unpin>(
    stream: &mut S,
    client: PreLogin,
    encryption: u8,
) -> io::Result<()> {
    let mut framer = Framer::new(PacketKind::Reply, DEFAULT_SIZE);
    framer.write(&client.answer(VERSION.wire(), encryption));
    stream.write_all(&framer.finish()).await?;
    stream.flush().await
}

/// Reads the login record. What cannot be read is answered where the client can see it.
async fn login<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<Login> {
    let message = message(stream, &mut Assembler::new(LOGIN_BYTES_MAX)).await?;
    let read = match message.kind {
        PacketKind::Login => Login::read(&message.body),
        _ => Err(Fault::Malformed("a login record is missing")),
    };
    match read {
        Ok(login) => Ok(login),
        Err(fault) => {
            let packets = session::refusal(&fault.message());
            stream.write_all(&packets).await?;
            stream.flush().await?;
            Err(io::Error::other(fault))
        }
    }
}

/// The next message. Nothing is read beyond it.
async fn message<S: AsyncRead + Unpin>(
    stream: &mut S,
    assembler: &mut Assembler,
) -> io::Result<Incoming> {
    loop {
        match packet(stream, assembler).await? {
            Some(Ok(Some(message))) => return Ok(message),
            Some(Ok(None)) => {}
            Some(Err(fault)) => return Err(io::Error::other(fault)),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Takes the next packet; none when the client has closed the connection between two.
async fn packet<S: AsyncRead + Unpin>(
    stream: &mut S,
    assembler: &mut Assembler,
) -> io::Result<Option<Result<Option<Incoming>, Fault>>> {
    let mut header = [0; HEADER_BYTES];
    let (first, others) = header.split_at_mut(1);
    if stream.read(first).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(others).await?;
    let header = match Header::read(&header) {
        Ok(header) => header,
        Err(fault) => return Ok(Some(Err(fault))),
    };
    // At most 64 KiB, and only as far as they come.
    let mut payload = vec![0; usize::from(header.payload)];
    stream.read_exact(&mut payload).await?;
    Ok(Some(assembler.take(header, &payload)))
}

/// Ends the running call when the connection is dropped, however that comes.
struct EndsCall(CancelSlot);

impl Drop for EndsCall {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.get() {
            cancel.set();
        }
    }
}

/// Carries requests to the session and its replies back, until one side ends.
async fn converse<S>(stream: S, login: Login, shared: &Arc<Shared>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (reader, writer) = tokio::io::split(stream);
    let (requests, inbox) = mpsc::channel(REQUESTS_WAITING_MAX);
    let (packets, replies) = mpsc::channel(PIECES_WAITING_MAX);
    let cancel: CancelSlot = Arc::new(OnceLock::new());
    let ends_call = EndsCall(Arc::clone(&cancel));
    let start = SessionStart {
        service: Arc::clone(&shared.service),
        login,
        cache: Arc::clone(&shared.cache),
        packet_bytes_max: shared.settings.packet_bytes_max,
        inbox,
        requests: requests.downgrade(),
        packets,
        cancel,
    };
    thread::Builder::new()
        .name("tds-session".into())
        .stack_size(STACK_BYTES)
        .spawn(move || session::run(start))?;
    let limit = shared.settings.request_bytes_max;
    let reading = read(BufReader::with_capacity(READ_BYTES, reader), requests, &ends_call.0, limit);
    let writing = write(writer, replies);
    tokio::pin!(reading, writing);
    tokio::select! {
        end = &mut writing => end,
        end = &mut reading => match end {
            Ok(Left::Gone) => Ok(()),
            // The last message, which says why, is still to be sent.
            Ok(Left::Broken) => timeout(FAREWELL, writing).await.unwrap_or(Ok(())),
            Err(error) => Err(error),
        },
    }
}

/// How the requests of a connection end.
enum Left {
    Gone,
    Broken,
}

async fn read<S: AsyncRead + Unpin>(
    mut stream: S,
    requests: Sender<Inbound>,
    cancel: &CancelSlot,
    limit: usize,
) -> io::Result<Left> {
    let mut assembler = Assembler::new(limit);
    loop {
        let inbound = match packet(&mut stream, &mut assembler).await? {
            None => return Ok(Left::Gone),
            Some(Ok(None)) => continue,
            Some(Ok(Some(message))) => Inbound::Message(message),
            Some(Err(fault)) => Inbound::Broken(fault),
        };
        let broken = matches!(inbound, Inbound::Broken(_));
        let attention = matches!(&inbound, Inbound::Message(message)
            if message.kind == PacketKind::Attention);
        if (broken || attention)
            && let Some(cancel) = cancel.get()
        {
            cancel.set();
        }
        if requests.send(inbound).await.is_err() {
            // The session has ended; its last words are being written.
            return Ok(Left::Broken);
        }
        if broken {
            return Ok(Left::Broken);
        }
    }
}

async fn write<S: AsyncWrite + Unpin>(
    mut stream: S,
    mut packets: Receiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(piece) = packets.recv().await {
        stream.write_all(&piece).await?;
        if packets.is_empty() {
            stream.flush().await?;
        }
    }
    stream.shutdown().await
}

//! TLS: around the whole connection, or inside of it, where the handshake travels in packets of
//! the pre-login.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;

use crate::{
    packet::{Framer, HEADER_BYTES, Header, PacketKind},
    settings::Certificate,
};

/// The name of the protocol that is wholly inside of TLS.
const STRICT_PROTOCOL: &[u8] = b"tds/8.0";
/// Bytes of a handshake's flight that are held before they are sent.
const FLIGHT_BYTES_MAX: usize = 64 << 10;

/// The two ways a connection is encrypted.
#[derive(Clone)]
pub(crate) struct Acceptors {
    /// Inside of the protocol, at most TLS 1.2: with 1.3 a client takes the handshake for done
    /// before the server does, and leaves the packets while the server still expects them.
    pub(crate) inner: TlsAcceptor,
    /// Around the protocol.
    pub(crate) outer: TlsAcceptor,
}

impl Acceptors {
    /// Acceptors with this certificate.
    pub(crate) fn new(certificate: &Certificate) -> io::Result<Self> {
        let mut strict = config(certificate, rustls::DEFAULT_VERSIONS)?;
        strict.alpn_protocols = vec![STRICT_PROTOCOL.to_vec()];
        Ok(Self {
            inner: Arc::new(config(certificate, &[&rustls::version::TLS12])?).into(),
            outer: Arc::new(strict).into(),
        })
    }
}

fn config(
    certificate: &Certificate,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> io::Result<ServerConfig> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("cannot use the {what}: {error}"))
    };
    let chain = CertificateDer::pem_slice_iter(certificate.chain.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong("certificate", &error))?;
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes())
        .map_err(|error| wrong("certificate's key", &error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| wrong("certificate with its key", &error))
}

/// A stream whose bytes travel in packets of the pre-login until the handshake is over.
#[derive(Debug)]
pub(crate) struct Wrapped<S> {
    stream: S,
    wraps: bool,
    /// A header, as far as it has arrived.
    header: [u8; HEADER_BYTES],
    have: usize,
    /// Bytes of the packet that are still to come.
    left: usize,
    /// The flight being written, then its packets as far as they have to be sent.
    flight: Vec<u8>,
    packets: Vec<u8>,
    sent: usize,
}

impl<S> Wrapped<S> {
    /// Wraps a handshake.
    pub(crate) const fn new(stream: S) -> Self {
        Self {
            stream,
            wraps: true,
            header: [0; HEADER_BYTES],
            have: 0,
            left: 0,
            flight: Vec::new(),
            packets: Vec::new(),
            sent: 0,
        }
    }

    /// The handshake is over: from here on bytes travel as they are.
    pub(crate) fn unwrap_from_here(&mut self) {
        self.wraps = false;
    }

    /// The stream inside.
    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> Wrapped<S> {
    /// Takes the next header when the last packet is used up.
    fn poll_header(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.left == 0 {
            let place = self.header.get_mut(self.have..).unwrap_or_default();
            let mut buffer = ReadBuf::new(place);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            let read = buffer.filled().len();
            if read == 0 {
                return Poll::Ready(Ok(false));
            }
            self.have = self.have.saturating_add(read);
            if self.have < HEADER_BYTES {
                continue;
            }
            self.have = 0;
            let header = Header::read(&self.header).map_err(io::Error::other)?;
            if header.kind != PacketKind::PreLogin {
                return Poll::Ready(Err(io::Error::other(
                    "a handshake in packets of another type",
                )));
            }
            self.left = usize::from(header.payload);
        }
        Poll::Ready(Ok(true))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wrapped<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.wraps {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        if !ready!(this.poll_header(context))? {
            return Poll::Ready(Ok(()));
        }
        let most = this.left.min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        ready!(Pin::new(&mut this.stream).poll_read(context, &mut part))?;
        let read = part.filled().len();
        this.left = this.left.saturating_sub(read);
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wrapped<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if !this.wraps {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        }
        if this.flight.len().saturating_add(bytes.len()) > FLIGHT_BYTES_MAX {
            return Poll::Ready(Err(io::Error::other("a handshake that is too long")));
        }
        this.flight.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.flight.is_empty() {
            let mut framer = Framer::new(PacketKind::PreLogin, crate::packet::DEFAULT_SIZE);
            framer.write(&this.flight);
            this.packets.append(&mut framer.finish());
            this.flight.clear();
        }
        while let Some(rest) = this.packets.get(this.sent..).filter(|rest| !rest.is_empty()) {
            let sent = ready!(Pin::new(&mut this.stream).poll_write(context, rest))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            this.sent = this.sent.saturating_add(sent);
        }
        this.packets.clear();
        this.sent = 0;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut *this).poll_flush(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

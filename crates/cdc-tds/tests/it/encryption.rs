//! TLS inside of the protocol, around it, and for the login alone.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use cdc_tds::{Certificate, Encryption, Settings};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    client::{Client, PRELOGIN, Token, prelogin},
    stub::Server,
};

fn settings(encryption: Encryption) -> (Settings, Certificate) {
    let certificate = Certificate::self_made(&["localhost"]).unwrap();
    let settings =
        Settings { encryption, certificate: Some(certificate.clone()), ..Settings::default() };
    (settings, certificate)
}

fn connector(certificate: &Certificate, protocol: Option<&[u8]>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(certificate.chain.as_bytes()).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocol.into_iter().map(<[u8]>::to_vec).collect();
    TlsConnector::from(Arc::new(config))
}

fn name() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

/// The client's side of a handshake in packets; a whole flight is held until it is flushed.
struct Packets {
    stream: TcpStream,
    wraps: bool,
    header: Vec<u8>,
    left: usize,
    flight: Vec<u8>,
}

impl AsyncRead for Packets {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.wraps && this.left == 0 {
            let mut byte = [0];
            let mut one = ReadBuf::new(&mut byte);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut one))?;
            if one.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.header.push(byte[0]);
            if this.header.len() == 8 {
                assert_eq!(this.header[0], 18, "a handshake travels in packets of the pre-login");
                this.left = usize::from(u16::from_be_bytes([this.header[2], this.header[3]])) - 8;
                this.header.clear();
            }
        }
        if !this.wraps {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        let most = this.left.min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        ready!(Pin::new(&mut this.stream).poll_read(context, &mut part))?;
        let read = part.filled().len();
        this.left -= read;
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Packets {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if !this.wraps {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        }
        this.flight.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.flight.is_empty() {
            let [high, low] = u16::try_from(this.flight.len() + 8).unwrap().to_be_bytes();
            let packet = [&[18, 1, high, low, 0, 0, 0, 0], &this.flight[..]].concat();
            // A flight is smaller than what an empty socket takes.
            let sent = ready!(Pin::new(&mut this.stream).poll_write(context, &packet))?;
            assert_eq!(sent, packet.len());
            this.flight.clear();
        }
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// Settles encryption; gives the server's byte.
async fn settle(server: &Server, encryption: u8) -> (Client<TcpStream>, u8) {
    let mut client = Client::connect(server).await;
    client.send(PRELOGIN, 0, &prelogin(encryption)).await;
    let reply = client.receive().await;
    let at = usize::from(u16::from_be_bytes([reply[6], reply[7]]));
    (client, reply[at])
}

async fn handshake(
    client: Client<TcpStream>,
    certificate: &Certificate,
) -> Client<TlsStream<Packets>> {
    let packets = Packets {
        stream: client.stream,
        wraps: true,
        header: Vec::new(),
        left: 0,
        flight: Vec::new(),
    };
    let mut stream = connector(certificate, None).connect(name(), packets).await.unwrap();
    stream.get_mut().0.wraps = false;
    Client::new(stream)
}

#[tokio::test]
async fn a_handshake_inside_of_the_protocol_protects_all_that_follows() {
    for (encryption, client, answer) in
        [(Encryption::Offered, 1, 1), (Encryption::Required, 0, 3), (Encryption::Required, 3, 3)]
    {
        let (settings, certificate) = settings(encryption);
        let server = Server::start(settings).await;
        let (client, byte) = settle(&server, client).await;
        assert_eq!(byte, answer);
        let mut client = handshake(client, &certificate).await;
        let version = client.stream.get_ref().1.protocol_version();
        assert_eq!(version, Some(rustls::ProtocolVersion::TLSv1_2));
        assert!(client.enter("sa", "P\u{e4}ss1!").await.contains(&Token::LoginAck));
        assert_eq!(client.tokens("rows 3000").await.len(), 3002);
        assert_eq!(client.tokens("rows 3000").await.len(), 3002);
    }
}

#[tokio::test]
async fn a_login_alone_can_be_protected_and_the_rest_is_plain() {
    let (settings, certificate) = settings(Encryption::Offered);
    let server = Server::start(settings).await;
    let (client, byte) = settle(&server, 0).await;
    assert_eq!(byte, 0);
    let mut client = handshake(client, &certificate).await;
    client.send(16, 0, &crate::client::login("sa", "P\u{e4}ss1!", 4096)).await;
    let (packets, _) = client.stream.into_inner();
    let mut client = Client::new(packets.stream);
    let reply = crate::client::tokens(&client.receive().await);
    assert!(reply.contains(&Token::LoginAck));
    assert_eq!(client.tokens("rows 100").await.len(), 102);
}

#[tokio::test]
async fn who_cannot_agree_on_encryption_is_told_and_left() {
    for (encryption, client, answer) in [(Encryption::Off, 1, 2), (Encryption::Required, 2, 3)] {
        let server = Server::start(settings(encryption).0).await;
        let (mut client, byte) = settle(&server, client).await;
        assert_eq!(byte, answer);
        assert!(client.try_receive().await.is_err());
    }
}

#[tokio::test]
async fn a_connection_that_begins_with_tls_has_the_whole_protocol_inside() {
    let (settings, certificate) = settings(Encryption::Offered);
    let server = Server::start(settings).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let connector = connector(&certificate, Some(b"tds/8.0"));
    let stream = connector.connect(name(), stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"tds/8.0"[..]));
    let mut client = Client::new(stream);
    client.send(PRELOGIN, 0, &prelogin(2)).await;
    client.receive().await;
    assert!(client.enter("sa", "P\u{e4}ss1!").await.contains(&Token::LoginAck));
    assert_eq!(client.tokens("rows 3000").await.len(), 3002);
}

#[tokio::test]
async fn another_protocol_inside_of_tls_is_refused_by_name() {
    let (settings, certificate) = settings(Encryption::Offered);
    let server = Server::start(settings).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let connector = connector(&certificate, Some(b"h2"));
    assert!(connector.connect(name(), stream).await.is_err());
}

#[tokio::test]
async fn tls_at_once_is_refused_when_tls_is_off() {
    let (settings, certificate) = settings(Encryption::Off);
    let server = Server::start(settings).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    assert!(connector(&certificate, None).connect(name(), stream).await.is_err());
}

#[tokio::test]
async fn a_handshake_that_is_none_ends_the_connection() {
    let server = Server::start(settings(Encryption::Offered).0).await;
    for garbage in
        [vec![0xFF; 100], vec![18, 1, 0, 8, 0, 0, 0, 0], vec![18, 1, 0, 20, 0, 0, 0, 0, 1]]
    {
        let (mut client, _) = settle(&server, 1).await;
        tokio::io::AsyncWriteExt::write_all(&mut client.stream, &garbage).await.unwrap();
        tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await.unwrap();
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest).await;
        assert!(rest.len() < 100, "at most an alert");
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_stops_the_server_at_its_start() {
    let certificate = Certificate { chain: "x".into(), key: "y".into() };
    let settings = Settings { certificate: Some(certificate), ..Settings::default() };
    let server = Server::start(settings).await;
    assert!(server.end().await.is_err());
}

//! What the settings bound, and what is no protocol at all.

use std::time::Duration;

use cdc_tds::{Encryption, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    client::{BATCH, Client, HEADERS, PRELOGIN, Token, login, prelogin, tokens, units},
    requests::server,
    stub::Server,
};

fn plain() -> Settings {
    Settings { encryption: Encryption::Off, ..Settings::default() }
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_and_the_others_go_on() {
    let server = Server::start(Settings { connections_max: 2, ..plain() }).await;
    let mut first = Client::log_in(&server).await;
    let second = Client::log_in(&server).await;
    let mut third = Client::connect(&server).await;
    assert!(third.try_receive().await.is_err());
    assert_eq!(first.tokens("set x").await.len(), 1);
    drop(second);
    tokio::time::sleep(Duration::from_millis(50)).await;
    Client::log_in(&server).await;
}

#[tokio::test]
async fn two_hundred_sessions_run_at_once() {
    let server = server().await;
    let mut clients = Vec::new();
    for _ in 0..200 {
        clients.push(Client::log_in(&server).await);
    }
    let asked =
        clients.into_iter().map(|mut client| async move { client.tokens("rows 20").await.len() });
    let answers = asked.map(tokio::spawn).collect::<Vec<_>>();
    for answer in answers {
        assert_eq!(answer.await.unwrap(), 22);
    }
}

#[tokio::test]
async fn who_does_not_log_in_in_time_is_left() {
    let settings = Settings { login_timeout: Duration::from_millis(50), ..plain() };
    let server = Server::start(settings).await;
    let mut silent = Client::connect(&server).await;
    assert!(silent.try_receive().await.is_err());
    let mut slow = Client::connect(&server).await;
    slow.send(PRELOGIN, 0, &prelogin(2)).await;
    slow.receive().await;
    assert!(slow.try_receive().await.is_err());
}

#[tokio::test]
async fn a_request_beyond_the_limit_is_refused_before_it_is_whole() {
    let server = Server::start(Settings { request_bytes_max: 10_000, ..plain() }).await;
    let mut client = Client::log_in(&server).await;
    let body = [HEADERS.to_vec(), units(&" ".repeat(5_000))].concat();
    client.send(BATCH, 0, &body[..8_000]).await;
    assert_eq!(tokens(&client.receive().await).len(), 1);
    client.send(BATCH, 0, &body).await;
    let refused = [Token::Error(50_000), Token::Done(0xFD, 2, 0)];
    assert_eq!(tokens(&client.receive().await), refused);
    assert!(client.try_receive().await.is_err());
}

#[tokio::test]
async fn a_packet_size_is_agreed_on_within_the_limit() {
    let server = Server::start(Settings { packet_bytes_max: 600, ..plain() }).await;
    let mut client = Client::log_in(&server).await;
    client.send(BATCH, 0, &[HEADERS.to_vec(), units("rows 100")].concat()).await;
    let mut header = [0; 8];
    client.stream.read_exact(&mut header).await.unwrap();
    assert_eq!(u16::from_be_bytes([header[2], header[3]]), 600);
}

#[tokio::test]
async fn bytes_that_are_no_protocol_end_the_connection_and_nothing_else() {
    let server = server().await;
    let mut witness = Client::log_in(&server).await;
    let whole = |kind: u8, body: &[u8]| {
        let [high, low] = u16::try_from(body.len() + 8).unwrap().to_be_bytes();
        [&[kind, 1, high, low, 0, 0, 0, 0], body].concat()
    };
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 64],
        vec![0xFF; 64],
        whole(PRELOGIN, &[0, 255, 255, 255, 255, 0xFF]),
        whole(PRELOGIN, &[]),
        whole(16, &login("sa", "x", 4096)),
        vec![18, 1, 0, 7, 0, 0, 0, 0],
    ] {
        let mut client = Client::connect(&server).await;
        client.stream.write_all(&bytes).await.unwrap();
        client.stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest).await;
        assert!(rest.len() < 1_000);
    }
    for (kind, body) in
        [(BATCH, &[1, 2][..]), (BATCH, &[255; 40]), (3, &[22, 0]), (14, &[4, 0, 0, 0]), (99, &[1])]
    {
        let mut client = Client::log_in(&server).await;
        client.stream.write_all(&whole(kind, body)).await.unwrap();
        let reply = tokens(&client.receive().await);
        assert_eq!(reply, [Token::Error(4014), Token::Done(0xFD, 2, 0)], "{kind}");
        assert!(client.try_receive().await.is_err());
    }
    assert_eq!(witness.tokens("set x").await.len(), 1);
}

/// Bytes that look random and are the same every time.
fn noise(state: &mut u64) -> u8 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    state.to_be_bytes()[0]
}

#[tokio::test]
async fn noise_in_whole_messages_is_answered_or_ends_the_connection() {
    let server = server().await;
    let mut state = 0x9E37_79B9_7F4A_7C15;
    for round in 0..300 {
        let mut client = Client::log_in(&server).await;
        let mut body = HEADERS.to_vec();
        if round % 3 != 0 {
            // A call by number, so that the noise is read as arguments.
            body.extend([0xFF, 0xFF, 10, 0, 0, 0, 0, 0]);
        }
        let length = usize::from(noise(&mut state));
        body.extend((0..length).map(|_| noise(&mut state)));
        let kind = [BATCH, 3, 3, 14, 7][round % 5];
        client.send(kind, noise(&mut state) & 0x18, &body).await;
        if let Ok(reply) = client.try_receive().await {
            assert!(!reply.is_empty());
        }
    }
    assert_eq!(Client::log_in(&server).await.tokens("set x").await.len(), 1);
}

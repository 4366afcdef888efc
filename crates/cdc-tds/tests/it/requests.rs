//! Batches, transactions, attentions and resets.

use std::time::Duration;

use cdc_tds::{Encryption, Settings};

use crate::{
    client::{
        ATTENTION, BATCH, BULK, Client, HEADERS, PRELOGIN, TRANSACTION, Token, tokens, units,
    },
    stub::Server,
};

const DONE: u8 = 0xFD;
const PROCEDURE: u8 = 0xFE;
const IN_PROCEDURE: u8 = 0xFF;
const MORE: u16 = 1;
const ERROR: u16 = 2;
const COUNT: u16 = 0x10;
const CANCELLED: u16 = 0x20;

pub(crate) async fn server() -> Server {
    Server::start(Settings { encryption: Encryption::Off, ..Settings::default() }).await
}

#[tokio::test]
async fn a_login_is_told_its_database_language_collation_and_packet_size() {
    let server = server().await;
    let mut client = Client::connect(&server).await;
    client.send(PRELOGIN, 0, &crate::client::prelogin(2)).await;
    client.receive().await;
    let tokens = client.enter("sa", "P\u{e4}ss1!").await;
    let expected = [
        Token::Change(1),
        Token::Info(5701),
        Token::Change(7),
        Token::Change(2),
        Token::Info(5703),
        Token::LoginAck,
        Token::Change(4),
        Token::Done(DONE, 0, 0),
    ];
    assert_eq!(tokens, expected);
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_the_connection_ends() {
    let server = server().await;
    let mut client = Client::connect(&server).await;
    client.send(PRELOGIN, 0, &crate::client::prelogin(2)).await;
    client.receive().await;
    let tokens = client.enter("sa", "wrong").await;
    assert_eq!(tokens, [Token::Error(18_456), Token::Done(DONE, ERROR, 0)]);
    assert!(client.try_receive().await.is_err());
}

#[tokio::test]
async fn a_batch_ends_with_one_done_that_says_there_is_no_more() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    for (text, expected) in [
        ("version", vec![Token::Columns, Token::Row, Token::Done(DONE, COUNT, 1)]),
        (
            "two",
            vec![
                Token::Columns,
                Token::Row,
                Token::Done(DONE, COUNT | MORE, 1),
                Token::Columns,
                Token::Row,
                Token::Done(DONE, COUNT, 1),
            ],
        ),
        ("set x", vec![Token::Done(DONE, 0, 0)]),
        ("nothing", vec![Token::Done(DONE, 0, 0)]),
        ("fail", vec![Token::Error(208), Token::Done(DONE, ERROR, 0)]),
        ("use stock", vec![Token::Change(1), Token::Info(5701), Token::Done(DONE, 0, 0)]),
        (
            "exec",
            vec![
                Token::Columns,
                Token::Row,
                Token::Done(IN_PROCEDURE, COUNT | MORE, 1),
                Token::Status(3),
                Token::Done(PROCEDURE, 0, 0),
            ],
        ),
    ] {
        assert_eq!(client.tokens(text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_written_is_an_error_behind_those_that_could() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let expected = [Token::Columns, Token::Row, Token::Error(50_000), Token::Done(DONE, ERROR, 0)];
    assert_eq!(client.tokens("misfit").await, expected);
    assert_eq!(client.tokens("set x").await, [Token::Done(DONE, 0, 0)]);
}

#[tokio::test]
async fn an_error_of_severity_twenty_ends_the_connection() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    assert_eq!(client.tokens("fatal").await, [Token::Error(596), Token::Done(DONE, ERROR, 0)]);
    assert!(client.try_receive().await.is_err());
}

#[tokio::test]
async fn transaction_requests_are_answered_with_what_they_changed() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    for (request, change) in [
        (&[5, 0, 2, 0][..], Some(8)),
        (&[7, 0, 0, 0], Some(9)),
        (&[8, 0, 0, 0], Some(10)),
        (&[9, 0, 2, b's', 0], None),
    ] {
        client.send(TRANSACTION, 0, &[&HEADERS, request].concat()).await;
        let tokens = tokens(&client.receive().await);
        let expected = change.map(Token::Change).into_iter().chain([Token::Done(DONE, 0, 0)]);
        assert_eq!(tokens, expected.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_bulk_load_is_refused_and_the_session_goes_on() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    client.send(BULK, 0, &[0x81; 10_000]).await;
    let refused = [Token::Error(50_000), Token::Done(DONE, ERROR, 0)];
    assert_eq!(tokens(&client.receive().await), refused);
    assert_eq!(client.tokens("set x").await, [Token::Done(DONE, 0, 0)]);
}

#[tokio::test]
async fn an_attention_ends_a_call_that_waits_and_is_then_acknowledged() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    for text in ["wait", "endless"] {
        client.send(BATCH, 0, &[HEADERS.to_vec(), units(text)].concat()).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.send(ATTENTION, 0, &[]).await;
        let reply = tokens(&client.receive().await);
        assert_eq!(reply.first(), Some(&Token::Columns));
        assert_eq!(reply.last(), Some(&Token::Done(DONE, ERROR, 0)));
        let acknowledged = tokens(&client.receive().await);
        assert_eq!(acknowledged, [Token::Done(DONE, CANCELLED, 0)]);
        assert_eq!(client.tokens("set x").await, [Token::Done(DONE, 0, 0)], "{text}");
    }
}

#[tokio::test]
async fn an_attention_behind_a_whole_reply_is_acknowledged_and_cancels_nothing() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    for _ in 0..3 {
        assert_eq!(client.tokens("rows 10").await.len(), 12);
        client.send(ATTENTION, 0, &[]).await;
        assert_eq!(tokens(&client.receive().await), [Token::Done(DONE, CANCELLED, 0)]);
    }
}

#[tokio::test]
async fn a_request_that_was_taken_back_is_not_run() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let reply = client.batch_with(2, "types").await;
    assert_eq!(tokens(&reply), [Token::Done(DONE, 0, 0)]);
    assert_eq!(server.runs(), 0);
}

#[tokio::test]
async fn a_reset_comes_before_the_request_and_is_told() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    for status in [0x08, 0x10] {
        let reply = tokens(&client.batch_with(status, "set x").await);
        assert_eq!(reply, [Token::Change(18), Token::Done(DONE, 0, 0)]);
    }
    let reply = client.batch("resets").await;
    let resets = u64::from_le_bytes(reply[reply.len() - 21..][..8].try_into().unwrap());
    assert_eq!(resets, 101, "one that drops the transaction, one that keeps it");
}

#[tokio::test]
async fn a_request_in_many_packets_is_one_request() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let text = format!("version {}", " ".repeat(20_000));
    assert_eq!(client.tokens(&text).await.len(), 3);
}

#[tokio::test]
async fn a_session_ends_when_its_client_leaves_even_in_a_call() {
    let server = server().await;
    for text in ["wait", "endless", "set x"] {
        let mut client = Client::log_in(&server).await;
        client.send(BATCH, 0, &[HEADERS.to_vec(), units(text)].concat()).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(client);
    }
    let stub = server.stub.clone();
    server.stop().await;
    // A session holds the service; all have let go of it.
    for _ in 0..500 {
        if std::sync::Arc::strong_count(&stub) == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a session has not ended");
}

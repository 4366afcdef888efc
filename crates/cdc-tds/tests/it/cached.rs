//! Replies that are given again.

use std::sync::atomic::Ordering;

use cdc_tds::{Encryption, Settings};

use crate::{
    client::{CALL, Client, HEADERS, tokens, units},
    requests::server,
    stub::Server,
};

#[tokio::test]
async fn the_same_question_gets_the_same_bytes_without_a_run_while_the_data_stays() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let mut other = Client::log_in(&server).await;
    let first = client.batch("rows 3000").await;
    assert_eq!(tokens(&first).len(), 3002);
    assert_eq!(client.batch("rows 3000").await, first);
    assert_eq!(other.batch("rows 3000").await, first);
    assert_eq!(server.runs(), 1);
    server.stub.version.fetch_add(1, Ordering::Relaxed);
    assert_eq!(client.batch("rows 3000").await, first);
    assert_eq!(server.runs(), 2);
}

#[tokio::test]
async fn a_reply_follows_the_data() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let before = client.batch("version").await;
    server.stub.version.fetch_add(1, Ordering::Relaxed);
    assert_ne!(client.batch("version").await, before);
}

#[tokio::test]
async fn another_database_is_another_question() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    client.batch("rows 1").await;
    client.batch("use stock").await;
    client.batch("rows 1").await;
    client.batch("rows 1").await;
    assert_eq!(server.runs(), 3);
}

#[tokio::test]
async fn who_was_told_something_else_before_gets_no_reply_of_another() {
    let server = server().await;
    let (mut plain, mut set, mut alike) = (
        Client::log_in(&server).await,
        Client::log_in(&server).await,
        Client::log_in(&server).await,
    );
    plain.batch("rows 1").await;
    for client in [&mut set, &mut alike] {
        client.batch("set nocount on").await;
    }
    set.batch("rows 1").await;
    assert_eq!(server.runs(), 4, "the reply of the plain session is not for this one");
    alike.batch("rows 1").await;
    assert_eq!(server.runs(), 4, "two that were told the same are alike");
}

#[tokio::test]
async fn what_the_session_does_not_promise_to_repeat_runs_again() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    client.batch("two").await;
    client.batch("two").await;
    assert_eq!(server.runs(), 2);
}

#[tokio::test]
async fn a_call_through_a_handle_runs_again_whatever_the_session_says() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let text = |text: &str| {
        let units = units(text);
        let length = u16::try_from(units.len()).unwrap().to_le_bytes();
        [&[0, 0, 0xE7, 0x40, 0x1F, 9, 4, 0xD0, 0, 0x34][..], &length, &units].concat()
    };
    for (number, runs) in [(12, 2), (10, 3)] {
        for _ in 0..2 {
            let call = [&HEADERS[..], &[0xFF, 0xFF, number, 0, 0, 0], &text("rows 1")].concat();
            client.send(CALL, 0, &call).await;
            client.receive().await;
        }
        assert_eq!(server.runs(), runs);
    }
}

#[tokio::test]
async fn nothing_is_kept_when_nothing_may_be() {
    let off = Settings { reply_cache_bytes_max: 0, ..Settings::default() };
    let small = Settings { reply_cache_bytes_max: 10_000, ..Settings::default() };
    for settings in [off, small] {
        let settings = Settings { encryption: Encryption::Off, ..settings };
        let server = Server::start(settings).await;
        let mut client = Client::log_in(&server).await;
        assert_eq!(client.tokens("rows 2000").await.len(), 2002);
        assert_eq!(client.tokens("rows 2000").await.len(), 2002);
        assert_eq!(server.runs(), 2);
    }
}

//! The server with a session that knows T-SQL.

use std::sync::Arc;

use cdc_core::Timestamp;
use cdc_fake::{FakeServer, VirtualClock, Zone};
use cdc_tds::{Encryption, Settings};
use cdc_tsql::ServerSettings;

use crate::{
    client::{ATTENTION, BATCH, CALL, Client, HEADERS, Token, tokens, units},
    stub::Server,
};

async fn server() -> Server {
    let clock = VirtualClock::manual(Timestamp::from_micros(1_700_000_000_000_000));
    let fake = FakeServer::new(clock, Zone::UTC);
    fake.set_sa_password("P\u{e4}ss1!");
    let _ = fake.database("shop");
    let service = Arc::new(cdc_tsql::Server::new(fake, ServerSettings::default()));
    let settings = Settings { encryption: Encryption::Off, ..Settings::default() };
    Server::start_with(settings, service).await
}

const DONE: u8 = 0xFD;
const MORE: u16 = 1;
const ERROR: u16 = 2;
const COUNT: u16 = 0x10;

#[tokio::test]
async fn statements_are_answered_each_with_its_own_end() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let expected = [
        Token::Columns,
        Token::Row,
        Token::Done(DONE, COUNT | MORE, 1),
        Token::Columns,
        Token::Row,
        Token::Row,
        Token::Done(DONE, COUNT, 2),
    ];
    let reply = client.batch("SELECT 1 AS a; SELECT x FROM (VALUES (N'a'), (NULL)) v (x)").await;
    assert_eq!(tokens(&reply), expected);
}

#[tokio::test]
async fn a_row_has_the_type_and_bytes_of_its_expression() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let reply = client.batch("SELECT CAST(12.5 AS decimal(10, 2)) AS d, N'\u{3b1}' AS n").await;
    let row = [0xD1, 9, 1, 0xE2, 4, 0, 0, 0, 0, 0, 0, 2, 0, 0xB1, 3];
    let whole = reply.windows(row.len()).any(|bytes| bytes == row);
    // numeric(10,2) has nine bytes: one of sign, eight of digits.
    assert!(whole, "{reply:?}");
}

#[tokio::test]
async fn an_error_is_told_with_the_servers_number_and_the_session_goes_on() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    for (text, number) in [("SELECT 1 / 0", 8134), ("SELECT FROM", 156), ("SELECT @x", 137)] {
        let reply = client.tokens(text).await;
        assert!(reply.contains(&Token::Error(number)), "{text}: {reply:?}");
        assert!(matches!(reply.last(), Some(Token::Done(DONE, ERROR, 0))), "{text}: {reply:?}");
    }
    assert_eq!(client.tokens("SELECT 1").await.len(), 3);
}

#[tokio::test]
async fn a_call_with_parameters_gives_its_result_and_status() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let text = |text: &str| {
        let units = units(text);
        let length = u16::try_from(units.len()).unwrap().to_le_bytes();
        [&[0, 0, 0xE7, 0x40, 0x1F, 9, 4, 0xD0, 0, 0x34][..], &length, &units].concat()
    };
    let one = [0, 0, 0x26, 4, 4, 41, 0, 0, 0];
    let call =
        [&HEADERS[..], &[0xFF, 0xFF, 10, 0, 0, 0], &text("SELECT @p + 1"), &text("@p int"), &one];
    client.send(CALL, 0, &call.concat()).await;
    let reply = client.receive().await;
    let expected = [
        Token::Columns,
        Token::Row,
        Token::Done(0xFF, COUNT | MORE, 1),
        Token::Status(0),
        Token::Done(0xFE, 0, 0),
    ];
    assert_eq!(tokens(&reply), expected);
    assert!(reply.windows(5).any(|bytes| bytes == [4, 42, 0, 0, 0]));
}

#[tokio::test]
async fn an_attention_ends_a_statement_that_waits_for_the_clock() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let body = [HEADERS.to_vec(), units("WAITFOR DELAY '01:00:00'")].concat();
    client.send(BATCH, 0, &body).await;
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    client.send(ATTENTION, 0, &[]).await;
    client.receive().await;
    assert_eq!(tokens(&client.receive().await), [Token::Done(DONE, 0x20, 0)]);
    assert_eq!(client.tokens("SELECT 1").await.len(), 3);
}

#[tokio::test]
async fn an_open_transaction_shows_in_no_end_of_a_statement() {
    // The bit for it is the protocol's; no server sets it.
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    client.batch("BEGIN TRAN").await;
    let ends: Vec<_> = client
        .tokens("CREATE TABLE #t (id int); INSERT #t VALUES (1), (2); SELECT id FROM #t")
        .await
        .into_iter()
        .filter(|token| matches!(token, Token::Done(..)))
        .collect();
    let expected = [
        Token::Done(DONE, MORE, 0),
        Token::Done(DONE, COUNT | MORE, 2),
        Token::Done(DONE, COUNT, 2),
    ];
    assert_eq!(ends, expected);
}

#[tokio::test]
async fn the_login_tells_the_version_that_statements_tell() {
    let server = server().await;
    let mut client = Client::connect(&server).await;
    client.send(crate::client::PRELOGIN, 0, &crate::client::prelogin(2)).await;
    let version = cdc_tsql::talk::VERSION;
    let hello = client.receive().await;
    assert!(hello.windows(4).any(|bytes| bytes == version.wire()), "{hello:?}");
    client.send(crate::client::LOGIN, 0, &crate::client::login("sa", "P\u{e4}ss1!", 4096)).await;
    let entered = client.receive().await;
    let told = [units("Microsoft SQL Server"), version.wire().to_vec()].concat();
    assert!(entered.windows(told.len()).any(|bytes| bytes == told), "{entered:?}");
    let reply = client.batch("SELECT @@VERSION").await;
    let text = units(&version.to_string());
    assert!(reply.windows(text.len()).any(|bytes| bytes == text));
}

#[tokio::test]
async fn a_kill_closes_an_idle_connection_and_tells_a_running_one_why() {
    let server = server().await;
    let mut killer = Client::log_in(&server).await;
    let mut idle = Client::log_in(&server).await;
    let mut running = Client::log_in(&server).await;
    // The least free ids, in the order of the logins.
    idle.batch("CREATE TABLE shop.dbo.t (id int); BEGIN TRAN; INSERT shop.dbo.t VALUES (1)").await;
    let body = [HEADERS.to_vec(), units("WAITFOR DELAY '01:00:00'")].concat();
    running.send(BATCH, 0, &body).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    for id in [52, 53] {
        let reply = killer.tokens(&format!("KILL {id}")).await;
        assert_eq!(reply, [Token::Done(DONE, 0, 0)], "{id}");
    }
    let free = "SET LOCK_TIMEOUT 0; SELECT COUNT(*) FROM shop.dbo.t";
    assert!(!killer.tokens(free).await.contains(&Token::Error(1222)));
    assert!(idle.try_receive().await.is_err(), "closed");
    let told = tokens(&running.receive().await);
    assert!(told.contains(&Token::Error(596)), "{told:?}");
    assert!(running.try_receive().await.is_err(), "closed");
}

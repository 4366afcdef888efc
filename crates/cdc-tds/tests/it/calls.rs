//! Calls of procedures.

use crate::{
    client::{CALL, Client, HEADERS, Token, tokens, units},
    requests::server,
};

const PROCEDURE: u8 = 0xFE;
const IN_PROCEDURE: u8 = 0xFF;
const MORE: u16 = 1;
const ERROR: u16 = 2;
const COUNT: u16 = 0x10;

/// A call by number with a statement, no declaration, and further arguments.
fn call(number: u8, statement: &str, others: &[u8]) -> Vec<u8> {
    let text = |text: &str| {
        let units = units(text);
        let length = u16::try_from(units.len()).unwrap().to_le_bytes();
        [&[0, 0, 0xE7, 0x40, 0x1F, 9, 4, 0xD0, 0, 0x34][..], &length, &units].concat()
    };
    [&[0xFF, 0xFF, number, 0, 0, 0][..], &text(statement), &text(""), others].concat()
}

const OUTPUT: [u8; 10] = [1, b'h', 0, 1, 0x26, 4, 0, 0, 0x26, 4];

#[tokio::test]
async fn a_call_tells_results_then_its_status_then_values_then_its_end() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    client.send(CALL, 0, &[&HEADERS[..], &call(10, "version", &[])].concat()).await;
    let expected = [
        Token::Columns,
        Token::Row,
        Token::Done(IN_PROCEDURE, COUNT | MORE, 1),
        Token::Status(0),
        Token::Done(PROCEDURE, 0, 0),
    ];
    assert_eq!(tokens(&client.receive().await), expected);

    let with_output = call(13, "echo", &OUTPUT[..7]);
    client.send(CALL, 0, &[&HEADERS[..], &with_output].concat()).await;
    let expected = [
        Token::Columns,
        Token::Row,
        Token::Done(IN_PROCEDURE, COUNT | MORE, 1),
        Token::Status(0),
        Token::Value(2),
        Token::Done(PROCEDURE, 0, 0),
    ];
    assert_eq!(tokens(&client.receive().await), expected);
}

#[tokio::test]
async fn a_call_with_an_error_ends_with_one() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    client.send(CALL, 0, &[&HEADERS[..], &call(10, "fail", &[])].concat()).await;
    let expected = [
        Token::Error(208),
        Token::Done(IN_PROCEDURE, ERROR | MORE, 0),
        Token::Status(0),
        Token::Done(PROCEDURE, ERROR, 0),
    ];
    assert_eq!(tokens(&client.receive().await), expected);
}

#[tokio::test]
async fn calls_of_one_message_run_one_after_the_other() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    let (one, two) = (call(10, "version", &[]), call(10, "set x", &[]));
    client.send(CALL, 0, &[&HEADERS[..], &one, &[0xFF], &two].concat()).await;
    let expected = [
        Token::Columns,
        Token::Row,
        Token::Done(IN_PROCEDURE, COUNT | MORE, 1),
        Token::Status(0),
        Token::Done(PROCEDURE, MORE, 0),
        Token::Done(IN_PROCEDURE, MORE, 0),
        Token::Status(0),
        Token::Done(PROCEDURE, 0, 0),
    ];
    assert_eq!(tokens(&client.receive().await), expected);
}

#[tokio::test]
async fn an_argument_of_a_type_that_is_not_supported_is_refused_by_name_and_the_session_goes_on() {
    let server = server().await;
    let mut client = Client::log_in(&server).await;
    for kind in [0x62, 0xF0, 0xF3] {
        let body = call(10, "echo", &[0, 0, kind, 0, 0, 0, 0, 0, 0]);
        client.send(CALL, 0, &[&HEADERS[..], &body].concat()).await;
        let reply = tokens(&client.receive().await);
        assert_eq!(reply, [Token::Error(50_000), Token::Done(0xFD, ERROR, 0)]);
    }
    assert_eq!(client.tokens("set x").await, [Token::Done(0xFD, 0, 0)]);
}

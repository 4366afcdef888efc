//! The decoders of what clients send, for fuzz targets. Nothing here is for users.

use cdc_core::SqlType;
use cdc_fake::Value;
use cdc_tsql::kind::{Collation, Typed};

use crate::{
    column::{ColumnFormat, Dialect},
    input::Input,
    login::Login,
    packet::{Assembler, HEADER_BYTES, Header, PacketKind},
    parameter,
    prelogin::PreLogin,
    request,
};

/// Reads `bytes` as what is settled before a login, and as a login record. True when the record
/// was read.
pub fn login(bytes: &[u8]) -> bool {
    let _ = PreLogin::read(bytes);
    Login::read(bytes).is_ok()
}

/// Reads `bytes` as requests of every kind, and gives the arguments of the calls.
pub fn requests(bytes: &[u8]) -> Vec<Typed> {
    let body = request::without_headers(bytes).unwrap_or(bytes);
    let _ = request::batch(body);
    let _ = request::transaction(body);
    let calls = request::calls(body).unwrap_or_default();
    calls.into_iter().flat_map(|call| call.arguments).map(|argument| argument.typed).collect()
}

/// Writes a value as a result does, and reads it as an argument. None when its type is written in
/// another way there.
pub fn written_and_read(typed: &Typed, collation: Collation) -> Option<Typed> {
    if matches!(typed.kind.sql_type, SqlType::Text | SqlType::NText | SqlType::Image) {
        return None;
    }
    let format = ColumnFormat::of(&typed.kind, Dialect { collation, utf8: true }).ok()?;
    let mut bytes = Vec::new();
    format.describe(&mut bytes);
    match &typed.value {
        Value::Null => format.write_null(&mut bytes),
        value => format.write(value, &mut bytes),
    }
    .ok()?;
    parameter::read(&mut Input::new(&bytes)).ok()
}

/// Reads `bytes` as packets, and the messages in them as requests. Gives the most bytes that a
/// message had.
pub fn packets(mut bytes: &[u8], limit: usize) -> usize {
    let mut assembler = Assembler::new(limit);
    let mut longest = 0;
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() {
        let Ok(header) = Header::read(header) else { break };
        let Some((payload, rest)) = rest.split_at_checked(header.payload.into()) else { break };
        bytes = rest;
        match assembler.take(header, payload) {
            Ok(Some(message)) => {
                longest = longest.max(message.body.len());
                match message.kind {
                    PacketKind::PreLogin | PacketKind::Login => drop(login(&message.body)),
                    _ => drop(requests(&message.body)),
                }
            }
            Ok(None) => {}
            Err(_) => break,
        }
    }
    longest
}

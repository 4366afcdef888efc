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

/// Reads `bytes` as requests of every kind. True when every argument of a call that can be written
/// as a result can, and reads back as it was.
pub fn requests(bytes: &[u8]) -> bool {
    let body = request::without_headers(bytes).unwrap_or(bytes);
    let _ = request::batch(body);
    let _ = request::transaction(body);
    let calls = request::calls(body).unwrap_or_default();
    let arguments = calls.into_iter().flat_map(|call| call.arguments);
    arguments.map(|argument| argument.typed).all(|typed| comes_back(&typed).unwrap_or(true))
}

/// A collation that has a place for every text.
const UNICODE: Collation = Collation {
    name: "Latin1_General_100_CI_AS_SC_UTF8",
    lcid: 0x0409,
    flags: 0x4D,
    sort_id: 0,
    code_page: 65001,
    ignores_case: true,
    ignores_accents: false,
    binary: false,
};

/// Writes a value as a result does, and reads it as an argument. None when its type is written in
/// another way there, or has no room for the text in UTF-8.
fn comes_back(typed: &Typed) -> Option<bool> {
    if matches!(typed.kind.sql_type, SqlType::Text | SqlType::NText | SqlType::Image) {
        return None;
    }
    let dialect = Dialect { collation: UNICODE, utf8: true };
    let format = ColumnFormat::of(&typed.kind, dialect).ok()?;
    let mut bytes = Vec::new();
    format.describe(&mut bytes);
    match &typed.value {
        Value::Null => format.write_null(&mut bytes),
        value => format.write(value, &mut bytes),
    }
    .ok()?;
    Some(parameter::read(&mut Input::new(&bytes)).as_ref() == Ok(typed))
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
                    PacketKind::PreLogin | PacketKind::Login => _ = login(&message.body),
                    _ => _ = requests(&message.body),
                }
            }
            Ok(None) => {}
            Err(_) => break,
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_argument_that_is_read_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            for kind in [0x26, 0x28, 0x29, 0x2A, 0x2B, 0x6A, 0x6D, 0x6E, 0x6F, 0xA7, 0xAF, 0xE7, 0xA5] {
                let call = [&[0xFF, 0xFF, 10, 0, 0, 0, 0, 0, kind][..], &bytes].concat();
                prop_assert!(super::requests(&call));
            }
        }
    }
}

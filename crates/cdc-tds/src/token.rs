//! The server's tokens, but for results: messages, changes of the session, ends of statements.

use cdc_tsql::{
    kind::{Collation, Typed},
    talk::{Change, Message, StatementKind},
};

use crate::{
    cell::{Misfit, utf16},
    column::{ColumnFormat, Dialect},
    fault::Read,
    login::Version,
};

pub(crate) const COLUMNS: u8 = 0x81;
pub(crate) const ROW: u8 = 0xD1;
pub(crate) const ROW_WITH_BITMAP: u8 = 0xD2;
const RETURN_STATUS: u8 = 0x79;
const ERROR: u8 = 0xAA;
const INFO: u8 = 0xAB;
const RETURN_VALUE: u8 = 0xAC;
const LOGIN_ACK: u8 = 0xAD;
const FEATURE_ACK: u8 = 0xAE;
const CHANGE: u8 = 0xE3;

/// The numbers of what may change.
mod change {
    pub(super) const DATABASE: u8 = 1;
    pub(super) const LANGUAGE: u8 = 2;
    pub(super) const PACKET_SIZE: u8 = 4;
    pub(super) const COLLATION: u8 = 7;
    pub(super) const BEGAN: u8 = 8;
    pub(super) const COMMITTED: u8 = 9;
    pub(super) const ROLLED_BACK: u8 = 10;
    pub(super) const RESET: u8 = 18;
}

/// Which of the three tokens ends a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A statement of a batch.
    Statement = 0xFD,
    /// A call.
    Procedure = 0xFE,
    /// A statement inside of a procedure.
    InProcedure = 0xFF,
}

/// The bits of a statement's end. The protocol has another, 4, for a transaction that is open;
/// no server sets it.
pub(crate) mod done {
    pub(crate) const MORE: u16 = 0x01;
    pub(crate) const ERROR: u16 = 0x02;
    pub(crate) const COUNT: u16 = 0x10;
    pub(crate) const ATTENTION: u16 = 0x20;
}

/// UTF-16 units of a message; longer ones are cut, so that a token's length fits its two bytes.
const MESSAGE_UNITS_MAX: usize = 8_000;
/// UTF-16 units of a name.
const NAME_UNITS_MAX: usize = 255;

/// Appends a text with its length in a byte.
pub(crate) fn short_text(text: &str, out: &mut Vec<u8>) {
    let at = out.len();
    out.push(0);
    let bytes = utf16(cut(text, NAME_UNITS_MAX), out);
    if let Some(place) = out.get_mut(at) {
        *place = u8::try_from(bytes / 2).unwrap_or(u8::MAX);
    }
}

/// As much of a text as `units` UTF-16 units hold.
fn cut(text: &str, units: usize) -> &str {
    if text.len() <= units {
        return text;
    }
    let mut left = units;
    for (at, character) in text.char_indices() {
        match left.checked_sub(character.len_utf16()) {
            Some(rest) => left = rest,
            None => return text.get(..at).unwrap_or_default(),
        }
    }
    text
}

/// Appends a token whose length stands in two bytes behind its number.
fn sized(number: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(number);
    let at = out.len();
    out.extend_from_slice(&[0; 2]);
    write(out);
    let length = out.len().saturating_sub(at).saturating_sub(2);
    let length = u16::try_from(length).unwrap_or(u16::MAX);
    if let Some(place) = out.get_mut(at..at.saturating_add(2)) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends an error or an information.
pub(crate) fn message(message: &Message, server: &str, out: &mut Vec<u8>) {
    let number = if message.class > 10 { ERROR } else { INFO };
    sized(number, out, |out| {
        out.extend_from_slice(&message.number.to_le_bytes());
        out.extend_from_slice(&[message.state, message.class]);
        let at = out.len();
        out.extend_from_slice(&[0; 2]);
        let bytes = utf16(cut(&message.text, MESSAGE_UNITS_MAX), out);
        let units = u16::try_from(bytes / 2).unwrap_or(u16::MAX);
        if let Some(place) = out.get_mut(at..at.saturating_add(2)) {
            place.copy_from_slice(&units.to_le_bytes());
        }
        short_text(server, out);
        short_text(&message.procedure, out);
        out.extend_from_slice(&message.line.to_le_bytes());
    });
}

/// Appends a change of the session.
pub(crate) fn changed(change: &Change, out: &mut Vec<u8>) {
    let texts = |number, new: &str, old: &str, out: &mut Vec<u8>| {
        sized(CHANGE, out, |out| {
            out.push(number);
            short_text(new, out);
            short_text(old, out);
        });
    };
    let bytes = |number, new: &[u8], old: &[u8], out: &mut Vec<u8>| {
        sized(CHANGE, out, |out| {
            out.push(number);
            for bytes in [new, old] {
                out.push(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
                out.extend_from_slice(bytes);
            }
        });
    };
    match change {
        Change::Database(new, old) => texts(change::DATABASE, new, old, out),
        Change::Language(new, old) => texts(change::LANGUAGE, new, old, out),
        Change::Collation(new) => bytes(change::COLLATION, &new.wire(), &[], out),
        Change::TransactionBegan(id) => bytes(change::BEGAN, &id.to_le_bytes(), &[], out),
        Change::TransactionCommitted(id) => {
            bytes(change::COMMITTED, &[], &id.to_le_bytes(), out);
        }
        Change::TransactionRolledBack(id) => {
            bytes(change::ROLLED_BACK, &[], &id.to_le_bytes(), out);
        }
        Change::Reset => bytes(change::RESET, &[], &[], out),
    }
}

/// Appends the packet size that the login has agreed on.
pub(crate) fn packet_size(new: u16, old: u16, out: &mut Vec<u8>) {
    sized(CHANGE, out, |out| {
        out.push(change::PACKET_SIZE);
        short_text(&new.to_string(), out);
        short_text(&old.to_string(), out);
    });
}

/// Appends the collation of the database that the login has opened.
pub(crate) fn collation(collation: Collation, out: &mut Vec<u8>) {
    changed(&Change::Collation(collation), out);
}

/// Appends that the login has succeeded.
pub(crate) fn login_ack(protocol: Version, server: [u8; 4], out: &mut Vec<u8>) {
    sized(LOGIN_ACK, out, |out| {
        out.push(1);
        out.extend_from_slice(&protocol.number().to_be_bytes());
        short_text("Microsoft SQL Server", out);
        out.extend_from_slice(&server);
    });
}

/// Appends what the server grants of what a login asked for: to come in by an access token, and to
/// be written UTF-8.
pub(crate) fn features_ack(federated: bool, utf8: bool, out: &mut Vec<u8>) {
    out.push(FEATURE_ACK);
    if federated {
        out.extend_from_slice(&[0x02, 0, 0, 0, 0]);
    }
    if utf8 {
        out.extend_from_slice(&[0x0A, 1, 0, 0, 0, 1]);
    }
    out.push(0xFF);
}

/// Appends a procedure's return status.
pub(crate) fn return_status(status: i32, out: &mut Vec<u8>) {
    out.push(RETURN_STATUS);
    out.extend_from_slice(&status.to_le_bytes());
}

/// Appends an output argument's value.
pub(crate) fn return_value(
    place: u16,
    name: &str,
    typed: &Typed,
    dialect: Dialect,
    out: &mut Vec<u8>,
) -> Read<Result<(), Misfit>> {
    let mut kind = typed.kind.clone();
    kind.nullable = true;
    let format = ColumnFormat::of(&kind, dialect)?;
    let start = out.len();
    out.push(RETURN_VALUE);
    out.extend_from_slice(&place.to_le_bytes());
    short_text(name, out);
    out.push(1);
    out.extend_from_slice(&format.user_type().to_le_bytes());
    out.extend_from_slice(&1_u16.to_le_bytes());
    format.describe(out);
    let written = match &typed.value {
        cdc_fake::Value::Null => format.write_null(out),
        value => format.write(value, out),
    };
    if written.is_err() {
        out.truncate(start);
    }
    Ok(written)
}

/// Appends the end of a statement.
pub(crate) fn end(
    end: End,
    status: u16,
    statement: StatementKind,
    rows: Option<u64>,
    out: &mut Vec<u8>,
) {
    let count = if rows.is_some() { done::COUNT } else { 0 };
    out.push(end as u8);
    out.extend_from_slice(&(status | count).to_le_bytes());
    out.extend_from_slice(&(statement as u16).to_le_bytes());
    out.extend_from_slice(&rows.unwrap_or(0).to_le_bytes());
}

#[cfg(test)]
mod tests;

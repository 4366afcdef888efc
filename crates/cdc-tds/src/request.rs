//! What a client asks for once it is in: batches, calls, transactions.

use cdc_tsql::{
    relation::ObjectName,
    talk::{Argument, KnownProcedure, Procedure, TransactionRequest},
};

use crate::{
    fault::{Fault, Read},
    input::{Input, utf16},
    parameter,
};

/// Arguments of one call that are read at all. The server's own limit is 2,100, which the session
/// tells with an error that leaves the connection as it is.
const ARGUMENTS_MAX: usize = 8_192;
/// Stands for a procedure's number in place of the length of its name.
const BY_NUMBER: u16 = 0xFFFF;
/// Between the calls of one message.
const NEXT_CALL: u8 = 0xFF;
/// The same, and the call in front is not to run.
const NEXT_CALL_UNRUN: u8 = 0xFE;

/// A call of a procedure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProcedureCall {
    /// Which.
    pub(crate) procedure: Procedure,
    /// With what.
    pub(crate) arguments: Vec<Argument>,
}

/// Takes the headers in front of a request away. What they say (the transaction that the client
/// believes in, a trace) binds nobody.
pub(crate) fn without_headers(body: &[u8]) -> Read<&[u8]> {
    let mut input = Input::new(body);
    let total = input.length()?;
    let headers = total.checked_sub(4).ok_or(Fault::Malformed("the headers have no length"))?;
    let mut headers = Input::new(input.bytes(headers)?);
    while !headers.is_empty() {
        let length = headers.length()?;
        let data = length
            .checked_sub(4)
            .filter(|data| *data >= 2)
            .ok_or(Fault::Malformed("a header is shorter than its type"))?;
        headers.bytes(data)?;
    }
    Ok(input.rest())
}

/// The text of a batch, without its headers.
pub(crate) fn batch(body: &[u8]) -> Read<String> {
    utf16(body)
}

/// The calls of a message, without its headers.
pub(crate) fn calls(body: &[u8]) -> Read<Vec<ProcedureCall>> {
    let mut input = Input::new(body);
    let mut calls = Vec::new();
    loop {
        let procedure = procedure(&mut input)?;
        // How to prepare, and whether to leave the columns' description out: this server always
        // sends it, which every client reads.
        input.u16()?;
        let mut arguments = Vec::new();
        let end = loop {
            match input.peek() {
                None => break None,
                Some(end @ (NEXT_CALL | NEXT_CALL_UNRUN)) => {
                    input.u8()?;
                    break Some(end);
                }
                Some(_) => arguments.push(argument(&mut input)?),
            }
            if arguments.len() > ARGUMENTS_MAX {
                return Err(Fault::Malformed("a call has more than 8192 arguments"));
            }
        };
        if end != Some(NEXT_CALL_UNRUN) {
            calls.push(ProcedureCall { procedure, arguments });
        }
        if input.is_empty() {
            return Ok(calls);
        }
    }
}

fn procedure(input: &mut Input<'_>) -> Read<Procedure> {
    let units = input.u16()?;
    if units == BY_NUMBER {
        let number = input.u16()?;
        return known(number)
            .map(Procedure::Known)
            .ok_or(Fault::Malformed("a procedure has a number that there is not"));
    }
    object_name(&input.text(usize::from(units))?).map(Procedure::Named)
}

const fn known(number: u16) -> Option<KnownProcedure> {
    use KnownProcedure as P;
    Some(match number {
        1 => P::Cursor,
        2 => P::CursorOpen,
        3 => P::CursorPrepare,
        4 => P::CursorExecute,
        5 => P::CursorPrepExec,
        6 => P::CursorUnprepare,
        7 => P::CursorFetch,
        8 => P::CursorOption,
        9 => P::CursorClose,
        10 => P::ExecuteSql,
        11 => P::Prepare,
        12 => P::Execute,
        13 => P::PrepExec,
        14 => P::PrepExecRpc,
        15 => P::Unprepare,
        _ => return None,
    })
}

fn argument(input: &mut Input<'_>) -> Read<Argument> {
    const BY_REFERENCE: u8 = 1;
    const DEFAULT: u8 = 2;
    const ENCRYPTED: u8 = 8;
    let name = input.short_text()?;
    let status = input.u8()?;
    if status & ENCRYPTED != 0 {
        return Err(Fault::Unsupported("an encrypted argument".into()));
    }
    let name = match name.as_str() {
        "" => None,
        // Some clients leave the mark of a variable out.
        text if text.starts_with('@') => Some(name),
        text => Some(format!("@{text}")),
    };
    Ok(Argument {
        name,
        typed: parameter::read(input)?,
        output: status & BY_REFERENCE != 0,
        default: status & DEFAULT != 0,
    })
}

/// A name of up to three parts, each plain, in brackets or in double quotes.
pub(crate) fn object_name(text: &str) -> Read<ObjectName> {
    let wrong =
        || Fault::Unsupported("a procedure by a name that is not one to three parts".into());
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, behind) = name_part(rest).ok_or_else(wrong)?;
        parts.push(part);
        match behind.strip_prefix('.') {
            Some(more) => rest = more.trim_start(),
            None if behind.is_empty() => break,
            None => return Err(wrong()),
        }
    }
    let mut parts = parts.into_iter().rev();
    let name = parts.next().filter(|name| !name.is_empty()).ok_or_else(wrong)?;
    let mut part = || parts.next().filter(|part| !part.is_empty());
    let (schema, database) = (part(), part());
    match parts.next() {
        None => Ok(ObjectName { database, schema, name }),
        Some(_) => Err(wrong()),
    }
}

/// The first part of a name and what stands behind it.
fn name_part(text: &str) -> Option<(String, &str)> {
    let close = match text.chars().next() {
        Some('[') => ']',
        Some('"') => '"',
        _ => {
            let end = text.find('.').unwrap_or(text.len());
            let (part, rest) = text.split_at_checked(end)?;
            return Some((part.trim().to_owned(), rest));
        }
    };
    let mut part = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character != close {
            part.push(character);
        } else if characters.next_if(|(_, next)| *next == close).is_some() {
            part.push(close);
        } else {
            let rest = text.get(at.saturating_add(1)..)?;
            return Some((part, rest.trim_start()));
        }
    }
    None
}

/// A request of the transaction manager, without its headers.
pub(crate) fn transaction(body: &[u8]) -> Read<TransactionRequest> {
    const BEGIN: u16 = 5;
    const COMMIT: u16 = 7;
    const ROLLBACK: u16 = 8;
    const SAVE: u16 = 9;
    let mut input = Input::new(body);
    let number = input.u16()?;
    let request = match number {
        BEGIN => {
            let isolation = isolation(&mut input)?;
            TransactionRequest::Begin { isolation, name: byte_text(&mut input)? }
        }
        COMMIT => {
            let name = byte_text(&mut input)?;
            TransactionRequest::Commit { name, begin: begins_another(&mut input)? }
        }
        ROLLBACK => {
            let name = byte_text(&mut input)?;
            TransactionRequest::Rollback { name, begin: begins_another(&mut input)? }
        }
        SAVE => TransactionRequest::Save { name: byte_text(&mut input)? },
        0 | 1 | 6 => return Err(Fault::Unsupported("a distributed transaction".into())),
        _ => return Err(Fault::Malformed("a transaction request is of no known kind")),
    };
    Ok(request)
}

fn isolation(input: &mut Input<'_>) -> Read<Option<u8>> {
    match input.u8()? {
        0 => Ok(None),
        level @ 1..=5 => Ok(Some(level)),
        _ => Err(Fault::Malformed("there is no such isolation level")),
    }
}

/// Whether another transaction is to begin; its isolation and name are the session's own.
fn begins_another(input: &mut Input<'_>) -> Read<bool> {
    if input.is_empty() {
        return Ok(false);
    }
    let begins = input.u8()? & 1 != 0;
    if begins && !input.is_empty() {
        isolation(input)?;
        byte_text(input)?;
    }
    Ok(begins)
}

/// A text whose length byte counts bytes.
fn byte_text(input: &mut Input<'_>) -> Read<String> {
    let bytes = input.u8()?;
    utf16(input.bytes(usize::from(bytes))?)
}

#[cfg(test)]
mod tests;

//! The bytes of single values, by the form they have on the wire.

use crate::{charset::Charset, type_id as id};

/// Why a value cannot be written: the statement gave what its column does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misfit(pub(crate) &'static str);

pub(crate) const OTHER_TYPE: Misfit = Misfit("a value of another type");
pub(crate) const OUT_OF_RANGE: Misfit = Misfit("a value that its type does not hold");
pub(crate) const TOO_LONG: Misfit = Misfit("a value longer than its type");
pub(crate) const UNEXPECTED_NULL: Misfit = Misfit("a null where it declared there is none");

#[inline]
pub(crate) fn decimal(
    digits: i128,
    bytes: u8,
    limit: u128,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    let magnitude = digits.unsigned_abs();
    if magnitude >= limit {
        return Err(OUT_OF_RANGE);
    }
    out.extend_from_slice(&[bytes, u8::from(digits >= 0)]);
    let digits = magnitude.to_le_bytes();
    let used = usize::from(bytes.saturating_sub(1));
    out.extend_from_slice(digits.get(..used).unwrap_or(&digits));
    Ok(())
}

pub(crate) fn datetime(ticks: i64) -> Result<[u8; 8], Misfit> {
    let days = i32::try_from(ticks.div_euclid(id::DATETIME_TICKS_A_DAY));
    let time = u32::try_from(ticks.rem_euclid(id::DATETIME_TICKS_A_DAY));
    let ([a, b, c, d], [e, f, g, h]) = (
        days.map_err(|_| OUT_OF_RANGE)?.to_le_bytes(),
        time.map_err(|_| OUT_OF_RANGE)?.to_le_bytes(),
    );
    Ok([a, b, c, d, e, f, g, h])
}

pub(crate) fn small_datetime(ticks: i64) -> Result<[u8; 4], Misfit> {
    let days = ticks.div_euclid(id::TICKS_A_DAY).saturating_add(id::DAYS_1900_TO_1970.into());
    let minutes = ticks.rem_euclid(id::TICKS_A_DAY) / 600_000_000;
    let ([a, b], [c, d]) = (
        u16::try_from(days).map_err(|_| OUT_OF_RANGE)?.to_le_bytes(),
        u16::try_from(minutes).map_err(|_| OUT_OF_RANGE)?.to_le_bytes(),
    );
    Ok([a, b, c, d])
}

#[inline]
pub(crate) fn wide(text: &str, limit: u16, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let at = out.len();
    out.extend_from_slice(&[0; 2]);
    let length = u16::try_from(utf16(text, out)).map_err(|_| TOO_LONG)?;
    if length > limit {
        return Err(TOO_LONG);
    }
    patch(out, at, &length.to_le_bytes());
    Ok(())
}

#[inline]
pub(crate) fn narrow(
    text: &str,
    charset: Charset,
    limit: u16,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    let at = out.len();
    out.extend_from_slice(&[0; 2]);
    charset.encode(text, out);
    let length = out.len().saturating_sub(at).saturating_sub(2);
    let length = u16::try_from(length).map_err(|_| TOO_LONG)?;
    if length > limit {
        return Err(TOO_LONG);
    }
    patch(out, at, &length.to_le_bytes());
    Ok(())
}

/// Appends UTF-16 and says how many bytes it is.
#[inline]
pub(crate) fn utf16(text: &str, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    if text.is_ascii() {
        let bytes = text.len().saturating_mul(2);
        out.resize(start.saturating_add(bytes), 0);
        let (pairs, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<2>();
        for ([low, _], byte) in pairs.iter_mut().zip(text.bytes()) {
            *low = byte;
        }
        return bytes;
    }
    for unit in text.encode_utf16() {
        out.extend_from_slice(&unit.to_le_bytes());
    }
    out.len().saturating_sub(start)
}

fn patch(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at.saturating_add(bytes.len())) {
        place.copy_from_slice(bytes);
    }
}

/// Days since 1970-01-01 as three bytes of days since 0001-01-01.
pub(crate) fn date(days: i64, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let days = days.saturating_add(id::DAYS_TO_1970.into());
    let days = u32::try_from(days).ok().filter(|days| i64::from(*days) <= id::LAST_DAY.into());
    let [a, b, c, _] = days.ok_or(OUT_OF_RANGE)?.to_le_bytes();
    out.extend_from_slice(&[a, b, c]);
    Ok(())
}

pub(crate) fn time(ticks: i64, bytes: u8, step: i64, out: &mut Vec<u8>) -> Result<(), Misfit> {
    if !(0..id::TICKS_A_DAY).contains(&ticks) {
        return Err(OUT_OF_RANGE);
    }
    let steps = ticks.checked_div(step).unwrap_or(ticks).to_le_bytes();
    out.extend_from_slice(steps.get(..usize::from(bytes)).unwrap_or(&steps));
    Ok(())
}

pub(crate) fn moment(ticks: i64, bytes: u8, step: i64, out: &mut Vec<u8>) -> Result<(), Misfit> {
    time(ticks.rem_euclid(id::TICKS_A_DAY), bytes, step, out)?;
    date(ticks.div_euclid(id::TICKS_A_DAY), out)
}

/// A `(max)` value in one chunk, its total length in front.
pub(crate) fn chunked(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Misfit> {
    let at = out.len();
    out.extend_from_slice(&[0; 12]);
    write(out);
    let length = out.len().saturating_sub(at).saturating_sub(12);
    let chunk = u32::try_from(length).map_err(|_| TOO_LONG)?;
    if chunk == 0 {
        // The end follows the total at once.
        return Ok(());
    }
    patch(out, at, &u64::from(chunk).to_le_bytes());
    patch(out, at.saturating_add(8), &chunk.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    Ok(())
}

/// A value of the old large types, behind a pointer to its place and a timestamp, neither of which
/// means anything here.
pub(crate) fn long(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Misfit> {
    out.push(16);
    out.extend_from_slice(b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01");
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = out.len().saturating_sub(at).saturating_sub(4);
    let length = u32::try_from(length).map_err(|_| TOO_LONG)?;
    patch(out, at, &length.to_le_bytes());
    Ok(())
}

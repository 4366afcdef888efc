//! Log positions as text and as bytes.

use cdc_core::{ClosedRange, Epoch, ErrorKind, Lsn, LsnError, Position};

/// Runs one input: as text, as bytes, and as two positions.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        of_text(text);
    }
    of_bytes(data);
    pair(data);
}

/// Text is an LSN exactly when it is 1 to 20 hex digits behind an optional `0x`, and then the one
/// whose canonical text ends in these digits. What is refused is refused for its own reason.
fn of_text(text: &str) {
    let trimmed = text.trim();
    let digits = ["0x", "0X"].iter().find_map(|p| trimmed.strip_prefix(p)).unwrap_or(trimmed);
    let count = digits.chars().count();
    match text.parse::<Lsn>() {
        Ok(lsn) => {
            let canonical = format!("0x{:0>20}", digits.to_ascii_uppercase());
            assert_eq!(lsn.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(lsn));
            assert_eq!(canonical.to_lowercase().parse(), Ok(lsn));
        }
        Err(LsnError::Empty) => assert_eq!(count, 0),
        Err(LsnError::TooLong(found)) => assert!(found == count && count > 20),
        Err(LsnError::NotHex(at)) => {
            let strange = digits.chars().nth(at - 1).unwrap();
            assert!(!strange.is_ascii_hexdigit(), "{strange:?}");
        }
        Err(error) => panic!("{error}"),
    }
}

fn of_bytes(data: &[u8]) {
    match Lsn::try_from(data) {
        Ok(lsn) => {
            assert_eq!(lsn.as_bytes().as_slice(), data);
            assert_eq!(Lsn::from_u128(lsn.to_u128()), Some(lsn));
            let position = Position::from(lsn);
            assert_eq!(Lsn::try_from(position).unwrap(), lsn);
            assert_eq!(position.to_string(), lsn.to_string());
            assert_eq!(position.increment(), Position::from(lsn.increment()));
            assert_eq!(position.decrement(), Position::from(lsn.decrement()));
        }
        Err(error) => assert_eq!(error, LsnError::Width(data.len())),
    }
    match Position::new(Epoch(7), data) {
        Ok(position) => {
            assert_eq!(position.as_bytes(), data);
            steps(position);
            if data.len() != Lsn::WIDTH {
                let error = Lsn::try_from(position).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidData);
            }
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            assert!(data.is_empty() || data.len() > Position::WIDTH_MAX);
        }
    }
}

/// A step goes one place on and comes back, except at the ends, which stay.
fn steps(position: Position) {
    let (up, down) = (position.increment(), position.decrement());
    if position.as_bytes().iter().all(|byte| *byte == 0xff) {
        assert_eq!(up, position);
    } else {
        assert!(up > position && up.decrement() == position);
    }
    if position.as_bytes().iter().all(|byte| *byte == 0) {
        assert_eq!(down, position);
    } else {
        assert!(down < position && down.increment() == position);
    }
    for step in [up, down] {
        assert_eq!((step.as_bytes().len(), step.epoch()), (position.as_bytes().len(), Epoch(7)));
    }
}

/// Two positions of one width are ordered as their bytes, below the order of their epochs, and the
/// ranges between them hold what they say.
fn pair(data: &[u8]) {
    let Some((epochs, bytes)) = data.split_first() else {
        return;
    };
    let (low, high) = bytes.split_at(bytes.len() / 2);
    let high = &high[..low.len()];
    let epoch = |part: u8| Epoch(u32::from(part % 2));
    let made = |part: u8, bytes: &[u8]| Position::new(epoch(part), bytes);
    let (Ok(a), Ok(b)) = (made(*epochs, low), made(*epochs / 2, high)) else {
        return;
    };
    assert_eq!(a.cmp(&b), (a.epoch(), low).cmp(&(b.epoch(), high)));
    match ClosedRange::new(a, b) {
        Some(range) => assert!(range.contains(a) && range.contains(b) && a.epoch() == b.epoch()),
        None => assert!(a > b || a.epoch() != b.epoch()),
    }
    match ClosedRange::after(a, b) {
        Some(range) => assert!(!range.contains(a) && range.contains(b)),
        None => assert!(a >= b || a.epoch() != b.epoch()),
    }
}

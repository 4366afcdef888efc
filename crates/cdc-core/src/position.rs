//! A place in a source's log as the engine sees it: ordered bytes behind a lineage epoch. Below it,
//! what the logs of each kind of server call a place.

pub mod binlog;
pub mod gtid;
pub mod guard;
mod interval;
pub mod mariadb;
pub mod sqlserver;

use std::fmt;

use crate::{
    error::{Error, ErrorKind, Result},
    lsn::Lsn,
    planted::{self, Planted},
};

/// Counts the logs a copy was filled from: a restore, a failover to another log or a reset
/// starts a new lineage. Positions of different epochs never compare as places of one log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The epoch of the next lineage; none after the last number.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A place in a source's log: fixed-width bytes of at most [`Position::WIDTH_MAX`], whose byte
/// order is the log's order, behind the epoch of the log they belong to.
///
/// The engine compares, stores and prints positions and knows their immediate neighbours; only a
/// source knows what they mean.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    // The order of the fields is the order of positions.
    epoch: Epoch,
    bytes: [u8; Position::WIDTH_MAX],
    width: u8,
}

impl Position {
    /// The widest position, in bytes.
    pub const WIDTH_MAX: usize = 24;

    /// A position from its bytes.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] when `bytes` is empty or wider than [`Position::WIDTH_MAX`].
    pub fn new(epoch: Epoch, bytes: &[u8]) -> Result<Self> {
        let mut own = [0; Self::WIDTH_MAX];
        let width = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
        match own.get_mut(..bytes.len()) {
            Some(place) if !bytes.is_empty() => place.copy_from_slice(bytes),
            _ => {
                return Err(Error::new(ErrorKind::InvalidData, "a position has 1 to 24 bytes")
                    .with("bytes", bytes.len()));
            }
        }
        Ok(Self { epoch, bytes: own, width })
    }

    /// The bytes, most significant first.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.width)).unwrap_or(&self.bytes)
    }

    /// The epoch of the log the position belongs to.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The same place counted in another epoch.
    #[must_use]
    pub const fn in_epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = epoch;
        self
    }

    /// The immediate successor among positions of the same width; the greatest stays.
    #[must_use]
    pub fn increment(self) -> Self {
        self.step(|byte| byte.overflowing_add(1), 0xff)
    }

    /// The immediate predecessor among positions of the same width; the least stays.
    #[must_use]
    pub fn decrement(self) -> Self {
        self.step(|byte| byte.overflowing_sub(1), 0x00)
    }

    fn step(mut self, one: impl Fn(u8) -> (u8, bool), end: u8) -> Self {
        if self.as_bytes().iter().all(|byte| *byte == end) {
            return self;
        }
        for byte in self.bytes.iter_mut().take(usize::from(self.width)).rev() {
            let (next, carry) = one(*byte);
            *byte = next;
            if !carry {
                break;
            }
        }
        self
    }
}

impl fmt::Display for Position {
    /// `0x` and upper-case hex digits: for SQL Server, the canonical LSN.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{self}", self.epoch)
    }
}

impl From<Lsn> for Position {
    /// The LSN in the first epoch.
    fn from(lsn: Lsn) -> Self {
        let mut bytes = [0; Self::WIDTH_MAX];
        for (byte, own) in bytes.iter_mut().zip(lsn.as_bytes()) {
            *byte = *own;
        }
        #[allow(clippy::cast_possible_truncation, reason = "Lsn::WIDTH is 10")]
        Self { epoch: Epoch::default(), bytes, width: Lsn::WIDTH as u8 }
    }
}

impl TryFrom<Position> for Lsn {
    type Error = Error;

    fn try_from(position: Position) -> Result<Self> {
        Self::try_from(position.as_bytes()).map_err(|error| {
            Error::new(ErrorKind::InvalidData, "position is no LSN of SQL Server").caused_by(error)
        })
    }
}

/// A range of positions that holds both its ends. It is never empty and never inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClosedRange {
    from: Position,
    to: Position,
}

impl ClosedRange {
    /// The range `[from, to]`, or nothing when it would hold no position or join two epochs.
    #[must_use]
    pub fn new(from: Position, to: Position) -> Option<Self> {
        (from <= to && from.epoch() == to.epoch()).then_some(Self { from, to })
    }

    /// The range of everything after `after` up to and with `to`.
    #[must_use]
    pub fn after(after: Position, to: Position) -> Option<Self> {
        // At the end of all positions the successor is the position itself.
        if after >= to {
            return None;
        }
        let from = after.increment();
        if planted::is(Planted::LowBoundPlusTwo) {
            return Self::new(from.increment(), to);
        }
        if planted::is(Planted::LowBoundInclusive) {
            return Self::new(after, to);
        }
        Self::new(from, to)
    }

    /// The first position of the range.
    #[must_use]
    pub const fn from(&self) -> Position {
        self.from
    }

    /// The last position of the range.
    #[must_use]
    pub const fn to(&self) -> Position {
        self.to
    }

    /// True when `position` lies in the range.
    #[must_use]
    pub fn contains(&self, position: Position) -> bool {
        self.from <= position && position <= self.to
    }
}

impl fmt::Display for ClosedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(number: u128) -> Position {
        Lsn::from_u128(number).expect("below 2^80").into()
    }

    #[test]
    fn a_range_is_never_empty_inverted_or_across_epochs() {
        assert_eq!(ClosedRange::new(at(2), at(1)), None);
        assert_eq!(ClosedRange::after(at(2), at(2)), None);
        assert_eq!(ClosedRange::new(at(2), at(3).in_epoch(Epoch(1))), None);
        let end = Position::from(Lsn::MAX);
        assert_eq!(ClosedRange::after(end, end), None);
        let one = ClosedRange::after(at(2), at(3)).expect("holds 3");
        assert_eq!((one.from(), one.to()), (at(3), at(3)));
        assert!(one.contains(at(3)) && !one.contains(at(2)) && !one.contains(at(4)));
    }

    #[test]
    fn a_position_keeps_its_width_and_refuses_others() {
        assert!(Position::new(Epoch(0), &[]).is_err());
        assert!(Position::new(Epoch(0), &[0; 25]).is_err());
        let wide = Position::new(Epoch(2), &[7; 24]).expect("24 bytes");
        assert_eq!(wide.as_bytes(), [7; 24]);
        assert!(Lsn::try_from(wide).is_err());
    }

    proptest! {
        #[test]
        fn an_lsn_round_trips_and_steps_alike(bytes: [u8; 10]) {
            let lsn = Lsn::new(bytes);
            let position = Position::from(lsn);
            prop_assert_eq!(Lsn::try_from(position).expect("ten bytes"), lsn);
            prop_assert_eq!(position.to_string(), lsn.to_string());
            prop_assert_eq!(position.increment(), Position::from(lsn.increment()));
            prop_assert_eq!(position.decrement(), Position::from(lsn.decrement()));
        }

        #[test]
        fn a_later_epoch_is_always_greater(a: [u8; 10], b: [u8; 10], e in 0u32..9, f in 0u32..9) {
            let a = Position::from(Lsn::new(a)).in_epoch(Epoch(e));
            let b = Position::from(Lsn::new(b)).in_epoch(Epoch(f));
            if e != f {
                prop_assert_eq!(a < b, e < f);
            } else {
                prop_assert_eq!(a.cmp(&b), a.as_bytes().cmp(b.as_bytes()));
            }
        }

        #[test]
        fn after_holds_everything_behind_a_mark_and_not_the_mark(
            a in 0u128..1000, b in 0u128..1000, probe in 0u128..1000,
        ) {
            let held = ClosedRange::after(at(a), at(b)).is_some_and(|r| r.contains(at(probe)));
            prop_assert_eq!(held, a < probe && probe <= b);
        }
    }
}

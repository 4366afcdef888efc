//! The retention guard: a purged range reads as empty, so every range is compared with the low
//! position before it is read and again after.

use crate::{
    error::{Error, ErrorKind, Result},
    planted::{self, Planted},
    port::Bound,
    position::{ClosedRange, Position},
    table::CaptureInstance,
};

/// What the guard says about a range before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The instance holds the whole range; its low position is given.
    Readable(Position),
    /// Capture has not reached the instance yet: nothing can be read, and nothing is lost.
    WaitingForCapture,
}

/// Checks, before it is read, that an instance still holds a range.
///
/// `high` is the source's newest position. It tells an instance that capture has not reached from
/// one that is gone or hidden.
///
/// # Errors
/// [`ErrorKind::DataLoss`] when the range begins below the low position;
/// [`ErrorKind::Unauthorized`] when the low position is unknown although capture has passed the
/// instance's start.
pub fn guard_before(
    instance: &CaptureInstance,
    range: ClosedRange,
    low: Bound,
    high: Bound,
) -> Result<Readiness> {
    match low {
        Bound::At(low) if range.from() < low => Err(lost(instance, range, low)),
        Bound::At(low) => Ok(Readiness::Readable(low)),
        Bound::Zero if planted::is(Planted::ZeroLowIsNothingPurged) => {
            Ok(Readiness::Readable(range.from()))
        }
        Bound::Null | Bound::Zero if !reached(instance, high) => Ok(Readiness::WaitingForCapture),
        Bound::Null | Bound::Zero => Err(hidden(instance, range)),
    }
}

/// Checks, after it was read, that the instance held the range for the whole read.
///
/// Cleanup moves the low position before it removes rows, so a low position at or below the
/// range's begin, read after the rows, proves that none of them was missing.
///
/// # Errors
/// [`ErrorKind::DataLoss`] when the low position has passed the range's begin;
/// [`ErrorKind::Unauthorized`] when the low position is unknown: the instance was dropped or a
/// right was taken away during the read.
pub fn guard_after(instance: &CaptureInstance, range: ClosedRange, low: Bound) -> Result<Position> {
    match low {
        Bound::At(low) if planted::is(Planted::SecondGuardSkipped) => Ok(low),
        Bound::At(low) if range.from() < low => Err(lost(instance, range, low)),
        Bound::At(low) => Ok(low),
        Bound::Zero if planted::is(Planted::ZeroLowIsNothingPurged) => Ok(range.from()),
        Bound::Null | Bound::Zero => Err(hidden(instance, range)),
    }
}

/// True when capture has processed the commit that enabled the instance.
#[must_use]
pub fn reached(instance: &CaptureInstance, high: Bound) -> bool {
    matches!(high, Bound::At(high) if instance.start <= high)
}

fn lost(instance: &CaptureInstance, range: ClosedRange, low: Position) -> Error {
    Error::new(ErrorKind::DataLoss, "changes were removed at the source before they were read")
        .with("table", &instance.table)
        .with("instance", &instance.name)
        .with("from", range.from())
        .with("low", low)
}

fn hidden(instance: &CaptureInstance, range: ClosedRange) -> Error {
    Error::new(
        ErrorKind::Unauthorized,
        "the capture instance has no low position: it is gone, or the login may not see it",
    )
    .with("table", &instance.table)
    .with("instance", &instance.name)
    .with("from", range.from())
    .remedy(format!(
        "check that the instance exists (sys.sp_cdc_help_change_data_capture), and that the login \
         is in its gating role and has: GRANT SELECT ON [{}].[{}] and GRANT SELECT ON cdc.[{}_CT]",
        instance.table.schema, instance.table.name, instance.name
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{InstanceName, Lsn, TableName};

    fn at(number: u128) -> Position {
        Lsn::from_u128(number).expect("below 2^80").into()
    }

    fn instance(start: u128) -> CaptureInstance {
        CaptureInstance {
            name: InstanceName::new("dbo_t"),
            table: TableName::new("dbo", "t"),
            start: at(start),
            columns: Vec::new(),
            key: Vec::new(),
        }
    }

    fn range(from: u128, to: u128) -> ClosedRange {
        ClosedRange::new(at(from), at(to)).expect("not inverted")
    }

    #[test]
    fn an_unknown_low_is_never_nothing_purged_and_never_lost() {
        for low in [Bound::Null, Bound::Zero] {
            let waiting = guard_before(&instance(50), range(50, 60), low, Bound::At(at(40)));
            assert_eq!(waiting.expect("capture is behind"), Readiness::WaitingForCapture);
            let never = guard_before(&instance(50), range(50, 60), low, Bound::Null);
            assert_eq!(never.expect("capture never ran"), Readiness::WaitingForCapture);
            let hidden = guard_before(&instance(50), range(50, 60), low, Bound::At(at(50)));
            assert_eq!(hidden.expect_err("capture has passed").kind(), ErrorKind::Unauthorized);
            let gone = guard_after(&instance(50), range(50, 60), low);
            assert_eq!(gone.expect_err("dropped in between").kind(), ErrorKind::Unauthorized);
        }
    }

    #[test]
    fn the_error_names_table_instance_and_both_positions() {
        let error =
            guard_after(&instance(1), range(10, 20), Bound::At(at(11))).expect_err("purged");
        assert_eq!(error.kind(), ErrorKind::DataLoss);
        assert_eq!(error.context("table"), Some("dbo.t"));
        assert_eq!(error.context("instance"), Some("dbo_t"));
        assert_eq!(error.context("from"), Some("0x0000000000000000000A"));
        assert_eq!(error.context("low"), Some("0x0000000000000000000B"));
    }

    proptest! {
        #[test]
        fn a_range_is_readable_exactly_when_its_begin_is_not_below_low(
            from in 0u128..100, length in 0u128..100, low in 1u128..200, high in 0u128..300,
        ) {
            let range = range(from, from + length);
            let before = guard_before(&instance(1), range, Bound::At(at(low)), Bound::At(at(high)));
            let after = guard_after(&instance(1), range, Bound::At(at(low)));
            if from < low {
                prop_assert_eq!(before.expect_err("purged").kind(), ErrorKind::DataLoss);
                prop_assert_eq!(after.expect_err("purged").kind(), ErrorKind::DataLoss);
            } else {
                prop_assert_eq!(before.expect("held"), Readiness::Readable(at(low)));
                prop_assert_eq!(after.expect("held"), at(low));
            }
        }
    }
}

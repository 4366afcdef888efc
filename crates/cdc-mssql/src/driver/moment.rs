//! Dates and times from the units of the wire to those of the columns.

use super::column::Misfit;

/// Days from 0001-01-01 and from 1900-01-01 to 1970-01-01.
const DAYS_FROM_YEAR_ONE: i64 = 719_162;
const DAYS_FROM_1900: i64 = 25_567;
const DAY_MICROS: i64 = 86_400_000_000;
const MINUTE_MICROS: i64 = 60_000_000;
/// Ticks of `datetime` in a day: 300 a second.
const DAY_TICKS: i64 = 86_400 * 300;

/// A `date`, which the wire counts from year one.
pub(crate) fn date(days: u32) -> Result<i32, Misfit> {
    i32::try_from(i64::from(days) - DAYS_FROM_YEAR_ONE).map_err(|_| Misfit)
}

/// A time of day of `scale` digits behind the second, in units of 100 ns.
pub(crate) fn time(increments: u64, scale: u8) -> Result<i64, Misfit> {
    let unit = 7_u32.checked_sub(scale.into()).and_then(|digits| 10_i64.checked_pow(digits));
    let ticks = i64::try_from(increments).ok().zip(unit);
    ticks.and_then(|(increments, unit)| increments.checked_mul(unit)).ok_or(Misfit)
}

/// A `datetime2`: days from year one, and a time of day in units of 100 ns. The seventh digit is
/// cut, as everywhere.
pub(crate) fn datetime2(days: u32, ticks: i64) -> i64 {
    (i64::from(days) - DAYS_FROM_YEAR_ONE) * DAY_MICROS + ticks / 10
}

/// A `datetime`: days from 1900 and ticks of 1/300 s. What lies behind the microsecond is cut,
/// never rounded forward.
pub(crate) fn datetime(days: i32, ticks: u32) -> i64 {
    let days = i64::from(days) - DAYS_FROM_1900;
    ((days * DAY_TICKS + i64::from(ticks)) * 10_000).div_euclid(3)
}

/// A `smalldatetime`: days from 1900 and minutes.
pub(crate) fn smalldatetime(days: u16, minutes: u16) -> i64 {
    (i64::from(days) - DAYS_FROM_1900) * DAY_MICROS + i64::from(minutes) * MINUTE_MICROS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_cut_to_the_microsecond_below_and_above_1970() {
        assert_eq!(datetime(25_567, 1), 3_333);
        assert_eq!(datetime(25_566, 25_919_999), -3_334);
        assert_eq!(smalldatetime(0, 1), -2_208_988_740_000_000);
        assert_eq!(datetime2(3_652_058, 863_999_999_999), 253_402_300_799_999_999);
        assert_eq!(datetime2(719_162, 19), 1);
        assert_eq!((date(0), date(3_652_058)), (Ok(-719_162), Ok(2_932_896)));
    }

    #[test]
    fn a_time_of_day_has_the_same_units_whatever_its_scale() {
        assert_eq!(time(3, 0), Ok(30_000_000));
        assert_eq!(time(3, 7), Ok(3));
        assert_eq!(time(3, 8), Err(Misfit));
        assert_eq!(time(u64::MAX, 0), Err(Misfit));
    }
}

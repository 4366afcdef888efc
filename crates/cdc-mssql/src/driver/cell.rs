//! From the driver's values to columns, without loss and without a detour over texts.

use tiberius::{
    ColumnData,
    time::{Date, DateTime, DateTime2, SmallDateTime, Time},
};

use super::column::{ColumnBuilder, Misfit};

/// Days from 0001-01-01 and from 1900-01-01 to 1970-01-01.
const DAYS_FROM_YEAR_ONE: i64 = 719_162;
const DAYS_FROM_1900: i64 = 25_567;
const DAY_MICROS: i64 = 86_400_000_000;
const MINUTE_MICROS: i64 = 60_000_000;
/// Ticks of `datetime` in a day: 300 a second.
const DAY_TICKS: i64 = 86_400 * 300;

/// Adds a value of the wire to its column.
pub(crate) fn append(value: &ColumnData<'_>, column: &mut ColumnBuilder) -> Result<(), Misfit> {
    match value {
        ColumnData::Bit(Some(bit)) => column.bit(*bit),
        ColumnData::U8(Some(number)) => column.int((*number).into()),
        ColumnData::I16(Some(number)) => column.int((*number).into()),
        ColumnData::I32(Some(number)) => column.int((*number).into()),
        ColumnData::I64(Some(number)) => column.int(*number),
        ColumnData::F32(Some(number)) => column.real(*number),
        ColumnData::F64(Some(number)) => column.float(*number),
        ColumnData::Numeric(Some(number)) => column.decimal(number.value(), number.scale()),
        ColumnData::String(Some(text)) => column.text(text),
        ColumnData::Xml(Some(xml)) => column.text(xml.as_ref().as_ref()),
        ColumnData::Guid(Some(uuid)) => column.uuid(uuid.into_bytes()),
        ColumnData::Binary(Some(bytes)) => column.bytes(bytes),
        ColumnData::Date(Some(date)) => column.date(date_days(*date).ok_or(Misfit)?),
        ColumnData::Time(Some(time)) => column.time(time_ticks(*time).ok_or(Misfit)?),
        ColumnData::DateTime(Some(moment)) => column.wall(datetime_micros(*moment)),
        ColumnData::SmallDateTime(Some(moment)) => column.wall(small_micros(*moment)),
        ColumnData::DateTime2(Some(moment)) => {
            column.wall(datetime2_micros(*moment).ok_or(Misfit)?)
        }
        // On the wire the moment is in UTC; the offset that it was written with stands beside it.
        ColumnData::DateTimeOffset(Some(moment)) => {
            column.instant(datetime2_micros(moment.datetime2()).ok_or(Misfit)?)
        }
        _ => {
            column.null();
            Ok(())
        }
    }
}

fn date_days(date: Date) -> Option<i32> {
    i32::try_from(i64::from(date.days()) - DAYS_FROM_YEAR_ONE).ok()
}

/// In units of 100 ns.
fn time_ticks(time: Time) -> Option<i64> {
    let unit = 10_i64.checked_pow(7_u32.checked_sub(time.scale().into())?)?;
    i64::try_from(time.increments()).ok()?.checked_mul(unit)
}

/// The seventh digit is cut, as everywhere.
fn datetime2_micros(moment: DateTime2) -> Option<i64> {
    let days = i64::from(moment.date().days()) - DAYS_FROM_YEAR_ONE;
    Some(days * DAY_MICROS + time_ticks(moment.time())? / 10)
}

/// What lies behind the microsecond of a tick of 1/300 s is cut, never rounded forward.
fn datetime_micros(moment: DateTime) -> i64 {
    let days = i64::from(moment.days()) - DAYS_FROM_1900;
    let ticks = days * DAY_TICKS + i64::from(moment.seconds_fragments());
    (ticks * 10_000).div_euclid(3)
}

fn small_micros(moment: SmallDateTime) -> i64 {
    let days = i64::from(moment.days()) - DAYS_FROM_1900;
    days * DAY_MICROS + i64::from(moment.seconds_fragments()) * MINUTE_MICROS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_cut_to_the_microsecond_below_and_above_1970() {
        assert_eq!(datetime_micros(DateTime::new(25_567, 1)), 3_333);
        assert_eq!(datetime_micros(DateTime::new(25_566, 25_919_999)), -3_334);
        assert_eq!(small_micros(SmallDateTime::new(0, 1)), -2_208_988_740_000_000);
        let last = DateTime2::new(Date::new(3_652_058), Time::new(863_999_999_999, 7));
        assert_eq!(datetime2_micros(last), Some(253_402_300_799_999_999));
        let cut = DateTime2::new(Date::new(719_162), Time::new(19, 7));
        assert_eq!(datetime2_micros(cut), Some(1));
    }

    #[test]
    fn a_time_of_day_has_the_same_units_whatever_its_scale() {
        assert_eq!(time_ticks(Time::new(3, 0)), Some(30_000_000));
        assert_eq!(time_ticks(Time::new(3, 7)), Some(3));
        assert_eq!(time_ticks(Time::new(3, 8)), None);
    }
}

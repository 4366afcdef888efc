//! Values in the server's binary form, as `COPY … (FORMAT binary)` takes them: each field is its
//! length as 32 bits and its bytes.

/// What the server reads as a NULL.
const NULL: i32 = -1;

/// What a copy begins with: the format's mark, no flags, no extension.
pub(crate) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What a copy ends with: a row of -1 fields.
pub(crate) const TRAILER: &[u8] = &(-1i16).to_be_bytes();

/// Most bytes of one value. The server keeps texts and bytes below 1 GiB, lengths included.
pub(crate) const VALUE_BYTES_MAX: usize = (1 << 30) - (1 << 10);

/// Days from 1970-01-01 to the server's day 0, 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to the server's moment 0.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// The first and last day that are written: years 1 to 9999, as SQL Server and MySQL have them.
/// The server's own ends, and its infinities, lie outside.
const DAYS: std::ops::RangeInclusive<i32> = -719_162..=2_932_896;
/// The same years in microseconds since 1970-01-01.
const MICROS: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// Why a value cannot be written. It never holds the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A date or time outside of years 1 to 9999.
    Year,
    /// A decimal with more digits than its type.
    Digits,
    /// Text with U+0000.
    Nul,
    /// Text that is no time of day.
    Time,
    /// Text that is no UUID.
    Uuid,
    /// A value of 1 GiB or more.
    Large,
}

impl Refusal {
    /// What is wrong, as an error says it.
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::Year => "a date or time is outside of years 1 to 9999",
            Self::Digits => "a decimal has more digits than its type",
            Self::Nul => "a text holds U+0000, which PostgreSQL does not store",
            Self::Time => "a text is no time of day",
            Self::Uuid => "a text is no UUID",
            Self::Large => "a value is larger than PostgreSQL stores",
        }
    }
}

/// Appends a NULL.
pub(crate) fn null(out: &mut Vec<u8>) {
    out.extend(NULL.to_be_bytes());
}

/// Appends bytes as they are.
pub(crate) fn raw(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    if bytes.len() > VALUE_BYTES_MAX {
        return Err(Refusal::Large);
    }
    out.extend(i32::try_from(bytes.len()).map_err(|_| Refusal::Large)?.to_be_bytes());
    out.extend(bytes);
    Ok(())
}

/// Appends a value of fixed width.
pub(crate) fn fixed<const N: usize>(bytes: [u8; N], out: &mut Vec<u8>) {
    out.extend(i32::try_from(N).unwrap_or(NULL).to_be_bytes());
    out.extend(bytes);
}

/// Appends a `date` from days since 1970-01-01.
pub(crate) fn date(days: i32, out: &mut Vec<u8>) -> Result<(), Refusal> {
    if !DAYS.contains(&days) {
        return Err(Refusal::Year);
    }
    fixed((days - EPOCH_DAYS).to_be_bytes(), out);
    Ok(())
}

/// Appends a `timestamp` or `timestamptz` from microseconds since 1970-01-01.
pub(crate) fn moment(micros: i64, out: &mut Vec<u8>) -> Result<(), Refusal> {
    if !MICROS.contains(&micros) {
        return Err(Refusal::Year);
    }
    fixed((micros - EPOCH_MICROS).to_be_bytes(), out);
    Ok(())
}

/// Appends a `timestamp` at the begin of a day.
pub(crate) fn day_as_moment(days: i32, out: &mut Vec<u8>) -> Result<(), Refusal> {
    moment(i64::from(days).saturating_mul(86_400_000_000), out)
}

/// Appends a `time` from `HH:MM:SS` with at most six digits behind a point; further zeros are
/// nothing.
pub(crate) fn time(text: &str, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let micros = time_micros(text).ok_or(Refusal::Time)?;
    fixed(micros.to_be_bytes(), out);
    Ok(())
}

fn time_micros(text: &str) -> Option<i64> {
    let (clock, part) = text.split_once('.').unwrap_or((text, ""));
    let number = |digits: &str| -> Option<i64> {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        if plain { digits.parse().ok() } else { None }
    };
    let mut fields = clock.split(':');
    let mut field = |most: i64| {
        let digits = fields.next().filter(|digits| digits.len() == 2)?;
        number(digits).filter(|value| *value <= most)
    };
    let (hours, minutes, seconds) = (field(23)?, field(59)?, field(59)?);
    if fields.next().is_some() || part.len() > 9 {
        return None;
    }
    let nanos = if part.is_empty() { 0 } else { number(&format!("{part:0<9}"))? };
    if nanos % 1_000 != 0 {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + nanos / 1_000)
}

/// Appends a `uuid` from 32 hex digits in five groups.
pub(crate) fn uuid(text: &str, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let groups = [8, 4, 4, 4, 12];
    if text.len() != 36 || !text.split('-').map(str::len).eq(groups) {
        return Err(Refusal::Uuid);
    }
    let mut number: u128 = 0;
    for digit in text.chars().filter(|c| *c != '-') {
        number = (number << 4) | u128::from(digit.to_digit(16).ok_or(Refusal::Uuid)?);
    }
    fixed(number.to_be_bytes(), out);
    Ok(())
}

/// Appends a `numeric` from a decimal's digits, `scale` of them behind the point, of at most
/// `precision` digits.
pub(crate) fn numeric(
    digits: i128,
    precision: u8,
    scale: u8,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    const BASE: u128 = 10_000;
    const GROUP: u32 = 4;
    let magnitude = digits.unsigned_abs();
    if 10u128.checked_pow(precision.into()).is_some_and(|limit| magnitude >= limit) {
        return Err(Refusal::Digits);
    }
    // The point lies between two groups of four digits: the part behind it is filled up.
    let unit = 10u128.pow(u32::from(scale).min(38));
    let (mut whole, part) = (magnitude / unit, magnitude % unit);
    let mut groups: Vec<u16> = Vec::with_capacity(20);
    while whole > 0 {
        groups.push(group(whole % BASE));
        whole /= BASE;
    }
    groups.reverse();
    let mut weight = i16::try_from(groups.len()).unwrap_or(i16::MAX) - 1;
    let mut left = part;
    let mut unit = unit;
    while left > 0 {
        // The next four digits behind the point; the last group may have fewer.
        let (value, rest) = if unit >= BASE {
            unit /= BASE;
            (left / unit, left % unit)
        } else {
            let missing = GROUP - unit.ilog10();
            (left * 10u128.pow(missing), 0)
        };
        groups.push(group(value));
        left = rest;
    }
    let lead = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..lead);
    weight = weight.saturating_sub(i16::try_from(lead).unwrap_or(0));
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    let sign: u16 = if digits < 0 { 0x4000 } else { 0 };
    let count = u16::try_from(groups.len()).unwrap_or(0);
    let length = 8 + 2 * i32::from(count);
    out.extend(length.to_be_bytes());
    out.extend(count.to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend(u16::from(scale).to_be_bytes());
    for group in groups {
        out.extend(group.to_be_bytes());
    }
    Ok(())
}

fn group(value: u128) -> u16 {
    u16::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The number that a numeric field says, as the server computes it: groups of base 10,000.
    fn read_numeric(field: &[u8]) -> (i128, u16) {
        let at = |index: usize| u16::from_be_bytes([field[index], field[index + 1]]);
        let length = i32::from_be_bytes([field[0], field[1], field[2], field[3]]);
        assert_eq!(field.len(), usize::try_from(length).unwrap() + 4);
        let (count, weight, sign, scale) = (at(4), at(6).cast_signed(), at(8), at(10));
        let mut value: i128 = 0;
        let mut power = i32::from(weight);
        let mut shown: i128 = 0;
        for index in 0..count {
            let group = i128::from(at(12 + 2 * usize::from(index)));
            assert!(group < 10_000);
            // Digits behind the point are scaled up to whole numbers of `scale` digits.
            let exponent = power * 4 + i32::from(scale);
            shown += match u32::try_from(exponent) {
                Ok(exponent) => group * 10i128.pow(exponent),
                Err(_) => {
                    let divisor = 10i128.pow(exponent.unsigned_abs());
                    assert_eq!(group % divisor, 0, "a digit behind the scale");
                    group / divisor
                }
            };
            power -= 1;
        }
        value += shown;
        (if sign == 0x4000 { -value } else { value }, scale)
    }

    fn field(write: impl FnOnce(&mut Vec<u8>) -> Result<(), Refusal>) -> Result<Vec<u8>, Refusal> {
        let mut out = Vec::new();
        write(&mut out).map(|()| out)
    }

    #[test]
    fn a_numeric_is_what_the_servers_manual_says() {
        let bytes = |digits, precision, scale| {
            field(|out| numeric(digits, precision, scale, out)).expect("fits")
        };
        // 12345.678: groups 1, 2345, 6780; the first is worth 10,000.
        assert_eq!(bytes(12_345_678, 8, 3)[4..], [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 9, 41, 26, 124]);
        // 0.0001: one group, worth 1/10,000.
        assert_eq!(bytes(1, 4, 4)[4..], [0, 1, 255, 255, 0, 0, 0, 4, 0, 1]);
        assert_eq!(bytes(0, 10, 2)[4..], [0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(bytes(-1, 1, 0)[4..], [0, 1, 0, 0, 64, 0, 0, 0, 0, 1]);
        let top = 10i128.pow(38) - 1;
        assert_eq!(read_numeric(&bytes(top, 38, 38)), (top, 38));
        assert_eq!(read_numeric(&bytes(-top, 38, 0)), (-top, 0));
    }

    #[test]
    fn more_digits_than_the_type_has_are_refused() {
        for (digits, precision) in [(10, 1), (-10, 1), (i128::MAX, 38), (i128::MIN, 38)] {
            assert_eq!(field(|out| numeric(digits, precision, 0, out)), Err(Refusal::Digits));
        }
    }

    #[test]
    fn years_1_to_9999_fit_and_nothing_becomes_an_infinity() {
        let days = |days| field(|out| date(days, out));
        assert_eq!(days(10_957).expect("fits")[4..], [0; 4]);
        assert!(days(-719_162).is_ok() && days(2_932_896).is_ok());
        for outside in [-719_163, 2_932_897, i32::MIN, i32::MAX] {
            assert_eq!(days(outside), Err(Refusal::Year));
        }
        let micros = |micros| field(|out| moment(micros, out));
        assert_eq!(micros(EPOCH_MICROS).expect("fits")[4..], [0; 8]);
        assert!(micros(-62_135_596_800_000_000).is_ok() && micros(253_402_300_799_999_999).is_ok());
        for outside in [-62_135_596_800_000_001, 253_402_300_800_000_000, i64::MIN, i64::MAX] {
            assert_eq!(micros(outside), Err(Refusal::Year));
        }
        assert_eq!(field(|out| day_as_moment(i32::MAX, out)), Err(Refusal::Year));
    }

    #[test]
    fn a_time_of_day_keeps_six_digits_and_never_loses_a_seventh() {
        for (text, micros) in [
            ("00:00:00", Some(0)),
            ("23:59:59.999999", Some(86_399_999_999)),
            ("12:34:56.7", Some(45_296_700_000)),
            ("12:34:56.7000000", Some(45_296_700_000)),
            ("12:34:56.0000001", None),
            ("24:00:00", None),
            ("1:00:00", None),
            ("-1:00:00", None),
            ("00:00", None),
            ("00:00:00:00", None),
            ("00:00:00.x", None),
            ("", None),
        ] {
            assert_eq!(time_micros(text), micros, "{text:?}");
        }
    }

    #[test]
    fn a_uuid_is_its_sixteen_bytes() {
        let of = |text: &str| field(|out| uuid(text, out));
        let bytes = of("6F9619FF-8B86-D011-B42D-00C04FC964FF").expect("a UUID");
        assert_eq!(bytes[..8], [0, 0, 0, 16, 0x6f, 0x96, 0x19, 0xff]);
        for text in ["", "6F9619FF8B86D011B42D00C04FC964FF", "6F9619FF-8B86-D011-B42D-00C04FC964FG"]
        {
            assert_eq!(of(text), Err(Refusal::Uuid), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_decimal_comes_back_to_the_last_digit(
            precision in 1u8..=38,
            scale in 0u8..=38,
            drawn: i128,
        ) {
            let scale = scale.min(precision);
            let digits = drawn % 10i128.pow(precision.into());
            let bytes = field(|out| numeric(digits, precision, scale, out)).expect("fits");
            prop_assert_eq!(read_numeric(&bytes), (digits, u16::from(scale)));
        }
    }
}

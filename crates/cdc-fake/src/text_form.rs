//! Values as the server writes them in text: identifiers, times of day, exact numbers.

use std::fmt;

use crate::value::unit;

/// An exact number from its digits at a scale.
pub(crate) fn decimal_text(number: i128, scale: u8) -> String {
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, part) = digits.split_at(digits.len() - usize::from(scale));
    let sign = if number < 0 { "-" } else { "" };
    let point = if scale == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{part}")
}

/// A `uniqueidentifier` as the server prints it: upper case, dashed.
pub(crate) struct UuidText<'a>(pub(crate) &'a [u8; 16]);

impl fmt::Display for UuidText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02X}")?;
        }
        Ok(())
    }
}

/// The bytes of a `uniqueidentifier`'s text.
pub(crate) fn uuid_from_text(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| number.to_be_bytes())
}

/// A `time` of `scale` fractional digits as text.
pub(crate) fn time_text(ticks: i64, scale: u8) -> String {
    let seconds = ticks / 10_000_000;
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if scale == 0 {
        return clock;
    }
    let fraction = ticks % 10_000_000 / unit(scale);
    format!("{clock}.{fraction:0width$}", width = usize::from(scale))
}

/// The ticks of a `time`'s text.
pub(crate) fn time_from_text(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut seconds: i64 = 0;
    for part in clock.split(':') {
        seconds = seconds * 60 + part.parse::<i64>().ok()?;
    }
    let fraction = format!("{fraction:0<7}").parse::<i64>().ok()?;
    Some(seconds * 10_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_times_and_identifiers_round_trip() {
        assert_eq!(time_text(36_610_000_001, 7), "01:01:01.0000001");
        assert_eq!(time_from_text("01:01:01.0000001"), Some(36_610_000_001));
        let uuid: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).expect("small") + 0xa0);
        assert_eq!(uuid_from_text(&UuidText(&uuid).to_string()), Some(uuid));
    }

    #[test]
    fn an_exact_number_shows_every_digit_of_its_scale() {
        for (digits, scale, text) in [(-5, 2, "-0.05"), (0, 3, "0.000"), (1234, 0, "1234")] {
            assert_eq!(decimal_text(digits, scale), text);
        }
    }
}

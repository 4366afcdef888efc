//! Quantities with their unit, as people write them: "5s", "1h 30m", "256MiB".

use std::time::Duration;

/// A duration: whole numbers, each with one of `ms`, `s`, `m`, `h`, `d`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let millis =
        sum(text, &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)])?;
    Some(Duration::from_millis(millis))
}

/// A size in bytes: a whole number with one of `B`, `KB`, `MB`, `GB` (thousands) or `KiB`, `MiB`,
/// `GiB` (powers of 1024).
pub(crate) fn size(text: &str) -> Option<u64> {
    sum(
        text,
        &[
            ("B", 1),
            ("KB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        ],
    )
}

fn sum(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, behind) = split(rest, |c| c.is_ascii_digit());
        let (unit, behind) = split(behind.trim_start(), |c| c.is_ascii_alphabetic());
        let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*factor)?)?;
        rest = behind.trim_start();
    }
    Some(total)
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, millis) in [
            ("5s", 5_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1d 2 h", 93_600_000),
            ("7ms", 7),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "s", "5 parsecs", "-1s", "1.5h", "99999999999999999999s", "5s x"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_tell_thousands_from_powers_of_two() {
        for (text, bytes) in
            [("1KB", 1_000), ("1KiB", 1_024), ("256MiB", 268_435_456), ("2 GB", 2_000_000_000)]
        {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "1", "1mib", "1TB", "1.5GiB", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}

//! Numbers as the server prints them, and approximate numbers as it reads them.

/// An exact number from its digits at a scale: every digit of the scale is shown.
pub(super) fn decimal(digits: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if digits < 0 { "-" } else { "" };
    let all = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, part) = all.split_at_checked(all.len() - scale).unwrap_or((&all, ""));
    let point = if scale == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{part}")
}

/// `money` from its ten-thousandths in a style: 0 has two digits behind the point, 1 commas too,
/// 2 and 126 have four digits.
pub(super) fn money(digits: i128, style: i32) -> String {
    if matches!(style, 2 | 126) {
        return decimal(digits, 4);
    }
    let cents = super::exact::rescale(digits, 4, 2).unwrap_or_default();
    let text = decimal(cents, 2);
    if style != 1 {
        return text;
    }
    let (sign, number) = text.strip_prefix('-').map_or(("", &*text), |rest| ("-", rest));
    let (whole, part) = number.split_once('.').unwrap_or((number, "00"));
    let mut grouped = String::with_capacity(text.len() + 6);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}.{part}")
}

/// `float` or `real` in a style: 0 has up to six digits and an exponent when it is large or small,
/// 1 eight digits, 2 sixteen and 3 seventeen, always with an exponent.
pub(super) fn float(number: f64, style: i32) -> String {
    match style {
        1 => scientific(number, 8),
        2 => scientific(number, 16),
        3 => scientific(number, 17),
        _ => general(number),
    }
}

/// Digits before the exponent, and the exponent with a sign and at least three digits.
fn scientific(number: f64, digits: usize) -> String {
    let (mantissa, exponent) = parts(number, digits);
    format!("{mantissa}e{}{:03}", sign(exponent), exponent.abs())
}

fn sign(exponent: i32) -> char {
    if exponent < 0 { '-' } else { '+' }
}

/// A number of so many digits as mantissa and exponent.
fn parts(number: f64, digits: usize) -> (String, i32) {
    // -0 prints as 0.
    let number = if number == 0.0 { 0.0 } else { number };
    let text = format!("{number:.places$e}", places = digits.saturating_sub(1));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or_default())
}

/// Digits of the default style.
const GENERAL_DIGITS: i32 = 6;

fn general(number: f64) -> String {
    let (mantissa, exponent) = parts(number, 6);
    let trimmed = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..GENERAL_DIGITS).contains(&exponent) {
        let places = usize::try_from(GENERAL_DIGITS - 1 - exponent).unwrap_or_default();
        // The mantissa is rounded already, so that 999999.5 takes the other way.
        let number = if number == 0.0 { 0.0 } else { number };
        return trimmed(&format!("{number:.places$}"));
    }
    format!("{}e{}{:03}", trimmed(&mantissa), sign(exponent), exponent.abs())
}

/// The number of a text as `float` reads it: blanks around, an exponent by `e` or `d`; an empty
/// text is 0. None for anything else, and beyond the range.
pub(super) fn parsed_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(' ');
    if text.is_empty() {
        return Some(0.0);
    }
    let known = text.chars().all(|c| c.is_ascii_digit() || "+-.eEdD".contains(c));
    let number: f64 = text.replace(['d', 'D'], "e").parse().ok().filter(|_| known)?;
    number.is_finite().then_some(number)
}

/// The seventeen digits that tell a float from every other, as an exact number at a scale; none
/// when it does not fit in 128 bits. Digits beyond the seventeenth are zeros.
pub(super) fn float_digits(number: f64, scale: u8) -> Option<i128> {
    let (mantissa, exponent) = parts(number, 17);
    let digits: i128 = mantissa.replace('.', "").parse().ok()?;
    // The mantissa has sixteen digits behind its point.
    let shift = exponent.checked_sub(16)?.checked_add(i32::from(scale))?;
    if shift >= 0 {
        let unit = 10_i128.checked_pow(u32::try_from(shift).ok()?);
        return if digits == 0 { Some(0) } else { digits.checked_mul(unit?) };
    }
    let places = u32::try_from(-shift).ok()?;
    if places > 18 {
        return Some(0);
    }
    let unit = 10_i128.checked_pow(places)?;
    Some((digits + digits.signum() * (unit / 2)) / unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_exact_number_shows_every_digit_of_its_scale() {
        for (digits, scale, text) in [
            (-5, 2, "-0.05"),
            (0, 3, "0.000"),
            (1234, 0, "1234"),
            (-12_345, 4, "-1.2345"),
            (1, 38, "0.00000000000000000000000000000000000001"),
        ] {
            assert_eq!(decimal(digits, scale), text);
        }
    }

    #[test]
    fn money_has_its_styles() {
        for (digits, style, text) in [
            (42_359_819, 0, "4235.98"),
            (42_359_819, 1, "4,235.98"),
            (42_359_819, 2, "4235.9819"),
            (42_359_819, 126, "4235.9819"),
            (-1_234_567_895_000, 1, "-123,456,789.50"),
            (9_950, 0, "1.00"),
            (-49, 0, "0.00"),
            (1_000_000, 1, "100.00"),
        ] {
            assert_eq!(money(digits, style), text, "{digits} in {style}");
        }
    }

    #[test]
    fn a_float_has_its_styles() {
        for (number, style, text) in [
            (0.0, 0, "0"),
            (-0.0, 0, "0"),
            (1.0, 0, "1"),
            (0.1, 0, "0.1"),
            (-12.5, 0, "-12.5"),
            (123_456.0, 0, "123456"),
            (1_234_567.0, 0, "1.23457e+006"),
            (999_999.5, 0, "1e+006"),
            (0.000_1, 0, "0.0001"),
            (0.000_01, 0, "1e-005"),
            (1e300, 0, "1e+300"),
            (1234.5, 1, "1.2345000e+003"),
            (1234.5, 2, "1.234500000000000e+003"),
            (0.1, 3, "1.0000000000000001e-001"),
        ] {
            assert_eq!(float(number, style), text);
        }
    }

    #[test]
    fn a_float_is_read_as_the_server_reads_it() {
        for (text, number) in [
            (" 1.5 ", Some(1.5)),
            ("1e3", Some(1000.0)),
            ("1D3", Some(1000.0)),
            ("", Some(0.0)),
            (".5", Some(0.5)),
            ("-2", Some(-2.0)),
            ("1e999", None),
            ("inf", None),
            ("nan", None),
            ("1,5", None),
            ("x", None),
        ] {
            assert_eq!(parsed_float(text), number, "{text}");
        }
    }

    #[test]
    fn a_float_as_an_exact_number_has_seventeen_digits() {
        for (number, scale, digits) in [
            (0.1, 17, Some(10_000_000_000_000_001)),
            (0.1, 20, Some(10_000_000_000_000_001_000)),
            (1.5, 0, Some(2)),
            (-1.5, 0, Some(-2)),
            (1e-30, 2, Some(0)),
            (1e20, 0, Some(10_i128.pow(20))),
            (1e60, 0, None),
            (0.0, 38, Some(0)),
        ] {
            assert_eq!(float_digits(number, scale), digits, "{number} at {scale}");
        }
    }

    proptest! {
        #[test]
        fn style_3_tells_every_float_from_every_other(number: f64) {
            prop_assume!(number.is_finite());
            prop_assert_eq!(parsed_float(&float(number, 3)), Some(number));
        }
    }
}

//! Reals as decimal text and back, exactly as the standard library writes and reads them, in a twentieth of its size:
//! its tables of powers alone take more of the page than all of this room.

use super::decimal::Decimal;

/// No f64 has a digit behind more places.
const MOST_PLACES: i32 = 1074;

/// `value` with `places` decimals, ties to the even digit.
#[must_use]
#[inline(never)]
pub fn decimal(value: f64, places: usize) -> String {
    let Some((mut out, mut decimal)) = start(value) else { return odd(value) };
    let places = i32::try_from(places).unwrap_or(i32::MAX).min(MOST_PLACES);
    decimal.round(decimal.point.saturating_add(places));
    decimal.write(&mut out, places);
    out
}

/// `value` with as few digits as tell it from every other, never with an exponent.
#[must_use]
#[inline(never)]
pub fn shortest(value: f64) -> String {
    let Some((mut out, mut decimal)) = start(value) else { return odd(value) };
    decimal.shorten(value.abs());
    decimal.write(&mut out, decimal.places());
    out
}

/// `value` as `1.5e-7`: with so many `places`, or as few digits as tell it from every other.
#[must_use]
#[inline(never)]
pub fn scientific(value: f64, places: Option<usize>) -> String {
    let Some((mut out, mut decimal)) = start(value) else { return odd(value) };
    match places.and_then(|places| i32::try_from(places).ok()) {
        Some(places) => decimal.round(places.saturating_add(1)),
        None => decimal.shorten(value.abs()),
    }
    let exponent = if decimal.digits.is_empty() { 0 } else { decimal.point - 1 };
    decimal.point -= exponent;
    let places = places.and_then(|places| i32::try_from(places).ok()).unwrap_or(decimal.places());
    decimal.write(&mut out, places);
    out.push('e');
    out.push_str(&exponent.to_string());
    out
}

/// `value` as JSON has it: a decimal, with a signed exponent where that is far shorter; null where it is no number.
#[must_use]
#[inline(never)]
pub fn json(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "null".to_owned()
    } else if size != 0.0 && !(1e-5..1e16).contains(&size) {
        let text = scientific(value, None);
        if size < 1.0 { text } else { text.replace('e', "e+") }
    } else if value.fract() == 0.0 {
        decimal(value, 1)
    } else {
        shortest(value)
    }
}

/// The number that a text is: digits, perhaps with a sign, a point and an exponent, as the nearest there is; or `inf`,
/// `infinity`, `nan` in any case.
#[must_use]
#[inline(never)]
pub fn real(text: &str) -> Option<f64> {
    let mut bytes = text.as_bytes();
    let negative = bytes.first() == Some(&b'-');
    if let [b'-' | b'+', rest @ ..] = bytes {
        bytes = rest;
    }
    for (word, value) in [(&b"inf"[..], f64::INFINITY), (b"infinity", f64::INFINITY), (b"nan", f64::NAN)] {
        if bytes.eq_ignore_ascii_case(word) {
            return Some(if negative { -value } else { value });
        }
    }
    let mut decimal = Decimal { digits: Vec::new(), point: 0 };
    let (mut any, mut past) = (false, false);
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'0'..=b'9' => {
                any = true;
                let leading = decimal.digits.is_empty() && *byte == b'0';
                decimal.point = decimal.point.saturating_add(match (past, leading) {
                    (false, false) => 1,
                    (true, true) => -1,
                    _ => 0,
                });
                if !leading {
                    decimal.digits.push(byte - b'0');
                }
            }
            b'.' if !past => past = true,
            _ => break,
        }
        at += 1;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let exponent = text.get(text.len() - bytes.len() + at + 1..)?;
        let (sign, digits) = match exponent.as_bytes() {
            [b'-', digits @ ..] => (-1, digits),
            [b'+', digits @ ..] => (1, digits),
            digits => (1, digits),
        };
        if digits.is_empty() {
            return None;
        }
        let mut exponent = 0_i32;
        for byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            exponent = exponent.saturating_mul(10).saturating_add(i32::from(digit));
        }
        decimal.point = decimal.point.saturating_add(exponent.saturating_mul(sign));
        at = bytes.len();
    }
    if !any || at < bytes.len() {
        return None;
    }
    decimal.trim();
    let value = decimal.nearest();
    Some(if negative { -value } else { value })
}

/// What is no number, in words.
fn odd(value: f64) -> String {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "inf"
    } else {
        "-inf"
    }
    .to_owned()
}

/// The sign of a finite number, and its size in full.
fn start(value: f64) -> Option<(String, Decimal)> {
    let out = if value.is_sign_negative() { String::from('-') } else { String::new() };
    value.is_finite().then(|| (out, Decimal::of(value.abs())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Reals of every kind: typical, halves of a last digit, great, small, and any bits.
    fn reals() -> Vec<f64> {
        let mut reals =
            vec![0.0, -0.0, 0.5, 1.5, 2.5, 0.25, 0.125, 0.05, 9.995, 99.95, 999.5, 1e15, 1e16, 1e22, 1e23];
        reals.extend([
            f64::MAX,
            f64::MIN_POSITIVE,
            f64::EPSILON,
            0.1 + 0.2,
            1e-5,
            1e-7,
            123_456_789.125,
            5e-324,
        ]);
        reals.extend([
            f64::from_bits(1),
            f64::from_bits(0x000f_ffff_ffff_ffff),
            2.0_f64.powi(70),
            0.3,
            1.0 / 3.0,
        ]);
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..500 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let bits = f64::from_bits(state);
            reals.extend([bits, -bits].into_iter().filter(|real| real.is_finite()));
            let size = f64::from(u32::try_from(state >> 40).unwrap());
            reals.extend([size / 8.0, size / 1000.0, size * 1e-9, size * 1e9 + 0.5, 1.0 / (size + 1.0)]);
        }
        reals
    }

    #[test]
    fn writes_as_the_standard_library_does() {
        for real in reals() {
            for places in [0, 1, 2, 3, 6] {
                assert_eq!(decimal(real, places), format!("{real:.places$}"));
                assert_eq!(scientific(real, Some(places)), format!("{real:.places$e}"));
            }
            if real.abs() >= f64::MIN_POSITIVE || real == 0.0 {
                // Of two that are as short and as near, the standard library takes the greater.
                assert_eq!(shortest(real).len(), format!("{real}").len());
                assert_eq!(scientific(real, None).len(), format!("{real:e}").len());
                assert_eq!(shortest(real).parse(), Ok(real));
                assert_eq!(scientific(real, None).parse(), Ok(real));
            }
        }
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(decimal(odd, 1), format!("{odd:.1}"));
            assert_eq!(json(odd), "null");
        }
    }

    #[test]
    fn reads_as_the_standard_library_does() {
        for value in reals() {
            for text in
                [format!("{value}"), format!("{value:e}"), format!("{value:.3}"), format!("{value:.20e}")]
            {
                assert_eq!(real(&text).map(f64::to_bits), text.parse().ok().map(f64::to_bits), "{text}");
            }
            assert_eq!(real(&json(value)).map(f64::to_bits), Some(value.to_bits()));
        }
        let texts = [
            "",
            "-",
            "+",
            ".",
            "e5",
            "1e",
            "1e+",
            ".5",
            "5.",
            "+5",
            "-.5e1",
            "1E5",
            "1e400",
            "-1e400",
            "1e-400",
            "0e999999999999",
            "1e5x",
            "0x10",
            "1_000",
            " 1",
            "1 ",
            "--1",
            "1..2",
            "1.2.3",
            "00012.500",
            "9007199254740993",
            "9007199254740992.99999",
            "9007199254740993.000000000000000000000000000000001",
            "1.7976931348623158e308",
            "1.7976931348623159e308",
            "2.5e-324",
            "2.4e-324",
            "0.000000000000000000000000000000000000000000000000000000000000001e63",
            "ß",
            "inf",
            "-Infinity",
            "infinite",
            "NaN",
            "nano",
            "1é",
        ];
        for text in texts {
            let expected = text.parse::<f64>().ok();
            assert_eq!(real(text).map(f64::to_bits), expected.map(f64::to_bits), "{text}");
        }
    }

    #[test]
    fn json_has_numbers_that_every_reader_takes() {
        for (value, expected) in [
            (0.0, "0.0"),
            (3.0, "3.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (-1.5e300, "-1.5e+300"),
            (1.5e-7, "1.5e-7"),
        ] {
            assert_eq!(json(value), expected);
        }
    }
}

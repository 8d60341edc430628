//! Reals as decimal text and back, exactly as the standard library writes and reads them, in a twentieth of its size:
//! its tables of powers alone take more of the page than all of this room.

/// A positive decimal: `0.DIGITS` times ten to the `point`.
#[derive(Clone)]
struct Decimal {
    /// Values 0 to 9, the first not 0; empty for nothing.
    digits: Vec<u8>,
    point: i32,
}

/// Bits of an f64's fraction.
const FRACTION: u32 = 52;
/// The power of two of a fraction's last bit, for numbers below the least whose first bit is understood.
const LEAST_EXPONENT: i32 = -1074;
/// Digits that every f64 keeps, and digits that tell any two apart.
const KEPT: i32 = 15;
const TELLING: i32 = 17;
/// The greatest power of ten that an f64 holds exactly, and the greatest whole number up to which it holds all.
const EXACT_POWER: i32 = 22;
const EXACT_WHOLE: u64 = 1 << 53;
/// No f64 is that large, and none but 0 that small: powers of ten.
const TOO_LARGE: i32 = 310;
const TOO_SMALL: i32 = -330;
/// No f64 has a digit behind more places.
const MOST_PLACES: i32 = 1074;
/// Digits that a u64 takes whatever they are.
const WHOLE_DIGITS: usize = 19;

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

/// A finite positive number as a whole number times a power of two.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << FRACTION) - 1);
    match i32::try_from(bits >> FRACTION) {
        Ok(biased) if biased > 0 => (fraction | 1 << FRACTION, biased - 1 + LEAST_EXPONENT),
        _ => (fraction, LEAST_EXPONENT),
    }
}

/// `value` times ten to the `power`; as exact as an f64 can be up to [`EXACT_POWER`], nearly so beyond.
fn scaled(value: f64, power: i32) -> f64 {
    const POWERS: [f64; 8] = [1e1, 1e2, 1e4, 1e8, 1e16, 1e32, 1e64, 1e128];
    const GREAT: f64 = 1e256;
    let size = power.unsigned_abs();
    let mut ten = 1.0;
    for (bit, power) in POWERS.iter().enumerate() {
        if size >> bit & 1 == 1 {
            ten *= power;
        }
    }
    let great = if size >> POWERS.len() == 0 { 1.0 } else { GREAT };
    if power < 0 { value / ten / great } else { value * ten * great }
}

impl Decimal {
    /// All digits of a finite positive number.
    fn of(value: f64) -> Self {
        let (whole, exponent) = parts(value);
        Self::product(whole, exponent)
    }

    /// All digits of `whole` times two to the `exponent`.
    #[inline(never)]
    fn product(mut whole: u64, mut exponent: i32) -> Self {
        /// Nine digits a limb.
        const LIMB: u64 = 1_000_000_000;
        /// Five to this is below a limb.
        const TURNS: i32 = 12;
        while exponent < 0 && whole & 1 == 0 && whole != 0 {
            whole >>= 1;
            exponent += 1;
        }
        let mut limbs = vec![whole % LIMB, whole / LIMB % LIMB, whole / LIMB / LIMB];
        // A half is five, a place further to the right.
        let (factor, mut left) = if exponent < 0 { (5, -exponent) } else { (2, exponent) };
        while left > 0 {
            let turns = left.min(TURNS);
            let by = (0..turns).fold(1_u64, |by, _| by * factor);
            let mut carry = 0;
            for limb in &mut limbs {
                let product = *limb * by + carry;
                *limb = product % LIMB;
                carry = product / LIMB;
            }
            if carry > 0 {
                limbs.push(carry);
            }
            left -= turns;
        }
        let mut out = Self { digits: Vec::new(), point: exponent.min(0) };
        for mut limb in limbs.into_iter().rev() {
            let mut place = LIMB / 10;
            while place > 0 {
                out.push(limb / place);
                limb %= place;
                place /= 10;
            }
        }
        out.trim();
        out
    }

    /// One more digit, before the point.
    fn push(&mut self, digit: u64) {
        if digit != 0 || !self.digits.is_empty() {
            self.digits.push(u8::try_from(digit).unwrap_or(0));
            self.point = self.point.saturating_add(1);
        }
    }

    /// Without the zeros at the end.
    fn trim(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
    }

    fn len(&self) -> i32 {
        i32::try_from(self.digits.len()).unwrap_or(i32::MAX)
    }

    fn digit(&self, at: i32) -> u8 {
        usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(0)
    }

    /// Digits behind the point.
    fn places(&self) -> i32 {
        self.len().saturating_sub(self.point).max(0)
    }

    /// Keeps so many digits, ties to the even one.
    #[inline(never)]
    fn round(&mut self, keep: i32) {
        if keep >= self.len() {
            return;
        }
        let up = match self.digit(keep) {
            5 => self.len() > keep + 1 || self.digit(keep - 1) & 1 == 1,
            digit => digit > 5,
        };
        self.digits.truncate(usize::try_from(keep).unwrap_or(0));
        if up && keep >= 0 {
            while self.digits.last() == Some(&9) {
                self.digits.pop();
            }
            match self.digits.last_mut() {
                Some(last) => *last += 1,
                None => {
                    self.digits.push(1);
                    self.point += 1;
                }
            }
        }
        self.trim();
    }

    /// Keeps the fewest digits of which `value` is the nearest number (but some more of numbers below 1e-307).
    fn shorten(&mut self, value: f64) {
        for keep in KEPT..TELLING {
            let mut short = self.clone();
            short.round(keep);
            if short.nearest() == value {
                *self = short;
                return;
            }
        }
        self.round(TELLING);
    }

    /// At least one digit before the point, and so many `places` behind it.
    fn write(&self, out: &mut String, places: i32) {
        for place in -self.point.max(1)..places {
            if place == 0 {
                out.push('.');
            }
            out.push(char::from(b'0' + self.digit(self.point.saturating_add(place))));
        }
    }

    /// The nearest f64; of two, the even one.
    #[inline(never)]
    #[allow(clippy::cast_precision_loss)] // what is lost is put right, or nothing is
    fn nearest(&self) -> f64 {
        let first = self.digits.iter().take(WHOLE_DIGITS);
        let whole = first.fold(0_u64, |whole, digit| whole * 10 + u64::from(*digit));
        let power = self.point.saturating_sub(self.len().min(19));
        let exact = self.digits.len() <= WHOLE_DIGITS && whole <= EXACT_WHOLE;
        if self.digits.is_empty() || self.point < TOO_SMALL {
            return 0.0;
        }
        if self.point > TOO_LARGE {
            return f64::INFINITY;
        }
        if exact && power.abs() <= EXACT_POWER {
            return scaled(whole as f64, power);
        }
        let mut nearest = scaled(whole as f64, power).min(f64::MAX);
        while nearest < f64::INFINITY && self.is_above(nearest) {
            nearest = nearest.next_up();
        }
        while nearest > 0.0 && !self.is_above(nearest.next_down()) {
            nearest = nearest.next_down();
        }
        nearest
    }

    /// Whether this is nearer to the number after `value` than to `value` itself.
    fn is_above(&self, value: f64) -> bool {
        let (whole, exponent) = parts(value);
        let middle = Self::product(2 * whole + 1, exponent - 1);
        match self.point.cmp(&middle.point).then_with(|| self.digits.cmp(&middle.digits)) {
            std::cmp::Ordering::Equal => whole & 1 == 1,
            order => order.is_gt(),
        }
    }
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

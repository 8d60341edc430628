//! Arithmetic as `bc` does it: decimal fractions that are truncated, never rounded.

/// Greatest `scale` computed with: products of two such numbers fit 128 bits.
const MAX_SCALE: u32 = 20;

/// A decimal number: `digits` / 10^`scale`.
#[derive(Clone, Copy, Debug)]
struct Decimal {
    digits: i128,
    scale: u32,
}

impl Decimal {
    /// The same number with `scale` digits after the point, truncated.
    fn scaled(self, scale: u32) -> Option<Self> {
        let digits = match scale.checked_sub(self.scale) {
            Some(more) => self.digits.checked_mul(10_i128.checked_pow(more)?)?,
            None => self.digits.checked_div(10_i128.checked_pow(self.scale.checked_sub(scale)?)?)?,
        };
        Some(Self { digits, scale })
    }
}

/// What `bc` prints for one expression, which may be preceded by `scale=N;`.
pub(super) fn evaluate(text: &str, library: bool) -> Option<String> {
    let mut text = text.trim();
    let mut scale = if library { MAX_SCALE } else { 0 };
    if let Some((first, rest)) = text.split_once(';') {
        // Any other statement before the `;` is not read, so the output is unknown.
        scale = first.trim().strip_prefix("scale")?.trim().strip_prefix('=')?.trim().parse().ok()?;
        text = rest.trim();
    }
    if text.len() > 500 || scale > MAX_SCALE {
        return None;
    }
    let mut reader = Reader { bytes: text.as_bytes(), at: 0, depth: 0, scale };
    reader.blanks();
    let number = reader.sum()?;
    if reader.at != text.len() {
        return None;
    }
    if number.digits == 0 {
        return Some("0".to_owned());
    }
    let unit = 10_u128.checked_pow(number.scale)?;
    let (whole, rest) = (number.digits.unsigned_abs() / unit, number.digits.unsigned_abs() % unit);
    let sign = if number.digits < 0 { "-" } else { "" };
    // bc prints no zero before the point.
    let whole = if whole == 0 { String::new() } else { whole.to_string() };
    let width = usize::try_from(number.scale).ok()?;
    Some(if width == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{rest:0width$}") })
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
    depth: u32,
    scale: u32,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, sign: u8) -> bool {
        let found = self.bytes.get(self.at) == Some(&sign);
        if found {
            self.at += 1;
            self.blanks();
        }
        found
    }

    fn sum(&mut self) -> Option<Decimal> {
        self.depth += 1;
        if self.depth > 20 {
            return None;
        }
        let mut left = self.product()?;
        loop {
            let plus = self.eat(b'+');
            if !plus && !self.eat(b'-') {
                break;
            }
            let right = self.product()?;
            let scale = left.scale.max(right.scale);
            let (a, b) = (left.scaled(scale)?.digits, right.scaled(scale)?.digits);
            left = Decimal { digits: if plus { a.checked_add(b)? } else { a.checked_sub(b)? }, scale };
        }
        self.depth -= 1;
        Some(left)
    }

    fn product(&mut self) -> Option<Decimal> {
        let mut left = self.power()?;
        loop {
            left = if self.eat(b'*') {
                {
                    let right = self.power()?;
                    self.times(left, right)?
                }
            } else if self.eat(b'/') {
                let right = self.power()?;
                // Enough digits for the quotient to have `scale` of them after the point.
                let shifted = left.scaled(self.scale.checked_add(right.scale)?.max(left.scale))?;
                let digits = shifted.digits.checked_div(right.digits)?;
                Decimal { digits, scale: shifted.scale.checked_sub(right.scale)? }.scaled(self.scale)?
            } else if self.eat(b'%') {
                let right = self.power()?;
                // With fractions the remainder depends on the quotient's digits; that is not computed.
                if self.scale + left.scale + right.scale > 0 {
                    return None;
                }
                Decimal { digits: left.digits.checked_rem(right.digits)?, scale: 0 }
            } else {
                return Some(left);
            };
        }
    }

    /// The product: as many digits as both have, but not more than `scale` or the one that has more.
    fn times(&self, left: Decimal, right: Decimal) -> Option<Decimal> {
        let digits = left.digits.checked_mul(right.digits)?;
        let both = left.scale.checked_add(right.scale)?;
        Decimal { digits, scale: both }.scaled(both.min(self.scale.max(left.scale).max(right.scale)))
    }

    fn power(&mut self) -> Option<Decimal> {
        let base = self.signed()?;
        if !self.eat(b'^') {
            return Some(base);
        }
        let exponent = self.power()?;
        // Only whole numbers are raised to a power here: bc has a separate rule for how many digits of a fraction
        // remain.
        if base.scale > 0 || exponent.scale > 0 {
            return None;
        }
        let digits = base.digits.checked_pow(u32::try_from(exponent.digits).ok()?)?;
        Some(Decimal { digits, scale: 0 })
    }

    fn signed(&mut self) -> Option<Decimal> {
        if self.eat(b'-') {
            // In bc the unary minus binds tighter than the power: -2^2 is 4.
            self.depth += 1;
            let number = if self.depth > 20 { None } else { self.signed() }?;
            self.depth -= 1;
            return Some(Decimal { digits: number.digits.checked_neg()?, ..number });
        }
        if self.eat(b'(') {
            let number = self.sum()?;
            return self.eat(b')').then_some(number);
        }
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.') {
            self.at += 1;
        }
        let text = std::str::from_utf8(self.bytes.get(start..self.at)?).ok()?;
        self.blanks();
        let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
        if behind.len() > MAX_SCALE as usize {
            return None;
        }
        let digits = format!("{whole}{behind}").parse().ok()?;
        Some(Decimal { digits, scale: u32::try_from(behind.len()).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn digits_are_cut_off_as_bc_does() {
        for (text, library, expected) in [
            ("7 / 2", false, Some("3")),
            ("9.5/2", false, Some("4")),
            ("scale=2; 7 / 2", false, Some("3.50")),
            ("scale=1; 4/3*3", false, Some("3.9")),
            ("scale=2; 1/3", false, Some(".33")),
            ("scale=2; -1/3", false, Some("-.33")),
            ("-2^2", false, Some("4")),
            ("-7 % 3", false, Some("-1")),
            ("1.5*1.5", false, Some("2.2")),
            ("1/4", true, Some(".25000000000000000000")),
            ("scale=2; 0/4", false, Some("0")),
            ("2 < 3", false, None),
            ("1/0", false, None),
            ("2^-1", false, None),
        ] {
            assert_eq!(evaluate(text, library).as_deref(), expected, "{text}");
        }
    }
}

//! A positive real as all of its decimal digits, rounded and read back exactly.

/// A positive decimal: `0.DIGITS` times ten to the `point`.
#[derive(Clone)]
pub(super) struct Decimal {
    /// Values 0 to 9, the first not 0; empty for nothing.
    pub(super) digits: Vec<u8>,
    pub(super) point: i32,
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
/// Digits that a u64 takes whatever they are.
const WHOLE_DIGITS: usize = 19;

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
    pub(super) fn of(value: f64) -> Self {
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
    pub(super) fn push(&mut self, digit: u64) {
        if digit != 0 || !self.digits.is_empty() {
            self.digits.push(u8::try_from(digit).unwrap_or(0));
            self.point = self.point.saturating_add(1);
        }
    }

    /// Without the zeros at the end.
    pub(super) fn trim(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
    }

    pub(super) fn len(&self) -> i32 {
        i32::try_from(self.digits.len()).unwrap_or(i32::MAX)
    }

    pub(super) fn digit(&self, at: i32) -> u8 {
        usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(0)
    }

    /// Digits behind the point.
    pub(super) fn places(&self) -> i32 {
        self.len().saturating_sub(self.point).max(0)
    }

    /// Keeps so many digits, ties to the even one.
    #[inline(never)]
    pub(super) fn round(&mut self, keep: i32) {
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
    pub(super) fn shorten(&mut self, value: f64) {
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
    pub(super) fn write(&self, out: &mut String, places: i32) {
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
    pub(super) fn nearest(&self) -> f64 {
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

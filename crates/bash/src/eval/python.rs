//! `python -c`: arithmetic as it and `awk` do it, for purely numeric expressions, and the question for a machine's NPUs.

use super::super::value::Word;
use super::state::{Certainty, Status};

/// What the import of a module that is not installed ends with.
pub(crate) const FAILS: Status = Status { ok: false, certainty: Certainty::Assumed, code: 1 };

/// Whether a program only asks if the machine has Ascend's NPUs (`python3 -c 'import torch_npu'`): what reads scripts here has
/// GPUs, with which the module is not installed.
pub(crate) fn imports_of_npus(arguments: &[Word]) -> bool {
    let [flag, code, ..] = arguments else { return false };
    let mut statements =
        code.known().unwrap_or("").split([';', '\n']).map(str::trim).filter(|one| !one.is_empty());
    let modules = |one: &str| {
        one.strip_prefix("import ").map(|named| named.split(',').any(|name| name.trim() == "torch_npu"))
    };
    let asks = statements.clone().any(|one| modules(one) == Some(true));
    flag.text() == "-c" && asks && statements.all(|one| modules(one).is_some())
}

/// The program whose rules for arithmetic and printing apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `/` gives a fraction, `//` and `%` round down.
    Python,
    /// Fractions, six significant digits.
    Awk,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    #[expect(clippy::cast_precision_loss, reason = "python rounds the same way")]
    fn real(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Real(number) => number,
        }
    }
}

/// The value of an expression as its program prints it.
pub(crate) fn evaluate(text: &str, dialect: Dialect) -> Option<String> {
    let text = text.trim();
    if text.len() > 500 {
        return None;
    }
    let mut reader = ExpressionParser { bytes: text.as_bytes(), at: 0, depth: 0, dialect, failed: false };
    reader.blanks();
    let number = reader.sum();
    if reader.failed || reader.at != text.len() {
        return None;
    }
    Some(match (number, dialect) {
        (Number::Whole(number), _) => number.to_string(),
        (Number::Real(number), Dialect::Awk) if number.fract() == 0.0 && number.abs() < 1e15 => {
            format!("{number:.0}")
        }
        (Number::Real(number), Dialect::Awk) => super::format::general(number, 6)?,
        (Number::Real(number), Dialect::Python) if number.fract() == 0.0 && number.abs() < 1e16 => {
            // `str(8.0)` is "8.0"; from 1e16 on Python writes exponents.
            format!("{number:.1}")
        }
        // Small or large enough to be written with an exponent.
        (Number::Real(number), Dialect::Python) if !(1e-4..1e16).contains(&number.abs()) => return None,
        (Number::Real(number), Dialect::Python) => number.to_string(),
    })
}

struct ExpressionParser<'t> {
    bytes: &'t [u8],
    at: usize,
    depth: u32,
    dialect: Dialect,
    /// Something was not understood or has no value: drop the rest of the input.
    failed: bool,
}

impl ExpressionParser<'_> {
    fn fail(&mut self) -> Number {
        self.failed = true;
        self.bytes = &[];
        Number::Whole(0)
    }

    /// A whole number, or a failure if there is none.
    fn whole(&mut self, number: Option<i64>) -> Number {
        number.map_or_else(|| self.fail(), Number::Whole)
    }

    /// Whether expressions may nest one level deeper.
    fn deeper(&mut self) -> bool {
        self.depth += 1;
        if self.depth > 20 {
            self.fail();
        }
        !self.failed
    }

    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(sign.as_bytes()));
        if found {
            self.at += sign.len();
            self.blanks();
        }
        found
    }

    fn sum(&mut self) -> Number {
        if !self.deeper() {
            return Number::Whole(0);
        }
        let mut left = self.product();
        loop {
            let plus = self.eat("+");
            if !plus && !self.eat("-") {
                break;
            }
            left = match (left, self.product()) {
                (Number::Whole(a), Number::Whole(b)) => {
                    self.whole(if plus { a.checked_add(b) } else { a.checked_sub(b) })
                }
                (a, b) => Number::Real(if plus { a.real() + b.real() } else { a.real() - b.real() }),
            };
        }
        self.depth -= 1;
        left
    }

    fn product(&mut self) -> Number {
        let mut left = self.power();
        loop {
            let sign = ["//", "/", "%", "*"].iter().find(|sign| self.eat(sign));
            let Some(sign) = sign else { return left };
            let right = self.power();
            // The program would end with an error; its output is then unknown.
            if *sign != "*" && right.real() == 0.0 {
                return self.fail();
            }
            left = match (*sign, left, right) {
                ("*", Number::Whole(a), Number::Whole(b)) => self.whole(a.checked_mul(b)),
                ("*", a, b) => Number::Real(a.real() * b.real()),
                ("/", a, b) => Number::Real(a.real() / b.real()),
                // In awk it starts a regular expression.
                ("//", ..) if self.dialect == Dialect::Awk => return self.fail(),
                (sign, Number::Whole(a), Number::Whole(b)) => {
                    let mut rest = a.checked_rem(b);
                    // Python's remainder has the sign of the divisor, awk's that of the dividend.
                    if self.dialect == Dialect::Python {
                        rest =
                            rest.map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest });
                    }
                    self.whole(if sign == "%" {
                        rest
                    } else {
                        rest.and_then(|rest| a.checked_sub(rest)?.checked_div(b))
                    })
                }
                ("//", a, b) => Number::Real((a.real() / b.real()).floor()),
                (_, a, b) => {
                    let (a, b) = (a.real(), b.real());
                    let rest = a % b;
                    let turned = self.dialect == Dialect::Python && rest != 0.0 && (rest < 0.0) != (b < 0.0);
                    Number::Real(if turned { rest + b } else { rest })
                }
            };
        }
    }

    fn power(&mut self) -> Number {
        let base = self.signed();
        // Python's `^` is a different operation (xor), which is not supported here.
        let raises = self.eat("**") || (self.dialect == Dialect::Awk && self.eat("^"));
        if !raises {
            return base;
        }
        if !self.deeper() {
            return base;
        }
        let exponent = self.power();
        self.depth -= 1;
        match (base, exponent) {
            // Python's integers are unbounded: what an i64 cannot hold is not computed.
            (Number::Whole(a), Number::Whole(b)) if b >= 0 => {
                self.whole(u32::try_from(b).ok().and_then(|b| a.checked_pow(b)))
            }
            (a, b) => Number::Real(a.real().powf(b.real())),
        }
    }

    fn signed(&mut self) -> Number {
        if self.eat("-") {
            if !self.deeper() {
                return Number::Whole(0);
            }
            // Unary minus binds looser than the power: -2**2 is -4.
            let number = self.power();
            self.depth -= 1;
            return match number {
                Number::Whole(number) => self.whole(number.checked_neg()),
                Number::Real(number) => Number::Real(-number),
            };
        }
        for name in &["int(", "round(", "float(", "abs(", "max(", "min(", "math.ceil(", "math.floor(", "("] {
            if self.eat(name) {
                return self.call(name);
            }
        }
        self.literal()
    }

    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    fn call(&mut self, name: &str) -> Number {
        let mut number = self.sum();
        while matches!(name, "max(" | "min(") && self.eat(",") {
            let other = self.sum();
            if (name == "max(") == (other.real() > number.real()) {
                number = other;
            }
        }
        if !self.eat(")") {
            return self.fail();
        }
        let real = number.real();
        let rounded = match name {
            "int(" => real.trunc(),
            // Python rounds halves to even.
            "round(" => real.round_ties_even(),
            "math.ceil(" => real.ceil(),
            "math.floor(" => real.floor(),
            "float(" => return Number::Real(real),
            "abs(" => {
                return match number {
                    Number::Whole(number) => self.whole(number.checked_abs()),
                    Number::Real(number) => Number::Real(number.abs()),
                };
            }
            _ => return number,
        };
        // Below 2^53 a double is the whole number itself.
        self.whole((rounded.abs() < 9e15).then_some(rounded as i64))
    }

    fn literal(&mut self) -> Number {
        let start = self.at;
        let mut last = 0;
        while let Some(byte) = self.bytes.get(self.at) {
            let part = byte.is_ascii_digit()
                || matches!(byte, b'.' | b'_' | b'e' | b'E')
                || (matches!(byte, b'+' | b'-') && matches!(last, b'e' | b'E'));
            if !part {
                break;
            }
            last = *byte;
            self.at += 1;
        }
        let mut text = String::new();
        for byte in self.bytes.get(start..self.at).unwrap_or(&[]) {
            if *byte != b'_' {
                text.push(char::from(*byte));
            }
        }
        self.blanks();
        if self.dialect == Dialect::Python
            && text.starts_with('0')
            && text.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
        {
            return self.fail();
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.whole(text.parse().ok());
        }
        text.parse().map_or_else(|_| self.fail(), Number::Real)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, evaluate};

    #[test]
    fn each_program_computes_in_its_way() {
        for (text, dialect, expected) in [
            ("1024 * 8", Dialect::Python, Some("8192")),
            ("7 / 2", Dialect::Python, Some("3.5")),
            ("8 / 2", Dialect::Python, Some("4.0")),
            ("-7 // 2", Dialect::Python, Some("-4")),
            ("int(300e9 / 2048)", Dialect::Python, Some("146484375")),
            ("2**10 + max(1, 3)", Dialect::Python, Some("1027")),
            ("-2**2+8", Dialect::Python, Some("4")),
            ("7 % -3", Dialect::Python, Some("-2")),
            ("7 // -2", Dialect::Python, Some("-4")),
            ("6^2", Dialect::Python, None),
            ("010", Dialect::Python, None),
            ("-7 % 3", Dialect::Awk, Some("-1")),
            ("10/3", Dialect::Awk, Some("3.33333")),
            ("5*0.5", Dialect::Awk, Some("2.5")),
            ("torch.cuda.device_count()", Dialect::Python, None),
            ("1 / 0", Dialect::Python, None),
        ] {
            assert_eq!(evaluate(text, dialect).as_deref(), expected, "{text}");
        }
    }
}

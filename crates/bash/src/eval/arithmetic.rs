//! Integer arithmetic as in `$(( ))`: 64 bits, wrapping, assignments included.

use super::super::script::HoleKind;
use super::super::value::{HoleId, Value};
use super::number::{ArithmeticError, NoNumber, apply};
use super::state::Evaluator;
use super::texts::byte_at;
use shardscope_source::{Code, Diagnostic, Span};

type Number = Result<i64, NoNumber>;

/// Maximum nesting of parentheses and of variables that hold expressions.
const DEPTH: u32 = 24;

impl Evaluator<'_> {
    /// The value of an expression as text: a number or a hole.
    pub(crate) fn arithmetic_value(&mut self, expression: &Value, span: Span) -> Value {
        match self.number(expression, 0) {
            Ok(number) => Value::computed(&number.to_string(), span),
            Err(NoNumber::Hole(hole)) => {
                self.unknown(HoleKind::Arithmetic, expression.text().trim(), span, vec![hole])
            }
            Err(NoNumber::Wrong(why)) => {
                let text = expression.text().trim();
                let shown = text.get(..byte_at(text, 60)).unwrap_or(text);
                let message = format!("{shown}: {why}");
                self.notes.report(Diagnostic::warning(Code::Arithmetic, message).at(span));
                self.unknown(HoleKind::Arithmetic, shown, span, Vec::new())
            }
        }
    }

    pub(crate) fn number(&mut self, expression: &Value, depth: u32) -> Number {
        if depth > DEPTH {
            return Err(NoNumber::Wrong(ArithmeticError::EndlessVariables));
        }
        if !self.spend(expression.weight(), expression.origin().unwrap_or_default()) {
            return Err(NoNumber::Wrong(ArithmeticError::TooMuchWork));
        }
        let mut reader = ArithmeticParser {
            shell: self,
            value: expression,
            bytes: expression.text().as_bytes(),
            at: 0,
            depth,
            dry: 0,
            failure: None,
        };
        reader.blanks();
        if reader.at == reader.bytes.len() {
            // An empty expression is 0 in bash: `$(( ))`.
            return Ok(0);
        }
        let number = reader.comma();
        // After a failure `bytes` is empty, so this only applies if nothing failed.
        if reader.at < reader.bytes.len() {
            reader.fail(ArithmeticError::NoExpression);
        }
        reader.failure.map_or(Ok(number), Err)
    }
}

struct ArithmeticParser<'s, 'a, 'v> {
    shell: &'s mut Evaluator<'a>,
    value: &'v Value,
    bytes: &'v [u8],
    at: usize,
    depth: u32,
    /// Nesting in parts that are parsed but not evaluated: the side of `&&`, `||`, `?:` not taken.
    dry: u32,
    failure: Option<NoNumber>,
}

/// Binary operators, longest first among those that share a start, with their precedence.
const OPERATORS: [(&str, u8); 19] = [
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("**", 11),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

impl ArithmeticParser<'_, '_, '_> {
    /// Gives up: drops the rest of the input and computes nothing more.
    fn fail(&mut self, why: ArithmeticError) -> i64 {
        self.fail_by(NoNumber::Wrong(why))
    }

    fn fail_by(&mut self, why: NoNumber) -> i64 {
        self.failure = self.failure.or(Some(why));
        // This ends every loop that looks for an operator, without a `?` in each of them.
        self.bytes = &[];
        0
    }

    /// Whether the current part is parsed without being evaluated.
    fn is_dry(&self) -> bool {
        self.dry > 0 || self.failure.is_some()
    }

    fn apply(&mut self, sign: &str, left: i64, right: i64) -> i64 {
        // `x && 1/y` does not divide where x is 0, and `x ? a : b` sets nothing in the branch not taken.
        if self.is_dry() {
            return 0;
        }
        apply(sign, left, right).unwrap_or_else(|why| self.fail(why))
    }

    fn blanks(&mut self) {
        // A backslash of a continued line.
        while self.bytes.get(self.at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'\\') {
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

    fn comma(&mut self) -> i64 {
        let mut number = self.choice();
        while self.eat(",") {
            number = self.choice();
        }
        number
    }

    fn choice(&mut self) -> i64 {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.fail(ArithmeticError::TooDeep);
        }
        let condition = self.binary(1);
        let number = if self.eat("?") {
            let yes = self.skipping(condition == 0, Self::comma);
            if !self.eat(":") {
                return self.fail(ArithmeticError::LonelyQuestionMark);
            }
            let no = self.skipping(condition != 0, Self::choice);
            if condition != 0 { yes } else { no }
        } else {
            condition
        };
        self.depth -= 1;
        number
    }

    fn skipping(&mut self, dry: bool, inner: impl FnOnce(&mut Self) -> i64) -> i64 {
        self.dry += u32::from(dry);
        let number = inner(self);
        self.dry -= u32::from(dry);
        number
    }

    /// The operator at this position, its precedence, and whether an `=` makes it an assignment.
    fn operator(&self) -> Option<(&'static str, u8, bool)> {
        /// Precedence limits: operators that may be followed by `=` (except `**`), and the tightest comparison.
        const COMPARED: u8 = 7;
        let rest = self.bytes.get(self.at..)?;
        let (sign, power) = *OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign.as_bytes()))?;
        let arithmetic = power > COMPARED || matches!(sign, "|" | "^" | "&");
        let assigns = rest.get(sign.len()) == Some(&b'=') && arithmetic && sign != "**";
        Some((sign, power, assigns))
    }

    fn binary(&mut self, least: u8) -> i64 {
        let mut left = self.unary();
        while let Some((sign, power, assigns)) = self.operator() {
            if power < least || assigns {
                break;
            }
            self.eat(sign);
            let dry = (sign == "&&" && left == 0) || (sign == "||" && left != 0);
            // `**` is right-associative: 2**3**2 is 2**9.
            let next = if sign == "**" { power } else { power + 1 };
            let right = self.skipping(dry, |reader| reader.deeper(next));
            left = self.apply(sign, left, right);
        }
        left
    }

    fn deeper(&mut self, least: u8) -> i64 {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.fail(ArithmeticError::TooDeep);
        }
        let number = self.binary(least);
        self.depth -= 1;
        number
    }

    /// Takes `++` or `--` before a name; before a number they are two unary operators.
    fn steps_name(&mut self, sign: &str) -> bool {
        let start = self.at;
        if self.eat(sign) {
            if self.bytes.get(self.at).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
                return true;
            }
            self.at = start;
        }
        false
    }

    fn unary(&mut self) -> i64 {
        let before = self.steps_name("++");
        if before || self.steps_name("--") {
            let name = self.name();
            let index = self.index();
            let old = self.read(&name, index);
            return self.assign(&name, index, old.wrapping_add(if before { 1 } else { -1 }));
        }
        self.depth += 1;
        if self.depth > DEPTH {
            return self.fail(ArithmeticError::TooDeep);
        }
        // Tighter than `**`, as in bash: -2**2 is 4.
        let number = if self.eat("-") {
            self.unary().wrapping_neg()
        } else if self.eat("+") {
            self.unary()
        } else if self.eat("!") {
            i64::from(self.unary() == 0)
        } else if self.eat("~") {
            !self.unary()
        } else {
            self.primary()
        };
        self.depth -= 1;
        number
    }

    fn primary(&mut self) -> i64 {
        if self.eat("(") {
            let number = self.comma();
            if !self.eat(")") {
                return self.fail(ArithmeticError::OpenParenthesis);
            }
            return number;
        }
        if let Some(hole) = self.hole() {
            return if self.dry > 0 { 0 } else { self.fail_by(NoNumber::Hole(hole)) };
        }
        match self.bytes.get(self.at) {
            Some(byte) if byte.is_ascii_digit() => self.literal(),
            Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => self.variable(),
            // Bash removes quotes before evaluating.
            Some(b'"' | b'\'') => {
                self.at += 1;
                self.primary()
            }
            _ => self.fail(ArithmeticError::NoExpression),
        }
    }

    /// The hole at this position; the text continues after it.
    fn hole(&mut self) -> Option<HoleId> {
        // A hole's name begins with one of these; only then is the search below worth its cost.
        if !matches!(self.bytes.get(self.at), Some(b'$' | b'<')) {
            return None;
        }
        let mut start = 0;
        for piece in self.value.pieces() {
            if start == self.at && piece.hole.is_some() {
                self.at += piece.text.len();
                self.blanks();
                return piece.hole;
            }
            start += piece.text.len();
        }
        None
    }

    fn literal(&mut self) -> i64 {
        let start = self.at;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'#' | b'@');
        self.at += self.bytes.get(start..).unwrap_or(&[]).iter().take_while(|byte| is_part(byte)).count();
        let text = self.value.text().get(start..self.at).unwrap_or("");
        if self.bytes.get(self.at) == Some(&b'.') {
            return self.fail(ArithmeticError::Fraction);
        }
        self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'"' | b'\'')));
        self.blanks();
        let (digits, base) = match text.split_once('#') {
            Some((base, digits)) => (digits, base.parse().unwrap_or(0)),
            None if text.starts_with("0x") || text.starts_with("0X") => (text.get(2..).unwrap_or(""), 16),
            // `08` fails in bash, too.
            None if text.len() > 1 && text.starts_with('0') => (text, 8),
            None => (text, 10),
        };
        if !(2..=36).contains(&base) {
            return self.fail(ArithmeticError::NoSuchBase);
        }
        i64::from_str_radix(digits, base).unwrap_or_else(|_| self.fail(ArithmeticError::NoInteger))
    }

    fn name(&mut self) -> String {
        let start = self.at;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        self.at += self.bytes.get(start..).unwrap_or(&[]).iter().take_while(|byte| is_part(byte)).count();
        let name = self.value.text().get(start..self.at).unwrap_or("").to_owned();
        self.blanks();
        name
    }

    fn index(&mut self) -> Option<i64> {
        if !self.eat("[") {
            return None;
        }
        let index = self.comma();
        if !self.eat("]") {
            self.fail(ArithmeticError::OpenIndex);
        }
        Some(index)
    }

    fn variable(&mut self) -> i64 {
        let name = self.name();
        let index = self.index();
        let more = self.eat("++");
        if more || self.eat("--") {
            let old = self.read(&name, index);
            self.assign(&name, index, old.wrapping_add(if more { 1 } else { -1 }));
            return old;
        }
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        if rest.first() == Some(&b'=') && rest.get(1) != Some(&b'=') {
            self.eat("=");
            let number = self.choice();
            return self.assign(&name, index, number);
        }
        if let Some((sign, _, true)) = self.operator() {
            self.at += sign.len() + 1;
            self.blanks();
            let old = self.read(&name, index);
            let change = self.choice();
            let number = self.apply(sign, old, change);
            return self.assign(&name, index, number);
        }
        self.read(&name, index)
    }

    fn read(&mut self, name: &str, index: Option<i64>) -> i64 {
        if self.is_dry() {
            return 0;
        }
        let value = match index {
            Some(index) => self.shell.element(name, index),
            None => self.shell.scalar(name).cloned(),
        };
        // A variable's text is itself an expression: N="2*M" is evaluated where N is read.
        let found = match value {
            Some(value) => self.shell.number(&value, self.depth + 1),
            None => {
                let span = self.value.origin().unwrap_or_default();
                // Bash would use 0. Here it is an unknown that the environment would have to provide.
                Err(NoNumber::Hole(self.shell.notes.hole(HoleKind::Variable, name, span, Vec::new())))
            }
        };
        found.unwrap_or_else(|why| self.fail_by(why))
    }

    fn assign(&mut self, name: &str, index: Option<i64>, number: i64) -> i64 {
        if !self.is_dry() && !name.is_empty() {
            let span = self.value.origin().unwrap_or_default();
            let value = Value::computed(&number.to_string(), span);
            match index {
                Some(index) => self.shell.set_element(name, index, value, span),
                None => self.shell.set(name, value, Some(span)),
            }
        }
        number
    }
}

//! Expressions of a Python program as far as configurations use them: literals, dotted names, lists, calls with keywords, and
//! arithmetic on whole numbers. Anything else is [`Expression::Unknown`]; nothing is executed.

use super::arithmetic::whole;

/// Brackets inside brackets that are followed.
const DEEPEST: u32 = 24;
/// Values of one list, and arguments of one call.
const LONGEST: usize = 512;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A quoted text.
    Text(String),
    /// A number as written, without underscores.
    Number(String),
    /// A dotted name: `True`, `None`, `torch.bfloat16`, `cfg.model`.
    Name(String),
    /// Values in order.
    List(Vec<Expression>),
    /// A call by its dotted name; methods called on what it gives are left out.
    Call(String, Vec<Argument>),
    /// Arithmetic with names, which is worked out where these stand for whole numbers; `or` takes the first that is there.
    Computed(Box<Expression>, &'static str, Box<Expression>),
    /// Something that is not read.
    Unknown,
}

/// An argument with its keyword.
pub type Argument = (Option<String>, Expression);

/// The expression that a text is.
pub fn expression(text: &str) -> Expression {
    let mut cursor = Cursor { text, at: 0, depth: 0, signs: 0 };
    let read = cursor.sum();
    cursor.blanks();
    if cursor.at < text.len() { Expression::Unknown } else { read }
}

/// The parameters in the parentheses that a text begins with, each with its default.
pub fn parameters(text: &str) -> Vec<(String, Option<Expression>)> {
    let mut cursor = Cursor { text, at: 1, depth: 0, signs: 0 };
    let mut out = Vec::new();
    while out.len() < LONGEST {
        cursor.blanks();
        match cursor.sign() {
            None | Some(b')') => break,
            Some(sign) if sign.is_ascii_alphabetic() || sign == b'_' => {
                let name = cursor.dotted();
                cursor.skip_type();
                let has_default = cursor.sign() == Some(b'=');
                cursor.at += usize::from(has_default);
                out.push((name, has_default.then(|| cursor.sum())));
            }
            _ => cursor.at += 1,
        }
    }
    out
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    /// Signs of arithmetic that have been read.
    signs: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn sign(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips blanks, line ends and comments.
    fn blanks(&mut self) {
        while let Some(sign) = self.sign() {
            match sign {
                b'#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                b'\\' => self.at += 1,
                sign if sign.is_ascii_whitespace() => self.at += 1,
                _ => return,
            }
        }
    }

    /// Terms joined by signs of arithmetic, or by `or`.
    fn sum(&mut self) -> Expression {
        let mut left = self.joined(&["+", "-"]);
        while self.rest().starts_with("or ") {
            self.at += "or ".len();
            let right = self.joined(&["+", "-"]);
            left = self.computed(left, "or", right);
        }
        // Conditions, comparisons, subscripts: not read, up to where the value ends.
        if !matches!(self.sign(), None | Some(b',' | b')' | b']' | b'}')) {
            self.skip();
            return Expression::Unknown;
        }
        left
    }

    /// Parts joined by these signs, or by those that bind closer, from left to right.
    fn joined(&mut self, signs: &'static [&'static str]) -> Expression {
        const PRODUCTS: &[&str] = &["//", "*", "/", "%"];
        const POWERS: &[&str] = &["**"];
        let part = |cursor: &mut Self| match signs {
            ["+", ..] => cursor.joined(PRODUCTS),
            ["//", ..] => cursor.joined(POWERS),
            _ => cursor.term(),
        };
        let mut left = part(self);
        loop {
            self.blanks();
            let rest = self.rest();
            let closer = signs != POWERS && rest.starts_with("**");
            let Some(sign) = signs.iter().find(|sign| rest.starts_with(**sign) && !closer) else {
                return left;
            };
            self.at += sign.len();
            let right = part(self);
            left = self.computed(left, sign, right);
        }
    }

    /// Two parts as one, unless there are too many to be followed.
    fn computed(&mut self, left: Expression, sign: &'static str, right: Expression) -> Expression {
        self.signs += 1;
        if self.signs > LONGEST { Expression::Unknown } else { computed(left, sign, right) }
    }

    fn term(&mut self) -> Expression {
        self.blanks();
        match self.sign() {
            Some(b'"' | b'\'') => self.quoted(),
            Some(b'[') => self.list(b']'),
            Some(b'(') => self.list(b')'),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(sign) if sign.is_ascii_alphabetic() || sign == b'_' => self.named(),
            _ => {
                self.skip();
                Expression::Unknown
            }
        }
    }

    fn quoted(&mut self) -> Expression {
        let rest = self.rest();
        let open = if rest.starts_with("\"\"\"") || rest.starts_with("'''") { 3 } else { 1 };
        let close = rest.get(..open).unwrap_or("");
        let Some(length) = rest.get(open..).and_then(|inner| inner.find(close)) else {
            self.at = self.text.len();
            return Expression::Unknown;
        };
        let inner = rest.get(open..open + length).unwrap_or("").to_owned();
        self.at += open + length + open;
        // Texts that stand one behind the other are one.
        self.blanks();
        if matches!(self.sign(), Some(b'"' | b'\'')) {
            return match self.quoted() {
                Expression::Text(more) => Expression::Text(inner + &more),
                other => other,
            };
        }
        if inner.contains('\\') { Expression::Unknown } else { Expression::Text(inner) }
    }

    fn list(&mut self, close: u8) -> Expression {
        if self.depth == DEEPEST {
            self.skip();
            return Expression::Unknown;
        }
        self.depth += 1;
        self.at += 1;
        let (mut items, mut commas) = (Vec::new(), 0);
        loop {
            self.blanks();
            match self.sign() {
                Some(sign) if sign == close => {
                    self.at += 1;
                    break;
                }
                Some(b',') => {
                    self.at += 1;
                    commas += 1;
                }
                None | Some(b')' | b']' | b'}') => break,
                Some(_) => {
                    let item = self.sum();
                    if items.len() < LONGEST {
                        items.push(item);
                    }
                }
            }
        }
        self.depth -= 1;
        match (close, items.as_mut_slice()) {
            (b')', [only]) if commas == 0 => std::mem::replace(only, Expression::Unknown),
            _ => Expression::List(items),
        }
    }

    fn number(&mut self) -> Expression {
        let rest = self.rest();
        let mut length = 0;
        let mut before = b' ';
        for byte in rest.bytes() {
            let signed = matches!(byte, b'-' | b'+') && (length == 0 || matches!(before, b'e' | b'E'));
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || signed) {
                break;
            }
            before = byte;
            length += 1;
        }
        self.at += length.max(1);
        let written = rest.get(..length).unwrap_or("").replace('_', "");
        if written.parse::<f64>().is_ok() { Expression::Number(written) } else { Expression::Unknown }
    }

    fn named(&mut self) -> Expression {
        let name = self.dotted();
        // f"", r"" and the like; a lambda.
        if matches!(self.sign(), Some(b'"' | b'\'')) || name == "lambda" || name == "not" {
            self.skip();
            return Expression::Unknown;
        }
        if self.sign() != Some(b'(') {
            return Expression::Name(name);
        }
        let Some(arguments) = self.arguments() else { return Expression::Unknown };
        // .method(...) on what the call gives.
        while self.sign() == Some(b'.') {
            self.at += 1;
            self.dotted();
            if self.sign() == Some(b'(') && self.arguments().is_none() {
                return Expression::Unknown;
            }
        }
        Expression::Call(name, arguments)
    }

    fn dotted(&mut self) -> String {
        let rest = self.rest();
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        let length = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or("").to_owned()
    }

    fn arguments(&mut self) -> Option<Vec<Argument>> {
        if self.depth == DEEPEST {
            self.skip();
            return None;
        }
        self.depth += 1;
        self.at += 1;
        let mut out = Vec::new();
        loop {
            self.blanks();
            match self.sign() {
                Some(b')') => {
                    self.at += 1;
                    break;
                }
                Some(b',') => self.at += 1,
                None | Some(b']' | b'}') => break,
                Some(_) => {
                    let keyword = self.keyword();
                    let value = self.sum();
                    if out.len() < LONGEST {
                        out.push((keyword, value));
                    }
                }
            }
        }
        self.depth -= 1;
        Some(out)
    }

    /// `: Type` of a parameter.
    fn skip_type(&mut self) {
        let mut depth = 0_u32;
        while let Some(sign) = self.sign() {
            match sign {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth > 0 => depth -= 1,
                b'=' | b',' | b')' if depth == 0 => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// `name =`
    fn keyword(&mut self) -> Option<String> {
        let start = self.at;
        let name = self.dotted();
        self.blanks();
        let rest = self.rest();
        if !name.is_empty() && rest.starts_with('=') && !rest.starts_with("==") {
            self.at += 1;
            return Some(name);
        }
        self.at = start;
        None
    }

    /// Skips to the end of a value: a comma or a closing bracket of the same depth.
    fn skip(&mut self) {
        let mut depth = 0_u32;
        while let Some(sign) = self.sign() {
            match sign {
                b'"' | b'\'' => {
                    self.quoted();
                    continue;
                }
                b'#' => {
                    self.blanks();
                    continue;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth == 0 => return,
                b')' | b']' | b'}' => depth -= 1,
                b',' if depth == 0 => return,
                _ => {}
            }
            self.at += 1;
        }
    }
}

/// Arithmetic on whole numbers, or on names that may stand for some.
fn computed(left: Expression, sign: &'static str, right: Expression) -> Expression {
    let open = |side: &Expression| matches!(side, Expression::Name(_) | Expression::Computed(..));
    let known = |side: &Expression| open(side) || matches!(side, Expression::Number(_));
    if known(&left) && known(&right) && (open(&left) || open(&right)) {
        return Expression::Computed(Box::new(left), sign, Box::new(right));
    }
    let (Expression::Number(left), Expression::Number(right)) = (left, right) else {
        return Expression::Unknown;
    };
    whole(&left, sign, &right).map_or(Expression::Unknown, Expression::Number)
}

#[cfg(test)]
mod tests {
    use super::{Expression, expression};
    use Expression::{Call, List, Name, Number, Text, Unknown};

    #[test]
    fn literals_names_and_calls_are_read_and_the_rest_is_unknown() {
        let text = |text: &str| Text(text.to_owned());
        let number = |text: &str| Number(text.to_owned());
        let cases = [
            ("\"bf16\"", text("bf16")),
            ("'a' \"b\"", text("ab")),
            ("8 * 2_048", number("16384")),
            ("1 + 2 * 3 ** 2", number("19")),
            ("2**21 // 2", number("1048576")),
            ("3e-4", number("3e-4")),
            ("-1", number("-1")),
            ("torch.bfloat16", Name("torch.bfloat16".to_owned())),
            ("[1, 'x',]", List(vec![number("1"), text("x")])),
            ("(2)", number("2")),
            (
                "AutoBridge.from_hf_pretrained(\"Qwen/Qwen2-0.5B\").to_megatron_provider(load_weights=False)",
                Call("AutoBridge.from_hf_pretrained".to_owned(), vec![(None, text("Qwen/Qwen2-0.5B"))]),
            ),
            (
                "FullAC.Config(x = Y(), # why\n z=None)",
                Call(
                    "FullAC.Config".to_owned(),
                    vec![
                        (Some("x".to_owned()), Call("Y".to_owned(), Vec::new())),
                        (Some("z".to_owned()), Name("None".to_owned())),
                    ],
                ),
            ),
            ("a if b else c", Unknown),
            ("f\"{x}\"", Unknown),
            ("{'a': 1}", Unknown),
            ("x[0]", Unknown),
            (
                "f(a if b else c, k=2)",
                Call("f".to_owned(), vec![(None, Unknown), (Some("k".to_owned()), number("2"))]),
            ),
            ("(((((", List(Vec::new())),
            ("", Unknown),
        ];
        for (written, expected) in cases {
            assert_eq!(expression(written), expected, "{written}");
        }
    }
}

use super::Writer;

/// Deepest nesting read.
const DEPTH: u32 = 100;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Truth(bool),
    /// A number as it is written.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// Names and values, as they stand.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one value and nothing else.
    ///
    /// # Errors
    /// The byte where the text stops being JSON.
    pub fn read(text: &str) -> Result<Self, usize> {
        let mut reader = Reader { text, at: 0 };
        match reader.value(DEPTH) {
            Some(value) if reader.peek() == 0 && reader.at == text.len() => Ok(value),
            _ => Err(reader.at),
        }
    }

    /// The value of this name, in an object; the last of several.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.pairs().iter().rev().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// The text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The values of a list; none of anything else.
    #[must_use]
    pub fn list(&self) -> &[Json] {
        match self {
            Self::List(values) => values,
            _ => &[],
        }
    }

    /// The names and values of an object; none of anything else.
    #[must_use]
    pub fn pairs(&self) -> &[(String, Json)] {
        match self {
            Self::Object(pairs) => pairs,
            _ => &[],
        }
    }

    /// Writes the value.
    pub fn write(&self, w: &mut Writer, name: &str) {
        match self {
            Self::Null => w.null(name),
            Self::Truth(truth) => w.truth(name, *truth),
            Self::Number(number) => w.plain(name, number),
            Self::Text(text) => w.text(name, text),
            Self::List(values) => {
                w.list(name);
                for value in values {
                    value.write(w, "");
                }
                w.close();
            }
            Self::Object(pairs) => {
                w.object(name);
                for (name, value) in pairs {
                    value.write(w, name);
                }
                w.close();
            }
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    /// The next byte that is no blank; 0 at the end.
    fn peek(&mut self) -> u8 {
        while let b' ' | b'\n' | b'\r' | b'\t' = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: u32) -> Option<Json> {
        let depth = depth.checked_sub(1)?;
        match self.peek() {
            b'"' => self.quoted().map(Json::Text),
            b'[' => {
                self.at += 1;
                let mut values = Vec::new();
                while !self.eat(b']') {
                    if !values.is_empty() && !self.eat(b',') {
                        return None;
                    }
                    values.push(self.value(depth)?);
                }
                Some(Json::List(values))
            }
            b'{' => {
                self.at += 1;
                let mut pairs = Vec::new();
                while !self.eat(b'}') {
                    if !pairs.is_empty() && !self.eat(b',') {
                        return None;
                    }
                    self.peek();
                    let name = self.quoted()?;
                    if !self.eat(b':') {
                        return None;
                    }
                    pairs.push((name, self.value(depth)?));
                }
                Some(Json::Object(pairs))
            }
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Option<Json> {
        let start = self.at;
        while let b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.' = self.byte() {
            self.at += 1;
        }
        let word = self.text.get(start..self.at)?;
        let value = match word {
            "null" => Json::Null,
            "true" => Json::Truth(true),
            "false" => Json::Truth(false),
            _ if is_number(word.as_bytes()) => Json::Number(word.to_owned()),
            _ => {
                self.at = start;
                return None;
            }
        };
        Some(value)
    }

    fn quoted(&mut self) -> Option<String> {
        if self.byte() != b'"' {
            return None;
        }
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while !matches!(self.byte(), b'"' | b'\\' | 0..b' ') {
                self.at += 1;
            }
            out.push_str(self.text.get(start..self.at)?);
            let end = self.byte();
            if end != b'\\' {
                self.at += usize::from(end == b'"');
                return (end == b'"').then_some(out);
            }
            self.at += 1;
            let escape = self.byte();
            self.at += 1;
            out.push(match escape {
                b'"' | b'\\' | b'/' => char::from(escape),
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'u' => self.unit()?,
                _ => return None,
            });
        }
    }

    /// A character by its number, perhaps in two halves.
    fn unit(&mut self) -> Option<char> {
        let high = self.hex()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        if self.text.get(self.at..self.at + 2)? != "\\u" {
            return None;
        }
        self.at += 2;
        let low = self.hex()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if digits.starts_with('+') {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// `-`, digits without a leading zero, perhaps a fraction, perhaps an exponent.
fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text.first() == Some(&b'0')) {
        return false;
    }
    let mut rest = text.get(whole..).unwrap_or_default();
    if let [b'.', fraction @ ..] = rest {
        let some = digits(fraction);
        if some == 0 {
            return false;
        }
        rest = fraction.get(some..).unwrap_or_default();
    }
    if let [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] = rest {
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::{Json, Writer};

    #[test]
    fn reads_what_another_library_reads_and_nothing_else() {
        let texts = [
            "",
            "null",
            " true ",
            "false",
            "nul",
            "0",
            "-0",
            "01",
            "1.",
            ".5",
            "1.5e-3",
            "1e",
            "1E+5",
            "-",
            "+1",
            "[]",
            "[1,2]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[",
            "]",
            "{}",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\" : [ {} , null ] }",
            "{\"a\"}",
            "{\"a\":1,\"a\":2}",
            "\"\"",
            "\"a\nb\"",
            "\"\\u00e9\\ud834\\udd1e\"",
            "\"\\ud834\"",
            "\"\\udd1e\"",
            "\"\\u+0e9\"",
            "\"\\x\"",
            "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
            "\"ß€𝄞\"",
            "\"",
            "\"\\",
            "1 2",
            "{} x",
            "[1]]",
            "NaN",
            "'a'",
            "\"\\u00",
            "\"\\u00é0\"",
            "\u{feff}1",
        ];
        for text in texts {
            let theirs = serde_json::from_str::<serde_json::Value>(text).ok();
            let ours = Json::read(text).ok().map(|value| {
                let mut w = Writer::new(false);
                value.write(&mut w, "");
                w.finish()
            });
            let again = ours.as_deref().and_then(|text| serde_json::from_str(text).ok());
            assert_eq!(again, theirs, "{text}");
            assert_eq!(ours.is_some(), theirs.is_some(), "{text}");
        }
        assert!(Json::read(&"[".repeat(1_000_000)).is_err());
        let last = Json::read("{\"a\":1,\"a\":2}").unwrap();
        assert_eq!(last.get("a"), Some(&Json::Number("2".into())));
    }
}

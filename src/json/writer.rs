/// Below this every whole number is a real.
const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53

/// Writes one JSON value from start to end. Inside a list, names are ignored.
#[derive(Debug, Default)]
pub struct Writer {
    out: String,
    /// What closes each object and list that is open.
    open: Vec<char>,
    /// Whether the next value is the first of its object or list.
    first: bool,
    indented: bool,
}

impl Writer {
    /// A writer of one line, or of a line for each value.
    #[must_use]
    pub fn new(indented: bool) -> Self {
        Self { first: true, indented, ..Self::default() }
    }

    /// The text, everything closed.
    #[must_use]
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }

    fn line(&mut self) {
        if self.indented {
            self.out.push('\n');
            for _ in &self.open {
                self.out.push_str("  ");
            }
        }
    }

    /// What stands before a value.
    #[inline(never)]
    fn name(&mut self, name: &str) {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        let Some(closing) = self.open.last() else { return };
        let named = *closing == '}';
        self.line();
        if named {
            quote(&mut self.out, name);
            self.out.push_str(if self.indented { ": " } else { ":" });
        }
    }

    /// A value that is text already.
    pub(super) fn plain(&mut self, name: &str, value: &str) {
        self.name(name);
        self.out.push_str(value);
    }

    #[inline(never)]
    fn start(&mut self, name: &str, opening: &str, closing: char) {
        self.plain(name, opening);
        self.open.push(closing);
        self.first = true;
    }

    /// Begins an object.
    pub fn object(&mut self, name: &str) {
        self.start(name, "{", '}');
    }

    /// Begins a list.
    pub fn list(&mut self, name: &str) {
        self.start(name, "[", ']');
    }

    /// Ends the object or list begun last.
    #[inline(never)]
    pub fn close(&mut self) {
        let Some(closing) = self.open.pop() else { return };
        if !self.first {
            self.line();
        }
        self.out.push(closing);
        self.first = false;
    }

    /// No value.
    #[inline(never)]
    pub fn null(&mut self, name: &str) {
        self.plain(name, "null");
    }

    /// A text.
    #[inline(never)]
    pub fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        quote(&mut self.out, value);
    }

    /// A whole number.
    #[inline(never)]
    pub fn count(&mut self, name: &str, value: u64) {
        self.plain(name, &value.to_string());
    }

    /// A real; null where it is none.
    #[inline(never)]
    pub fn real(&mut self, name: &str, value: f64) {
        self.plain(name, &shown(value));
    }

    /// A real, without a fraction where it has none and the number is exact.
    pub fn number(&mut self, name: &str, value: f64) {
        let text = shown(value);
        let whole = if value.abs() < EXACT { text.strip_suffix(".0") } else { None };
        self.plain(name, whole.unwrap_or(&text));
    }

    /// True or false.
    #[inline(never)]
    pub fn truth(&mut self, name: &str, value: bool) {
        self.plain(name, if value { "true" } else { "false" });
    }

    /// A whole number; null where there is none.
    pub fn some_count(&mut self, name: &str, value: Option<u64>) {
        match value {
            Some(value) => self.count(name, value),
            None => self.null(name),
        }
    }

    /// A real; null where there is none.
    pub fn some_real(&mut self, name: &str, value: Option<f64>) {
        self.real(name, value.unwrap_or(f64::NAN));
    }

    /// A text; null where there is none.
    pub fn some_text(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.null(name),
        }
    }

    /// Whole numbers.
    #[inline(never)]
    pub fn counts(&mut self, name: &str, values: &[u64]) {
        self.list(name);
        for value in values {
            self.count("", *value);
        }
        self.close();
    }

    /// Texts.
    #[inline(never)]
    pub fn texts(&mut self, name: &str, values: &[String]) {
        self.list(name);
        for value in values {
            self.text("", value);
        }
        self.close();
    }

    /// Texts by name.
    #[inline(never)]
    pub fn pairs(&mut self, name: &str, values: &[(String, String)]) {
        self.object(name);
        for (name, value) in values {
            self.text(name, value);
        }
        self.close();
    }
}

/// The least power of ten from which, and the least below which, a number is written with an exponent.
const LONG: f64 = 1e16;
const SHORT: f64 = 1e-5;

/// `value` as JSON has it, with as few digits as tell it from every other; null where it is no number.
fn shown(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "null".to_owned()
    } else if size >= LONG {
        format!("{value:e}").replace('e', "e+")
    } else if size != 0.0 && size < SHORT {
        format!("{value:e}")
    } else {
        format!("{value:?}")
    }
}

fn quote(out: &mut String, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    for c in text.chars() {
        let short = match c {
            '"' | '\\' => c,
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\u{8}' => 'b',
            '\u{c}' => 'f',
            '\0'..' ' => {
                out.push_str("\\u00");
                out.push(if c < '\u{10}' { '0' } else { '1' });
                out.push(char::from(DIGITS[c as usize & 15]));
                continue;
            }
            _ => {
                out.push(c);
                continue;
            }
        };
        out.push('\\');
        out.push(short);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::Writer;
    use serde_json::{Value, json};

    fn written(indented: bool) -> String {
        let mut w = Writer::new(indented);
        w.object("");
        w.text("a \"text\"", "\u{0}\u{8}\t\n\u{c}\r\u{1f}\u{7f}\"\\ß€𝄞");
        w.counts("counts", &[0, u64::MAX]);
        w.counts("none", &[]);
        w.object("empty");
        w.close();
        w.list("mixed");
        w.real("", 0.1);
        w.real("", -3.0);
        w.number("", -3.0);
        w.number("", 1.5e-9);
        w.real("", f64::NAN);
        w.truth("", true);
        w.some_count("", None);
        w.object("");
        w.null("inner");
        w.pairs("pairs", &[("x".into(), "y".into())]);
        w.finish()
    }

    #[test]
    fn another_library_reads_and_writes_the_same() {
        let expected = json!({
            "a \"text\"": "\u{0}\u{8}\t\n\u{c}\r\u{1f}\u{7f}\"\\ß€𝄞",
            "counts": [0, u64::MAX],
            "none": [],
            "empty": {},
            "mixed": [0.1, -3.0, -3, 1.5e-9, null, true, null, { "inner": null, "pairs": { "x": "y" } }],
        });
        assert_eq!(serde_json::from_str::<Value>(&written(false)).ok(), Some(expected.clone()));
        assert_eq!(written(false), expected.to_string());
        assert_eq!(written(true), format!("{expected:#}"));
    }
}

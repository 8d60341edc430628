use super::super::script::HoleKind;
use super::super::tree::{Part, Word};
use super::cursor::Parser;
use shardscope_source::{Code, Diagnostic};

/// Longest `<placeholder>`, in bytes.
const LONGEST_PLACEHOLDER: usize = 120;

/// The context of the text being parsed: which characters are special, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A word of a command.
    Plain,
    /// Between double quotes.
    Double,
    /// A here-document: to the end of the text.
    Here,
    /// After `${x:-`, outside and inside double quotes: to the closing brace.
    Brace,
    BraceQuoted,
    /// A pattern before `/` in `${x/pattern/text}`.
    Pattern,
    /// `a[...]`
    Index,
    /// Between `$((` and `))`, or up to `;` in the head of a `for ((`.
    Arithmetic,
    /// The right side of `=~`.
    Regex,
    /// One of the patterns of a `case`, with groups such as `@(a|b)`.
    Group,
}

impl Mode {
    pub(crate) fn quoted(self) -> bool {
        matches!(self, Mode::Double | Mode::Here | Mode::BraceQuoted | Mode::Arithmetic | Mode::Index)
    }
}

impl Parser<'_> {
    /// A word of a command; it has at least one part, or nothing was read.
    pub(crate) fn word(&mut self) -> Word {
        self.word_in(Mode::Plain)
    }

    pub(crate) fn word_in(&mut self, mode: Mode) -> Word {
        self.node();
        let start = self.at;
        let parts = self.nested_parts(mode);
        let braces = self.bytes.get(start..self.at).is_some_and(|bytes| bytes.contains(&b'{'));
        Word { parts, span: self.span(start, self.at), braces }
    }

    /// The parts of a text inside another.
    pub(crate) fn nested_parts(&mut self, mode: Mode) -> Vec<Part> {
        if !self.enter() {
            return Vec::new();
        }
        let parts = self.parts(mode);
        self.leave();
        parts
    }

    /// The parts up to where the mode ends; the closing character is left for the caller.
    pub(crate) fn parts(&mut self, mode: Mode) -> Vec<Part> {
        let mut parts = Vec::new();
        let start = self.at;
        let mut run = self.at;
        let mut level = 0_u32;
        while let Some(byte) = self.peek() {
            // Plain bytes first, since they are the bulk of every text.
            if !matches!(byte, b'\\' | b'$' | b'`' | b'"' | b'\'' | b'<' | b'>') {
                if self.ends(mode, byte, &mut level) {
                    break;
                }
                self.at += 1;
                continue;
            }
            // A hole's name starts with `$` or `<` but is not an expansion: it is kept in one piece.
            if let Some(end) = self.hole_end() {
                self.at = end;
                continue;
            }
            let before = self.at;
            let special = match byte {
                b'\\' => true,
                b'$' => self.opens_expansion(mode),
                b'`' => true,
                // In `Double` it is the end, which `ends` sees; quotes in arithmetic are ignored by the evaluator.
                b'"' => !matches!(mode, Mode::Here | Mode::Arithmetic | Mode::Double),
                b'\'' => {
                    matches!(
                        mode,
                        Mode::Plain | Mode::Brace | Mode::Pattern | Mode::Regex | Mode::Group | Mode::Index
                    ) && !self.is_apostrophe(start)
                }
                _ => mode == Mode::Plain && self.opens_angle(),
            };
            if !special {
                if self.ends(mode, byte, &mut level) {
                    break;
                }
                self.at += 1;
                continue;
            }
            self.flush(run, before, mode.quoted(), &mut parts);
            self.special(byte, mode, &mut parts);
            run = self.at;
        }
        self.flush(run, self.at, mode.quoted(), &mut parts);
        parts
    }

    /// Whether the text read in this mode ends before this byte.
    fn ends(&self, mode: Mode, byte: u8, level: &mut u32) -> bool {
        match mode {
            Mode::Plain => {
                matches!(byte, b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
                    || self.blank_length() > 0
            }
            Mode::Double => byte == b'"',
            Mode::Here => false,
            Mode::Brace | Mode::BraceQuoted => byte == b'}',
            Mode::Pattern => byte == b'}' || byte == b'/',
            // Brackets nest: `a[b[0]]`.
            Mode::Index => match byte {
                b'[' => {
                    *level += 1;
                    false
                }
                b']' if *level > 0 => {
                    *level -= 1;
                    false
                }
                b']' | b'\n' => true,
                _ => false,
            },
            Mode::Arithmetic | Mode::Regex | Mode::Group => match byte {
                b'(' => {
                    *level += 1;
                    false
                }
                b')' if *level > 0 => {
                    *level -= 1;
                    false
                }
                b')' => true,
                b';' => mode == Mode::Arithmetic,
                b'|' if mode == Mode::Group => *level == 0,
                b'\n' => mode != Mode::Arithmetic,
                _ => mode != Mode::Arithmetic && *level == 0 && self.blank_length() > 0,
            },
        }
    }

    /// Adds the literal text between two bytes.
    pub(crate) fn flush(&mut self, from: usize, to: usize, quoted: bool, parts: &mut Vec<Part>) {
        if from >= to {
            return;
        }
        self.node();
        self.pieces(from, to, &mut |text, mark, origin| {
            parts.push(match mark.hole {
                Some(id) => Part::Hole { id, text: text.to_owned(), origin },
                None => Part::Text { text: text.to_owned(), origin, quoted },
            });
        });
    }

    /// A special character: a quote, an escape, an expansion.
    fn special(&mut self, byte: u8, mode: Mode, parts: &mut Vec<Part>) {
        match byte {
            b'\\' => self.escape(mode, parts),
            b'$' => self.dollar(mode, parts),
            b'`' => self.backquoted(mode.quoted(), parts),
            b'"' => self.double_quoted(parts),
            b'\'' => self.single_quoted(parts),
            _ => self.angle(parts),
        }
    }

    fn escape(&mut self, mode: Mode, parts: &mut Vec<Part>) {
        let start = self.at;
        let continued = self.continuation_length();
        if continued > 0 {
            self.at += continued;
            return;
        }
        let Some(next) = self.peek_at(1) else {
            self.at += 1;
            return self.flush(start, self.at, true, parts);
        };
        // Where the backslash itself is kept: between double quotes, before any character that it cannot escape
        // there.
        let kept = match mode {
            Mode::Double | Mode::BraceQuoted => {
                !b"$`\"\\}".contains(&next) || (next == b'}' && mode == Mode::Double)
            }
            Mode::Here | Mode::Arithmetic | Mode::Index => !b"$`\\".contains(&next),
            Mode::Plain | Mode::Brace | Mode::Pattern | Mode::Group => false,
            Mode::Regex => true,
        };
        let length =
            self.text.get(start + 1..self.end).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        self.at = start + 1 + length;
        if kept {
            // In a regular expression the backslash belongs to the pattern, so the text counts as unquoted.
            return self.flush(start, self.at, mode != Mode::Regex, parts);
        }
        self.flush(start + 1, self.at, true, parts)
    }

    fn double_quoted(&mut self, parts: &mut Vec<Part>) {
        let open = self.at;
        if self.skip_stray_quote() {
            return;
        }
        self.at += 1;
        let inner = self.nested_parts(Mode::Double);
        if self.peek() != Some(b'"') {
            self.fail(Code::UnclosedQuote, "this quote is never closed", open);
        }
        // `""` is a word, though an empty one.
        if inner.is_empty() {
            parts.push(self.empty(open));
        }
        self.at += 1;
        parts.extend(inner);
    }

    fn single_quoted(&mut self, parts: &mut Vec<Part>) {
        let open = self.at;
        if self.skip_stray_quote() {
            return;
        }
        self.at += 1;
        let Some(close) = self.find_byte(b'\'') else {
            self.fail(Code::UnclosedQuote, "this quote is never closed", open);
            return;
        };
        if close == self.at {
            parts.push(self.empty(open));
        }
        self.flush(self.at, close, true, parts);
        self.at = close + 1;
    }

    /// Skips a quote that nothing follows: it is left over from copying, and bash would wait for its partner. What
    /// precedes it is parsed.
    fn skip_stray_quote(&mut self) -> bool {
        let rest = self.bytes.get(self.at + 1..self.end).unwrap_or(&[]);
        if self.failed() || !rest.iter().all(u8::is_ascii_whitespace) {
            return false;
        }
        let (from, to) = (self.at, self.at + 1);
        self.at = to;
        let span = self.span(from, to);
        let message = "this quote is never closed, and nothing follows it";
        let said = Diagnostic::warning(Code::UnclosedQuote, message).hint("it is ignored");
        self.notes.report(said.at(span));
        true
    }

    fn empty(&self, open: usize) -> Part {
        Part::Text { text: String::new(), origin: self.origin(open, open + 1), quoted: true }
    }

    pub(crate) fn find_byte(&self, byte: u8) -> Option<usize> {
        let rest = self.bytes.get(self.at..self.end)?;
        rest.iter().position(|found| *found == byte).map(|offset| self.at + offset)
    }

    /// A `'` inside a word of letters whose partner is on another line: an apostrophe of prose, not a quote.
    fn is_apostrophe(&self, word: usize) -> bool {
        let before = self.bytes.get(word..self.at).unwrap_or(&[]);
        let letters = !before.is_empty() && before.iter().all(u8::is_ascii_alphabetic);
        if !letters || !self.peek_at(1).is_some_and(|next| next.is_ascii_alphabetic()) {
            return false;
        }
        // `echo don't` extends to the next quote in bash, however far; here prose is left alone.
        let rest = self.bytes.get(self.at + 1..self.end).unwrap_or(&[]);
        rest.iter().find(|byte| matches!(byte, b'\'' | b'\n')) != Some(&b'\'')
    }

    /// Whether `<` or `>` here belongs to a word: a placeholder or a process substitution.
    pub(crate) fn opens_angle(&self) -> bool {
        self.peek_at(1) == Some(b'(') || self.placeholder_end().is_some()
    }

    fn angle(&mut self, parts: &mut Vec<Part>) {
        let start = self.at;
        if let Some(end) = self.placeholder_end() {
            self.at = end;
            self.skip_placeholder_example();
            let name = self.text.get(start..end).unwrap_or("");
            let span = self.span(start, end);
            let id = self.notes.hole(HoleKind::Placeholder, name, span, Vec::new());
            let text = super::super::notes::shown(HoleKind::Placeholder, name);
            parts.push(Part::Hole { id, text, origin: self.origin(start, end) });
            return;
        }
        self.at += 2;
        let body = self.substituted();
        parts.push(Part::Process { body, span: self.span(start, self.at) });
    }

    /// The end of `<number of nodes>` here: words of letters and characters that occur in names, closed on this line.
    fn placeholder_end(&self) -> Option<usize> {
        if self.peek() != Some(b'<') || !self.peek_at(1).is_some_and(|next| next.is_ascii_alphabetic()) {
            return None;
        }
        let rest = self.bytes.get(self.at..self.end.min(self.at + LONGEST_PLACEHOLDER))?;
        let close = rest.iter().position(|byte| *byte == b'>')?;
        let inner = rest.get(1..close)?;
        let plain = inner
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b" _-./:,'*()+".contains(byte) || *byte >= 0x80);
        (plain && inner.last() != Some(&b' ')).then_some(self.at + close + 1)
    }

    /// The `(e.g. 8)` that people write after a placeholder.
    fn skip_placeholder_example(&mut self) {
        let start = self.at;
        while self.blank_length() > 0 {
            self.at += self.blank_length();
        }
        let line_end = self.continuation_length().max(usize::from(self.peek() == Some(b'\n')));
        let next = self.text.get(self.at + line_end..self.end).unwrap_or("");
        let indent = next.len() - next.trim_start_matches([' ', '\t']).len();
        if line_end > 0 && next.get(indent..).is_some_and(|next| next.starts_with("(e.g")) {
            self.at += line_end + indent;
        }
        let rest = self.bytes.get(self.at..self.end.min(self.at + LONGEST_PLACEHOLDER)).unwrap_or(&[]);
        let close = rest.iter().position(|byte| matches!(byte, b')' | b'\n'));
        match close {
            Some(length) if rest.first() == Some(&b'(') && rest.get(length) == Some(&b')') => {
                self.at += length + 1
            }
            _ => self.at = start,
        }
    }
}

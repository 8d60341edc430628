//! Values in brackets: JSON as people write it (comments, trailing commas, bare words, placeholders), which is also
//! YAML's flow style.
//!
//! serde_json stops at the first of these and has no spans, and saphyr-parser does not read the text of
//! `people_write_json_like_this` in `tests/readers/main.rs`; both YAML readers and this one give the same result for
//! plain JSON.

use super::cursor::{Cursor, Tree};
use super::node::{Entry, Node};
use shardscope_source::Code;

/// Longest `{{ ... }}` looked for, in bytes.
const LONGEST_TEMPLATE: usize = 200;

/// Reads JSON, leniently; `base` is where `text` starts in its source.
pub fn read_json(text: &str, base: u32) -> Tree {
    let mut cursor = Cursor::new(text, base, Code::JsonForm);
    cursor.skip_space();
    // The separator is `:`; TOML's inline values would end keys with `=`.
    let node = cursor.flow(b':');
    cursor.skip_space();
    if !cursor.done() {
        let at = cursor.at;
        cursor.complain("text after the end of the JSON value is not read", at, cursor.line_end(at));
    }
    cursor.finish(vec![node])
}

impl<'a> Cursor<'a> {
    /// Skips whitespace, newlines and comments.
    pub(super) fn skip_space(&mut self) {
        loop {
            self.skip_blanks();
            match self.peek() {
                b'\n' => self.at += 1,
                b'#' => self.at = self.line_end(self.at),
                b'/' if self.looks_at("//") => self.at = self.line_end(self.at),
                b'/' if self.looks_at("/*") => self.skip_past("*/"),
                _ => return,
            }
        }
    }

    fn skip_past(&mut self, close: &str) {
        let from = self.at + 2;
        let found = self.rest(from).find(close).map(|offset| from + offset + close.len());
        self.at = found.unwrap_or_else(|| self.end());
    }

    /// A value in flow style, whose map keys end with `separator`.
    pub(super) fn flow(&mut self, separator: u8) -> Node {
        let from = self.at;
        if !self.enter() {
            self.leave();
            return Node::null(self.span(from, from));
        }
        let node = match self.peek() {
            b'{' if !self.at_template() => self.flow_map(separator),
            b'[' => self.flow_list(separator),
            b'"' | b'\'' => {
                let text = self.quoted();
                self.scalar(text, true, from)
            }
            b'*' if self.byte(from + 1).is_ascii_alphanumeric() => {
                self.at += 1;
                let name = self.name();
                self.alias(name, from)
            }
            _ => {
                let text = self.bare(separator).to_owned();
                self.scalar(text, false, from)
            }
        };
        self.leave();
        node
    }

    /// Letters, digits, `-`, `_` and `.`: the name of an anchor.
    pub(super) fn name(&mut self) -> &'a str {
        let from = self.at;
        while matches!(self.peek(), b'-' | b'_' | b'.') || self.peek().is_ascii_alphanumeric() {
            self.at += 1;
        }
        self.slice(from, self.at)
    }

    /// Whether there is a template placeholder `{{ name }}` here.
    fn at_template(&self) -> bool {
        let mut near =
            (self.at + 2..self.at + LONGEST_TEMPLATE).take_while(|at| !matches!(self.byte(*at), b'\n' | 0));
        self.looks_at("{{") && near.any(|at| self.byte(at) == b'}' && self.byte(at + 1) == b'}')
    }

    fn flow_list(&mut self, separator: u8) -> Node {
        let from = self.at;
        self.at += 1;
        let mut items = Vec::new();
        while self.next_item(b']') {
            let item_at = self.at;
            items.push(self.flow(separator));
            // Nothing was read, so step forward or the loop would never end. Charged, since such steps create no
            // node.
            if self.at == item_at {
                self.complain("expected a value", item_at, item_at + 1);
                self.at += 1;
                self.charge(1);
            }
        }
        self.close(b']', from);
        self.list(items, from)
    }

    fn flow_map(&mut self, separator: u8) -> Node {
        let from = self.at;
        self.at += 1;
        let mut entries = Vec::new();
        while self.next_item(b'}') {
            let key_at = self.at;
            let key = match self.peek() {
                b'"' | b'\'' => self.quoted(),
                _ => self.bare(separator).to_owned(),
            };
            let key_span = self.span(key_at, self.at);
            self.skip_space();
            // `{a, b: 1}`: YAML allows a key without a value.
            let node = if self.peek() == separator {
                self.at += 1;
                self.skip_space();
                self.flow_or_nothing(separator)
            } else {
                Node::null(key_span)
            };
            entries.push(Entry { key, key_span, node });
            if self.at == key_at {
                self.complain("expected a key and its value", key_at, key_at + 1);
                self.at += 1;
                self.charge(1);
                entries.pop();
            }
        }
        self.close(b'}', from);
        self.map(entries, from)
    }

    fn flow_or_nothing(&mut self, separator: u8) -> Node {
        match self.peek() {
            b',' | b'}' => Node::null(self.span(self.at, self.at)),
            _ => self.flow(separator),
        }
    }

    /// Skips the comma before the next item; false at the closing bracket, at a wrong bracket, and at the end.
    // Any number of commas is skipped: trailing and doubled ones have no meaning.
    fn next_item(&mut self, close: u8) -> bool {
        self.skip_space();
        while self.peek() == b',' {
            self.at += 1;
            self.skip_space();
        }
        let byte = self.peek();
        !self.done() && byte != close && !matches!(byte, b']' | b'}')
    }

    fn close(&mut self, close: u8, from: usize) {
        if self.peek() == close {
            self.at += 1;
        } else if self.done() {
            self.complain("this bracket is never closed", from, from + 1);
        } else {
            self.complain("this bracket closes nothing that is open", self.at, self.at + 1);
            self.at += 1;
        }
    }

    /// A bare word in brackets, up to a character that cannot be part of it. `${...}`, `$(...)` and `{{...}}` are
    /// part of it.
    pub(super) fn bare(&mut self, separator: u8) -> &'a str {
        let from = self.at;
        while !self.done() {
            match self.peek() {
                b'$' if matches!(self.byte(self.at + 1), b'{' | b'(') => self.skip_hole(),
                b'{' if self.at_template() => self.skip_past("}}"),
                b',' | b'[' | b']' | b'{' | b'}' | b'\n' => break,
                b'#' if self.at_comment(self.at) => break,
                byte if byte == separator && self.ends_key(separator) => break,
                _ => self.at += 1,
            }
        }
        // Spaces inside a bare word belong to it (`a b: 1`), those at its end do not.
        let text = self.slice(from, self.at).trim_end();
        self.at = from + text.len();
        self.slice(from, self.at)
    }

    /// A colon ends a key only before whitespace or a bracket, an equals sign always does.
    fn ends_key(&self, separator: u8) -> bool {
        separator == b'='
            || matches!(
                self.byte(self.at + 1),
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b'[' | b']' | b'{' | b'}' | b'"' | 0
            )
    }

    fn skip_hole(&mut self) {
        let mut open = 0_usize;
        while !self.done() {
            match self.peek() {
                b'\n' => return,
                b'{' | b'(' => open += 1,
                b'}' | b')' => open = open.saturating_sub(1),
                _ => {}
            }
            let closed = open == 0 && matches!(self.peek(), b'}' | b')');
            self.at += 1;
            if closed {
                return;
            }
        }
    }

    /// A quoted text; line breaks in it fold to spaces, as in YAML.
    pub(super) fn quoted(&mut self) -> String {
        let (from, quote) = (self.at, self.peek());
        self.at += 1;
        let mut text = String::new();
        let mut start = self.at;
        while !self.done() {
            match self.peek() {
                b'\'' if quote == b'\'' && self.byte(self.at + 1) == b'\'' => {
                    text.push_str(self.slice(start, self.at + 1));
                    self.at += 2;
                    start = self.at;
                }
                byte if byte == quote => {
                    text.push_str(self.slice(start, self.at));
                    self.at += 1;
                    return text;
                }
                b'\\' if quote == b'"' => {
                    text.push_str(self.slice(start, self.at));
                    self.escape(&mut text);
                    start = self.at;
                }
                b'\n' => {
                    text.push_str(self.slice(start, self.at).trim_end());
                    self.fold(&mut text);
                    start = self.at;
                }
                _ => self.at += 1,
            }
        }
        // The closing quote was not found before the end of the file; take only this line.
        self.at = self.line_end(from);
        self.complain("this quote is never closed; the text is read to the end of its line", from, from + 1);
        self.slice(from + 1, self.at).trim_end().to_owned()
    }

    /// Skips line breaks: the first becomes a space, each further one a newline.
    pub(super) fn fold(&mut self, text: &mut String) {
        let mut breaks = 0;
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') && !self.done() {
            breaks += usize::from(self.peek() == b'\n');
            self.at += 1;
        }
        if breaks == 1 {
            text.push(' ');
        }
        for _ in 1..breaks {
            text.push('\n');
        }
    }

    fn escape(&mut self, text: &mut String) {
        let letter = self.byte(self.at + 1);
        self.at += 2;
        let plain = match letter {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'0' => '\0',
            b'a' => '\u{7}',
            b'e' => '\u{1b}',
            b'v' => '\u{b}',
            b'_' => '\u{a0}',
            b'x' => self.code_point(2),
            b'u' => self.code_point(4),
            b'U' => self.code_point(8),
            // A backslash at the end of a line: the break is dropped, along with the next line's indentation.
            b'\n' => {
                return while matches!(self.peek(), b' ' | b'\t') {
                    self.at += 1
                };
            }
            _ => {
                self.at -= 1;
                let end = self.at + self.rest(self.at).chars().next().map_or(0, char::len_utf8);
                text.push_str(self.slice(self.at, end));
                return self.at = end;
            }
        };
        text.push(plain);
    }

    fn code_point(&mut self, digits: usize) -> char {
        let unit = |cursor: &Self, at: usize| u32::from_str_radix(cursor.slice(at, at + digits), 16).ok();
        let Some(mut code) = unit(self, self.at) else { return char::REPLACEMENT_CHARACTER };
        self.at += digits;
        // JSON writes characters beyond 16 bits as surrogate pairs.
        if (0xd800..0xdc00).contains(&code)
            && self.looks_at("\\u")
            && let Some(low) = unit(self, self.at + 2).filter(|low| (0xdc00..0xe000).contains(low))
        {
            code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            self.at += 2 + digits;
        }
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

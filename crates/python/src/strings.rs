//! Python strings: quoted ones, raw ones, and `f"…{value}…"`.

use super::syntax::{Cursor, Node};

impl Cursor<'_> {
    /// A string literal and those that directly follow it.
    pub(super) fn quoted(&mut self, prefix: &str) -> Node {
        let mut parts = Vec::new();
        let mut prefix = prefix.to_ascii_lowercase();
        loop {
            let rest = self.rest();
            let Some(quote) = rest.get(..1) else { return Node::Opaque };
            let triple = rest.get(..3).is_some_and(|three| three == quote.repeat(3));
            let open = if triple { 3 } else { 1 };
            let close = rest.get(..open).unwrap_or(quote);
            let mut length = open;
            let bytes = rest.as_bytes();
            while length < bytes.len() && !rest.as_bytes()[length..].starts_with(close.as_bytes()) {
                length += if bytes[length] == b'\\' { 2 } else { 1 };
            }
            let inner = rest.get(open..length).unwrap_or("");
            self.at = (self.at + length + open).min(self.text.len());
            let plain = |text: &str| if prefix.contains('r') { text.to_owned() } else { unescaped(text) };
            if prefix.contains('b') {
                return Node::Opaque;
            }
            if prefix.contains('f') {
                formatted(inner, &plain, &mut parts, self.depth);
            } else {
                parts.push(Node::Text(plain(inner)));
            }
            self.blanks();
            let before = self.at;
            prefix = self.word().to_ascii_lowercase();
            if !(prefix.len() <= 2 && matches!(self.sign(), Some(b'"' | b'\''))) {
                self.at = before;
                return match parts.pop() {
                    Some(only) if parts.is_empty() => only,
                    last => Node::Joined(parts.into_iter().chain(last).collect()),
                };
            }
        }
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('\n') | None => {}
                Some(quoted @ ('\\' | '\'' | '"')) => out.push(quoted),
                Some(other) => out.extend(['\\', other]),
            },
            _ => out.push(letter),
        }
    }
    out
}

/// The parts of `f"…{value}…"`.
fn formatted(inner: &str, plain: &dyn Fn(&str) -> String, parts: &mut Vec<Node>, depth: u32) {
    let mut text = String::new();
    let mut rest = inner;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&plain(rest.get(..at).unwrap_or("")));
        let twice = rest.get(at..at + 2).unwrap_or("");
        if twice == "{{" || twice == "}}" {
            text.push_str(twice.get(..1).unwrap_or(""));
            rest = rest.get(at + 2..).unwrap_or("");
            continue;
        }
        parts.push(Node::Text(std::mem::take(&mut text)));
        let mut cursor = Cursor { text: rest.get(at + 1..).unwrap_or(""), at: 0, depth };
        let value = cursor.value();
        cursor.blanks();
        // `{value:,}` and `{value!r}` format it differently.
        let plainly = cursor.sign() == Some(b'}');
        parts.push(if plainly { value } else { Node::Opaque });
        let left = cursor.rest();
        rest = left.find('}').and_then(|end| left.get(end + 1..)).unwrap_or("");
    }
    text.push_str(&plain(rest));
    parts.push(Node::Text(text));
}

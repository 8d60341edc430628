//! The tolerant reader of YAML, for pasted text that is not valid YAML: block maps and lists by indentation, plain
//! and quoted scalars over several lines, block scalars, anchors, merges, tags (ignored), documents. It reports what
//! does not fit and continues.
//!
//! saphyr-parser stops at the first error, so it cannot read the texts of `faults_are_reported_and_the_rest_is_read` and
//! `templates_are_read_around` in `tests/readers/main.rs`: truncated files, misplaced lines, undefined aliases, and
//! templates' `{{ name }}` and `${...}` in braces. Every settings file of `tests/data/formats/cases` is YAML, and
//! both readers give the same result for it. Not read: keys that are not text (`? key`).

use super::cursor::{Cursor, Tree};
use super::node::{Entry, Node};
use shardscope_source::Code;

/// Reads what can be read of YAML; `base` is where `text` starts in its source.
pub(super) fn read_tolerantly(text: &str, base: u32) -> Tree {
    let mut cursor = Cursor::new(text, base, Code::YamlForm);
    let mut documents = Vec::new();
    while !cursor.done() {
        let document = match cursor.next_column() {
            Some(column) => {
                cursor.at += column;
                Some(cursor.block(column))
            }
            None if cursor.looks_at("---") => {
                cursor.at += 3;
                cursor.after_marker()
            }
            None => {
                cursor.skip_line();
                None
            }
        };
        if let Some(document) = document {
            cursor.skip_rest();
            documents.push(document);
        }
    }
    cursor.finish(documents)
}

/// What a value follows, which determines its indentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    Key,
    Dash,
    Marker,
}

impl<'a> Cursor<'a> {
    /// From a line's start to the start of the next line that has content: its indentation. `None` at the end of a
    /// document; the position is then at its marker or at the end of the text.
    fn next_column(&mut self) -> Option<usize> {
        while !self.done() {
            let mut at = self.at;
            while matches!(self.byte(at), b' ' | b'\t') {
                at += 1;
            }
            match self.byte(at) {
                b'\n' | b'#' => self.skip_line(),
                b'\r' if self.byte(at + 1) == b'\n' => self.skip_line(),
                // Whitespace at the end of the text.
                0 if self.line_end(at) == at => self.skip_line(),
                // A directive (`%YAML 1.2`).
                b'%' if at == self.at => self.skip_line(),
                b'{' if self.is_template(at) => self.skip_line(),
                b'-' | b'.' if at == self.at && self.at_marker() => return None,
                _ => return Some(at - self.at),
            }
        }
        None
    }

    /// Whether a line is nothing but `{{ ... }}`, a template's own instruction.
    fn is_template(&self, at: usize) -> bool {
        let line = self.slice(at, self.line_end(at)).trim_end();
        line.starts_with("{{") && line.ends_with("}}")
    }

    pub(super) fn at_marker(&self) -> bool {
        (self.looks_at("---") || self.looks_at("...")) && self.ends_word(self.at + 3)
    }

    /// What follows `---` on its line.
    fn after_marker(&mut self) -> Option<Node> {
        let line = self.at;
        self.skip_blanks();
        if matches!(self.peek(), b'\n' | 0) || self.at_comment(self.at) {
            self.skip_line();
            return None;
        }
        self.at = line;
        Some(self.value(0, Behind::Marker))
    }

    /// Skips lines that belong to nothing, with a diagnostic for each.
    fn skip_rest(&mut self) {
        while let Some(column) = self.next_column() {
            self.misplaced(column);
        }
    }

    fn misplaced(&mut self, column: usize) {
        let from = self.at + column;
        self.complain(
            "this line does not fit the lines around it and is not read",
            from,
            self.line_end(from),
        );
        self.skip_line();
    }

    fn ends_word(&self, at: usize) -> bool {
        matches!(self.byte(at), b' ' | b'\t' | b'\r' | b'\n' | 0)
    }

    /// Reads the value whose first byte is at the current position, in this column; ends at the start of a line.
    fn block(&mut self, column: usize) -> Node {
        let from = self.at;
        if !self.enter() {
            self.leave();
            return Node::null(self.span(from, from));
        }
        let node = if self.peek() == b'-' && self.ends_word(self.at + 1) {
            self.block_list(column)
        } else if self.key_end(self.at).is_some() {
            // `block_map` checks this again: scanning one line twice is simpler than undoing a map.
            self.block_map(column)
        } else {
            self.value(column, Behind::Marker)
        };
        self.leave();
        node
    }

    fn block_list(&mut self, column: usize) -> Node {
        let from = self.at;
        let mut items = Vec::new();
        loop {
            self.at += 1;
            items.push(self.value(column, Behind::Dash));
            if !self.sibling(column, true) {
                break;
            }
        }
        let mut node = self.list(items, from);
        shrink(&mut node);
        node
    }

    fn block_map(&mut self, column: usize) -> Node {
        let from = self.at;
        let mut entries = Vec::new();
        while let Some(colon) = self.key_end(self.at) {
            let key_at = self.at;
            let key = match self.peek() {
                b'"' | b'\'' => self.quoted(),
                _ => self.slice(key_at, colon).trim_end().to_owned(),
            };
            let key_span = self.span(key_at, self.at.max(key_at + key.len()));
            self.at = colon + 1;
            let node = self.value(column, Behind::Key);
            entries.push(Entry { key, key_span, node });
            if !self.sibling(column, false) {
                break;
            }
        }
        let mut node = self.map(entries, from);
        shrink(&mut node);
        node
    }

    /// Moves to the first byte of the next list item or map key in `column`; deeper lines and lines that do not fit
    /// are skipped. A map may continue where a list in its own column ends.
    fn sibling(&mut self, column: usize, list: bool) -> bool {
        while let Some(next) = self.next_column() {
            if next < column {
                return false;
            }
            let at = self.at + next;
            let fits = if list {
                self.byte(at) == b'-' && self.ends_word(at + 1)
            } else {
                self.key_end(at).is_some()
            };
            if next == column && fits {
                self.at += next;
                return true;
            }
            // `key:` after a list in the key's own column: the list ends, and its map continues.
            if next == column && list {
                return false;
            }
            self.misplaced(next);
        }
        false
    }

    /// The colon that ends the key at `at`, if there is a key.
    fn key_end(&self, at: usize) -> Option<usize> {
        let end = self.line_end(at);
        // These characters begin something other than a plain key.
        let mut colon = match self.byte(at) {
            b'[' | b'{' | b'&' | b'*' | b'!' | b'|' | b'>' | b'%' | b'@' | b'`' | b'#' => return None,
            quote @ (b'"' | b'\'') => {
                let mut close = at + 1;
                while close < end && self.byte(close) != quote {
                    close += 1 + usize::from(quote == b'"' && self.byte(close) == b'\\');
                }
                close += 1;
                while matches!(self.byte(close), b' ' | b'\t') {
                    close += 1;
                }
                return (close < end && self.byte(close) == b':' && self.ends_word(close + 1))
                    .then_some(close);
            }
            _ => at,
        };
        while colon < end {
            match self.byte(colon) {
                // `http://x` and `a:b` have no space after the colon and are text.
                b':' if self.ends_word(colon + 1) => return Some(colon),
                b'#' if self.at_comment(colon) => return None,
                _ => colon += 1,
            }
        }
        None
    }

    /// The value after a key's colon, a list's dash or a document marker in `column`.
    fn value(&mut self, column: usize, behind: Behind) -> Node {
        self.skip_blanks();
        // Charged before it is copied: nested anchors grow as aliases do.
        let anchor = self.properties();
        let node = self.value_itself(column, behind);
        if let Some(name) = anchor
            && self.charge(node.size())
        {
            self.anchors.insert(name, node.clone());
        }
        node
    }

    fn value_itself(&mut self, column: usize, behind: Behind) -> Node {
        let from = self.at;
        match self.peek() {
            b'\n' | 0 => return self.value_below(column, behind),
            b'#' if self.at_comment(from) => return self.value_below(column, behind),
            b'|' | b'>' => {
                if let Some(node) = self.text_block(column, behind) {
                    return node;
                }
            }
            b'-' if behind == Behind::Dash && self.ends_word(from + 1) => return self.compact(column),
            _ if behind == Behind::Dash && self.key_end(from).is_some() => return self.compact(column),
            _ => {}
        }
        let node = match self.peek() {
            b'{' | b'[' | b'"' | b'\'' | b'*' => self.flow(b':'),
            _ => self.plain(column, behind),
        };
        self.end_line();
        node
    }

    /// `- key: value` and `- - value`: a block that starts after the dash.
    fn compact(&mut self, column: usize) -> Node {
        let line = self.slice(0, self.at).rfind('\n').map_or(0, |end| end + 1);
        let inner = self.at - line;
        // The block's column is counted from the line's start, so that its next lines line up with its first key.
        debug_assert!(inner > column, "a value stands behind its dash");
        self.block(inner)
    }

    /// The value on the following lines, or null.
    fn value_below(&mut self, column: usize, behind: Behind) -> Node {
        let here = self.span(self.at, self.at);
        self.skip_line();
        let Some(next) = self.next_column() else { return Node::null(here) };
        let at = self.at + next;
        let dash = self.byte(at) == b'-' && self.ends_word(at + 1);
        // YAML allows a list under a key in the key's own column.
        let deep = match behind {
            Behind::Key => next > column || (next == column && dash),
            Behind::Dash => next > column,
            Behind::Marker => true,
        };
        if !deep {
            return Node::null(here);
        }
        self.at = at;
        self.block(next)
    }

    /// Skips tags; returns the name of an anchor, if there is one.
    fn properties(&mut self) -> Option<String> {
        let mut anchor = None;
        loop {
            match self.peek() {
                b'&' if self.byte(self.at + 1).is_ascii_alphanumeric() || self.byte(self.at + 1) == b'_' => {
                    self.at += 1;
                    anchor = Some(self.name().to_owned());
                }
                b'!' => {
                    while !self.ends_word(self.at) {
                        self.at += 1;
                    }
                }
                _ => return anchor,
            }
            self.skip_blanks();
        }
    }

    /// Moves to the next line, skipping whitespace and a comment.
    fn end_line(&mut self) {
        self.skip_blanks();
        if !self.done() && self.peek() != b'\n' && !self.at_comment(self.at) {
            self.complain("text after the value is not read", self.at, self.line_end(self.at));
        }
        self.skip_line();
    }

    /// A plain scalar, on this line and on deeper ones that are not keys.
    fn plain(&mut self, column: usize, behind: Behind) -> Node {
        let from = self.at;
        let mut text = self.plain_line().to_owned();
        let mut end = self.at;
        loop {
            self.skip_blanks();
            if self.peek() != b'\n' {
                break;
            }
            let mut ahead = self.at;
            let mut indent = 0;
            while matches!(self.byte(ahead), b' ' | b'\t' | b'\r' | b'\n') {
                let line_end = self.byte(ahead) == b'\n';
                indent = if line_end { 0 } else { indent + 1 };
                ahead += 1;
            }
            // A plain scalar continues over deeper lines that are neither comments, list items nor keys.
            let deeper =
                indent > column || (behind == Behind::Marker && indent >= column && !self.at_marker());
            let item = self.byte(ahead) == b'-' && self.ends_word(ahead + 1);
            if !deeper
                || item
                || self.byte(ahead) == 0
                || self.at_comment(ahead)
                || self.key_end(ahead).is_some()
            {
                break;
            }
            self.fold(&mut text);
            let line = self.plain_line();
            text.push_str(line);
            end = self.at;
        }
        // Go back over the blank lines that were scanned.
        self.at = end;
        self.scalar(text, false, from)
    }

    fn plain_line(&mut self) -> &'a str {
        let (from, end) = (self.at, self.line_end(self.at));
        while self.at < end && !self.at_comment(self.at) {
            self.at += 1;
        }
        let text = self.slice(from, self.at).trim_end();
        self.at = from + text.len();
        self.slice(from, self.at)
    }
}

/// Shrinks the span of a block to the end of its last value.
fn shrink(node: &mut Node) {
    let last = node.entries().last().map(|entry| entry.key_span.to(entry.node.span));
    if let Some(last) = last.or_else(|| node.items().last().map(|item| item.span)) {
        node.span.end = last.end.max(node.span.start);
    }
}

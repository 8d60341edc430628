use std::collections::HashMap;
use std::ops::Range;

use super::node::{Entry, Node, Scalar, Value};
use shardscope_source::{Code, Diagnostic, Span};

/// Deepest nesting of lists and maps that is read: reading and dropping trees is recursive.
pub const MAX_DEPTH: usize = 64;
/// Most nodes read, with aliases expanded; real files have under 5,000.
pub const MAX_NODES: usize = 50_000;
/// Most diagnostics about one text.
const MAX_DIAGNOSTICS: usize = 20;

/// A settings file as read: its documents (one unless it is YAML with `---`) and diagnostics about its form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// What could be read.
    pub documents: Vec<Node>,
    /// Syntax errors, and duplicate keys.
    pub diagnostics: Vec<Diagnostic>,
}

/// A position in a text, with the state that the readers of this crate share.
pub(super) struct Cursor<'a> {
    text: &'a str,
    base: usize,
    code: Code,
    nodes: usize,
    depth: usize,
    pub(super) at: usize,
    pub(super) anchors: HashMap<String, Node>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Cursor<'a> {
    /// Starts at the beginning of `text`, which is at byte `base` of its source; `code` is the code of the errors
    /// found.
    pub(super) fn new(text: &'a str, base: u32, code: Code) -> Self {
        // Windows editors write a byte order mark at the start of a file.
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let (anchors, diagnostics) = (HashMap::new(), Vec::new());
        Self { text, base: base as usize, code, nodes: 0, depth: 0, at, anchors, diagnostics }
    }

    pub(super) fn finish(self, documents: Vec<Node>) -> Tree {
        Tree { documents, diagnostics: self.diagnostics }
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        // 0 past the end: no text contains it, so every comparison with a character fails.
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    pub(super) fn peek(&self) -> u8 {
        self.byte(self.at)
    }

    pub(super) fn done(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(super) fn looks_at(&self, word: &str) -> bool {
        self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()))
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or("")
    }

    pub(super) fn end(&self) -> usize {
        self.text.len()
    }

    /// Everything from `from` on.
    pub(super) fn rest(&self, from: usize) -> &'a str {
        self.text.get(from..).unwrap_or("")
    }

    pub(super) fn span(&self, from: usize, to: usize) -> Span {
        Span::from_bytes(self.base + from, self.base + to)
    }

    /// The end of the line that contains `at`, excluding the newline.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let rest = self.text.as_bytes().get(at..).unwrap_or(&[]);
        rest.iter().position(|byte| *byte == b'\n').map_or(self.text.len(), |offset| at + offset)
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Moves to the first byte of the next line.
    pub(super) fn skip_line(&mut self) {
        self.at = (self.line_end(self.at) + 1).min(self.text.len());
    }

    /// Whether `at` begins a comment: a `#` at the start of the text or after whitespace.
    pub(super) fn at_comment(&self, at: usize) -> bool {
        self.byte(at) == b'#'
            && (at == 0
                || matches!(
                    self.byte(at - 1),
                    b' ' | b'\t' | b'\r' | b'\n' | b',' | b'[' | b'{' | b'}' | b']'
                ))
    }

    /// Reports an error at a place; reading continues.
    pub(super) fn complain(&mut self, message: &str, from: usize, to: usize) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            let fault = Diagnostic::warning(self.code, message).at(self.span(from, to.max(from)));
            self.diagnostics.push(fault);
        }
    }

    /// Counts `nodes` more nodes; if there are too many, returns false and moves to the end of the text.
    pub(super) fn charge(&mut self, nodes: usize) -> bool {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            self.stop("too many values; the rest is not read");
        }
        self.nodes <= MAX_NODES
    }

    /// Goes one level deeper; if that is too deep, returns false and moves to the end of the text.
    pub(super) fn enter(&mut self) -> bool {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.stop("nested too deeply; the rest is not read");
        }
        self.depth <= MAX_DEPTH
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn stop(&mut self, message: &str) {
        // At the end of the text nothing more is reported: the first bound that was reached has been reported
        // already.
        if !self.done() {
            self.complain(message, self.at, self.at);
        }
        // Nothing is left to read: all loops end without checking what failed.
        self.at = self.text.len();
    }

    pub(super) fn scalar(&mut self, text: String, quoted: bool, from: usize) -> Node {
        self.charge(1);
        Node { span: self.span(from, self.at), value: Value::Scalar(Scalar { text, quoted }) }
    }

    /// A scalar at these bytes.
    pub(super) fn scalar_at(&mut self, text: String, quoted: bool, place: Range<usize>) -> Node {
        self.charge(1);
        Node { span: self.span(place.start, place.end), value: Value::Scalar(Scalar { text, quoted }) }
    }

    pub(super) fn list(&mut self, items: Vec<Node>, from: usize) -> Node {
        self.charge(1);
        Node { span: self.span(from, self.at), value: Value::List(items) }
    }

    /// A map of these entries: with `<<` merged and the last of equal keys kept.
    pub(super) fn map(&mut self, entries: Vec<Entry>, from: usize) -> Node {
        self.charge(1);
        // YAML's merge key: a map's own entries win over merged ones, and of several merged maps the first. As the last
        // of equal keys is kept, merges come first and in reverse.
        let mut all: Vec<Entry> = Vec::new();
        for merge in entries.iter().rev() {
            if merge.key == "<<" {
                for map in merge.node.items().iter().rev() {
                    all.extend_from_slice(map.entries());
                }
                all.extend_from_slice(merge.node.entries());
            }
        }
        let inherited = all.len();
        for entry in entries {
            if entry.key != "<<" {
                all.push(entry);
            }
        }
        let entries = self.keep_last(all, inherited);
        Node { span: self.span(from, self.at), value: Value::Map(entries) }
    }

    /// Drops all but the last of equal keys, with a diagnostic unless an inherited one is replaced.
    fn keep_last(&mut self, entries: Vec<Entry>, inherited: usize) -> Vec<Entry> {
        // Sorted rather than compared pairwise: a hostile map has 50,000 keys.
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|left, right| entries[*left].key.cmp(&entries[*right].key));
        let mut dead = vec![false; entries.len()];
        for pair in order.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            if entries[first].key == entries[second].key {
                dead[first] = true;
                let span = entries[first].key_span;
                // Overriding a merged entry is what merges are for.
                if first >= inherited && self.diagnostics.len() < MAX_DIAGNOSTICS {
                    let message =
                        format!("'{}' is given twice here; the last one counts", entries[first].key);
                    self.diagnostics.push(Diagnostic::note(Code::RepeatedKey, message).at(span));
                }
            }
        }
        let mut merged = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            if !dead[index] {
                merged.push(entry);
            }
        }
        merged
    }

    /// The value of the anchor with this name.
    pub(super) fn alias(&mut self, name: &str, from: usize) -> Node {
        // YAML allows an anchor to be redefined: the most recent definition counts.
        match self.anchors.get(name).cloned() {
            // Charged with its full size: aliases of aliases grow exponentially ("billion laughs").
            Some(node) if self.charge(node.size()) => node,
            Some(_) => Node::null(self.span(from, self.at)),
            None => {
                self.complain("no anchor of this name is defined above", from, self.at);
                Node::null(self.span(from, self.at))
            }
        }
    }
}

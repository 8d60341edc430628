//! YAML, read by saphyr-parser if it is valid, and otherwise by the tolerant reader in [`block`](crate::block).

use shardscope_source::Code;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use crate::block;
use crate::cursor::{Cursor, MAX_DEPTH, Tree};
use crate::node::{Entry, Node};

/// Reads YAML; `base` is where `text` starts in its source.
pub fn read_yaml(text: &str, base: u32) -> Tree {
    standard(text, base).unwrap_or_else(|| block::read_tolerantly(text, base))
}

/// The documents of a text that is valid YAML and within the bounds; otherwise `None`, without diagnostics.
fn standard(text: &str, base: u32) -> Option<Tree> {
    // YAML reads a template's `{{ name }}` as a map whose key is a map.
    if text.contains("{{") {
        return None;
    }
    let mut builder = Builder {
        cursor: Cursor::new(text, base, Code::YamlForm),
        open: Vec::new(),
        anchors: HashMap::new(),
        documents: Vec::new(),
    };
    let start = builder.cursor.at;
    let content = text.get(start..)?;
    let places = Places::new(content, start);
    let mut parser = Parser::new_from_str(content);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.ok()?;
        // If any span does not fit, the tolerant reader gets the whole text: half a tree would be wrong.
        builder.take(event, places.byte(span.start)?..places.byte(span.end)?)?;
    }
    Some(builder.cursor.finish(builder.documents))
}

/// Converts saphyr-parser's character positions to bytes.
struct Places {
    /// Where the text begins in the cursor's text.
    start: usize,
    length: usize,
    /// The byte offset of each character, unless the text is ASCII.
    bytes: Option<Vec<usize>>,
}

impl Places {
    fn new(text: &str, start: usize) -> Self {
        // saphyr-parser counts characters; in ASCII text these are bytes and need no table.
        let bytes = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { start, length: text.len(), bytes }
    }

    fn byte(&self, marker: Marker) -> Option<usize> {
        let index = marker.index();
        let byte = match &self.bytes {
            Some(bytes) => bytes.get(index).copied().unwrap_or(self.length),
            None => index,
        };
        (byte <= self.length).then_some(self.start + byte)
    }
}

/// A list or map whose end is not read yet.
struct Open {
    /// Where it begins.
    from: usize,
    /// Number of its anchor; 0 without one.
    anchor: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    /// Entries, and the key whose value comes next with its place.
    Map(Vec<Entry>, Option<(String, Range<usize>)>),
}

/// Builds nodes from events.
struct Builder<'t> {
    cursor: Cursor<'t>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    documents: Vec<Node>,
}

impl Builder<'_> {
    /// Handles the next event; `None` if the tree would exceed the bounds or needs something that nodes cannot
    /// represent.
    fn take(&mut self, event: Event<'_>, place: Range<usize>) -> Option<()> {
        match event {
            Event::Scalar(text, style, anchor, _) => self.scalar(text, style, anchor, place),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor)?.clone();
                self.cursor.charge(node.size()).then_some(())?;
                self.put(node, 0)
            }
            Event::SequenceStart(anchor, _) => self.begin(place.start, anchor, Inside::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(place.start, anchor, Inside::Map(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => self.end(place.start),
            _ => Some(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        place: Range<usize>,
    ) -> Option<()> {
        let plain = style == ScalarStyle::Plain;
        let place = match self.open.last() {
            // A missing value is placed at the end of its key, wherever the parser was when it noticed.
            Some(Open { inside: Inside::Map(_, Some((_, key))), .. }) if plain && text.is_empty() => {
                key.end..key.end
            }
            // Whole lines: a script in a block keeps its own lines.
            _ if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) => {
                // The parser notices the end of a block at the next key, whose line is not part of the block.
                let last = self.line_start(place.end);
                let over = last > place.start && self.cursor.slice(last, place.end).trim().is_empty();
                let end = if over { last } else { self.cursor.line_end(place.end) + 1 };
                self.line_start(place.start)..end.min(self.cursor.end())
            }
            _ => {
                let start = self.past_properties(place.start).min(place.end);
                start..start + self.cursor.slice(start, place.end).trim_end().len()
            }
        };
        // The positions come from another crate: if one were wrong, diagnostics would point at the wrong line.
        if plain && !text.contains('\n') && self.cursor.slice(place.start, place.end) != text {
            let folded = self.cursor.slice(place.start, place.end).contains('\n');
            folded.then_some(())?;
        }
        if let Some(Open { inside: Inside::Map(_, key @ None), .. }) = self.open.last_mut() {
            *key = Some((text.into_owned(), place));
            // A key with an anchor is left to the tolerant reader, since keys are not nodes here.
            return (anchor == 0).then_some(());
        }
        if self.open.is_empty() && plain && text.is_empty() {
            // A document without content.
            return Some(());
        }
        let node = self.cursor.scalar_at(text.into_owned(), !plain, place);
        self.put(node, anchor)
    }

    fn line_start(&self, at: usize) -> usize {
        self.cursor.slice(0, at).rfind('\n').map_or(0, |end| end + 1)
    }

    /// Where a value begins after its tag and anchor.
    fn past_properties(&self, from: usize) -> usize {
        /// Longest tag or anchor, with the whitespace after it, that is scanned. Unit: byte.
        const LONGEST: usize = 1_000;
        let blank = |at: &usize| self.cursor.byte(*at).is_ascii_whitespace();
        let mut at = from;
        while matches!(self.cursor.byte(at), b'&' | b'!') {
            let Some(end) = (at..(at + LONGEST).min(self.cursor.end())).find(blank) else { break };
            at = (end..end + LONGEST).find(|at| !blank(at)).unwrap_or(end);
        }
        at
    }

    fn begin(&mut self, from: usize, anchor: usize, inside: Inside) -> Option<()> {
        // A key that is not text.
        if let Some(Open { inside: Inside::Map(_, None), .. }) = self.open.last() {
            return None;
        }
        let from = self.past_properties(from);
        // For saphyr-parser, a list that is no deeper than its key begins after its first dash.
        let from = match (&inside, self.cursor.byte(from)) {
            (Inside::List(_), b'[' | b'-') | (Inside::Map(..), _) => from,
            _ => {
                let line = self.line_start(from);
                self.cursor.slice(line, from).rfind('-').map_or(from, |dash| line + dash)
            }
        };
        self.open.push(Open { from, anchor, inside });
        // Checked here, since events are not nested calls that `enter` could count.
        (self.open.len() < MAX_DEPTH).then_some(())
    }

    fn end(&mut self, at: usize) -> Option<()> {
        let Open { from, anchor, inside } = self.open.pop()?;
        let flow = matches!(self.cursor.byte(from), b'[' | b'{');
        // The event's position is that of the bracket, or of a comma before it.
        let to = if flow { at + self.cursor.rest(at).find([']', '}'])? + 1 } else { from };
        let (mut node, last) = match inside {
            Inside::List(items) => {
                let last = items.last().map(|item| item.span);
                (self.cursor.list(items, from), last)
            }
            Inside::Map(entries, None) => {
                let last = entries.last().map(|entry| entry.key_span.to(entry.node.span));
                (self.cursor.map(entries, from), last)
            }
            Inside::Map(_, Some(_)) => return None,
        };
        node.span = self.cursor.span(from, to);
        if let Some(last) = last.filter(|_| !flow) {
            node.span.end = last.end.max(node.span.start);
        }
        self.put(node, anchor)
    }

    /// Inserts a node where the next one belongs; `None` if there are too many.
    fn put(&mut self, node: Node, anchor: usize) -> Option<()> {
        self.cursor.charge(0).then_some(())?;
        if anchor > 0 {
            self.cursor.charge(node.size()).then_some(())?;
            // Inserted only once its node is complete: an alias inside its own anchor finds nothing, and the text is
            // left to the tolerant reader.
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.inside) {
            None => self.documents.push(node),
            Some(Inside::List(items)) => items.push(node),
            Some(Inside::Map(entries, key)) => {
                let (key, place) = key.take()?;
                let key_span = self.cursor.span(place.start, place.end);
                entries.push(Entry { key, key_span, node });
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::standard;

    #[test]
    fn what_is_yaml_is_read_by_its_crate_and_the_rest_is_not() {
        for text in [
            "a: 1\nb: [x, 'y']\n",
            "# é\na: &x {b: 1} # ü\nc: *x\nd:\n  <<: *x\n",
            "%YAML 1.2\n---\n- !!str 1x\n...\n---\nb: |\n  text\n",
            "\u{feff}a: 1\r\nb: é\r\n",
        ] {
            let tree = standard(text, 0);
            assert!(tree.is_some_and(|tree| tree.diagnostics.is_empty()), "{text}");
        }
        for text in ["a: {{ x }}\n", "a: 1\n   b: 2\n", "a: [1, 2\n", "a: *b\n", "[a]: 1\n", "a: \"open\n"] {
            assert_eq!(standard(text, 0), None, "{text}");
        }
        assert_eq!(standard(&"[".repeat(1 << 20), 0), None);
        assert_eq!(standard(&"- ".repeat(1 << 19), 0), None);
    }

    #[test]
    fn a_block_ends_before_the_next_key() {
        for text in [
            "a: |\n  one\n  two\nb: 1\n",
            "a:\n  b: |\n    one\n\n    two\n  c: 1\n",
            "- a: >-\n    one\n    two\n  b: |\n      three\n- c: |\n    four\n",
            "a: |\n  one\n",
            "a: |\n  one",
        ] {
            assert_eq!(standard(text, 0), Some(crate::block::read_tolerantly(text, 0)), "{text}");
        }
    }

    #[test]
    fn both_readers_agree_on_every_case() {
        let mut cases = 0;
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/formats/cases");
        for case in std::fs::read_dir(folder).unwrap() {
            for file in std::fs::read_dir(case.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let tree = standard(&text, 0).expect("a file that is YAML");
                    assert_eq!(tree, crate::block::read_tolerantly(&text, 0), "{}", path.display());
                    cases += 1;
                }
            }
        }
        assert!(cases > 15, "{cases} files");
    }
}

use super::Span;

/// Pasted or dropped texts, laid one after another so that a [`Span`] names one place in all of them.
#[derive(Clone, Debug, Default)]
pub struct Source {
    text: String,
    parts: Vec<Part>,
    /// First byte of every line, ascending.
    lines: Vec<u32>,
}

/// One text of a [`Source`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The file's name; empty for pasted text.
    pub name: String,
    /// Its span in the source as a whole.
    pub span: Span,
}

/// Where an editor would show a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Index into [`Source::parts`].
    pub part: usize,
    /// Line in that part, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Source {
    /// A single nameless text.
    pub fn new(text: &str) -> Self {
        Self::from_files([("", text)])
    }

    /// Several named texts, in the order given.
    pub fn from_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut source = Self::default();
        for (name, text) in files {
            source.push(name, text);
        }
        source
    }

    fn push(&mut self, name: &str, text: &str) {
        // Put a newline between two texts; otherwise the last line of one and the first of the next would be one
        // line.
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let start = self.text.len();
        self.text.push_str(text);
        self.parts.push(Part { name: name.to_owned(), span: Span::from_bytes(start, self.text.len()) });
        self.lines.push(Span::from_bytes(start, start).start);
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        self.lines.extend(breaks.map(|(at, _)| Span::from_bytes(start + at + 1, start + at + 1).start));
    }

    /// All texts, joined; spans count its bytes.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The texts it is made of.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The text of one part; empty when there is no such part.
    pub fn part_text(&self, index: usize) -> &str {
        self.parts.get(index).map_or("", |part| self.slice(part.span))
    }

    /// The text under a span; empty when the span does not fit this source.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Part, line and column of a byte, for an editor; a byte past the end counts as the last line's.
    pub fn position(&self, byte: u32) -> Position {
        // Of several parts that begin at the same byte (empty ones), the last.
        let part = self.parts.partition_point(|part| part.span.start <= byte).saturating_sub(1);
        let base = self.parts.get(part).map_or(0, |part| part.span.start);
        let first = self.lines.partition_point(|start| *start < base);
        let line = self.lines.partition_point(|start| *start <= byte).saturating_sub(1).max(first);
        let start = self.lines.get(line).copied().unwrap_or(0);
        // Editors count characters; a byte inside a character gives column 1 rather than a panic.
        let before = self.text.get(start as usize..byte as usize).unwrap_or("");
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position { part, line: count(line - first + 1), column: count(before.chars().count() + 1) }
    }

    /// The whole line a byte lies on, without its line end, and where it starts.
    pub fn line(&self, byte: u32) -> (Span, &str) {
        let at = self.lines.partition_point(|start| *start <= byte).saturating_sub(1);
        let start = self.lines.get(at).copied().unwrap_or(0);
        let rest = self.text.get(start as usize..).unwrap_or("");
        let line = rest.split('\n').next().unwrap_or("");
        // A carriage return would make a terminal overwrite the line.
        let line = line.strip_suffix('\r').unwrap_or(line);
        (Span::from_bytes(start as usize, start as usize + line.len()), line)
    }
}

#[cfg(test)]
mod tests {
    use super::{Position, Source};

    #[test]
    fn columns_count_characters_and_lines_start_anew_in_each_part() {
        let source = Source::from_files([("a", "x\nébé = 1"), ("b", "\nlast")]);
        let at = |needle: &str| {
            source.position(u32::try_from(source.text().find(needle).unwrap_or(0)).unwrap_or(0))
        };
        assert_eq!(at("= 1"), Position { part: 0, line: 2, column: 5 });
        assert_eq!(at("last"), Position { part: 1, line: 2, column: 1 });
        assert_eq!(source.part_text(1), "\nlast");
        assert_eq!(source.position(0), Position { part: 0, line: 1, column: 1 });
    }

    #[test]
    fn lines_come_without_their_ends() {
        let source = Source::new("one\r\ntwo");
        assert_eq!(source.line(1).1, "one");
        assert_eq!(source.line(5).1, "two");
        assert_eq!(Source::default().line(7).1, "");
    }
}

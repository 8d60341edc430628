use std::rc::Rc;

pub(crate) use super::origin::Mark;
use super::origin::joins;
pub use super::origin::{HoleId, Origin};
use shardscope_source::Span;

/// Text after expansion, each piece of it pointing at its source; unknown parts are named holes. The empty text is
/// `None`, and so has no origin either. Copies share their text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value(Option<Rc<Content>>);

/// A text that is not empty, and its pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    text: String,
    marks: Vec<Mark>,
}

/// A run of a value's text with one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The text; for a hole its name in a form such as `${NNODES}`.
    pub text: &'a str,
    /// Where it comes from.
    pub origin: Origin,
    /// The hole it represents; `None` for known text.
    pub hole: Option<HoleId>,
}

/// A word of a command after expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// What it expands to.
    pub value: Value,
    /// Its place in the command as written: `$GPT_ARGS` for each option in that string.
    pub span: Span,
}

impl Word {
    /// The text to show when this word is clicked: the literal where it was written, or else its place in the command.
    pub fn origin(&self) -> Span {
        self.value.origin().unwrap_or(self.span)
    }

    /// The text with holes shown by name.
    pub fn text(&self) -> &str {
        self.value.text()
    }

    /// The text, if nothing in it is unknown.
    pub fn known(&self) -> Option<&str> {
        self.value.known()
    }
}

impl Value {
    /// Text exactly as in the source.
    pub fn written(text: &str, span: Span) -> Self {
        Self::from_text(text, Origin::written(span))
    }

    /// Text computed from what is at a place.
    pub fn computed(text: &str, span: Span) -> Self {
        Self::from_text(text, Origin::computed(span))
    }

    /// Text that has one origin throughout.
    pub(crate) fn from_text(text: &str, origin: Origin) -> Self {
        let mut value = Self::default();
        value.push(text, origin, None);
        value
    }

    /// Something unknown, shown as `display`.
    pub(crate) fn hole(display: &str, id: HoleId, span: Span) -> Self {
        let mut value = Self::default();
        value.push(display, Origin::computed(span), Some(id));
        value
    }

    /// The text with holes shown by name.
    pub fn text(&self) -> &str {
        self.0.as_ref().map_or("", |content| &content.text)
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.text().len()
    }

    /// The text, if nothing in it is unknown.
    pub fn known(&self) -> Option<&str> {
        if self.has_holes() { None } else { Some(self.text()) }
    }

    /// Whether anything in it is unknown.
    pub fn has_holes(&self) -> bool {
        self.first_hole().is_some()
    }

    /// The first unknown in it; `None` if everything is known.
    pub fn first_hole(&self) -> Option<HoleId> {
        self.marks().iter().find_map(|mark| mark.hole)
    }

    /// The unknowns in it, in order.
    pub fn holes(&self) -> Vec<HoleId> {
        let mut holes = Vec::new();
        self.add_holes(&mut holes);
        holes
    }

    /// Adds the unknowns in it to others.
    pub(crate) fn add_holes(&self, holes: &mut Vec<HoleId>) {
        for mark in self.marks() {
            if let Some(hole) = mark.hole {
                holes.push(hole);
            }
        }
    }

    /// The hole, if the value consists of nothing else.
    pub fn only_hole(&self) -> Option<HoleId> {
        match self.marks() {
            [mark] => mark.hole,
            _ => None,
        }
    }

    /// Undecided branches that could have given another value.
    pub fn doubts(&self) -> impl Iterator<Item = u16> + '_ {
        self.marks().iter().filter_map(|mark| mark.origin.doubt)
    }

    /// Whether anything in it came from outside.
    pub fn is_given(&self) -> bool {
        self.marks().iter().any(|mark| mark.origin.given)
    }

    /// Whether it is the empty text.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Its runs of equal origin.
    pub fn pieces(&self) -> Pieces<'_> {
        Pieces { text: self.text(), marks: self.marks(), start: 0 }
    }

    /// Where the text was written: its first piece and those that follow it closely in the source. `None` for empty
    /// text. Text from outside has the place of the expansion that inserted it.
    pub fn origin(&self) -> Option<Span> {
        /// Bytes between two pieces that still count as one place: a quote, a backslash and a newline.
        const GAP: u32 = 4;
        let mut marks = self.marks().iter();
        let first = marks.next()?;
        if first.origin.given {
            return first.origin.via;
        }
        let mut span = first.origin.span;
        for mark in marks {
            let next = mark.origin.span;
            // Backwards or far away: the rest was written elsewhere.
            if next.start < span.end || next.start - span.end > GAP {
                break;
            }
            span = span.to(next);
        }
        Some(span)
    }

    pub(crate) fn marks(&self) -> &[Mark] {
        self.0.as_ref().map_or(&[], |content| &content.marks)
    }

    /// How much copying it costs, in evaluation steps.
    pub(crate) fn weight(&self) -> u32 {
        // A piece costs as much as 256 bytes of text.
        u32::try_from(self.marks().len() + self.len() / 256).unwrap_or(u32::MAX)
    }

    pub(crate) fn push(&mut self, text: &str, origin: Origin, hole: Option<HoleId>) {
        // The empty text stays `None`; a mark of zero length would have no place.
        if text.is_empty() {
            return;
        }
        // Copy on write: other values that share this text keep theirs.
        let content = Rc::make_mut(self.0.get_or_insert_default());
        content.text.push_str(text);
        let end = u32::try_from(content.text.len()).unwrap_or(u32::MAX);
        if let Some(last) = content.marks.last_mut()
            && hole.is_none()
            && joins(last, origin)
        {
            last.origin.span.end = origin.span.end;
            last.end = end;
            return;
        }
        content.marks.push(Mark { end, origin, hole });
    }

    pub(crate) fn append(&mut self, other: &Value) {
        for piece in other.pieces() {
            piece.add_to(self);
        }
    }

    /// Adds text computed from a place.
    pub(crate) fn add(&mut self, text: &str, span: Span) {
        self.push(text, Origin::computed(span), None);
    }

    /// Sets the place of expansion on every piece.
    pub(crate) fn set_via(&mut self, via: Span) {
        for mark in self.marks_mut() {
            mark.origin.via = Some(via);
        }
    }

    /// Marks every piece as one that an undecided branch could have changed.
    pub(crate) fn set_doubt(&mut self, branch: u16) {
        for mark in self.marks_mut() {
            mark.origin.doubt = Some(branch);
        }
    }

    // Copies if the content is shared: another value that has the same text keeps its own places.
    fn marks_mut(&mut self) -> &mut [Mark] {
        self.0.as_mut().map_or(&mut [], |content| &mut Rc::make_mut(content).marks)
    }

    /// The text between two bytes; a hole that would be cut through is kept entire.
    #[must_use]
    pub fn part(&self, from: usize, to: usize) -> Value {
        let mut out = Value::default();
        let mut start = 0;
        for piece in self.pieces() {
            let end = start + piece.text.len();
            let (low, high) = (from.max(start), to.min(end));
            if low < high {
                if piece.hole.is_some() {
                    piece.add_to(&mut out);
                } else {
                    piece.copy(low - start, high - start, &mut out);
                }
            }
            start = end;
        }
        out
    }

    /// From a byte of the text on.
    pub(crate) fn rest(&self, from: usize) -> Value {
        self.part(from, self.len())
    }

    /// Its words: the text between blanks.
    pub fn fields(&self) -> Vec<Value> {
        self.fields_by(&is_blank)
    }

    /// The ranges of text between runs of separators; holes are never cut.
    pub(crate) fn fields_by(&self, separator: &dyn Fn(char) -> bool) -> Vec<Value> {
        let mut fields = Vec::new();
        let mut field = Value::default();
        for piece in self.pieces() {
            // The blanks in `$(a b)` belong to the hole's name, not to its eventual value.
            if piece.hole.is_some() {
                piece.add_to(&mut field);
                continue;
            }
            let mut start = 0;
            for (at, c) in piece.text.char_indices() {
                if separator(c) {
                    piece.copy(start, at, &mut field);
                    start = at + c.len_utf8();
                    if !field.is_empty() {
                        fields.push(std::mem::take(&mut field));
                    }
                }
            }
            piece.copy(start, piece.text.len(), &mut field);
        }
        if !field.is_empty() {
            fields.push(field);
        }
        fields
    }
}

impl Piece<'_> {
    /// Adds other text in place of this piece.
    pub(crate) fn instead(&self, text: &str, out: &mut Value) {
        out.push(text, Origin { exact: false, ..self.origin }, None);
    }

    /// Adds this piece to a value.
    pub(crate) fn add_to(&self, out: &mut Value) {
        out.push(self.text, self.origin, self.hole);
    }

    /// Adds a part of this piece to a value.
    fn copy(&self, from: usize, to: usize, out: &mut Value) {
        let mut origin = self.origin;
        // Only text identical to the source has a place for each part; anything else keeps the place of the whole
        // piece.
        if origin.exact {
            let base = origin.span.start as usize;
            origin.span = Span::from_bytes(base + from, base + to);
        }
        out.push(self.text.get(from..to).unwrap_or(""), origin, None);
    }
}

/// The pieces of a value, in order.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    text: &'a str,
    marks: &'a [Mark],
    start: u32,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let (mark, rest) = self.marks.split_first()?;
        let text = self.text.get(self.start as usize..mark.end as usize).unwrap_or("");
        (self.start, self.marks) = (mark.end, rest);
        Some(Piece { text, origin: mark.origin, hole: mark.hole })
    }
}

/// What separates words: whitespace, including the no-break and zero-width kinds that browsers paste.
pub(crate) fn is_blank(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | '\r' | '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{3000}' | '\u{200b}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::{HoleId, Origin, Value};
    use shardscope_source::Span;

    #[test]
    fn fields_keep_their_places_and_holes_whole() {
        let mut value = Value::written("  --lr 1e-4 --n ", Span::new(100, 116));
        value.push("$(a b)", Origin::computed(Span::new(7, 13)), Some(HoleId(3)));
        value.push("x y", Origin::written(Span::new(116, 119)), None);
        let fields = value.fields();
        let texts: Vec<_> = fields.iter().map(Value::text).collect();
        assert_eq!(texts, ["--lr", "1e-4", "--n", "$(a b)x", "y"]);
        assert_eq!(fields[1].origin(), Some(Span::new(107, 111)));
        assert_eq!(fields[3].known(), None);
        assert_eq!(value.part(7, 11).origin(), Some(Span::new(107, 111)));
    }

    #[test]
    fn neighbours_in_the_source_join() {
        let mut value = Value::written("ab", Span::new(0, 2));
        value.push("cd", Origin::written(Span::new(2, 4)), None);
        assert_eq!(value.pieces().count(), 1);
        assert_eq!(value.origin(), Some(Span::new(0, 4)));
    }
}

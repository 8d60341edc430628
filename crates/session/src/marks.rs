//! Which pieces of the text are underlined.

use std::ops::Range;

use shardscope_source::{Diagnostic, Severity};

/// Longest text that is underlined. Unit: byte. For longer texts the browser lays out the underlay too slowly.
const LONGEST: usize = 200_000;

/// A piece of the text, whole characters only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes.
    pub bytes: Range<usize>,
    /// The most severe diagnostic that points at it.
    pub severity: Option<Severity>,
}

/// The text cut into pieces, in order, covering all of it; empty if the text is too long.
#[must_use]
pub fn pieces(text: &str, diagnostics: &[Diagnostic]) -> Vec<Piece> {
    if text.len() > LONGEST {
        return Vec::new();
    }
    let mut spans: Vec<(Range<usize>, Severity)> = Vec::new();
    for found in diagnostics {
        if let Some(bytes) = inside(text, found) {
            spans.push((bytes, found.severity));
        }
    }
    // More severe ones are placed first and stay placed. Errors come first, and equals from left to right, so that
    // which of two overlapping ones is kept does not depend on the order of checks.
    spans.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.start.cmp(&other.0.start)));
    let mut marked: Vec<(Range<usize>, Severity)> = Vec::new();
    for (bytes, severity) in spans {
        // Overlapping underlines cannot be drawn as pieces; the more severe one keeps its full range.
        if marked.iter().all(|(taken, _)| bytes.end <= taken.start || taken.end <= bytes.start) {
            marked.push((bytes, severity));
        }
    }
    marked.sort_by_key(|(bytes, _)| bytes.start);
    let mut pieces = Vec::new();
    let mut at = 0;
    for (bytes, severity) in marked {
        if at < bytes.start {
            pieces.push(Piece { bytes: at..bytes.start, severity: None });
        }
        at = bytes.end;
        pieces.push(Piece { bytes, severity: Some(severity) });
    }
    pieces.push(Piece { bytes: at..text.len(), severity: None });
    pieces
}

/// Where the diagnostic points, extended to whole characters, and at least one.
fn inside(text: &str, diagnostic: &Diagnostic) -> Option<Range<usize>> {
    let span = diagnostic.span?;
    let (mut start, mut end) = (span.start as usize, span.end as usize);
    // A span may be past the end: while the user types, diagnostics belong to the previous text.
    if start >= text.len() {
        return None;
    }
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    // An empty span (something is missing here) still needs one character to be visible.
    end = end.clamp(start + 1, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardscope_source::{Code, Span};

    #[test]
    fn pieces_cover_the_text_and_the_graver_wins() {
        let text = "--tp 3 é --foo";
        let found = [
            Diagnostic::note(Code::Fragment, "a").at(Span::new(0, 4)),
            Diagnostic::error(Code::BadValue, "b").at(Span::new(2, 6)),
            Diagnostic::warning(Code::UnknownFlag, "c").at(Span::new(8, 9)),
            Diagnostic::error(Code::BadValue, "d").at(Span::new(900, 901)),
            Diagnostic::error(Code::NoWorldSize, "e"),
        ];
        let pieces = pieces(text, &found);
        let joined: String = pieces.iter().map(|piece| &text[piece.bytes.clone()]).collect();
        assert_eq!(joined, text);
        let marked: Vec<_> = pieces.iter().filter(|piece| piece.severity.is_some()).collect();
        assert_eq!(marked.len(), 2);
        assert_eq!(&text[marked[0].bytes.clone()], "tp 3");
        assert_eq!(&text[marked[1].bytes.clone()], "é");
    }
}

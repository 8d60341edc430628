//! Places of the script, shown in its box.

use shardscope::session::{Answer, utf16_offset};
use shardscope::source::Span;

use super::browser;

/// Selects the place of `span` in the box and scrolls it into view.
pub(crate) fn show(answer: &Answer, span: Span) {
    let Some(area) = browser::script_box() else { return };
    let source = &answer.source;
    // The box only has the first text; places in additional files are given by name.
    if !is_in_box(answer, span) {
        return;
    }
    let text = source.part_text(0);
    // The box counts UTF-16 units, spans are bytes.
    let (start, end) = (utf16_offset(text, span.start), utf16_offset(text, span.end));
    // Lines are counted to convert one into a height; the box does not wrap.
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let lines = u32::try_from(lines).unwrap_or(u32::MAX);
    browser::select(&area, start, end, source.position(span.start).line, lines);
}

/// Whether `span` is in the box rather than in an additional file.
pub(crate) fn is_in_box(answer: &Answer, span: Span) -> bool {
    answer.source.position(span.start).part == 0
}

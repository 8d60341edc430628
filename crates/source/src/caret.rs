use std::fmt::Write;

use super::{Diagnostic, Source};

/// Maximum width of the excerpt of a source line, in characters: command lines of a thousand characters are common.
const WIDEST: usize = 120;

/// A diagnostic as shown in a terminal: the message, the line it points at, carets under the span, and the hint.
pub fn render(source: &Source, diagnostic: &Diagnostic) -> String {
    let mut out = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{}[{}]: {}", diagnostic.severity.name(), diagnostic.code, diagnostic.message);
    if let Some(span) = diagnostic.span {
        let place = source.position(span.start);
        let name = source.parts().get(place.part).map_or("", |part| part.name.as_str());
        let name = if name.is_empty() { "input" } else { name };
        let _ = writeln!(out, "  --> {name}:{}:{}", place.line, place.column);
        let (line_span, line) = source.line(span.start);
        let column = place.column as usize - 1;
        // Cut so that the span starts a quarter of the way in, with context on both sides.
        let skipped = if column > WIDEST / 2 { column - WIDEST / 4 } else { 0 };
        let shown: String =
            line.chars().skip(skipped).take(WIDEST).map(|c| if c == '\t' { ' ' } else { c }).collect();
        // A span over several lines is marked only on its first line. A tab is one character, shown as one space
        // above.
        let marked = source.slice(crate::Span::new(span.start, span.end.min(line_span.end))).chars().count();
        let room = shown.chars().count().saturating_sub(column - skipped);
        let number = place.line.to_string();
        let gutter = " ".repeat(number.len());
        let _ = writeln!(out, "{number} | {shown}");
        let _ = writeln!(
            out,
            "{gutter} | {}{}",
            " ".repeat(column - skipped),
            "^".repeat(marked.min(room).max(1))
        );
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(out, "  = {hint}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::{Code, Diagnostic, Source, Span};

    #[test]
    fn carets_stand_under_the_place() {
        let source = Source::new("A=1\n\té --num-layer 2\n");
        let at = u32::try_from(source.text().find("--num").unwrap()).unwrap();
        let found = Diagnostic::warning(Code::UnknownFlag, "--num-layer is not known")
            .at(Span::new(at, at + 11))
            .hint("--num-layers");
        let text = "warning[unknown-flag]: --num-layer is not known\n  --> input:2:4\n2 |  é --num-layer 2\n  |    ^^^^^^^^^^^\n  = --num-layers\n";
        assert_eq!(render(&source, &found), text);
    }

    #[test]
    fn places_out_of_the_text_do_no_harm() {
        let found = Diagnostic::error(Code::UnknownFlag, "y").at(Span::new(900, 1000));
        assert!(render(&Source::new("short"), &found).starts_with("error[unknown-flag]: y"));
    }
}

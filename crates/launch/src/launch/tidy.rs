//! The words as the training program is meant to receive them.

use shardscope_bash::{Value, Word};
use shardscope_source::{Code, Diagnostic, Source};

/// Splits words that hold several options, and drops backslashes and comments left over from a string.
pub(super) fn words(words: &[Word], source: &Source, diagnostics: &mut Vec<Diagnostic>) -> Vec<Word> {
    let mut tidy = Tidy { source, diagnostics, comment: None, out: Vec::with_capacity(words.len()) };
    for word in words {
        if holds_options(word.text()) {
            for value in split(&word.value) {
                tidy.keep(Word { value, span: word.span });
            }
        } else {
            tidy.keep(word.clone());
        }
    }
    tidy.out
}

struct Tidy<'a> {
    source: &'a Source,
    diagnostics: &'a mut Vec<Diagnostic>,
    /// The bytes of a comment inside a string: from its `#` to the end of the line.
    comment: Option<(u32, u32)>,
    out: Vec<Word>,
}

impl Tidy<'_> {
    fn keep(&mut self, word: Word) {
        let place = word
            .value
            .pieces()
            .next()
            .map_or(word.span, |piece| piece.origin.via.unwrap_or(piece.origin.span));
        if self.comment.is_some_and(|(from, to)| place.start > from && place.start < to) {
            return;
        }
        if word.text() == "\\" {
            let warning = Diagnostic::warning(
                Code::StrayBackslash,
                "this backslash is passed to the program as an argument of its own",
            );
            self.diagnostics
                .push(warning.at(place).hint("it is ignored here; remove it, or the spaces after it"));
            return;
        }
        // Comments only remain in strings: elsewhere the shell has removed them.
        let written = self.source.slice(place);
        if word.text().starts_with('#') && written.starts_with('#') {
            let (line, _) = self.source.line(place.start);
            let warning = Diagnostic::warning(
                Code::CommentInString,
                "# starts no comment inside quotes: it is passed to the program",
            );
            self.diagnostics.push(
                warning
                    .at(place)
                    .hint("the rest of the line is left out here; move the line out of the string"),
            );
            self.comment = Some((place.start, line.end));
            return;
        }
        self.out.push(word);
    }
}

/// Whether a word is really several: `--lr 1e-5`, or a text with options in it.
fn holds_options(text: &str) -> bool {
    let trimmed = text.trim();
    let Some(blank) = trimmed.find(char::is_whitespace) else {
        return trimmed.len() != text.len() && trimmed.starts_with("--");
    };
    if trimmed.starts_with("--") {
        // --name='a b' is one option with a space in its value.
        return !trimmed.get(..blank).unwrap_or("").contains('=') || trimmed.contains(" --");
    }
    trimmed.contains(" --") && !trimmed.contains("{\"") && !trimmed.contains("print(")
}

/// Splits at whitespace outside quotes; quotes around an entire field are removed.
fn split(value: &Value) -> Vec<Value> {
    let text = value.text();
    if !text.contains(['"', '\'']) {
        return value.fields();
    }
    let mut fields = Vec::new();
    let mut quote = None;
    let mut start = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c.is_whitespace() => {
                if let Some(from) = start.take() {
                    fields.push(unquoted(value, from, at));
                }
            }
            None => {
                start.get_or_insert(at);
                if matches!(c, '"' | '\'') {
                    quote = Some(c);
                }
            }
        }
    }
    if let Some(from) = start {
        fields.push(unquoted(value, from, text.len()));
    }
    fields
}

fn unquoted(value: &Value, from: usize, to: usize) -> Value {
    let text = value.text().get(from..to).unwrap_or("");
    let quoted =
        text.len() >= 2 && ['"', '\''].iter().any(|sign| text.starts_with(*sign) && text.ends_with(*sign));
    if quoted { value.part(from + 1, to - 1) } else { value.part(from, to) }
}

//! Words and lines as texts.

use super::super::value::{Value, Word};
use shardscope_source::Span;

/// What words expand to.
pub(crate) fn values(words: &[Word]) -> Vec<Value> {
    let mut values = Vec::new();
    for word in words {
        values.push(word.value.clone());
    }
    values
}

pub(crate) fn joined(words: &[Word]) -> String {
    let mut out = String::new();
    for word in words {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word.text());
        if out.len() > 160 {
            break;
        }
    }
    out
}

/// Words with blanks between them, which follow from a place or from each word's own.
pub(crate) fn spaced(words: &[Word], span: Option<Span>) -> Value {
    let mut out = Value::default();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.add(" ", span.unwrap_or(word.span));
        }
        out.append(&word.value);
    }
    out
}

/// Calls for each line with its bytes, the line end left out.
pub(crate) fn each_line(text: &str, each: &mut dyn FnMut(&str, usize) -> Option<()>) -> Option<()> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        each(line.trim_end_matches('\n'), start)?;
        start += line.len();
    }
    Some(())
}

/// The byte at which a character starts.
pub(crate) fn byte_at(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(byte, _)| byte)
}

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

/// Words joined by spaces, whose place is the given span or that of each word.
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

/// Calls `each` for every line and its byte offset, without the newline.
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

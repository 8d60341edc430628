//! Python literals as written, and the ends of strings and calls.

use shardscope_python::statements::string_end;
use std::borrow::Cow;

/// Characters of a computed value that are shown.
const SHOWN: usize = 40;

/// Bytes of a call that are searched.
const LONGEST_CALL: usize = 20_000;

/// The text up to the limit for a call that opens at `open`, which is beyond any real one.
pub(super) fn within_call(text: &str, open: usize) -> &[u8] {
    let bytes = text.as_bytes();
    bytes.get(..bytes.len().min(open + LONGEST_CALL)).unwrap_or(bytes)
}

/// The position after the parenthesis that closes the one at `open`; the limit for calls longer than any real one.
pub(super) fn call_end(text: &str, open: usize) -> usize {
    let bytes = within_call(text, open);
    let (mut at, mut depth) = (open, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => {
                at = string_end(bytes, at);
                continue;
            }
            b'(' => depth += 1,
            b')' if depth < 2 => return at + 1,
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The arguments of a call itself, from its parenthesis on: without comments, and without what stands in brackets below, such as the
/// keywords of another call that is an argument of this one.
pub(super) fn own_arguments(call: &str) -> String {
    let bytes = call.as_bytes();
    let mut own = String::with_capacity(call.len());
    let (mut at, mut from, mut depth) = (0, 0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => {
                at = string_end(bytes, at);
                continue;
            }
            b'#' => {
                if depth < 2 {
                    own.push_str(call.get(from..at).unwrap_or_default());
                }
                at = call.get(at..).and_then(|rest| rest.find('\n')).map_or(call.len(), |end| at + end);
                from = at;
                continue;
            }
            b'(' | b'[' | b'{' => {
                depth += 1;
                if depth == 2 {
                    own.push_str(call.get(from..at).unwrap_or_default());
                }
            }
            b')' | b']' | b'}' => {
                if depth == 2 {
                    from = at + 1;
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        at += 1;
    }
    if depth < 2 {
        own.push_str(call.get(from..).unwrap_or_default());
    }
    own
}

/// The text without its comments; those in strings are none.
pub(super) fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains('#') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let (mut kept, mut from, mut at) = (String::with_capacity(text.len()), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => at = string_end(bytes, at),
            b'#' => {
                kept.push_str(text.get(from..at).unwrap_or_default());
                at = text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| at + end);
                from = at;
            }
            _ => at += 1,
        }
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(kept)
}

/// A literal as written, or a dotted name such as `torch.bfloat16` or `TaskType.CAUSAL_LM`; `None` for anything that is computed.
pub(super) fn literal(value: &str) -> Option<&str> {
    let first = value.bytes().next()?;
    let plain =
        value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+'));
    let string = matches!(first, b'"' | b'\'') && string_end(value.as_bytes(), 0) == value.len();
    let list = first == b'[' && value.ends_with(']') && !value.contains('(');
    let number = plain && first.is_ascii_digit();
    let known = matches!(value, "True" | "False" | "None") || value.starts_with("torch.") && plain;
    let task = plain && task(value).is_some();
    (string || list || number || known || task).then_some(value)
}

/// The task by PEFT's own names of them: `TaskType.SEQ_CLS`.
fn task(value: &str) -> Option<&str> {
    value.strip_prefix("peft.").unwrap_or(value).strip_prefix("TaskType.")
}

/// The beginning of a computed value, on one line.
pub(super) fn shown(value: &str) -> String {
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    words.join(" ").chars().take(SHOWN).collect()
}

/// A literal in a settings file's notation.
pub(super) fn plain(value: &str) -> String {
    match value {
        "True" => "true".to_owned(),
        "False" => "false".to_owned(),
        "None" => String::new(),
        _ => task(value).unwrap_or(value).chars().filter(|sign| !matches!(sign, '"' | '\'' | '\n')).collect(),
    }
}

//! `${x#pattern}`, `${x/pattern/text}`, `${x:1:2}` and the other operations on a value in braces.

use super::super::limits;
use super::super::script::HoleKind;
use super::super::tree::{Operation, Part, ReplaceMode};
use super::super::value::Value;
use super::state::Evaluator;
use super::{format, pattern};
use shardscope_source::{Code, Diagnostic, Span};

impl Evaluator<'_> {
    pub(crate) fn operate(&mut self, operation: &Operation, value: Value, span: Span) -> Value {
        if matches!(operation, Operation::None | Operation::Fallback { .. }) {
            return value;
        }
        let changed = match operation {
            Operation::Trim { suffix, longest, pattern } => {
                self.simple_pattern(pattern).and_then(|pattern| trim(&value, &pattern, *suffix, *longest))
            }
            Operation::Replace { mode, pattern, with } => match self.simple_pattern(pattern) {
                Some(pattern) => {
                    let with = self.text_of(with);
                    replace(&value, &pattern, &with, *mode, span)
                }
                None => None,
            },
            Operation::Case { upper, all } => {
                value.known().map(|text| Value::computed(&change_case(text, *upper, *all), span))
            }
            Operation::Slice { offset, length } => self.substring(&value, offset, length.as_deref()),
            Operation::Transform(b'Q') => Some(format::quoted(&value)),
            Operation::Transform(_) | Operation::None | Operation::Fallback { .. } => Some(value.clone()),
        };
        changed.unwrap_or_else(|| {
            let needs = value.holes();
            // The value is known, so it is the operation that is not supported; holes need no diagnostic.
            if needs.is_empty() {
                self.notes
                    .report(Diagnostic::warning(Code::Expansion, "this expansion is not supported").at(span));
            }
            self.unknown(HoleKind::Derived, value.text(), span, needs)
        })
    }

    /// A pattern without groups; matches of groups are not evaluated here.
    fn simple_pattern(&mut self, parts: &[Part]) -> Option<String> {
        let grouped = self.extended;
        self.pattern_of(parts).filter(|pattern| !(grouped && pattern::is_extended(pattern)))
    }

    fn substring(&mut self, value: &Value, offset: &[Part], length: Option<&[Part]>) -> Option<Value> {
        let text = value.known()?;
        let offset = self.text_of(offset);
        let length = length.map(|length| self.text_of(length));
        let size = i64::try_from(text.chars().count()).ok()?;
        let from = self.number(&offset, 0).ok()?;
        // Characters, not bytes, as bash counts in a UTF-8 locale.
        let from = if from < 0 { size.saturating_add(from) } else { from.min(size) };
        if from < 0 {
            return Some(Value::default());
        }
        let to = match length {
            Some(length) => match self.number(&length, 0).ok()? {
                count if count < 0 => size.saturating_add(count),
                count => from.saturating_add(count).min(size),
            },
            None => size,
        };
        let byte = |at: i64| {
            let at = usize::try_from(at).unwrap_or(0);
            text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte)
        };
        Some(value.part(byte(from), byte(to.max(from))))
    }
}

fn trim(value: &Value, pattern: &str, suffix: bool, longest: bool) -> Option<Value> {
    let text = value.known()?;
    // Every start (or end) of the text is tried against the pattern, each at the cost of the product of both lengths.
    if text.len().saturating_mul(text.len()).saturating_mul(pattern.len().max(1)) > pattern::MATCH_COST << 4 {
        return None;
    }
    Some(if suffix {
        match pattern::suffix_start(pattern, text, longest) {
            Some(start) => value.part(0, start),
            None => value.clone(),
        }
    } else {
        match pattern::prefix_length(pattern, text, longest) {
            Some(end) => value.rest(end),
            None => value.clone(),
        }
    })
}

fn replace(value: &Value, pattern: &str, with: &Value, mode: ReplaceMode, span: Span) -> Option<Value> {
    let text = value.known()?;
    let plain = !pattern.contains(['*', '?', '[', '\\']);
    // The usual case is a plain search, which is affordable even for long values.
    if plain && matches!(mode, ReplaceMode::First | ReplaceMode::All) {
        return Some(replace_plain(value, text, pattern, with, mode == ReplaceMode::All));
    }
    if text.len().saturating_mul(text.len()).saturating_mul(pattern.len().max(1)) > pattern::MATCH_COST {
        return None;
    }
    let mut out = Value::default();
    let mut at = 0;
    if mode == ReplaceMode::Suffix {
        let start = pattern::suffix_start(pattern, text, true);
        out.append(&value.part(0, start.unwrap_or(text.len())));
        if start.is_some() {
            out.append(with);
        }
        return Some(out);
    }
    while let Some(rest) = text.get(at..) {
        // Bash replaces the longest match at the leftmost place; an empty match would be found forever.
        match pattern::prefix_length(pattern, rest, true).filter(|length| *length > 0) {
            Some(length) => {
                out.append(with);
                at += length;
                if mode != ReplaceMode::All {
                    break;
                }
            }
            None if mode == ReplaceMode::Prefix => break,
            None => {
                let Some(c) = rest.chars().next() else { break };
                out.append(&value.part(at, at + c.len_utf8()));
                at += c.len_utf8();
            }
        }
    }
    out.append(&value.rest(at));
    let _ = span;
    Some(out)
}

fn replace_plain(value: &Value, text: &str, pattern: &str, with: &Value, all: bool) -> Value {
    let mut out = Value::default();
    let mut at = 0;
    while let Some(offset) =
        text.get(at..).filter(|_| !pattern.is_empty()).and_then(|rest| rest.find(pattern))
    {
        out.append(&value.part(at, at + offset));
        out.append(with);
        at += offset + pattern.len();
        if !all || out.len() > limits::VALUE_BYTES {
            break;
        }
    }
    out.append(&value.rest(at));
    out
}

fn change_case(text: &str, upper: bool, all: bool) -> String {
    let change = |c: char| if upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    text.chars().enumerate().map(|(at, c)| if all || at == 0 { change(c) } else { c }).collect()
}

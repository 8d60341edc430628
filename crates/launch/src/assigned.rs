//! What a name of a Python program was last set to, for readers of single calls.

use shardscope_python::statements::{statement_end, string_end};
use shardscope_python::syntax::{Node, node};

/// Maximum bytes of a call or an assignment that are examined.
const LONGEST: usize = 20_000;

/// The statement that starts at `at`, without a trailing comment.
pub(super) fn statement(program: &str, at: usize) -> &str {
    let most = program.len().min(at + LONGEST);
    let end = (at..=most).rev().find(|end| program.is_char_boundary(*end)).unwrap_or(at);
    let text = program.get(..end).unwrap_or(program);
    let text = text.get(at..statement_end(text, at)).unwrap_or("");
    text.trim_end()
}

/// Maximum bytes of an index (`[…]`) that are examined.
const LONGEST_INDEX: usize = 400;
/// Method calls that change the value of a name.
const CHANGES: [&str; 9] = [
    ".append(",
    ".extend(",
    ".insert(",
    ".update(",
    ".setdefault(",
    ".pop(",
    ".popitem(",
    ".remove(",
    ".clear(",
];
/// Assignments that change a value.
const OPERATORS: [&str; 13] =
    ["+=", "-=", "*=", "/=", "%=", "@=", "&=", "|=", "^=", "//=", "**=", "<<=", ">>="];

/// What follows the index at the start of a text, if its end is found.
fn behind_index(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..LONGEST_INDEX).unwrap_or(bytes);
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes.get(at)? {
            b'"' | b'\'' => {
                at = string_end(bytes, at);
                continue;
            }
            b'[' | b'(' | b'{' => depth += 1,
            b']' | b')' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return text.get(at..);
        }
    }
    None
}

/// Whether the text after a name changes the name's value, or that of an item of it.
fn changes(mut rest: &str) -> bool {
    let blanks = [' ', '\t'];
    rest = rest.trim_start_matches(blanks);
    let mut of_an_item = false;
    while rest.starts_with('[') {
        let Some(behind) = behind_index(rest) else { return true };
        rest = behind.trim_start_matches(blanks);
        of_an_item = true;
    }
    let sets = rest.starts_with('=') && !rest.starts_with("==");
    of_an_item && sets || OPERATORS.iter().chain(&CHANGES).any(|change| rest.starts_with(change))
}

/// Whether a change of `name` begins in the line from `start` to `end`.
fn changed(name: &str, text: &str, start: usize, end: usize) -> bool {
    let line = text.get(start..end).unwrap_or("");
    if name.is_empty() || line.trim_start().starts_with('#') {
        return false;
    }
    line.match_indices(name).any(|(at, _)| {
        let before = line.get(..at).unwrap_or("");
        let part = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '.' | '"' | '\'');
        let rest = text.get(start + at + name.len()..).unwrap_or("");
        let whole =
            !before.ends_with(part) && !rest.starts_with(|sign: char| sign.is_alphanumeric() || sign == '_');
        whole && (before.trim_end().ends_with("del") || changes(rest))
    })
}

/// The last value assigned to `name` before `before`, and its position; none if something is added to it later,
/// possibly under a condition.
pub(super) fn assigned(name: &str, program: &str, before: usize) -> Option<(Node, usize)> {
    let text = program.get(..before)?;
    let mut found = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let words = line.trim_start();
        if let Some(rest) = words.strip_prefix(name) {
            let rest = rest.trim_start();
            if let Some(value) = rest.strip_prefix('=').filter(|rest| !rest.starts_with('=')) {
                found = Some(start + line.len() - value.len());
            }
        }
        if changed(name, text, start, start + line.len()) {
            return None;
        }
        start += line.len();
    }
    let at = found?;
    Some((node(statement(program, at).trim_start()), at))
}

#[cfg(test)]
mod tests {
    use super::assigned;

    #[test]
    fn a_value_that_is_changed_later_is_not_known() {
        let of = |more: &str| {
            let program = format!("h = {{'x': 1}}\n{more}\n");
            assigned("h", &program, program.len()).is_some()
        };
        for same in [
            "",
            "print(h['x'])",
            "if h['x']==8: pass",
            "if h['x'] <= 8: pass",
            "# h['x']=8",
            "own.h['x']=8",
            "oh['x']=8",
            "f(h=8)",
            "h2 |= other",
        ] {
            assert!(of(same), "{same}");
        }
        for other in [
            "h['x']=8",
            "h['x'] = 8",
            "h ['x']\t=8",
            "h['a]']['b'] =8",
            "h[\n    'x'\n]=8",
            "h['x']+=8",
            "h|=other",
            "h |= other",
            "h.update(other)",
            "h['x'].update(other)",
            "if long: h['x']=8",
            "a = 1; h['x']=8",
            "last = h.pop('x')",
            "del h['x']",
            "h.clear()",
        ] {
            assert!(!of(other), "{other}");
        }
    }
}

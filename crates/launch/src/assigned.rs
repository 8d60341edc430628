//! What a name of a Python program was last set to, for readers of single calls.

use shardscope_python::statements::statement_end;
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

/// Method calls that change the value of a name.
const CHANGES: [&str; 6] = [".append(", ".extend(", ".insert(", ".update(", ".setdefault(", ".pop("];

/// Whether the text after a name changes the name's value.
fn changes(rest: &str) -> bool {
    let sets_an_item = rest.starts_with('[') && rest.contains("] =");
    sets_an_item || rest.starts_with("+=") || CHANGES.iter().any(|change| rest.starts_with(change))
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
            } else if changes(rest) {
                return None;
            }
        }
        start += line.len();
    }
    let at = found?;
    Some((node(statement(program, at).trim_start()), at))
}

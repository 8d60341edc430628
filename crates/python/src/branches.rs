//! Which branches of a function run. An undecided condition makes what its block assigns a hole.

use super::expression::{Expression, expression};
use super::scope::Scope;
use super::statements::Statement;
use super::tree::Scalar;

/// A block under a condition: its indentation, and whether it runs (`None`: undecided, with what would decide it).
pub(super) struct Block {
    pub(super) indent: usize,
    pub(super) runs: Result<bool, String>,
    /// Whether one of the branches so far has run.
    taken: bool,
}

/// Enters a block, or another branch of the preceding one.
pub(super) fn enter(blocks: &mut Vec<Block>, statement: &Statement<'_>, keyword: &str, scope: &Scope<'_>) {
    let condition = statement.text.get(keyword.len()..).unwrap_or("").trim_end_matches(':').trim();
    let branch = blocks
        .last()
        .filter(|block| block.indent == statement.indent)
        .map(|block| (block.taken, block.runs.clone()));
    if branch.is_some() {
        blocks.pop();
    }
    let runs = match (keyword, &branch) {
        ("elif" | "else", Some((true, _))) => Ok(false),
        ("elif" | "else", Some((_, Err(condition)))) => Err(condition.clone()),
        ("else", _) => Ok(true),
        ("if" | "elif", _) => decided(condition, scope).ok_or_else(|| condition.to_owned()),
        ("with" | "try", _) => Ok(true),
        _ => Err(condition.to_owned()),
    };
    let taken = branch.is_some_and(|(taken, _)| taken) || runs == Ok(true);
    blocks.push(Block { indent: statement.indent, runs, taken });
}

/// Whether a condition holds: comparisons of assigned values with literals, and several of them joined by `and`.
fn decided(condition: &str, scope: &Scope<'_>) -> Option<bool> {
    let condition = condition.trim();
    if let Some((first, rest)) = condition.split_once(" and ") {
        return match (decided(first, scope), decided(rest, scope)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (first, rest) => first.zip(rest).map(|_| true),
        };
    }
    if let Some(rest) = condition.strip_prefix("not ") {
        return decided(rest, scope).map(|holds| !holds);
    }
    let held = |name: &str| {
        let tree = scope.below(name.trim());
        tree.iter()
            .find(|(path, _)| path.is_empty())
            .map(|(_, scalar)| scalar.clone())
            .filter(|scalar| scalar.hole.is_none())
    };
    // A value is a word, or an object of a class with values under it.
    if let Some((name, class)) = condition
        .strip_prefix("isinstance(")
        .and_then(|rest| rest.strip_suffix(')'))
        .and_then(|inside| inside.split_once(','))
    {
        let is_word = !held(name)?.text.is_empty() && scope.below(name.trim()).len() == 1;
        return Some(is_word == (class.trim() == "str"));
    }
    if let Some((name, among)) = condition.split_once(" in ") {
        let text = lowered(name, &held)?;
        let among = among.trim().trim_matches(['[', ']', '(', ')', '{', '}']);
        let words = among.split(',').map(|word| word.trim().trim_matches(['"', '\'']));
        return Some(words.into_iter().any(|word| word == text));
    }
    for (word, wanted) in [(" is not None", false), (" is None", true)] {
        if let Some(name) = condition.strip_suffix(word) {
            return held(name).map(|scalar| scalar.text.is_empty() == wanted);
        }
    }
    for sign in [">=", "<=", "==", "!=", ">", "<"] {
        let Some((left, right)) = condition.split_once(sign) else { continue };
        let left = lowered(left, &held)?;
        let right = match expression(right.trim()) {
            Expression::Number(text) | Expression::Text(text) => text,
            _ => return None,
        };
        let numbers = left.parse::<i64>().ok().zip(right.parse::<i64>().ok());
        return match (sign, numbers) {
            (">=", Some((left, right))) => Some(left >= right),
            ("<=", Some((left, right))) => Some(left <= right),
            (">", Some((left, right))) => Some(left > right),
            ("<", Some((left, right))) => Some(left < right),
            ("==", _) => Some(left == right),
            ("!=", _) => Some(left != right),
            _ => None,
        };
    }
    if condition.contains(|c: char| c.is_whitespace() || matches!(c, '(' | '[')) {
        return None;
    }
    held(condition).map(|scalar| !matches!(scalar.text.as_str(), "" | "false" | "0"))
}

/// The text of a value, in lower case if the program requests that.
fn lowered(name: &str, held: &dyn Fn(&str) -> Option<Scalar>) -> Option<String> {
    let name = name.trim();
    match name.strip_suffix(".lower()") {
        Some(name) => held(name).map(|scalar| scalar.text.to_lowercase()),
        None => held(name).map(|scalar| scalar.text),
    }
}

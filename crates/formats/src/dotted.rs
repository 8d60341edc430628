//! Commands whose settings are words with dotted keys: NeMo and Megatron-Bridge (Hydra), torchtitan, verl.

use super::scalars::is_path;
use crate::Argument;

/// Number of such words that makes a command one of dotted keys.
pub(super) const ENOUGH: usize = 2;

/// The key of a word that is a setting: `a.b` in `a.b=8`, `+a.b=8` and `--a.b`.
pub(super) fn key(word: &str) -> Option<&str> {
    let text = word.trim_start_matches(['-', '+']);
    let path = text.split('=').next().unwrap_or("");
    (is_path(path) && (text.contains('=') || word.starts_with("--"))).then_some(path)
}

/// Whether a word's key begins with one of `starts`.
pub(super) fn is_under(word: &str, starts: &[&str]) -> bool {
    key(word).is_some_and(|key| starts.iter().any(|start| key.starts_with(start)))
}

/// The number of words whose key begins with one of `starts`.
pub(super) fn count(words: &[Argument], starts: &[&str]) -> usize {
    words.iter().filter(|word| is_under(&word.text, starts)).count()
}

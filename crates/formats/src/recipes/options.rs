//! Options among the words of a command.

use crate::Argument;
use shardscope_source::Span;

/// The word that holds an option's value: the next one, or the option itself if it contains `=`.
pub(super) fn argument<'w>(words: &'w [Argument], flag: &str) -> Option<&'w Argument> {
    let at = words.iter().rposition(|word| {
        let name = word.text.split('=').next().unwrap_or("");
        name.len() == flag.len() && name.replace('_', "-") == flag
    })?;
    let word = words.get(at)?;
    if word.text.contains('=') { Some(word) } else { words.get(at + 1) }
}

/// An option's known value and its position.
pub(super) fn option<'w>(words: &'w [Argument], flag: &str) -> Option<(&'w str, Option<Span>)> {
    let word = argument(words, flag).filter(|word| word.hole.is_none())?;
    let value = word.text.split_once('=').map_or(word.text.as_str(), |(_, value)| value);
    Some((value.trim_matches(['"', '\'']), word.span))
}

//! A settings file beneath the words of the command that names it, whose keys they override.

use super::scalars::is_path;
use crate::Argument;
use shardscope_config_tree::{Entry, MAX_DEPTH, Node, Value};
use shardscope_source::Span;
use std::collections::{HashMap, HashSet};

/// A word that may override a key of a file.
struct Override<'w> {
    path: &'w str,
    /// The value behind `=`.
    inline: Option<&'w str>,
}

/// What a word overrides in a file whose top keys `is_top` knows and which is a flat list of settings or not.
fn override_of<'w>(word: &'w Argument, flat: bool, is_top: impl Fn(&str) -> bool) -> Option<Override<'w>> {
    let text = word.text.trim_start_matches(['-', '+']);
    let dashed = word.text.starts_with("--");
    let (path, inline) = text.split_once('=').map_or((text, None), |(path, value)| (path, Some(value)));
    let named = is_path(path) || is_path(&format!("{path}.a"));
    let alone = flat && !dashed && !path.contains('.') && inline.is_some();
    let is_key = || alone || is_top(path.split('.').next().unwrap_or_default());
    ((dashed || inline.is_some()) && named && is_bounded(path) && is_key())
        .then_some(Override { path, inline })
}

/// Whether a tree may be as deep as these keys: none is deeper, whoever makes it.
fn is_bounded(path: &str) -> bool {
    path.split('.').take(MAX_DEPTH + 1).count() <= MAX_DEPTH
}

fn is_flat(root: &Node) -> bool {
    root.entries().iter().any(|entry| !entry.node.is_null() && entry.node.text().is_some())
}

/// Whether [`overridden`] has something to say of these words, without a copy of the file.
#[must_use]
pub fn overrides(root: &Node, words: &[Argument]) -> bool {
    let flat = is_flat(root);
    let read = |word| override_of(word, flat, |top| root.get(top).is_some());
    words.iter().filter_map(read).any(|said| takes(root, said.path))
}

/// Whether keys joined by dots, the first of which the file has, lead below one of its values, or deeper than a tree may be: a
/// word with them cannot be set in it.
#[must_use]
pub fn has_no_place(root: &Node, path: &str) -> bool {
    let top = path.split('.').next().unwrap_or_default();
    is_path(path) && root.get(top).is_some() && !(is_bounded(path) && takes(root, path))
}

/// Whether a value has a place under keys joined by dots.
fn takes(root: &Node, path: &str) -> bool {
    let mut node = root;
    for key in path.split('.') {
        if !matches!(node.value, Value::Map(_)) {
            return node.is_null();
        }
        let Some(next) = node.get(key) else { return true };
        node = next;
    }
    true
}

/// The file with what the words say in its places, and the words that say nothing of it; none if no word overrides a key. A
/// word overrides one if its first key is in the file: `model.dim=512`, `++model.dim=512`, `--model.dim 512`; in a file that
/// is a flat list of settings also `key=value` of any other key.
#[must_use]
pub fn overridden(root: &Node, words: &[Argument]) -> Option<(Node, Vec<Argument>)> {
    let flat = is_flat(root);
    let tops: HashSet<String> = root.entries().iter().map(|entry| folded(&entry.key)).collect();
    let (mut patched, mut left, mut any) = (root.clone(), Vec::new(), false);
    let mut places = Places::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(Override { path, inline }) = override_of(word, flat, |top| tops.contains(&folded(top)))
        else {
            left.push(word.clone());
            continue;
        };
        let next = words.get(at).filter(|next| inline.is_none() && !next.text.starts_with("--"));
        at += usize::from(next.is_some());
        let said = next.unwrap_or(word);
        let value = match (inline, next) {
            _ if said.hole.is_some() => format!("${{{}}}", said.hole.as_deref().unwrap_or_default()),
            (Some(value), _) => unquoted(value).to_owned(),
            (None, Some(next)) => next.text.clone(),
            (None, None) => "true".to_owned(),
        };
        any |= set(&mut patched, &mut places, path, &value, said.span.unwrap_or(root.span));
    }
    any.then_some((patched, left))
}

/// A value without the quotes that bash left on it, as Hydra's override grammar reads it.
fn unquoted(value: &str) -> &str {
    let within = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

/// A key with `-` and `_` as one letter.
fn folded(key: &str) -> String {
    key.replace('-', "_")
}

/// Where the keys of a map stand among its entries, so that each of many words finds its own at once.
#[derive(Default)]
struct Places {
    known: bool,
    keys: HashMap<String, (usize, Places)>,
}

/// Sets the value under keys joined by dots, of which there are at most [`MAX_DEPTH`]; whether that could be done.
fn set(node: &mut Node, places: &mut Places, path: &str, value: &str, span: Span) -> bool {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    if node.is_null() {
        node.value = Value::Map(Vec::new());
    }
    let Value::Map(entries) = &mut node.value else { return false };
    if !places.known {
        for (at, entry) in entries.iter().enumerate() {
            places.keys.entry(folded(&entry.key)).or_insert((at, Places::default()));
        }
        places.known = true;
    }
    let (at, below) = places.keys.entry(folded(key)).or_insert_with(|| {
        entries.push(Entry { key: key.to_owned(), key_span: span, node: Node::null(span) });
        (entries.len() - 1, Places::default())
    });
    let Some(entry) = entries.get_mut(*at) else { return false };
    match rest {
        Some(rest) => set(&mut entry.node, below, rest, value, span),
        None => {
            entry.node = Node::plain(value, span);
            *below = Places::default();
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{overridden, overrides};
    use crate::Argument;
    use crate::scalars::Scalars;
    use shardscope_config_tree::read_yaml;

    fn read(file: &str, words: &str) -> Option<(String, String)> {
        let tree = read_yaml(file, 0);
        let words = &Argument::split(words);
        let root = tree.documents.first()?;
        assert_eq!(overrides(root, words), overridden(root, words).is_some(), "{file}");
        let (patched, left) = overridden(root, words)?;
        let scalars = Scalars::from_node(&patched);
        let keys: Vec<String> =
            scalars.all().iter().map(|leaf| format!("{}={}", leaf.path, leaf.value)).collect();
        let left: Vec<&str> = left.iter().map(|word| word.text.as_str()).collect();
        Some((keys.join(" "), left.join(" ")))
    }

    #[test]
    fn words_take_the_places_of_keys() {
        let file = "model:\n  dim: 4\n  heads: 2\nname: a\n";
        let said = |words: &str| read(file, words).expect("an override");
        let both = |keys: &str, left: &str| (keys.to_owned(), left.to_owned());
        assert_eq!(said("model.dim=8 --seed 1"), both("model.dim=8 model.heads=2 name=a", "--seed 1"));
        assert_eq!(
            said("--model.dim 8 --model.x"),
            both("model.dim=8 model.heads=2 model.x=true name=a", "")
        );
        assert_eq!(said("++model.y.z='b' name=c"), both("model.dim=4 model.heads=2 model.y.z=b name=c", ""));
        // A key that the file leaves to its defaults.
        assert_eq!(said("run=1"), both("model.dim=4 model.heads=2 name=a run=1", ""));
        // A value under a key that holds one.
        assert_eq!(read(file, "name.a=1"), None);
        assert_eq!(read(file, "--seed 1 other.key=2"), None);
        assert_eq!(read("model:\n  dim: 4\n", "run=1"), None);
    }

    /// A key twice, a map that a value takes the place of, and keys below a value that was none.
    #[test]
    fn later_words_find_what_earlier_ones_made() {
        let said = |words: &str| read("model:\n  dim: 4\nname: a\n", words).expect("an override").0;
        assert_eq!(
            said("model.a=1 model.a=2 model.b-c=3 model.b_c=4"),
            "model.dim=4 model.a=2 model.b-c=4 name=a"
        );
        assert_eq!(said("model.a.b=1 model.a=null model.a.c=2"), "model.dim=4 model.a.c=2 name=a");
        assert_eq!(said("model=null model.x=1"), "model.x=1 name=a");
    }

    /// No word makes a tree deeper than any file's may be.
    #[test]
    fn a_word_of_too_many_keys_says_nothing() {
        let deep = |keys: usize| format!("model.{}a=1", "a.".repeat(keys - 2));
        assert_eq!(read("model:\n  dim: 4\n", &deep(15_000)), None);
        assert_eq!(read("model:\n  dim: 4\n", &deep(65)), None);
        assert!(read("model:\n  dim: 4\n", &deep(64)).is_some());
    }
}

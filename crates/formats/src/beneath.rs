//! A settings file beneath the words of the command that names it, whose keys they override.

use super::scalars::is_path;
use crate::Argument;
use shardscope_config_tree::{Entry, Node, Value};
use shardscope_source::Span;

/// The file with what the words say in its places, and the words that say nothing of it; none if no word overrides a key. A
/// word overrides one if its first key is in the file: `model.dim=512`, `++model.dim=512`, `--model.dim 512`; in a file that
/// is a flat list of settings also `key=value` of any other key.
#[must_use]
pub fn overridden(root: &Node, words: &[Argument]) -> Option<(Node, Vec<Argument>)> {
    let flat = root.entries().iter().any(|entry| !entry.node.is_null() && entry.node.text().is_some());
    let (mut patched, mut left, mut any) = (root.clone(), Vec::new(), false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.text.trim_start_matches(['-', '+']);
        let dashed = word.text.starts_with("--");
        let (path, inline) = text.split_once('=').map_or((text, None), |(path, value)| (path, Some(value)));
        let top = path.split('.').next().unwrap_or_default();
        let named = is_path(path) || is_path(&format!("{path}.a"));
        let is_key = root.get(top).is_some() || flat && !dashed && !path.contains('.') && inline.is_some();
        if !named || !is_key || !dashed && inline.is_none() {
            left.push(word.clone());
            continue;
        }
        let next = words.get(at).filter(|next| inline.is_none() && !next.text.starts_with("--"));
        at += usize::from(next.is_some());
        let said = next.unwrap_or(word);
        let value = match (inline, next) {
            _ if said.hole.is_some() => format!("${{{}}}", said.hole.as_deref().unwrap_or_default()),
            (Some(value), _) => unquoted(value).to_owned(),
            (None, Some(next)) => next.text.clone(),
            (None, None) => "true".to_owned(),
        };
        any |= set(&mut patched, path, &value, said.span.unwrap_or(root.span));
    }
    any.then_some((patched, left))
}

/// A value without the quotes that bash left on it, as Hydra's override grammar reads it.
fn unquoted(value: &str) -> &str {
    let within = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

/// Sets the value under keys joined by dots; whether that could be done.
fn set(node: &mut Node, path: &str, value: &str, span: Span) -> bool {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    if node.is_null() {
        node.value = Value::Map(Vec::new());
    }
    let Value::Map(entries) = &mut node.value else { return false };
    let same = |entry: &Entry| entry.key.replace('-', "_") == key.replace('-', "_");
    let at = entries.iter().position(same).unwrap_or_else(|| {
        entries.push(Entry { key: key.to_owned(), key_span: span, node: Node::null(span) });
        entries.len() - 1
    });
    let Some(entry) = entries.get_mut(at) else { return false };
    match rest {
        Some(rest) => set(&mut entry.node, rest, value, span),
        None => {
            entry.node = Node::plain(value, span);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::overridden;
    use crate::Argument;
    use crate::scalars::Scalars;
    use shardscope_config_tree::read_yaml;

    fn read(file: &str, words: &str) -> Option<(String, String)> {
        let tree = read_yaml(file, 0);
        let (patched, left) = overridden(tree.documents.first()?, &Argument::split(words))?;
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
}

//! TOML, read by the `toml` crate: it gives the span of every key and value and continues after invalid TOML, so that
//! the rest of a file with a template's `${...}` as a value can still be read.

use shardscope_source::Code;
use std::ops::Range;

use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue};

use crate::cursor::{Cursor, Tree};
use crate::node::{Entry, Node};

/// Longest text read: the crate stores every error, and torchtitan's longest file has 4 kB. Unit: byte.
const MAX_TEXT: usize = 128 * 1024;

/// Reads TOML; `base` is where `text` starts in its source.
pub fn read_toml(text: &str, base: u32) -> Tree {
    let mut cursor = Cursor::new(text, base, Code::TomlForm);
    if text.len() > MAX_TEXT {
        cursor.complain("too long for a settings file; it is not read", 0, 0);
        let nothing = Node::null(cursor.span(0, 0));
        return cursor.finish(vec![nothing]);
    }
    let (root, faults) = DeTable::parse_recoverable(text);
    for fault in faults {
        let place = fault.span().unwrap_or_default();
        cursor.complain(&format!("this is not TOML: {}", fault.message()), place.start, place.end);
    }
    let root = table(&mut cursor, root.into_inner(), 0..text.len());
    cursor.finish(vec![root])
}

/// A table whose header or braces are at `place`; the place of a table that is only named in the headers of others is
/// unknown.
fn table(cursor: &mut Cursor<'_>, table: DeTable<'_>, place: Range<usize>) -> Node {
    let mut pairs: Vec<_> = table.into_iter().collect();
    // The crate's map is sorted by key; settings are listed in the order written.
    pairs.sort_by_key(|(key, _)| key.span().start);
    let mut entries: Vec<Entry> = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let key_span = cursor.span(key.span().start, key.span().end);
        let node = value_of(cursor, value, key.span().end);
        entries.push(Entry { key: key.into_inner().into_owned(), key_span, node });
    }
    // A dotted key (`a.b = 1`) makes a table without its own span: it gets the span of its contents.
    let inside =
        entries.iter().map(|entry| entry.key_span.to(entry.node.span)).reduce(|one, next| one.to(next));
    let mut node = cursor.map(entries, place.start);
    node.span = cursor.span(place.start, place.end);
    if let Some(inside) = inside {
        node.span = if place.is_empty() { inside } else { node.span.to(inside) };
    }
    node
}

/// A value; if none could be read, a null at `behind`, the end of its key.
fn value_of(cursor: &mut Cursor<'_>, value: Spanned<DeValue<'_>>, behind: usize) -> Node {
    let place = value.span();
    let nothing = Node::null(cursor.span(behind, behind));
    if !cursor.enter() {
        cursor.leave();
        return nothing;
    }
    let text = cursor.slice(place.start, place.end);
    let node = match value.into_inner() {
        DeValue::Table(inner) => table(cursor, inner, place),
        DeValue::Array(items) => {
            let items: Vec<Node> = items.into_iter().map(|item| value_of(cursor, item, behind)).collect();
            let inside = items.iter().map(|item| item.span).reduce(|one, next| one.to(next));
            let mut node = cursor.list(items, place.start);
            node.span = cursor.span(place.start, place.end);
            // The headers of an array of tables are far apart.
            node.span = inside.map_or(node.span, |inside| node.span.to(inside));
            node
        }
        // The crate gives a 0 without a span where there is no value.
        _ if text.is_empty() => nothing,
        DeValue::String(string) if text.starts_with(['"', '\'']) => {
            cursor.scalar_at(string.into_owned(), true, place)
        }
        // `0xff`: readers of numbers only know decimals.
        DeValue::Integer(whole) if whole.radix() != 10 => {
            let decimal = u64::from_str_radix(whole.as_str(), whole.radix());
            let shown = decimal.map_or_else(|_| text.to_owned(), |decimal| decimal.to_string());
            cursor.scalar_at(shown, false, place)
        }
        // A word without quotes, or the beginning of a template's `${...}`.
        DeValue::String(_) => {
            cursor.at = place.start;
            let word = cursor.bare(b'=').to_owned();
            cursor.scalar_at(word, false, place.start..cursor.at)
        }
        // As written: the crate guesses a value for what is not TOML.
        _ => cursor.scalar_at(text.to_owned(), false, place),
    };
    cursor.leave();
    node
}

#[cfg(test)]
mod tests {
    use super::read_toml;
    use crate::node::Node;
    use shardscope_source::Code;

    #[test]
    fn what_is_no_toml_is_reported_and_the_rest_is_read() {
        let text = "[model]\nlayers = ${LAYERS}\nname = True\nempty =\nhidden = 8\nhidden = 9\nmask = 0xff\n\
            [train]\nsteps = 10\na.b = 1\n";
        let tree = read_toml(text, 0);
        let root = &tree.documents[0];
        let word = |path: &str| root.at(path).and_then(Node::text);
        assert_eq!(word("model.layers"), Some("${LAYERS}"));
        assert_eq!(word("model.name"), Some("True"));
        assert!(root.at("model.empty").is_none_or(Node::is_null));
        assert_eq!(word("model.mask"), Some("255"));
        assert_eq!(word("train.steps"), Some("10"));
        assert_eq!(word("train.a.b"), Some("1"));
        assert!(tree.diagnostics.iter().all(|fault| fault.code == Code::TomlForm));
        assert!(tree.diagnostics.len() >= 3, "{:?}", tree.diagnostics);
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let deep = format!("a = {}1{}\n", "[".repeat(10_000), "]".repeat(10_000));
        assert!(!read_toml(&deep, 0).diagnostics.is_empty());
        let dotted = format!("{}a = 1\n", "a.".repeat(10_000));
        assert!(!read_toml(&dotted, 0).diagnostics.is_empty());
        let long = "a = 1\n".repeat(1 << 18);
        assert_eq!(read_toml(&long, 0).diagnostics.len(), 1);
    }
}

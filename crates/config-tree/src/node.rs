use super::scalar;
use shardscope_source::Span;

/// A value in a settings file, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its place, including quotes and brackets.
    pub span: Span,
    /// The value as it was read.
    pub value: Value,
}

/// What a [`Node`] holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A word, number, text, boolean or null.
    Scalar(Scalar),
    /// Values in order.
    List(Vec<Node>),
    /// Values by key, in the order written; keys are distinct.
    Map(Vec<Entry>),
}

/// A scalar that has not been interpreted yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its text, without quotes, escapes resolved.
    pub text: String,
    /// Whether it was quoted or a block scalar, which YAML treats as text. Readers of numbers and flags accept it all
    /// the same.
    pub quoted: bool,
}

/// One key of a map with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// A null node at a place.
    pub fn null(span: Span) -> Self {
        Self::plain("", span)
    }

    /// An unquoted scalar.
    pub fn plain(text: &str, span: Span) -> Self {
        Self { span, value: Value::Scalar(Scalar { text: text.to_owned(), quoted: false }) }
    }

    /// The value under a key, if this is a map; `-` and `_` count as one letter.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| same_key(&entry.key, key)).map(|entry| &entry.node)
    }

    /// The value under keys joined by dots; a key that itself contains a dot cannot be reached this way.
    pub fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// The entries of a map; empty for anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Scalar(_) | Value::List(_) => &[],
        }
    }

    /// The values of a list; empty for anything else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => &[],
        }
    }

    /// The text of a scalar; none for a list or map.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) => Some(&scalar.text),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The text of a scalar that is not null.
    pub fn word(&self) -> Option<&str> {
        self.text().filter(|_| !self.is_null())
    }

    /// Whether it says that there is no value.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if !scalar.quoted && scalar::is_null(&scalar.text))
    }

    /// A whole number from 0 on, quoted or not, in any spelling of a whole number (`1e6`); none for anything else.
    pub fn whole(&self) -> Option<u64> {
        self.text().and_then(scalar::whole)
    }

    /// A finite number, quoted or not; none for anything else.
    pub fn real(&self) -> Option<f64> {
        self.text().and_then(scalar::real)
    }

    /// Yes or no, quoted or not; none for any other word, 0 and 1 among them.
    pub fn flag(&self) -> Option<bool> {
        self.text().and_then(scalar::flag)
    }

    /// How many nodes it holds, itself included.
    pub(super) fn size(&self) -> usize {
        let below = match &self.value {
            Value::Scalar(_) => 0,
            Value::List(items) => items.iter().map(Node::size).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.node.size()).sum(),
        };
        1 + below
    }
}

/// Whether two keys are the same apart from `-` and `_`.
// The same setting is `hidden-size` on a command line and `hidden_size` in most files.
fn same_key(left: &str, right: &str) -> bool {
    let fold = |byte: u8| if byte == b'-' { b'_' } else { byte };
    left.len() == right.len() && left.bytes().zip(right.bytes()).all(|(a, b)| fold(a) == fold(b))
}

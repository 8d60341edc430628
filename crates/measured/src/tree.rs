//! The values in a pickle, each identified by its index among all of them.

/// Index of a value in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) u32);

/// A value of the pickle.
#[derive(Debug)]
pub(crate) enum Node {
    /// `None`, booleans, bytes, and numbers that do not fit an i64: none is ever needed.
    Other,
    Int(i64),
    /// A string: the range of its bytes in the pickle.
    Text(u32, u32),
    /// A list, tuple or set.
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
}

/// The values of a pickle.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: Id,
}

impl Tree<'_> {
    /// The outermost value.
    pub(crate) const fn root(&self) -> Id {
        self.root
    }

    fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    /// The value of `key` if `id` is a dict.
    pub(crate) fn get(&self, id: Id, key: &str) -> Option<Id> {
        let Some(Node::Dict(pairs)) = self.node(id) else { return None };
        // Of equal keys the last counts, as in Python.
        pairs.iter().rev().find(|(name, _)| self.text(*name) == Some(key.as_bytes())).map(|(_, value)| *value)
    }

    /// The members of a list, tuple or set; none for anything else.
    pub(crate) fn list(&self, id: Id) -> Option<&[Id]> {
        match self.node(id) {
            Some(Node::List(items)) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn whole(&self, id: Id) -> Option<u64> {
        match self.node(id) {
            Some(Node::Int(number)) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    pub(crate) fn text(&self, id: Id) -> Option<&[u8]> {
        match self.node(id) {
            Some(Node::Text(start, end)) => self.bytes.get(*start as usize..*end as usize),
            _ => None,
        }
    }
}

//! A launch format as a value.

use super::reader::Reader;
use crate::Reading;
use crate::releases::Installed;
use shardscope_config_tree::{Node, Tree};
use shardscope_source::Span;
use std::ops::Deref;

/// A launch format: its reader, as a value that can be stored and compared.
#[derive(Clone, Copy, Debug)]
pub struct Format(&'static dyn Reader);

impl Format {
    /// The format that `reader` reads.
    #[must_use]
    pub const fn new(reader: &'static dyn Reader) -> Self {
        Self(reader)
    }

    /// The settings of a file, with diagnostics about its syntax.
    #[must_use]
    pub fn read_tree(self, tree: &Tree) -> Reading {
        self.read_tree_beside(tree, Installed::default())
    }

    /// The same beside texts that install packages.
    #[must_use]
    pub fn read_tree_beside(self, tree: &Tree, installed: Installed) -> Reading {
        let nothing = Node::null(Span::default());
        let mut reading = self.read_installed(tree.documents.first().unwrap_or(&nothing), installed);
        reading.states_machines = self.states_machines().to_owned();
        let own = std::mem::replace(&mut reading.diagnostics, tree.diagnostics.clone());
        reading.diagnostics.extend(own);
        reading
    }
}

impl Deref for Format {
    type Target = dyn Reader;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

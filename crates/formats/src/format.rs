//! A launch format as a value.

use super::reader::{Command, Reader};
use crate::releases::Installed;
use crate::{Argument, Reading};
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
        self.of(tree, self.read_installed(tree.documents.first().unwrap_or(&nothing), installed))
    }

    /// The same beneath a command that names the file, and the words that say nothing of it.
    #[must_use]
    pub fn read_tree_beneath(self, tree: &Tree, command: &Command<'_>) -> Option<(Reading, Vec<Argument>)> {
        let (reading, left) = self.read_beneath(tree.documents.first()?, command)?;
        Some((self.of(tree, reading), left))
    }

    fn of(self, tree: &Tree, mut reading: Reading) -> Reading {
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

//! A launch format as a value.

use super::reader::{Command, Reader};
use crate::releases::Installed;
use crate::{Argument, Effect, NotModelled, Reading};
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
        self.tell_older(&mut reading, installed);
        self.of(tree, reading)
    }

    /// The same beneath a command that names the file, and the words that say nothing of it.
    #[must_use]
    pub fn read_tree_beneath(self, tree: &Tree, command: &Command<'_>) -> Option<(Reading, Vec<Argument>)> {
        let (mut reading, left) = self.read_beneath(tree.documents.first()?, command)?;
        self.tell_older(&mut reading, command.installed);
        Some((self.of(tree, reading), left))
    }

    /// Stops at a release that a text installs and whose defaults are not modelled.
    pub(crate) fn tell_older(self, reading: &mut Reading, installed: Installed) {
        self.date(reading, installed);
        let Some((package, release, first)) = self.modelled_since(installed) else { return };
        if release < first {
            let what = format!("defaults of {package} before {}.{}", first[0], first[1]);
            let value = format!("{}.{}", release[0], release[1]);
            reading.not_modelled.push(NotModelled::new(package, &value, Effect::Memory, &what));
        }
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

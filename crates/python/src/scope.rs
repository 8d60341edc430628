//! The values inside one function.

use super::program::Constants;
use super::tree::{Scalar, Tree, below, is_below};
use std::rc::Rc;

/// Most values in one configuration; recipes have some two hundred.
pub(super) const LARGEST: usize = 2_000;

/// Values by name and path inside one function.
pub(super) struct Scope<'a> {
    pub(super) values: Tree,
    pub(super) at: usize,
    /// Constants of the function's own program.
    pub(super) constants: Rc<Constants<'a>>,
}

impl Scope<'_> {
    /// The values under a name, with paths relative to it.
    pub(super) fn below(&self, name: &str) -> Tree {
        below(&self.values, name)
    }

    pub(super) fn holds(&self, name: &str) -> bool {
        self.values.iter().any(|(path, _)| is_below(path, name))
    }

    pub(super) fn assign(&mut self, name: &str, tree: Tree) {
        self.values.retain(|(path, _)| !is_below(path, name));
        // A hole rather than an error: what was assigned before stays known, and the user sees what is missing.
        if self.values.len() + tree.len() > LARGEST {
            let hole = Some("a configuration that is too large".to_owned());
            self.values.push((name.to_owned(), Scalar { hole, at: self.at, ..Scalar::default() }));
            self.values.truncate(LARGEST);
            return;
        }
        for (path, scalar) in tree {
            let path = if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") };
            self.values.push((path, scalar));
        }
    }
}

//! Storages on one rank, and which of them autograd keeps.

use std::collections::BTreeMap;

/// A storage: views of a tensor share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Storage(usize);

/// What was allocated, and what of it is saved: each storage once, however many operations save it.
#[derive(Default)]
pub(super) struct Tape {
    allocated: Vec<(&'static str, u64)>,
    saved: BTreeMap<Storage, ()>,
}

impl Tape {
    /// A new storage of `bytes`.
    pub(super) fn allocate(&mut self, name: &'static str, bytes: u64) -> Storage {
        self.allocated.push((name, bytes));
        Storage(self.allocated.len() - 1)
    }

    /// An operation saves `storage` for its backward.
    pub(super) fn save(&mut self, storage: Storage) {
        self.saved.insert(storage, ());
    }

    /// A storage made to be saved.
    pub(super) fn keep(&mut self, name: &'static str, bytes: u64) -> Storage {
        let storage = self.allocate(name, bytes);
        self.save(storage);
        storage
    }

    /// Lets go what was saved since there were `storages`, as leaving a checkpointed function does.
    pub(super) fn forget_since(&mut self, storages: usize) {
        self.saved.retain(|storage, ()| storage.0 < storages);
    }

    /// Lets one storage go: its bytes are given back and made again in backward.
    pub(super) fn forget(&mut self, storage: Storage) {
        self.saved.remove(&storage);
    }

    /// How many storages there are.
    pub(super) fn len(&self) -> usize {
        self.allocated.len()
    }

    /// Bytes of all saved storages.
    pub(super) fn bytes(&self) -> u64 {
        self.saved.keys().map(|storage| self.allocated[storage.0].1).sum()
    }
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut names: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for storage in self.saved.keys() {
            let (name, bytes) = self.allocated[storage.0];
            let entry = names.entry(name).or_default();
            *entry = (entry.0 + 1, entry.1 + bytes);
        }
        write!(out, "{names:?}")
    }
}

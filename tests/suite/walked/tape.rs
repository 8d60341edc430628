//! Storages on one rank, and which of them autograd keeps.

use std::collections::BTreeMap;

/// A storage: views of a tensor share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Storage(usize);

/// The allocated storages, and which of them are saved: each storage once, however many operations save it.
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

    /// A new storage that is saved immediately.
    pub(super) fn keep(&mut self, name: &'static str, bytes: u64) -> Storage {
        let storage = self.allocate(name, bytes);
        self.save(storage);
        storage
    }

    /// Frees everything saved since there were `storages`, as on leaving a checkpointed function.
    pub(super) fn forget_since(&mut self, storages: usize) {
        self.saved.retain(|storage, ()| storage.0 < storages);
    }

    /// Frees one storage: its memory is released and recomputed in backward.
    pub(super) fn forget(&mut self, storage: Storage) {
        self.saved.remove(&storage);
    }

    /// The number of storages.
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

//! PyTorch's memory snapshots: the caching allocator's memory at one moment, and its history.
//! Form: `torch/csrc/cuda/Module.cpp` (THCPModule_memorySnapshot), `torch/cuda/memory.py` (`_dump_snapshot`).

use std::collections::BTreeMap;

use super::figures::{Measured, Remark, Tool};
use super::tree::{Id, Tree};

/// Blocks of the allocator are multiples of it (`c10/core/AllocatorConfig.h`, kMinBlockSize). Unit: byte.
const BLOCK: u64 = 512;

/// The allocator's memory on a device at the time of the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Index of the device.
    pub(crate) device: u64,
    /// Held by the allocator's segments. Unit: byte.
    pub(crate) reserved: u64,
    /// Part of it in tensors. Unit: byte.
    pub(crate) allocated: u64,
}

/// The kind of change that an entry of a trace records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Allocated,
    Freed,
    Reserved,
    Released,
}

impl Change {
    /// By the entry's action. A block whose free is pending counts as free, as in `memory_allocated`.
    pub(crate) fn parse(action: &[u8]) -> Option<Self> {
        Some(match action {
            b"alloc" => Self::Allocated,
            b"free_requested" | b"free" => Self::Freed,
            b"segment_alloc" | b"segment_map" => Self::Reserved,
            b"segment_free" | b"segment_unmap" => Self::Released,
            _ => return None,
        })
    }
}

/// A change and its size in bytes.
pub(crate) type Entry = (Change, u64);

/// A snapshot: the memory held at the time, and the history as far as it was recorded.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) segments: Vec<Held>,
    /// By the index of the device, the latest last.
    pub(crate) traces: Vec<Vec<Entry>>,
}

impl Snapshot {
    /// The peak: found by walking back through the history from the end, where the memory held is known.
    ///
    /// A trace has the requested sizes. Each is rounded as the allocator rounds it; a block may be larger still if the remainder
    /// of the block it was split from was too small to keep, so the peak of allocated memory is a lower bound.
    pub(crate) fn measured(&self) -> Measured {
        let mut found = Measured::by(Tool::MemorySnapshot);
        // Signed and wide: going back through a hostile trace may lead below zero or beyond 64 bits.
        let mut devices: BTreeMap<u64, (i128, i128)> = BTreeMap::new();
        for held in &self.segments {
            let (reserved, allocated) = devices.entry(held.device).or_default();
            *reserved += i128::from(held.reserved);
            *allocated += i128::from(held.allocated);
        }
        // A device may have held something before and nothing at the end.
        for device in 0..self.traces.len() as u64 {
            devices.entry(device).or_default();
        }
        for (device, (mut reserved, mut allocated)) in devices {
            let (mut most_reserved, mut most_allocated) = (reserved, allocated);
            let trace = usize::try_from(device).ok().and_then(|device| self.traces.get(device));
            for (change, size) in trace.into_iter().flatten().rev() {
                // At least one block, also for a request of zero bytes (`round_size`).
                let block = i128::from(size.div_ceil(BLOCK).max(1)) * i128::from(BLOCK);
                match change {
                    Change::Allocated => allocated -= block,
                    Change::Freed => allocated += block,
                    Change::Reserved => reserved -= i128::from(*size),
                    Change::Released => reserved += i128::from(*size),
                }
                most_reserved = most_reserved.max(reserved);
                most_allocated = most_allocated.max(allocated);
            }
            found.reserved = found.reserved.max(u64::try_from(most_reserved).ok());
            found.allocated = found.allocated.max(u64::try_from(most_allocated).ok());
        }
        let has_history = !self.traces.iter().all(Vec::is_empty);
        found.remark = Some(if has_history { Remark::History } else { Remark::Moment });
        found
    }
}

/// The snapshot in a pickle.
pub(crate) fn of_pickle(tree: &Tree<'_>) -> Option<Measured> {
    let root = tree.root();
    let whole = |of: Id, key: &str| tree.get(of, key).and_then(|value| tree.whole(value));
    let mut snapshot = Snapshot::default();
    for segment in tree.list(tree.get(root, "segments")?)? {
        snapshot.segments.push(Held {
            device: whole(*segment, "device").unwrap_or(0),
            reserved: whole(*segment, "total_size")?,
            allocated: whole(*segment, "allocated_size")?,
        });
    }
    let traces = tree.get(root, "device_traces").and_then(|traces| tree.list(traces)).unwrap_or_default();
    for trace in traces {
        let entry = |entry: &Id| {
            let action = tree.text(tree.get(*entry, "action")?)?;
            Some((Change::parse(action)?, whole(*entry, "size")?))
        };
        snapshot.traces.push(tree.list(*trace)?.iter().filter_map(entry).collect());
    }
    Some(snapshot.measured())
}

#[cfg(test)]
mod tests {
    use super::{Change, Held, Remark, Snapshot};

    #[test]
    fn the_peak_lies_inside_the_trace() {
        let held = |device, reserved, allocated| Held { device, reserved, allocated };
        let snapshot = Snapshot {
            segments: vec![held(0, 2 << 20, 1024), held(1, 20 << 20, 512)],
            traces: vec![
                vec![
                    (Change::Reserved, 2 << 20),
                    (Change::Allocated, 1),
                    (Change::Allocated, 1000),
                    (Change::Freed, 1),
                    (Change::Allocated, 0),
                    (Change::Freed, 1000),
                    (Change::Allocated, 512),
                ],
                vec![(Change::Released, 40 << 20), (Change::Freed, 4096)],
            ],
        };
        let found = snapshot.measured();
        assert_eq!((found.reserved, found.allocated), (Some(60 << 20), Some(512 + 4096)));
        let alone = Snapshot { segments: vec![held(0, 7, 5)], traces: Vec::new() };
        assert_eq!((alone.measured().reserved, alone.measured().allocated), (Some(7), Some(5)));
        assert_eq!(alone.measured().remark, Some(Remark::Moment));
    }
}

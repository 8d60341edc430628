//! A rank's bytes by term, and what a device of a given capacity would show.

use super::verdict::Verdict;
use shardscope_units::Bytes;

/// A rank's bytes by term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Weights.
    pub parameters: Bytes,
    /// Gradients.
    pub gradients: Bytes,
    /// Optimizer states.
    pub optimizer: Bytes,
    /// Saved for backward at the peak.
    pub activations: Bytes,
    /// Alive at the peak besides that: gradients of activations, copies, buffers, workspaces.
    pub temporaries: Bytes,
    /// Their sum: what `torch.cuda.max_memory_allocated()` shows.
    pub peak_allocated: Bytes,
    /// Including what the allocator has cached or split off: what `torch.cuda.max_memory_reserved()` shows.
    pub peak_cached: Bytes,
    /// What the device shows beyond the allocated bytes: allocator slack, driver context, communicators.
    pub framework: Bytes,
    /// The part of that outside torch's allocator: context and communicators.
    pub outside: Bytes,
    /// What the device shows.
    pub peak_reserved: Bytes,
    /// The same once the allocator has released everything it can, as it does when the device is full: if this
    /// exceeds the device's memory, the run ends with an out-of-memory error.
    pub peak_required: Bytes,
    /// Bytes allocated between the end of one step and the start of the next.
    pub between_steps: Bytes,
    /// Weights gathered at the peak of a pass without gradients.
    pub gathered_in_forward: Bytes,
}

impl Totals {
    /// What a device with `capacity` bytes shows: never more than that while the run is alive.
    #[must_use]
    pub fn shown_on(&self, capacity: Bytes) -> Bytes {
        self.peak_reserved.min(capacity.max(self.peak_required))
    }

    /// What torch's allocator has reserved on such a device.
    #[must_use]
    pub fn cached_on(&self, capacity: Bytes) -> Bytes {
        self.peak_cached.less(self.peak_reserved.less(self.shown_on(capacity)))
    }

    /// The verdict on a device with `capacity` bytes, of which the share `headroom` should stay free.
    #[must_use]
    pub fn verdict(&self, capacity: Bytes, headroom: f64) -> Verdict {
        Verdict::judge(self.peak_reserved, self.peak_required, capacity, headroom)
    }

    /// The columns of every memory table: the five parts, what torch allocates, what is outside that, what the device
    /// shows.
    #[must_use]
    pub fn columns(&self) -> [Bytes; 8] {
        [
            self.parameters,
            self.gradients,
            self.optimizer,
            self.activations,
            self.temporaries,
            self.peak_allocated,
            self.framework,
            self.peak_reserved,
        ]
    }
}

//! A rank's bytes by term, and what a device of some capacity shows of them.

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
    /// Kept for backward at the moment of the peak.
    pub activations: Bytes,
    /// Alive at the moment of the peak beside that: gradients of activations, copies, buffers, workspaces.
    pub temporaries: Bytes,
    /// Their sum: what `torch.cuda.max_memory_allocated()` shows.
    pub peak_allocated: Bytes,
    /// With what the allocator has cached or cut: what `torch.cuda.max_memory_reserved()` shows.
    pub peak_cached: Bytes,
    /// What the device shows beside the allocated: the allocator slack, the driver context, communicators.
    pub framework: Bytes,
    /// Of that, what is outside of torch's allocator: context and communicators.
    pub outside: Bytes,
    /// What the device shows.
    pub peak_reserved: Bytes,
    /// The same when the allocator has given back all that it can, as it does where the device is full: what is above the
    /// device's memory here ends in an out-of-memory error.
    pub peak_required: Bytes,
    /// What is allocated when a step is over and the next has not begun.
    pub between_steps: Bytes,
}

impl Totals {
    /// What a device that holds `capacity` shows: never more than that while the run lives.
    #[must_use]
    pub fn shown_on(&self, capacity: Bytes) -> Bytes {
        self.peak_reserved.min(capacity.max(self.peak_required))
    }

    /// What torch's allocator has reserved on it.
    #[must_use]
    pub fn cached_on(&self, capacity: Bytes) -> Bytes {
        self.peak_cached.less(self.peak_reserved.less(self.shown_on(capacity)))
    }

    /// The verdict on a device that holds `capacity`, of which the share `headroom` is to stay free.
    #[must_use]
    pub fn verdict(&self, capacity: Bytes, headroom: f64) -> Verdict {
        Verdict::judge(self.peak_reserved, self.peak_required, capacity, headroom)
    }

    /// The columns of every table of memory: the five parts, what torch allocates, what is beside it, what the device
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

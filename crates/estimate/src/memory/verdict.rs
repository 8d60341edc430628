//! Whether the memory suffices.

use shardscope_units::{Bytes, Quantity, gib};

/// Whether the fullest device of a plan has the memory that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Fits with the headroom free.
    Fits,
    /// Fits, but not with the headroom free, or only after the allocator has released its cache: fragmentation, which
    /// varies from run to run, may break it.
    Tight,
    /// Does not fit.
    OutOfMemory,
}

impl Verdict {
    /// The verdict on `reserved` bytes, `required` of them after the allocator has released all it can, on a device
    /// with `capacity` bytes, of which the share `headroom` should stay free.
    #[must_use]
    pub fn judge(reserved: Bytes, required: Bytes, capacity: Bytes, headroom: f64) -> Self {
        // Two figures on purpose: out of memory means that bytes cannot be freed, tight refers to what the device
        // would show, including cached blocks.
        if required > capacity {
            Self::OutOfMemory
        } else if reserved.number() > capacity.number() * (1.0 - headroom) {
            Self::Tight
        } else {
            Self::Fits
        }
    }

    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Tight => "tight",
            Self::OutOfMemory => "out_of_memory",
        }
    }
}

/// A peak as shown with a verdict next to the device's capacity.
///
/// A run that is tight because PyTorch's allocator must release its cache never shows more than the capacity. So the
/// verdict is shown with what remains then, not with what the allocator would hold on a larger device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Bytes on the device at the peak.
    pub bytes: Bytes,
    /// Cached blocks that the allocator releases for that; zero if they fit, or if releasing them does not help.
    pub released: Bytes,
}

impl Needs {
    /// For a peak of `reserved` bytes, `required` of them after the allocator has released all it can, on a device
    /// with `capacity` bytes.
    #[must_use]
    pub fn new(reserved: Bytes, required: Bytes, capacity: Bytes) -> Self {
        if reserved > capacity && required <= capacity {
            Self { bytes: required, released: reserved.less(required) }
        } else {
            Self { bytes: reserved, released: Bytes::ZERO }
        }
    }

    /// The text that follows the figure and names what the allocator releases; empty if it need not.
    #[must_use]
    pub fn condition(&self) -> String {
        if self.released == Bytes::ZERO {
            return String::new();
        }
        format!(", once PyTorch releases {} of cached blocks", gib(self.released))
    }
}

#[cfg(test)]
mod tests {
    use super::{Needs, Verdict};
    use shardscope_units::Bytes;

    #[test]
    fn headroom_decides_what_is_tight() {
        let given_back = |reserved, required, headroom| {
            Verdict::judge(Bytes::new(reserved), Bytes::new(required), Bytes::new(1_000), headroom).name()
        };
        let of = |reserved, headroom| given_back(reserved, reserved, headroom);
        assert_eq!((of(960, 0.04), of(961, 0.04), of(1_000, 0.04)), ("fits", "tight", "tight"));
        assert_eq!(
            (of(1_001, 0.04), of(1_000, 0.0), of(1_001, 0.0)),
            ("out_of_memory", "fits", "out_of_memory")
        );
        assert_eq!(
            (given_back(1_100, 1_000, 0.04), given_back(1_100, 1_001, 0.04)),
            ("tight", "out_of_memory")
        );
        assert_eq!((of(500, 0.5), of(501, 0.5)), ("fits", "tight"));
    }

    #[test]
    fn what_is_reported_beside_a_verdict_is_above_the_capacity_only_where_memory_runs_out() {
        let needs = |reserved, required| {
            let needs = Needs::new(Bytes::new(reserved), Bytes::new(required), Bytes::new(1_000));
            (needs.bytes.get(), needs.released.get())
        };
        assert_eq!((needs(990, 900), needs(1_000, 900)), ((990, 0), (1_000, 0)));
        assert_eq!((needs(1_001, 900), needs(1_001, 1_000)), ((900, 101), (1_000, 1)));
        assert_eq!(needs(1_200, 1_001), (1_200, 0));
    }
}

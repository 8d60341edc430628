//! Whether what is needed is there.

use shardscope_units::{Bytes, Quantity};

/// Whether a plan's fullest device holds what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// With the headroom free.
    Fits,
    /// Not with the headroom free, or only after the allocator has given back what it caches: fragmentation, which differs
    /// from run to run, may break it.
    Tight,
    /// Not at all.
    OutOfMemory,
}

impl Verdict {
    /// The verdict on `reserved` bytes, `required` of them where the allocator gives back all that it can, of a device that
    /// holds `capacity`, of which the share `headroom` is to stay free.
    #[must_use]
    pub fn of(reserved: Bytes, required: Bytes, capacity: Bytes, headroom: f64) -> Self {
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

#[cfg(test)]
mod tests {
    use super::Verdict;
    use shardscope_units::Bytes;

    #[test]
    fn headroom_decides_what_is_tight() {
        let given_back = |reserved, required, headroom| {
            Verdict::of(Bytes::new(reserved), Bytes::new(required), Bytes::new(1_000), headroom).name()
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
}

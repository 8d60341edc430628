//! Time of one rank by what it is spent on.

use crate::compute::Cost;
use shardscope_units::Seconds;

/// Time by what it is spent on, on one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Parts {
    /// Arithmetic.
    pub(super) compute: Cost,
    /// Exposed tensor-parallel communication.
    pub(super) tensor: Seconds,
    /// Exposed context-parallel communication.
    pub(super) context: Seconds,
    /// Exposed expert-parallel communication.
    pub(super) expert: Seconds,
    /// Exposed gathering and scattering of sharded weights.
    pub(super) data: Seconds,
    /// Waiting for the host to issue kernels.
    pub(super) host: Seconds,
    /// Memory traffic between the other parts.
    pub(super) other: Seconds,
}

impl Parts {
    pub(super) fn total(&self) -> Seconds {
        let exposed = self.tensor + self.context + self.expert + self.data;
        self.compute.total() + exposed + self.host + self.other
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self {
            compute: self.compute.scaled(factor),
            tensor: self.tensor * factor,
            context: self.context * factor,
            expert: self.expert * factor,
            data: self.data * factor,
            host: self.host * factor,
            other: self.other * factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Parts;
    use crate::compute::Cost;
    use shardscope_units::Seconds;

    #[test]
    fn every_part_is_scaled() {
        let [tensor, context, expert, data, host, other] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(Seconds::new);
        let parts = Parts { compute: Cost::default(), tensor, context, expert, data, host, other };
        let scaled = parts.scaled(4.0);
        let of = |parts: &Parts| {
            [parts.tensor, parts.context, parts.expert, parts.data, parts.host, parts.other].map(Seconds::get)
        };
        assert_eq!(of(&scaled), of(&parts).map(|part| 4.0 * part));
        assert_eq!(scaled.total().get(), 4.0 * 63.0);
    }
}

//! How long every pass and every message takes.

use super::Shape;
use shardscope_units::Seconds;

/// How long the passes of one chunk take for one micro-batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChunkTime {
    /// Forward.
    pub forward: Seconds,
    /// Backward for the input gradient, including recomputation.
    pub backward: Seconds,
    /// Backward for the weight gradient. A full backward pass takes both.
    pub weight: Seconds,
}

/// How long everything takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageDurations {
    /// By stage and chunk.
    pub chunks: Vec<Vec<ChunkTime>>,
    /// A message from stage r to stage r + 1 (from the last to the first), and back.
    pub sends: Vec<Seconds>,
    /// Whether a stage is blocked while it sends (no overlapped p2p).
    pub blocking: bool,
}

impl StageDurations {
    /// The same times on every stage and chunk of `shape`.
    #[must_use]
    pub fn even(shape: &Shape, chunk: ChunkTime, send: Seconds) -> Self {
        let of_stage = (0..shape.chunks).map(|_| chunk).collect::<Vec<_>>();
        Self {
            chunks: (0..shape.stages).map(|_| of_stage.clone()).collect(),
            sends: (0..shape.stages).map(|_| send).collect(),
            blocking: false,
        }
    }

    /// The time of a message between two stages; zero on the same stage.
    pub(super) fn between(&self, one: u32, other: u32) -> f64 {
        if one == other {
            return 0.0;
        }
        let (low, high) = (one.min(other), one.max(other));
        // Neighbours, or the wrap-around from the last stage to the first, which `sends` holds at the last index.
        let link = if high - low == 1 { low } else { high };
        self.sends.get(link as usize).map_or(0.0, |send| send.get())
    }
}

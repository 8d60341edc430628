//! Which weights of a section ZeRO-3 gathers by a call of their own, as DeepSpeed did before release 0.5.5
//! (`deepspeed/runtime/zero/stage3.py`, `constants.py` of v0.3.15).

use shardscope_operators::{SectionKind, Symbols, Weight};

/// Weights of fewer elements stay gathered (`stage3_param_persistence_threshold`).
pub(crate) const STAYS: u64 = 100_000;
/// Elements of weights within which a weight that is used again stays gathered (`stage3_max_reuse_distance`).
pub(crate) const REUSED: u64 = 1_000_000_000;

/// A weight that is gathered by itself.
pub(crate) struct Alone {
    pub(crate) weight: Weight,
    /// Whether what recomputation gathered is freed before the same layer's backward, which gathers it again.
    pub(crate) freed: bool,
}

/// The weights of `kind` that are gathered one by one, the last first.
pub(crate) fn gathered_alone(x: &Symbols<'_>, kind: SectionKind) -> Vec<Alone> {
    let mut weights: Vec<Weight> = kind.weights(x).filter(|weight| weight.count().get() >= STAYS).collect();
    weights.reverse();
    // Backward uses a layer's weights in reverse, so between its two uses those behind a weight come twice.
    let mut behind = 0_u64;
    let alone = weights.into_iter().map(|weight| {
        let elements = weight.count().get();
        let freed = behind.saturating_add(elements) >= REUSED;
        behind = behind.saturating_add(elements.saturating_mul(2));
        Alone { weight, freed }
    });
    alone.collect()
}

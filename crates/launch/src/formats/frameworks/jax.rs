//! What is not known of trainers in JAX. Of MaxText's steps those are that XLA was seen to compile (`maxtext/compiled.rs`); of others
//! neither what the compiler keeps beside the inputs of layers nor what it sends.

use crate::formats::leaves::Leaves;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// What a run in JAX has beside layers that are computed again whole.
#[derive(Clone, Copy)]
pub(super) struct Lacking {
    /// Tensors that are kept by their names.
    pub(super) named: bool,
    /// It runs on TPUs, unless told otherwise.
    pub(super) tpu: bool,
}

/// The one sentence that stops the verdict: inputs of layers are what `jax.checkpoint` keeps of a scan, and what stands beside
/// them while one layer runs backward is XLA's choice.
pub(super) fn stop(leaves: &mut Leaves<'_>, trainer: &str, lacking: Lacking) {
    let what = match (lacking.named, lacking.tpu) {
        (false, false) => "a trainer in JAX, whose compiler decides what a layer keeps and sends",
        (true, false) => "a trainer in JAX that keeps products by name; all of a layer would be counted",
        (false, true) => {
            "a trainer in JAX, whose compiler decides what a layer keeps and sends, and which runs on TPUs unless told otherwise"
        }
        (true, true) => {
            "a trainer in JAX that keeps products by name (all of a layer would be counted), and which runs on TPUs unless told otherwise"
        }
    };
    leaves.reading.not_modelled.push(NotModelled::new("framework", trainer, Effect::Memory, what));
}

/// Each layer is recomputed as a whole where nothing is said, which `whose` sets.
pub(super) fn recompute_by_default(leaves: &mut Leaves<'_>, whose: &str) {
    let full = [
        (Field::RecomputeGranularity, "full"),
        (Field::RecomputeMethod, "uniform"),
        (Field::RecomputeNumLayers, "1"),
    ];
    leaves.state_all(&full, Origin::Default, whose);
}

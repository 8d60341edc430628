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
        (false, false) => "a JAX trainer: XLA decides what each layer saves and sends",
        (true, false) => "a JAX trainer that saves matmul outputs by name; whole layers would be counted",
        (false, true) => "a JAX trainer, on TPUs by default: XLA decides what each layer saves and sends",
        (true, true) => {
            "a JAX trainer, on TPUs by default, that saves matmul outputs by name; whole layers would be counted"
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

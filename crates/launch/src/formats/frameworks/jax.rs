//! What is not known of trainers in JAX, and what is known of MaxText (XLA's TPU compiler, `tests/record/maxtext_steps.py`).
//!
//! The arguments of its step are known to the byte: weights and Adam's two moments in fp32, spread over the axis that shards,
//! each shard rounded up to its tiles; scales of norms lie whole on each device. With `remat_policy: full` and scanned layers
//! most is live at the end of a layer's MLP in the backward pass: the layers' gradients in fp32 and their weights again in bf16,
//! both sharded, the inputs of all layers, the logits' gradient in bf16 (the weight gradient of the output layer comes after the
//! layers), and of one layer four tensors of the MLP's inner width, nine of the layer's width, and its gathered weights but the
//! MLP's second. That is within 3 % of `peak_memory` in ten of eleven steps recorded, seven of them compiled after it was
//! written, which are too few to answer by. `peak_memory` is what a device must have: a step whose arguments and `temp_size`
//! together are more than a device's memory was compiled for it.

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

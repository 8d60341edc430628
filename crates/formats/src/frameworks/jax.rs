//! What is unknown about trainers in JAX. Some steps of MaxText and levanter were compiled by XLA (`maxtext/compiled.rs`,
//! `levanter.rs`); for all others it is unknown what the compiler keeps besides the inputs of layers, and what it communicates.

use crate::leaves::Leaves;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// Why gradients are reduced in 16 bits.
pub(super) const GRADIENTS: &str = "XLA adds gradients up in bf16, as products make them";

/// Properties of a JAX run beyond full recomputation of layers.
#[derive(Clone, Copy)]
pub(super) struct Lacking {
    /// Its policy of what layers keep is not modelled.
    pub(super) policy: bool,
    /// It runs on TPUs by default.
    pub(super) tpu: bool,
}

/// The one message that stops the verdict: `jax.checkpoint` keeps the inputs of layers in a scan, and XLA decides what
/// else is in memory while a layer's backward pass runs.
pub(super) fn stop(leaves: &mut Leaves<'_>, trainer: &str, lacking: Lacking) {
    let what = match (lacking.policy, lacking.tpu) {
        (false, false) => "a JAX trainer: XLA decides what each layer saves and sends",
        (true, false) => {
            "a JAX trainer whose remat_policy moves tensors to the host or is not known here; whole layers would be counted"
        }
        (false, true) => "a JAX trainer, on TPUs by default: XLA decides what each layer saves and sends",
        (true, true) => {
            "a JAX trainer, on TPUs by default, whose remat_policy moves tensors to the host or is not known here; whole layers would be counted"
        }
    };
    leaves.reading.not_modelled.push(NotModelled::new("framework", trainer, Effect::Memory, what));
}

/// Each layer is recomputed in full by default; `whose` names the origin of that default.
pub(super) fn recompute_by_default(leaves: &mut Leaves<'_>, whose: &str) {
    let full = [
        (Field::RecomputeGranularity, "full"),
        (Field::RecomputeMethod, "uniform"),
        (Field::RecomputeNumLayers, "1"),
    ];
    leaves.state_all(&full, Origin::Default, whose);
}

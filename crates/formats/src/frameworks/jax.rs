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

/// Differences named in the message at most; a file of a whole configuration may have dozens.
const NAMED: usize = 6;

/// The one message that stops the verdict: `jax.checkpoint` keeps the inputs of layers in a scan, and XLA decides what
/// else is in memory while a layer's backward pass runs. `unlike` says what sets the step apart from those that were compiled.
pub(super) fn stop(leaves: &mut Leaves<'_>, trainer: &str, lacking: Lacking, unlike: &[String]) {
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
    let more = if unlike.len() > NAMED { ", ..." } else { "" };
    let named = unlike.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let what = if named.is_empty() {
        what.to_owned()
    } else {
        format!("{what}; no step was compiled with {named}{more}")
    };
    leaves.reading.not_modelled.push(NotModelled::new("framework", trainer, Effect::Memory, &what));
}

/// Keys of `recorded` whose values are none of those that were compiled, as `key value`. All but the first stay unread, so
/// that those which nothing else reads are also listed by name.
pub(super) fn unlike(leaves: &Leaves<'_>, recorded: &[(&str, &[&str])]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, values) in recorded {
        let Some(leaf) = leaves.all().iter().rfind(|leaf| leaf.path == *path) else { continue };
        let plain =
            leaf.value.is_empty() || values.iter().any(|value| value.eq_ignore_ascii_case(&leaf.value));
        if plain || found.is_empty() {
            leaf.used.set(true);
        }
        if !plain {
            found.push(format!("{path} {}", leaf.value));
        }
    }
    found
}

/// A setting and its value, where it is outside of what was compiled.
pub(super) fn outside(leaves: &Leaves<'_>, field: Field, is_within: impl Fn(&str) -> bool) -> Option<String> {
    let value = leaves.reading.value(field).filter(|value| !is_within(value))?;
    Some(format!("{} {value}", field.name()))
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

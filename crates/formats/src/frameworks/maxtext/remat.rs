//! `remat_policy`: which tensors each layer keeps for backward besides its input
//! (`layers/decoders.py:get_remat_policy`).

use super::stated::WHOSE;
use crate::frameworks::jax;
use crate::leaves::Leaves;
use shardscope_plan::{Field, NamedTensor};

use NamedTensor::{Context, Gate, Key, Output, Query, Up, Value};

/// Policies, and the tensors that each keeps by name on the device: not the MLP's output, which no gradient needs
/// (`tests/data/maxtext/residuals.jsonl`).
const POLICIES: [(&str, &[NamedTensor]); 9] = [
    ("full", &[]),
    ("save_out_proj", &[Output]),
    ("save_qkv_proj", &[Query, Key, Value]),
    ("save_dot_except_mlp", &[Query, Key, Value, Output]),
    ("save_dot_with_context_except_mlp", &[Query, Key, Value, Context, Output]),
    ("save_dot_except_mlpwi", &[Query, Key, Value, Output]),
    ("minimal", &[Query, Key, Value, Output, Gate, Up]),
    ("minimal_with_context", &[Query, Key, Value, Context, Output, Gate, Up]),
    ("minimal_flash", &[Query, Key, Value, Context, Output, Gate, Up]),
];
/// Tensors that `custom` can keep, and that layers of other kinds or fused projections have.
const OTHERS: [&str; 13] = [
    "attention_out",
    "mlpwi",
    "moe_mlpwi_0",
    "moe_mlpwi_1",
    "moe_mlpwo",
    "kv_proj",
    "qkv_proj",
    "query_wa_proj",
    "kv_wa_proj",
    "mla_q",
    "mla_kv",
    "engram",
    "indexer_cutoff_threshold",
];

/// Tensors that are kept by name on the device; `None` if the policy is not modelled.
pub(super) fn kept(leaves: &Leaves<'_>) -> Option<Vec<NamedTensor>> {
    let policy = leaves.text("remat_policy").unwrap_or("full");
    if policy != "custom" {
        let (_, kept) = POLICIES.iter().find(|(name, _)| *name == policy)?;
        return Some(kept.to_vec());
    }
    let plain = |path: &str, usual: &str| leaves.text(path).is_none_or(|said| said == usual);
    let known = plain("decoder_layer_input", "device")
        && OTHERS.iter().all(|path| plain(path, "remat"))
        && leaves.text("mlpwo") != Some("offload")
        && NamedTensor::ALL.iter().all(|tensor| leaves.text(tensor.name()) != Some("offload"));
    let chosen =
        NamedTensor::ALL.into_iter().filter(|tensor| leaves.text(tensor.name()) == Some("device")).collect();
    known.then_some(chosen)
}

/// Reads the policy: every layer is recomputed, but for the tensors that it keeps.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let kept = kept(leaves);
    let Some(leaf) = leaves.get("remat_policy") else {
        return jax::recompute_by_default(leaves, WHOSE);
    };
    if leaf.value == "none" {
        return;
    }
    let Some(kept) = kept else { return };
    leaves.recompute_all(leaf);
    leaves.say(Field::RecomputeNumLayers, "1", leaf);
    if !kept.is_empty() {
        let names: Vec<&str> = kept.iter().map(|tensor| tensor.name()).collect();
        leaves.say(Field::NamedTensors, &names.join(" "), leaf);
    }
}

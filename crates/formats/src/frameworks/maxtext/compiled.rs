//! MaxText steps of a kind that XLA compiled for TPUs (`tests/data/maxtext/steps.jsonl`): their memory is known.

use crate::Origin;
use crate::frameworks::jax::{self, GRADIENTS};
use crate::leaves::Leaves;
use shardscope_catalog::accelerator;
use shardscope_plan::Field;
use shardscope_plan::limits::{COMPILED_DEVICES, COMPILED_LANES, COMPILED_WIDTH};

/// Keys that change the compiled step, and the values that were compiled.
const RECORDED: [(&str, &[&str]); 28] = [
    ("hardware", &["tpu"]),
    ("decoder_block", &["default", "llama2", "mistral", "qwen3"]),
    ("attention", &["autoselected", "flash"]),
    ("attention_type", &["global"]),
    ("scan_layers", &["true"]),
    ("param_scan_axis", &["1"]),
    ("gradient_accumulation_steps", &["1"]),
    ("opt_type", &["adamw"]),
    ("weight_dtype", &["float32"]),
    ("dtype", &["bfloat16"]),
    ("grad_dtype", &["float32"]),
    ("mu_dtype", &["", "float32"]),
    ("quantization", &[""]),
    ("logits_dot_in_fp32", &["false"]),
    ("cast_logits_to_fp32", &["true"]),
    ("num_vocab_tiling", &["1"]),
    ("use_iota_embed", &["false", "true"]),
    ("shard_mode", &["auto"]),
    ("gradient_clipping_threshold", &["1", "1.0"]),
    ("packing", &["true"]),
    ("enable_nnx", &["true"]),
    ("use_sft", &["false"]),
    ("custom_mesh", &[""]),
    ("custom_mesh_and_rule", &[""]),
    // One slice: several slices use the same memory but communicate differently.
    ("compile_topology_num_slices", &["1", "-1"]),
    ("dcn_data_parallelism", &["1", "-1"]),
    ("dcn_fsdp_parallelism", &["1", "-1"]),
    ("ici_data_parallelism", &["1"]),
];

/// Degrees of the mesh and settings of layers that no compiled step had, and the value at which each is absent.
const ABSENT: [(Field, &str); 10] = [
    (Field::TensorModelParallelSize, "1"),
    (Field::PipelineModelParallelSize, "1"),
    (Field::ContextParallelSize, "1"),
    (Field::ExpertModelParallelSize, "1"),
    (Field::NumExperts, "1"),
    (Field::AddQkvBias, "false"),
    (Field::MultiLatentAttention, "false"),
    (Field::LinearMixer, "false"),
    (Field::PostNorms, "false"),
    (Field::AttentionWindow, "false"),
];

/// What sets the step apart from those that were compiled: dense layers arranged as in Llama, sharded over the axis
/// `fsdp` alone. It is empty for a step like them.
pub(super) fn unlike(leaves: &Leaves<'_>) -> Vec<String> {
    let mut found = jax::unlike(leaves, &RECORDED);
    for (field, absent) in ABSENT {
        found.extend(jax::outside(leaves, field, |value| value == absent || value == "0"));
    }
    let fills = |value: &str| value.parse::<u64>().is_ok_and(|width| width.is_multiple_of(COMPILED_LANES));
    match super::remat::kept(leaves) {
        None => found.extend(leaves.text("remat_policy").map(|policy| format!("remat_policy {policy}"))),
        Some(kept) if !kept.is_empty() => found.extend(jax::outside(leaves, Field::KvChannels, fills)),
        Some(_) => {}
    }
    // A mesh or rules other than those of `base.yml`.
    found.extend(
        ["mesh_axes", "logical_axis_rules"]
            .into_iter()
            .filter(|path| leaves.has(path))
            .map(|path| format!("{path} of its own")),
    );
    found.extend(jax::outside(leaves, Field::HiddenSize, |value| {
        value.parse::<u64>().is_ok_and(|width| width >= COMPILED_WIDTH)
    }));
    found.extend(jax::outside(leaves, Field::WorldSize, |value| {
        value.parse().is_ok_and(|world| COMPILED_DEVICES.contains(&world))
    }));
    found.extend(jax::outside(leaves, Field::Accelerator, |name| {
        accelerator(name).is_some_and(|found| found.tpu)
    }));
    let axes: Vec<&str> = leaves
        .reading
        .not_modelled
        .iter()
        .map(|item| item.name.as_str())
        .filter(|name| name.ends_with("_parallelism"))
        .collect();
    if axes.is_empty() {
        found.extend(jax::outside(leaves, Field::ZeroStage, |stage| stage == "3"));
    }
    // Every axis that is not read as a degree has already been reported as not modelled.
    found.extend(axes.into_iter().map(str::to_owned));
    found
}

/// Settings that follow from the mesh, and how gradients are accumulated.
pub(super) fn states(leaves: &mut Leaves<'_>) {
    // If no axis takes the remaining devices, their number is fixed.
    if let Some(world) = leaves.whole("ici_fsdp_parallelism").filter(|size| *size > 0) {
        leaves.state(
            Field::WorldSize,
            &world.to_string(),
            Origin::Derived,
            "the axis fsdp of MaxText's mesh",
        );
    }
    leaves.state(Field::GradReduceInBf16, "true", Origin::Derived, GRADIENTS);
}

//! MaxText steps of a kind that XLA compiled for TPUs (`tests/data/maxtext/steps.jsonl`): their memory is known.

use crate::Origin;
use crate::frameworks::jax::GRADIENTS;
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

/// Whether the step is like one that was compiled: dense layers arranged as in Llama,
/// sharded over the axis `fsdp` alone.
pub(super) fn as_recorded(leaves: &Leaves<'_>) -> bool {
    let plain = RECORDED.iter().all(|(path, values)| {
        leaves.text(path).is_none_or(|said| values.iter().any(|value| value.eq_ignore_ascii_case(said)))
    });
    let heads =
        leaves.reading.count(Field::KvChannels).is_none_or(|width| width.is_multiple_of(COMPILED_LANES));
    let keeps = super::remat::kept(leaves).is_some_and(|kept| kept.is_empty() || heads);
    // A mesh or rules other than those of `base.yml`.
    let remade = ["mesh_axes", "logical_axis_rules"].into_iter().any(|path| leaves.has(path));
    let reading = &leaves.reading;
    let one = |field| reading.count(field).is_none_or(|size| size <= 1);
    let degrees = [
        Field::TensorModelParallelSize,
        Field::PipelineModelParallelSize,
        Field::ContextParallelSize,
        Field::ExpertModelParallelSize,
        Field::NumExperts,
    ];
    let others = [
        Field::AddQkvBias,
        Field::MultiLatentAttention,
        Field::LinearMixer,
        Field::PostNorms,
        Field::AttentionWindow,
    ];
    // Every axis that is not read as a degree has already been reported as not modelled.
    plain
        && keeps
        && !remade
        && degrees.into_iter().all(one)
        && reading.count(Field::HiddenSize).is_none_or(|width| width >= COMPILED_WIDTH)
        && reading.count(Field::WorldSize).is_none_or(|world| COMPILED_DEVICES.contains(&world))
        && reading
            .value(Field::Accelerator)
            .is_none_or(|name| accelerator(name).is_some_and(|found| found.tpu))
        && others.into_iter().all(|field| reading.value(field).is_none_or(|said| said == "false"))
        && reading.value(Field::ZeroStage) == Some("3")
        && !reading.not_modelled.iter().any(|item| item.name.ends_with("_parallelism"))
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

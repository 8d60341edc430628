//! Vision towers in recipes of Megatron-Bridge.

use super::super::leaves::Leaves;
use crate::{Effect, Origin};
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, DEEP, PROJECTOR, TOWER};

/// Prefixes of names of models whose tower and projector Megatron-Bridge builds from transformers' modules, unsharded
/// on each tensor-parallel rank of the first stage (`models/ministral3/modeling_ministral3.py`,
/// `models/qwen_vl/modeling_qwen25_vl.py`).
const OF_TRANSFORMERS: [&str; 2] = ["mistralai/Ministral-3-", "Qwen/Qwen2.5-VL-"];

/// The same for models whose tower it builds from Megatron core's layers, sharded over tensor-parallel ranks
/// (`models/qwen_vl/modelling_qwen3_vl/model.py`, which `qwen35_vl_provider.py` builds, too).
const OF_CORE: [&str; 3] = ["Qwen/Qwen3-VL-", "Qwen/Qwen3.5-", "Qwen/Qwen3.6-"];

/// How the settings of `_sft_common_vlm` and `_peft_common_vlm` differ from those of `_sft_common` and `_peft_common`.
pub(super) const TUNING: Rows = &[
    ("train.train_iters", "300000"),
    ("train.global_batch_size", "32"),
    ("train.micro_batch_size", "2"),
    ("ddp.overlap_grad_reduce", "false"),
    ("ddp.overlap_param_gather", "false"),
    ("dataset.seq_length", "4096"),
    ("tokenizer.tokenizer_type", "NullTokenizer"),
];

/// Paths and values.
type Rows = &'static [(&'static str, &'static str)];

/// The settings that `_finalize_qwen3_vl` assigns (`perf_recipes/qwen_vl/common.py`), but for the tokenizer's vocabulary, which it makes
/// the model's.
const FINAL: Rows = &[
    ("tokenizer.tokenizer_type", "NullTokenizer"),
    ("tokenizer.use_tokenizer_vocab_size", "false"),
    ("model.apply_rope_fusion", "false"),
    ("model.cuda_graph_impl", "transformer_engine"),
    ("model.cuda_graph_scope", "[moe_router,moe_preprocess]"),
    ("model.expert_tensor_parallel_size", "1"),
    ("comm_overlap.overlap_param_gather", "false"),
    ("comm_overlap.overlap_grad_reduce", "false"),
];
/// The same with what `_with_moe_a2a_overlap` adds.
const OVERLAPPED: Rows = &[
    ("tokenizer.tokenizer_type", "NullTokenizer"),
    ("tokenizer.use_tokenizer_vocab_size", "false"),
    ("model.apply_rope_fusion", "false"),
    ("model.cuda_graph_impl", "transformer_engine"),
    ("model.cuda_graph_scope", "[moe_router,moe_preprocess]"),
    ("model.expert_tensor_parallel_size", "1"),
    ("comm_overlap.overlap_param_gather", "false"),
    ("comm_overlap.overlap_grad_reduce", "false"),
    ("comm_overlap.overlap_moe_expert_parallel_comm", "true"),
    ("model.moe_shared_expert_overlap", "false"),
];
/// Those of `_qwen35_vl_common`.
const COMMON: Rows = &[
    ("tokenizer.tokenizer_type", "NullTokenizer"),
    ("tokenizer.use_tokenizer_vocab_size", "false"),
    ("model.bias_activation_fusion", "true"),
    ("model.recompute_granularity", ""),
    ("model.recompute_method", ""),
    ("model.recompute_num_layers", ""),
    ("model.recompute_modules", "[]"),
    ("model.moe_router_fusion", "true"),
    ("model.seq_length", "4096"),
    ("dataset.seq_length", "4096"),
    ("model.moe_router_force_load_balancing", "true"),
    ("ddp.overlap_grad_reduce", "false"),
    ("ddp.overlap_param_gather", "false"),
    ("model.freeze_language_model", "false"),
    ("model.freeze_vision_model", "false"),
];
/// Those of `_qwen35_vl_post`.
const AFTER: Rows = &[
    ("model.apply_rope_fusion", "false"),
    ("model.cuda_graph_impl", "none"),
    ("optimizer.overlap_param_gather", "false"),
];

/// What a shared function of the performance recipes assigns. When parameters are gathered beside the optimizer's step
/// (`_with_overlap`) and when weight gradients are computed (`delay_wgrad_compute`) are passed over, as `_enable_overlap_param_gather_with_optimizer_step` is.
pub(super) fn finishes(function: &str) -> Option<Rows> {
    match function {
        "_finalize_qwen3_vl" | "_finalize_qwen3_vl_with_overlap" => Some(FINAL),
        "_finalize_qwen3_vl_with_moe_a2a_overlap" | "_finalize_qwen3_vl_with_moe_a2a_and_overlap" => {
            Some(OVERLAPPED)
        }
        "_qwen35_vl_common" => Some(COMMON),
        "_qwen35_vl_post" | "_qwen35_vl_post_with_overlap" | "_qwen35_vl_post_clear_scope_with_overlap" => {
            Some(AFTER)
        }
        _ => None,
    }
}

/// A key of the provider, and the parts that it freezes (`modelling_qwen3_vl/model.py:Qwen3VLModel.freeze`): the tower
/// without its mergers, which train unless the projection is frozen, too.
const FREEZES: [(&str, &[&str]); 3] = [
    ("model.freeze_language_model", &[DECODER]),
    ("model.freeze_vision_model", &[TOWER]),
    ("model.freeze_vision_projection", &[PROJECTOR, DEEP]),
];

/// Which parts train in a model whose tower consists of Megatron core's layers. The model's provider
/// decides if the recipe does not.
fn of_core(leaves: &mut Leaves<'_>) {
    let mut frozen: Vec<&str> = Vec::new();
    let mut said = None;
    for (path, parts) in FREEZES {
        leaves.pass(path);
        if let Some(leaf) = leaves.get(path).cloned() {
            if leaf.flag() == Some(true) {
                frozen.extend(parts);
            }
            said = said.or(Some(leaf));
        }
    }
    let modules = if said.is_some() { "bridge" } else { "provider" };
    let why = "Megatron-Bridge builds the tower of Megatron core's layers";
    leaves.state(Field::VisionModules, modules, Origin::Derived, why);
    if let Some(leaf) = said.filter(|_| !frozen.is_empty()) {
        leaves.say(Field::FrozenModules, &frozen.join(" "), &leaf);
    }
}

/// Words in names of recipes for models with a vision tower, whatever the model's own name says: GLM-4.5V, Kimi K2.5, EXAONE 4.5.
const NAMES_A_TOWER: [&str; 3] = ["vl", "omni", "45v"];

/// Settings of a tower that no figure takes account of.
fn lacking(leaves: &mut Leaves<'_>, recipe: &str) {
    if recipe.split('_').any(|word| NAMES_A_TOWER.contains(&word)) {
        let why = "the recipe's name says so";
        leaves.state(Field::VisionTower, "true", Origin::Derived, why);
    }
    // `modelling_qwen3_vl/vision_model.py:_maybe_pad_vision_sequence_for_cuda_graph`: images are padded to one length, and graphs
    // hold what their layers keep.
    leaves.pass_below(&["model.vision_cuda_graph_scope", "model.max_vision_cuda_graph_seq_length"]);
    if let Some(leaf) = leaves.get("model.vision_cuda_graph_impl").filter(|leaf| leaf.value != "none") {
        let what = "CUDA graphs of the vision tower, for which images are padded to one length";
        leaves.lack(leaf, Effect::Memory, what);
    }
}

/// Which parts of the tower train, once the model and its adapters are read: with adapters everything else is frozen
/// (`peft/base.py:freeze_model`), and the linear layers that they name by default are Megatron's.
pub(super) fn read(leaves: &mut Leaves<'_>, recipe: &str) {
    lacking(leaves, recipe);
    let model =
        leaves.first(&["model", "model.hf_model_id"]).map(|leaf| leaf.value.clone()).unwrap_or_default();
    if OF_CORE.iter().any(|start| model.starts_with(start)) {
        return of_core(leaves);
    }
    if !OF_TRANSFORMERS.iter().any(|start| model.starts_with(start)) {
        return;
    }
    leaves.state(
        Field::VisionModules,
        "transformers",
        Origin::Derived,
        "Megatron-Bridge builds the tower from transformers modules",
    );
    let usual = leaves.reading.value(Field::LoraTargetModules).is_none();
    if usual && leaves.reading.value(Field::TrainType) == Some("lora") {
        let why = "Megatron-Bridge freezes all but the adapters on Megatron's linear layers";
        leaves.state(Field::FrozenModules, &format!("{TOWER} {PROJECTOR}"), Origin::Derived, why);
        leaves.state(Field::VisionInputGrads, "false", Origin::Derived, why);
    }
}

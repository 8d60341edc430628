//! Models with experts that train by Automodel's own modules (`components/models/qwen3_moe`, `deepseek_v3`, `components/moe`).

use super::lacking::lack;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, Origin};
use shardscope_plan::{Field, Software};

/// Models whose layers were recorded (`tests/record/automodel_experts.py`): `Qwen3MoeForCausalLM`,
/// `DeepseekV3ForCausalLM`, which is Moonlight's, DeepSeek-V3's and Kimi-K2's.
const QWEN: &[&str] = &["Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-235B-A22B"];
const LATENT: &[&str] = &["moonshotai/Moonlight-16B-A3B", "moonshotai/Kimi-K2", "deepseek-ai/DeepSeek-V3"];
/// What names of their other editions end with.
const EDITIONS: &[&str] = &["", "-Base", "-Instruct", "-Instruct-2507", "-Thinking-2507"];

fn is_one(name: &str, of: &[&str]) -> bool {
    of.iter().any(|start| name.strip_prefix(start).is_some_and(|rest| EDITIONS.contains(&rest)))
}

/// Whether the model's own modules with experts are known.
pub(super) fn is_known(name: &str) -> bool {
    is_one(name, QWEN) || is_one(name, LATENT)
}

/// Whether a key of `BackendConfig` leaves these modules as they are known: Transformer Engine's attention, products and
/// norms that keep what PyTorch's keep, grouped products of experts behind DeepEP. What is not stated is so where
/// Transformer Engine and DeepEP are installed, as in NVIDIA's container (`docker/`).
fn is_usual(leaf: &Leaf) -> bool {
    const ANY: &str = "_target_ rope_fusion enable_hf_state_dict_adapter enable_fsdp_optimizations \
        dispatcher_share_token_dispatcher";
    let value = leaf.value.as_str();
    match leaf.path.trim_start_matches("model.backend.") {
        "attn" => value == "te",
        "linear" => matches!(value, "te" | "torch"),
        // Transformer Engine's copies the key/value latent; what is counted is the projection that PyTorch's views,
        // which has the rotated columns beside it (64 of 576 in Moonlight).
        "rms_norm" => matches!(value, "te" | "torch_fp32"),
        "rope" => value == "torch",
        "experts" => matches!(value, "te" | "gmm" | "torch_mm"),
        "dispatcher" => value == "deepep",
        "dispatcher_num_sms" => leaf.whole() == Some(20),
        "fake_balanced_gate" => leaf.flag().is_some(),
        "fake_gate_noise" => leaf.value.parse::<f64>() == Ok(0.0),
        "dispatcher_async_dispatch" | "compile_attn" => leaf.flag() == Some(false),
        "gate_precision" | "te_fp8" => matches!(value, "" | "null"),
        key => ANY.split_ascii_whitespace().any(|any| any == key),
    }
}

/// Stops the verdict for each key that is not.
pub(super) fn backend(leaves: &mut Leaves<'_>) {
    let is_odd = |leaf: &&Leaf| leaf.path.starts_with("model.backend.") && !is_usual(leaf);
    let odd: Vec<String> = leaves.all().iter().filter(is_odd).map(|leaf| leaf.path.clone()).collect();
    for path in odd {
        let key = path.trim_start_matches("model.backend.").split('.').next().unwrap_or_default();
        let what = match key {
            "dispatcher" | "mok" => "a token dispatcher other than DeepEP, whose buffers have another size",
            "attn" => "attention other than Transformer Engine's in Automodel's models with experts",
            "te_fp8" => "layers in fp8 by Transformer Engine in Automodel's models with experts",
            "compile_attn" => "compiled attention in Automodel's models with experts",
            "fake_gate_noise" => "a gate that spreads tokens unevenly on purpose",
            _ => "kernels of Automodel's models with experts that were not recorded",
        };
        lack(leaves, &path, Effect::Memory, what);
    }
}

/// Settings that differ with these modules.
pub(super) fn own(leaves: &mut Leaves<'_>, name: &str) {
    let why = "Automodel has modules of its own for this model".to_owned();
    leaves.reading.software = Some((Software::Automodel, why));
    leaves.reading.keep(&|found| !matches!(found.field, Field::ZeroStage | Field::AttnImplementation));
    // `MoEParallelizerConfig.reshard_after_forward`; experts that no other rank shares are not sharded at all.
    let why = "moe.reshard_after_forward of Automodel is false";
    leaves.state(Field::ZeroStage, "2", Origin::Default, why);
    let why = "backend.attn: Transformer Engine's attention keeps what flash-attn keeps";
    leaves.state(Field::AttnImplementation, "flash_attention_2", Origin::Default, why);
    leaves.state(Field::MoeTokenDispatcherType, "flex", Origin::Default, "backend.dispatcher of Automodel");
    leaves.state(
        Field::MoeFlexDispatcherBackend,
        "deepep",
        Origin::Default,
        "backend.dispatcher of Automodel",
    );
    if is_one(name, QWEN) {
        // `router_aux_loss_coef` of the checkpoints' configuration.
        leaves.state(
            Field::MoeAuxLossCoeff,
            "0.001",
            Origin::Derived,
            "router_aux_loss_coef of the checkpoint",
        );
    }
    let balanced = leaves.yes("model.backend.fake_balanced_gate").cloned();
    if let Some(leaf) = &balanced {
        leaves.switch(Field::MoeBalancedGate, true, leaf);
    }
    // Without it and without the outer unit nothing tells FSDP to wait for the last micro-batch
    // (`components/distributed/utils.py:get_sync_ctx`, `moe/fsdp_mixin.py`).
    let waits = leaves.flag("model.backend.enable_fsdp_optimizations") == Some(true)
        || leaves.flag("distributed.moe.wrap_outer_model") != Some(false);
    if !waits {
        leaves.reading.keep(&|found| found.field != Field::DeferReduction);
        leaves.state(
            Field::DeferReduction,
            "false",
            Origin::Derived,
            "wrap_outer_model of Automodel is false",
        );
    }
    // `moe/fsdp_mixin.py:prepare_for_grad_accumulation`.
    if leaves.flag("model.backend.enable_fsdp_optimizations") == Some(true) {
        let why = "enable_fsdp_optimizations of Automodel";
        leaves.state(Field::KeepGathered, "true", Origin::Derived, why);
    }
    if leaves.yes("distributed.moe.reshard_after_forward").is_some() {
        let what = "layers with experts gathered one by one";
        lack(leaves, "distributed.moe.reshard_after_forward", Effect::Memory, what);
    }
    if balanced.is_none()
        && leaves.flag("distributed.moe.ignore_router_for_ac") == Some(false)
        && leaves.reading.value(Field::GradientCheckpointing) == Some("true")
    {
        let what = "routers that a recomputed layer works out again";
        lack(leaves, "distributed.moe.ignore_router_for_ac", Effect::Memory, what);
    }
    for (path, what) in [
        ("distributed.moe.mp_policy", "number formats of FSDP2 other than Automodel's own"),
        ("distributed.moe.lm_head_precision", "an output layer in another number format"),
    ] {
        if leaves
            .all()
            .iter()
            .any(|leaf| leaf.path.starts_with(path) && !matches!(leaf.value.as_str(), "" | "null"))
        {
            lack(leaves, path, Effect::Memory, what);
        }
    }
    if leaves.whole("distributed.dp_replicate_size").is_some_and(|size| size > 1) {
        let what = "replicas of shards beside ranks that share experts";
        lack(leaves, "distributed.dp_replicate_size", Effect::Memory, what);
    }
    let packed = leaves.whole("packed_sequence.packed_sequence_size").is_some_and(|size| size > 0);
    let flat = ["dataloader.collate_fn", "dataloader.collate_fn._target_"]
        .iter()
        .filter_map(|path| leaves.text(path))
        .any(|name| name.ends_with("packed_sequence_thd_collater"));
    if packed && !flat {
        let what = "packed sequences with a mask of their own (other than packed_sequence_thd_collater)";
        lack(leaves, "packed_sequence.packed_sequence_size", Effect::Memory, what);
    }
}

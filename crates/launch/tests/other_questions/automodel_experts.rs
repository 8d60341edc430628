//! NeMo Automodel's recipes of models with experts at 36044ad3d1, which train by modules of its own.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::{Dispatcher, Field, LossKind, Recompute};

/// As in `examples/llm_finetune/qwen/qwen3_moe_30b_te_deepep.yaml`.
const BACKEND: &str = "attn: te, linear: torch, rms_norm: torch_fp32, experts: torch_mm, dispatcher: deepep, \
    fake_balanced_gate: false, enable_hf_state_dict_adapter: true, enable_fsdp_optimizations: true";

fn recipe(model: &str, backend: &str, distributed: &str, more: &str) -> Resolution {
    let text = format!(
        "recipe: TrainFinetuneRecipeForNextTokenPrediction\nstep_scheduler: {{global_batch_size: 32, local_batch_size: 2}}\n\
         model: {{pretrained_model_name_or_path: {model}, backend: {{_target_: a.BackendConfig, {backend}}}}}\n\
         distributed: {{strategy: fsdp2, {distributed}}}\ndataset: {{seq_len: 2048}}\n{more}\n"
    );
    said("a.yaml", &text, &[("world_size", "8")])
}

#[test]
fn qwen_and_moonlight_train_behind_deepeps_exchange() {
    for model in [
        "Qwen/Qwen3-30B-A3B",
        "Qwen/Qwen3-30B-A3B-Instruct-2507",
        "moonshotai/Moonlight-16B-A3B",
        "deepseek-ai/DeepSeek-V3",
        "moonshotai/Kimi-K2-Base",
    ] {
        let run = recipe(model, BACKEND, "ep_size: 8", "");
        let plan = run.plan.as_ref().unwrap_or_else(|| panic!("{model}: {:?}", run.diagnostics));
        assert_eq!(plan.recipe().software.name(), "automodel");
        assert_eq!(plan.recipe().moe.dispatcher, Dispatcher::Flex);
        assert_eq!(
            (plan.layout().expert, plan.layout().expert_shards(), plan.layout().dense_shards()),
            (8, 1, 8)
        );
        // `MoEParallelizerConfig.reshard_after_forward`.
        assert_eq!(value(&run, Field::ZeroStage), "2");
        assert!(plan.recipe().defers_reduction());
        // `moe/fsdp_mixin.py:prepare_for_grad_accumulation` keeps what was gathered.
        assert!(!plan.gathers_each_micro_batch());
    }
    let again = recipe("Qwen/Qwen3-30B-A3B", BACKEND, "ep_size: 8, activation_checkpointing: true", "");
    let plan = again.plan.as_ref().unwrap_or_else(|| panic!("{:?}", again.diagnostics));
    assert_eq!(plan.recipe().recompute, Recompute::Uniform { num_layers: 1, distribute: false });
    assert!(plan.recipe().moe.load_balancing.has_loss(), "router_aux_loss_coef of the checkpoint");
    let flat = "packed_sequence: {packed_sequence_size: 1024}\ndataloader: {collate_fn: a.packed_sequence_thd_collater}";
    let packed = recipe("Qwen/Qwen3-30B-A3B", BACKEND, "ep_size: 8", flat);
    assert!(packed.plan.is_some(), "{:?}", packed.diagnostics);
    assert_eq!(value(&packed, Field::SeqLength), "1024");
    // Nothing tells FSDP to wait where neither the outer model is a unit nor the mixin is on.
    let plain = BACKEND.replace("enable_fsdp_optimizations: true", "enable_fsdp_optimizations: false");
    let each = recipe("Qwen/Qwen3-30B-A3B", &plain, "ep_size: 8, moe: {wrap_outer_model: false}", "");
    let each = each.plan.expect("a plan");
    assert!(!each.recipe().defers_reduction() && each.gathers_each_micro_batch());
}

/// `examples/llm_benchmark/qwen/qwen3_moe_30b_te_deepep.yaml`: a gate without weights, and a loss over the logits themselves.
#[test]
fn benchmarks_spread_tokens_evenly_and_leave_logits_in_16_bits() {
    let backend =
        BACKEND.replace("fake_balanced_gate: false", "fake_balanced_gate: true").replace("torch_fp32", "te");
    let loss = "loss_fn: {_target_: nemo_automodel.components.loss.masked_ce.MaskedCrossEntropy, fp32_upcast: false}";
    let again = "ep_size: 8, activation_checkpointing: true, moe: {ignore_router_for_ac: false}";
    for model in ["Qwen/Qwen3-30B-A3B", "moonshotai/Moonlight-16B-A3B"] {
        let run = recipe(model, &backend, again, loss);
        let plan = run.plan.as_ref().unwrap_or_else(|| panic!("{model}: {:?}", run.not_modelled));
        assert!(plan.recipe().moe.balanced_gate);
        assert_eq!(plan.recipe().loss, LossKind::TorchNarrow);
    }
    let fused = loss.replace("masked_ce.MaskedCrossEntropy", "linear_ce.FusedLinearCrossEntropy");
    stopped(&recipe("Qwen/Qwen3-30B-A3B", BACKEND, "ep_size: 8", &fused), &["loss_fn.fp32_upcast"]);
}

#[test]
fn what_is_not_known_of_experts_stops_by_name() {
    let qwen = "Qwen/Qwen3-30B-A3B";
    for (from, to, key) in [
        ("dispatcher: deepep", "dispatcher: hybridep", "dispatcher"),
        ("dispatcher: deepep", "dispatcher: uccl_ep", "dispatcher"),
        ("attn: te", "attn: sdpa", "attn"),
        ("attn: te", "attn: magi", "attn"),
        ("fake_balanced_gate: false", "fake_balanced_gate: true, fake_gate_noise: 0.5", "fake_gate_noise"),
        ("rms_norm: torch_fp32", "rms_norm: quack", "rms_norm"),
        ("linear: torch", "linear: quack", "linear"),
        ("experts: torch_mm", "experts: torch_mm_mxfp8", "experts"),
        ("attn: te", "attn: te, te_fp8: {recipe: mxfp8}", "te_fp8.recipe"),
        ("attn: te", "attn: te, gate_precision: float32", "gate_precision"),
    ] {
        let key = format!("model.backend.{key}");
        stopped(&recipe(qwen, &BACKEND.replace(from, to), "ep_size: 8", ""), &[&key]);
    }
    stopped(&recipe(qwen, BACKEND, "ep_size: 1", ""), &["expert_model_parallel_size"]);
    for (distributed, name) in [
        ("ep_size: 8, moe: {reshard_after_forward: true}", "distributed.moe.reshard_after_forward"),
        ("ep_size: 8, dp_replicate_size: 2", "distributed.dp_replicate_size"),
        ("ep_size: 8, moe: {lm_head_precision: float32}", "distributed.moe.lm_head_precision"),
        (
            "ep_size: 8, activation_checkpointing: true, moe: {ignore_router_for_ac: false}",
            "distributed.moe.ignore_router_for_ac",
        ),
    ] {
        stopped(&recipe(qwen, BACKEND, distributed, ""), &[name]);
    }
    let adapters = recipe(qwen, BACKEND, "ep_size: 8", "peft: {target_modules: '*_proj', dim: 8}");
    assert!(adapters.plan.is_none());
    assert!(
        adapters.not_modelled.iter().any(|item| item.is_called("lora_kernels")),
        "{:?}",
        adapters.not_modelled
    );
    let padded =
        "packed_sequence: {packed_sequence_size: 1024}\ndataloader: {collate_fn: a.default_collater}";
    stopped(&recipe(qwen, BACKEND, "ep_size: 8", padded), &["packed_sequence.packed_sequence_size"]);
}

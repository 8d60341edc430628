//! Recipes of NeMo Automodel at 36044ad3d1: models of transformers alone, and what it does otherwise by name.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

fn recipe(model: &str, distributed: &str, more: &str) -> Resolution {
    let text = format!(
        "recipe: TrainFinetuneRecipeForNextTokenPrediction\nstep_scheduler: {{global_batch_size: 8, local_batch_size: 1}}\n\
         model:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n  \
         pretrained_model_name_or_path: Qwen/Qwen2.5-7B\n{model}\ndistributed: {{strategy: fsdp2{distributed}}}\n\
         dataset: {{seq_len: 4096}}\n{more}\n"
    );
    said("a.yaml", &text, &[("world_size", "8")])
}

const PLAIN: &str = "  force_hf: true";

#[test]
fn models_of_transformers_train_in_the_format_they_are_loaded_in() {
    let plain = recipe(PLAIN, "", "");
    assert!(plain.plan.is_some(), "{:?}", plain.diagnostics);
    // `FSDP2Config.mp_policy`: no autocast over fp32 shards, as accelerate has it.
    let shown = [
        Field::LigerKernel,
        Field::DataParallelEngine,
        Field::ZeroStage,
        Field::ParamsDtype,
        Field::Autocast,
        Field::ReduceDtype,
    ]
    .map(|field| value(&plain, field));
    assert_eq!(shown, ["true", "fsdp2", "3", "bf16", "none", "fp32"]);
    let kept = recipe(PLAIN, ", reshard_after_forward: false", "");
    assert_eq!(value(&kept, Field::ZeroStage), "2");
    let full = recipe(PLAIN, ", activation_checkpointing: full", "");
    assert!(full.plan.is_some(), "{:?}", full.diagnostics);
    assert_eq!(value(&full, Field::RecomputeGranularity), value(&on(), Field::RecomputeGranularity));
}

fn on() -> Resolution {
    recipe(PLAIN, ", activation_checkpointing: true", "")
}

#[test]
fn gradients_wait_for_the_last_micro_batch_unless_told_otherwise() {
    let several = |distributed: &str, world: &str| {
        let text = format!(
            "step_scheduler: {{global_batch_size: 16, local_batch_size: 1}}\nmodel: {{pretrained_model_name_or_path: \
             Qwen/Qwen2.5-7B, force_hf: true}}\ndistributed: {{strategy: {distributed}}}\ndataset: {{seq_len: 4096}}\n"
        );
        let run = said("a.yaml", &text, &[("world_size", world)]);
        run.plan.expect(distributed).recipe().defers_reduction()
    };
    assert!(several("fsdp2", "8"));
    assert!(!several("fsdp2", "16"), "one micro-batch a step");
    assert!(!several("fsdp2, defer_fsdp_grad_sync: false", "8"));
    assert!(!several("ddp", "8"));
}

#[test]
fn adapters_without_functions_of_their_own_keep_what_pefts_keep() {
    let peft = |more: &str| recipe(PLAIN, "", &format!("peft: {{target_modules: '*_proj', dim: 16{more}}}"));
    let plain = peft(", use_memory_efficient_lora: false, use_triton: true");
    assert!(plain.plan.is_some(), "{:?}", plain.diagnostics);
    let shown = [Field::TrainType, Field::LoraRank, Field::AdapterDtype, Field::LoraTargetModules]
        .map(|field| value(&plain, field));
    assert_eq!(shown[..3], ["lora", "16", "bf16"]);
    assert!(shown[3].contains("gate_proj"), "{}", shown[3]);
    stopped(&peft(""), &["peft"]);
    stopped(&peft(", use_memory_efficient_lora: false, dropout: 0.1"), &["peft.dropout"]);
    stopped(&peft(", use_memory_efficient_lora: false, use_dora: true"), &["peft.use_dora"]);
}

#[test]
fn what_automodel_does_otherwise_stops_by_name() {
    stopped(&recipe("", "", ""), &["model.force_hf"]);
    let mistral = "step_scheduler: {global_batch_size: 8, local_batch_size: 1}\nmodel: {pretrained_model_name_or_path: \
        mistralai/Mistral-7B-v0.1}\ndistributed: {strategy: fsdp2}\ndataset: {seq_len: 4096}\n";
    let unregistered = said("a.yaml", mistral, &[("world_size", "8")]);
    assert!(unregistered.plan.is_some(), "{:?}", unregistered.diagnostics);
    stopped(&recipe(PLAIN, "", "teacher_model: {a: b}"), &["recipe"]);
    for (distributed, more, name) in [
        (", activation_checkpointing: selective", "", "distributed.activation_checkpointing"),
        (", reshard_after_forward: true", "", "distributed.reshard_after_forward"),
        (", dp_replicate_size: 2", "", "distributed.dp_replicate_size"),
        (", enable_compile: true", "", "distributed.enable_compile"),
        (", mp_policy: {output_dtype: float32}", "", "distributed.mp_policy"),
        ("", "compile: {enabled: true}", "compile.enabled"),
        ("", "fp8: {enabled: true}", "fp8.enabled"),
        (
            "",
            "loss_fn: {_target_: nemo_automodel.components.loss.te_parallel_ce.TEParallelCrossEntropy}",
            "loss_fn",
        ),
        ("", "optimizer: {_target_: transformer_engine.pytorch.optimizers.FusedAdam}", "optimizer._target_"),
        ("", "optimizer: {_target_: flashoptim.FlashAdamW}", "optimizer._target_"),
    ] {
        stopped(&recipe(PLAIN, distributed, more), &[name]);
    }
    stopped(&recipe("  force_hf: true\n  torch_dtype: float32", "", ""), &["model.torch_dtype"]);
    let idle = recipe(PLAIN, "", "fp8: {enabled: false}\ncompile: {enabled: false}");
    assert!(idle.plan.is_some(), "{:?}", idle.diagnostics);
    let megatron = "step_scheduler: {global_batch_size: 8, local_batch_size: 1}\nmodel: {pretrained_model_name_or_path: \
        Qwen/Qwen2.5-7B, force_hf: true}\ndistributed: {strategy: megatron_fsdp}\ndataset: {seq_len: 4096}\n";
    stopped(&said("a.yaml", megatron, &[("world_size", "8")]), &["distributed.strategy"]);
    let other = megatron.replace("megatron_fsdp", "ddp");
    let draft = format!("recipe: TrainEagle3Recipe\n{other}");
    stopped(&said("a.yaml", &draft, &[("world_size", "8")]), &["recipe"]);
    assert!(said("a.yaml", &other, &[("world_size", "8")]).plan.is_some());
}

//! NeMo Automodel recipes at 36044ad3d1: models of plain transformers, and settings that stop by name.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::{Field, NumberFormat, OptimizerKind, Recompute, RecomputeModule, StateFormat};

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
    // `FSDP2Config.mp_policy`: no autocast over fp32 shards, unlike accelerate.
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
fn gradients_wait_for_the_last_micro_batch_unless_stated_otherwise() {
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
    assert_eq!(value(&plain, Field::LoraKernels), "");
    let efficient = peft("");
    assert_eq!(value(&efficient, Field::LoraKernels), "each");
    assert!(efficient.plan.is_some(), "{:?}", efficient.diagnostics);
    let dropped = peft(", use_memory_efficient_lora: false, dropout: 0.1");
    let lora = dropped.plan.as_ref().and_then(|plan| plan.recipe().tuning.lora).expect("adapters");
    assert!(lora.drops_result && !lora.dropout);
    let before = peft(", dropout: 0.1, dropout_position: pre");
    stopped(&before, &["peft.dropout_position"]);
    stopped(&peft(", use_memory_efficient_lora: false, use_dora: true"), &["peft.use_dora"]);
}

/// Llama on this many GPUs.
fn llama(model: &str, world: &str, more: &str) -> Resolution {
    let text = format!(
        "step_scheduler: {{global_batch_size: 8, local_batch_size: 1}}\nmodel: {{pretrained_model_name_or_path: {model}}}\n\
         dataset: {{seq_len: 4096}}\n{more}"
    );
    said("a.yaml", &text, &[("world_size", world)])
}

#[test]
fn modules_of_its_own_are_known_for_llama_and_qwen() {
    for (model, software, liger) in [
        ("meta-llama/Llama-3.1-8B", "automodel", false),
        ("Qwen/Qwen2.5-7B", "automodel", false),
        ("Qwen/Qwen3-8B", "automodel", false),
        ("microsoft/phi-4", "hf_transformers", true),
    ] {
        let run = llama(model, "8", "distributed: {strategy: fsdp2}\n");
        let plan = run.plan.as_ref().unwrap_or_else(|| panic!("{model}: {:?}", run.diagnostics));
        assert_eq!(
            (plan.recipe().software.name(), plan.recipe().transformers.liger_norms),
            (software, liger),
            "{model}"
        );
        assert!(plan.recipe().defers_reduction() || plan.recipe().num_micro_batches == 1);
    }
    for model in
        ["Qwen/Qwen1.5-MoE-A2.7B", "Qwen/Qwen2.5-VL-7B-Instruct", "google/gemma-3-4b-it", "Qwen/Qwen3-8B-FP8"]
    {
        stopped(&llama(model, "8", "distributed: {strategy: fsdp2}\n"), &["model.force_hf"]);
    }
    let one = |more: &str| llama("meta-llama/Llama-3.1-8B", "8", more);
    // `apply_submodule_checkpointing`.
    let again = one("distributed: {activation_checkpointing: true}\n").plan.expect("a plan");
    let modules = [RecomputeModule::Attention, RecomputeModule::Mlp, RecomputeModule::LayerNorm];
    assert_eq!(again.recipe().recompute, Recompute::Selective(modules.to_vec()));
    let adapted = "distributed: {activation_checkpointing: full}\npeft: {dim: 8}\n";
    stopped(&one(adapted), &["recompute_modules"]);
    stopped(
        &one("packed_sequence: {packed_sequence_size: 4096}\n"),
        &["packed_sequence.packed_sequence_size"],
    );
    let backend = |more: &str| {
        let model = format!("meta-llama/Llama-3.1-8B, backend: {{attn: te, linear: te, {more}}}");
        llama(&model, "8", "")
    };
    assert!(backend("rms_norm: torch_fp32, rope: torch").plan.is_some());
    for more in ["rms_norm: te", "rope: quack", "te_fp8: {recipe: block}", "compile_attn: true"] {
        stopped(&backend(more), &["model.backend"]);
    }
    // MLPs are fused with their adapters if the weights are materialized when these are added (`lora_mlp.py:_fusible`).
    let adapters = "peft: {dim: 8}\n";
    assert!(one(adapters).plan.is_some());
    stopped(&llama("mistralai/Mistral-7B-v0.1", "1", adapters), &["lora_kernels"]);
    stopped(&one(&format!("{adapters}distributed: {{strategy: ddp}}\n")), &["peft"]);
    // `*_proj` matches no expert of Mixtral, whose experts are parameters; Liger replaces them.
    stopped(&llama("mistralai/Mixtral-8x7B-v0.1", "8", adapters), &["liger_kernel"]);
    let mixtral = llama("mistralai/Mixtral-8x7B-v0.1, use_liger_kernel: false", "8", adapters);
    assert!(mixtral.plan.is_some(), "{:?}", mixtral.not_modelled);
    assert_eq!(value(&mixtral, Field::LoraTargetModules), "q_proj k_proj v_proj o_proj");
    let named = "peft: {dim: 8, target_modules: [q_proj, gate_proj]}\n";
    let experts = llama("mistralai/Mixtral-8x7B-v0.1, use_liger_kernel: false", "8", named);
    stopped(&experts, &["lora_kernels"]);
}

#[test]
fn what_automodel_does_otherwise_stops_by_name() {
    let mistral = "step_scheduler: {global_batch_size: 8, local_batch_size: 1}\nmodel: {pretrained_model_name_or_path: \
        mistralai/Mistral-7B-v0.1}\ndistributed: {strategy: fsdp2}\ndataset: {seq_len: 4096}\n";
    let unregistered = said("a.yaml", mistral, &[("world_size", "8")]);
    assert!(unregistered.plan.is_some(), "{:?}", unregistered.diagnostics);
    stopped(&recipe(PLAIN, "", "teacher_model: {a: b}"), &["recipe"]);
    for (distributed, more, name) in [
        (", activation_checkpointing: selective", "", "distributed.activation_checkpointing"),
        (", reshard_after_forward: true", "", "distributed.reshard_after_forward"),
        (", enable_fsdp2_prefetch: true", "", "distributed.enable_fsdp2_prefetch"),
        (", enable_compile: true", "", "distributed.enable_compile"),
        (", mp_policy: {output_dtype: float32}", "", "distributed.mp_policy"),
        ("", "fp8: {enabled: true}", "fp8.enabled"),
        (
            "",
            "loss_fn: {_target_: nemo_automodel.components.loss.te_parallel_ce.TEParallelCrossEntropy}",
            "loss_fn",
        ),
        ("", "optimizer: {_target_: transformer_engine.pytorch.optimizers.FusedAdam}", "optimizer._target_"),
        (
            "",
            "optimizer: {_target_: transformer_engine.pytorch.optimizers.FusedAdam, master_weights: true, \
             store_param_remainders: true, exp_avg_dtype: torch.bfloat16}",
            "optimizer._target_",
        ),
        ("", "optimizer: {_target_: flashoptim.FlashAdamW, quantize: false}", "optimizer._target_"),
        ("", "optimizer: {_target_: flashoptim.FlashLion}", "optimizer._target_"),
    ] {
        stopped(&recipe(PLAIN, distributed, more), &[name]);
    }
    stopped(&recipe("  force_hf: true\n  torch_dtype: float32", "", ""), &["model.torch_dtype"]);
    let idle = recipe(PLAIN, "", "fp8: {enabled: false}\ncompile: {enabled: false}");
    assert!(idle.plan.is_some(), "{:?}", idle.diagnostics);
    // Passed over with FSDP2 (`_transformers/infrastructure.py`), applied with DDP.
    let compiled = recipe(PLAIN, "", "compile: {enabled: true, mode: max-autotune}");
    assert!(compiled.plan.is_some(), "{:?}", compiled.not_modelled);
    assert_ne!(value(&compiled, Field::CompiledLayers), "true");
    let megatron = "step_scheduler: {global_batch_size: 8, local_batch_size: 1}\nmodel: {pretrained_model_name_or_path: \
        Qwen/Qwen2.5-7B, force_hf: true}\ndistributed: {strategy: megatron_fsdp}\ndataset: {seq_len: 4096}\n";
    stopped(&said("a.yaml", megatron, &[("world_size", "8")]), &["distributed.strategy"]);
    let other = megatron.replace("megatron_fsdp", "ddp");
    let draft = format!("recipe: TrainEagle3Recipe\n{other}");
    stopped(&said("a.yaml", &draft, &[("world_size", "8")]), &["recipe"]);
    assert!(said("a.yaml", &other, &[("world_size", "8")]).plan.is_some());
    let whole = format!("{other}compile: {{enabled: true}}\n");
    stopped(&said("a.yaml", &whole, &[("world_size", "8")]), &["compile.enabled"]);
}

/// `examples/convergence/tulu3/models/qwen3-moe-30b/qwen3_moe_30b_ep8_te_fusedadam.yaml`, `…/moonlight-16b/
/// moonlight_16b_ep8_flashoptim.yaml`: moments in 16 bits, and in 8 with the bits that complete each weight.
#[test]
fn optimizers_hold_what_completes_16_bit_weights() {
    let run = |more: &str| {
        let run =
            recipe(PLAIN, "", &format!("moe_metrics: {{enabled: true, mode: brief}}\noptimizer: {{{more}}}"));
        run.plan.unwrap_or_else(|| panic!("{:?}", run.not_modelled)).recipe().optimizer
    };
    let te = "_target_: transformer_engine.pytorch.optimizers.FusedAdam, master_weights: true, store_param_remainders: true";
    let whole = run(te);
    assert!(whole.precision_aware && whole.exp_avg == NumberFormat::Fp32);
    let narrow = run(&format!("{te}, exp_avg_dtype: torch.bfloat16, exp_avg_sq_dtype: torch.bfloat16"));
    assert!(narrow.precision_aware);
    assert_eq!([narrow.exp_avg, narrow.exp_avg_sq], [NumberFormat::Bf16; 2]);
    let flash = "_target_: flashoptim.FlashAdamW, betas: [0.9, 0.95], compress_state_dict: false";
    for (bits, master) in [("", 3), (", master_weight_bits: 24", 3), (", master_weight_bits: 32", 4)] {
        let flash = run(&format!("{flash}{bits}"));
        assert_eq!((flash.kind, flash.states), (OptimizerKind::Adam, StateFormat::Flash { master }));
    }
}

/// `examples/llm_finetune/llama3_2/llama3_2_1b_squad.yaml`, `…_squad_neftune.yaml`,
/// `…_skypilot_kubernetes_2nodes.yaml`, `examples/llm_benchmark/qwen/qwen2_5_7b_quack_baseline.yaml`: options that are
/// off, and options that change no figure.
#[test]
fn what_is_off_stops_nothing_and_what_is_on_stops_once() {
    let off = "compile: {enabled: false, mode: default, fullgraph: false, dynamic: true}\nfp8: {enabled: false, recipe_name: tensorwise}\n\
               clip_grad_norm: {max_norm: 1.0}\nneftune: {noise_alpha: 5.0}";
    let run = recipe(
        PLAIN,
        ", pipeline: {pp_schedule: interleaved1f1b, pp_microbatch_size: 1}, dp_size: none",
        off,
    );
    assert!(run.plan.is_some(), "{:?}", run.diagnostics);
    let on = "compile: {enabled: true, mode: default, dynamic: false}\nfp8: {enabled: true, recipe_name: tensorwise, \
              enable_fsdp_float8_all_gather: true, force_recompute_fp8_weight_in_bwd: true}";
    let names: Vec<String> = recipe(PLAIN, "", on).not_modelled.into_iter().map(|item| item.name).collect();
    assert_eq!(names, ["fp8.enabled"]);
    let config = "model: {_target_: nemo_automodel.NeMoAutoModelForCausalLM.from_config, config: {_target_: \
                  transformers.AutoConfig.from_pretrained, pretrained_model_name_or_path: Qwen/Qwen2.5-7B}}";
    let text = format!(
        "step_scheduler: {{global_batch_size: 8, local_batch_size: 1}}\n{config}\ndataset: {{seq_len: 4096}}\n\
         skypilot: {{cloud: kubernetes, accelerators: 'H100:4', num_nodes: 2, disk_size: 200}}\n"
    );
    let cloud = said("a.yaml", &text, &[]);
    assert!(cloud.plan.is_some(), "{:?}", cloud.diagnostics);
    let shown = [Field::NumNodes, Field::GpusPerNode, Field::Accelerator].map(|field| value(&cloud, field));
    assert_eq!(shown, ["2", "4", "H100-SXM"]);
}

/// `MODEL_ARCH_MAPPING` has no modules for these; Liger supports some of these types (`MODEL_TYPE_TO_APPLY_LIGER_FN` of
/// 0.8.5).
#[test]
fn models_without_modules_of_automodels_own_are_transformers() {
    let run = |name: &str| {
        let text = format!(
            "step_scheduler: {{global_batch_size: 8, local_batch_size: 1}}\nmodel: {{pretrained_model_name_or_path: {name}}}\n\
             distributed: {{strategy: fsdp2}}\ndataset: {{seq_len: 1024}}\n"
        );
        said("a.yaml", &text, &[("world_size", "8")])
    };
    for (name, liger) in [
        ("allenai/OLMo-2-0425-1B-Instruct", "true"),
        ("ibm-granite/granite-3.3-2b-instruct", "true"),
        ("google/gemma-3-270m", "true"),
        ("microsoft/phi-2", ""),
        ("bigcode/starcoder2-7b", ""),
        ("CohereForAI/c4ai-command-r7b-12-2024", ""),
    ] {
        let resolution = run(name);
        assert_eq!(value(&resolution, Field::LigerKernel), liger, "{name}");
        let own = resolution.not_modelled.iter().any(|item| item.is_called("model.force_hf"));
        assert!(!own, "{name}: {:?}", resolution.not_modelled);
    }
    stopped(&run("ibm-granite/granite-3.0-1b-a400m-base"), &["model.force_hf"]);
}

/// `_get_parallel_plan`, `MaskedCrossEntropy` and `LinearLoRA` over tensor ranks
/// (`tests/suite/kept_by_automodel_ranks.rs`).
#[test]
fn tensor_ranks_share_llama_and_qwen_by_recorded_plans() {
    let cut = |model: &str, more: &str| {
        llama(model, "8", &format!("distributed: {{strategy: fsdp2, tp_size: 4{more}}}\n"))
    };
    let plain = cut("meta-llama/Llama-3.1-8B", "");
    let plan = plain.plan.as_ref().unwrap_or_else(|| panic!("{:?}", plain.diagnostics));
    assert!(plan.recipe().transformers.dtensor_plan && plan.layout().tensor == 4);
    assert_eq!(plan.recipe().software.name(), "automodel");
    assert!(cut("meta-llama/Llama-3.1-8B", ", activation_checkpointing: true").plan.is_some());
    assert!(cut("Qwen/Qwen2.5-7B, force_hf: true", ", sequence_parallel: true").plan.is_some());
    stopped(&cut("Qwen/Qwen2.5-7B", ", sequence_parallel: true"), &["tensor_model_parallel_size"]);
    stopped(
        &cut("Qwen/Qwen2.5-7B", ", tp_plan: a.b"),
        &["distributed.tp_plan", "tensor_model_parallel_size"],
    );
    // Liger's kernels are always off (`_apply_preload_overrides`); its plan was not recorded.
    let phi = cut("microsoft/phi-4", "");
    assert_eq!(value(&phi, Field::LigerKernel), "");
    stopped(&phi, &["tensor_model_parallel_size"]);
    let adapters = |model: &str, distributed: &str, peft: &str| {
        let more = format!(
            "distributed: {{tp_size: 8{distributed}}}\npeft: {{target_modules: '*_proj', dim: {peft}}}\n"
        );
        llama(model, "8", &more)
    };
    let adapted = adapters("meta-llama/Llama-3.3-70B-Instruct, force_hf: true", "", "16, use_triton: true");
    assert!(adapted.plan.is_some(), "{:?}", adapted.diagnostics);
    assert_eq!([Field::LoraKernels, Field::LigerKernel].map(|field| value(&adapted, field)), ["", ""]);
    let own = "meta-llama/Llama-3.3-70B-Instruct";
    assert!(adapters(own, "", "16").plan.is_some());
    for (distributed, peft) in
        [(", sequence_parallel: true", "16"), ("", "12"), (", activation_checkpointing: full", "16")]
    {
        stopped(&adapters(own, distributed, peft), &["tensor_model_parallel_size"]);
    }
    let fused = "loss_fn: {_target_: nemo_automodel.components.loss.linear_ce.FusedLinearCrossEntropy}\n";
    let text = format!("distributed: {{tp_size: 4}}\n{fused}");
    stopped(&llama("Qwen/Qwen2.5-7B", "8", &text), &["loss_fn._target_"]);
    // On one tensor rank nothing is sharded.
    let one = llama("Qwen/Qwen2.5-7B", "8", "distributed: {tp_size: 1, sequence_parallel: true}\n");
    assert!(one.plan.is_some_and(|plan| plan.recipe().marks.sentences().is_empty()));
}

/// `ModuleMatcher.match` with `match_all_linear`, and `install_fused_lora_mlp` if weights are materialized
/// (`tests/record/automodel_own.py`).
#[test]
fn adapters_beside_every_linear_layer_and_joined_mlps_are_known_of_its_own_modules() {
    let peft =
        |model: &str, world: &str, more: &str| llama(model, world, &format!("peft: {{dim: 8{more}}}\n"));
    let all = peft("Qwen/Qwen2.5-3B", "8", ", match_all_linear: true");
    assert!(all.plan.is_some(), "{:?}", all.diagnostics);
    assert!(value(&all, Field::LoraTargetModules).ends_with("lm_head"));
    assert_eq!(value(&all, Field::LoraKernels), "each");
    stopped(&peft("microsoft/phi-4", "8", ", match_all_linear: true"), &["peft.match_all_linear"]);
    let fused = "match_all_linear: true}\nloss_fn: {_target_: a.FusedLinearCrossEntropy";
    stopped(&peft("Qwen/Qwen2.5-3B", "8", &format!(", {fused}")), &["peft.match_all_linear"]);
    let one = peft("Qwen/Qwen2.5-7B", "1", "");
    let kernels = one.plan.as_ref().and_then(|plan| plan.recipe().tuning.lora).expect("adapters").kernels;
    assert!(kernels.each && kernels.mlp && !kernels.queries);
    assert_eq!(value(&one, Field::LoraKernels), "each mlp");
    let without = peft("Qwen/Qwen2.5-7B", "1", ", use_memory_efficient_lora: false");
    assert_eq!(value(&without, Field::LoraKernels), "");
    stopped(&peft("Qwen/Qwen2.5-7B, force_hf: true", "1", ""), &["lora_kernels"]);
}

/// `torch/optim/adam.py:adam`, whose implementation a recipe may choose.
#[test]
fn the_implementation_of_pytorchs_adam_is_read() {
    let with = |class: &str, choice: &str| {
        let read = llama(
            "Qwen/Qwen2.5-7B",
            "8",
            &format!("optimizer: {{_target_: torch.optim.{class}, foreach: {choice}}}\n"),
        );
        assert!(read.plan.is_some(), "{:?}", read.not_modelled);
        (value(&read, Field::OptimizerForeach), value(&read, Field::NotRead))
    };
    assert_eq!(with("Adam", "false"), ("false".to_owned(), String::new()));
    assert_eq!(with("AdamW", "true"), ("true".to_owned(), String::new()));
}

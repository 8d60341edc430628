//! NeMo-RL: a policy under DTensor or Megatron, vLLM beside it (`nemo_rl/models/policy`, `examples/configs`).

use super::super::leaves::Leaves;
use super::common::{ask, lack, lack_yes, lora, model, offloads, policy, transformers};
use crate::{Effect, Origin};
use shardscope_plan::{Field, Software};

const NEMO: &str = "NeMo-RL";

/// What NeMo-RL's own base files set, which a recipe names under `defaults` and changes in part: objective, and values of
/// keys (`examples/configs/*.yaml`).
struct Base {
    file: &'static str,
    values: &'static [(&'static str, &'static str)],
}

const GRPO: &[(&str, &str)] = &[
    ("policy.model_name", "Qwen/Qwen2.5-1.5B"),
    ("policy.train_global_batch_size", "512"),
    ("policy.train_micro_batch_size", "4"),
    ("policy.max_total_sequence_length", "512"),
    ("grpo.num_generations_per_prompt", "16"),
    ("grpo.num_prompts_per_step", "32"),
    ("policy.generation.vllm_cfg.gpu_memory_utilization", "0.6"),
    ("policy.generation.vllm_cfg.tensor_parallel_size", "1"),
    ("policy.sequence_packing.enabled", "true"),
    ("cluster.gpus_per_node", "1"),
    ("cluster.num_nodes", "1"),
];
const SFT: &[(&str, &str)] = &[
    ("policy.model_name", "meta-llama/Llama-3.2-1B"),
    ("policy.train_global_batch_size", "32"),
    ("policy.train_micro_batch_size", "1"),
    ("policy.max_total_sequence_length", "1024"),
    ("cluster.gpus_per_node", "1"),
    ("cluster.num_nodes", "1"),
];
const DPO: &[(&str, &str)] = &[
    ("policy.model_name", "meta-llama/Llama-3.2-1B-Instruct"),
    ("policy.train_global_batch_size", "128"),
    ("policy.train_micro_batch_size", "2"),
    ("policy.max_total_sequence_length", "1024"),
    ("cluster.gpus_per_node", "1"),
    ("cluster.num_nodes", "1"),
];
const BASES: [Base; 3] = [
    Base { file: "grpo_math_1B.yaml", values: GRPO },
    Base { file: "sft.yaml", values: SFT },
    Base { file: "dpo.yaml", values: DPO },
];

/// Whether a base file's values are known here, so that it need not be pasted.
pub(super) fn knows(file: &str) -> bool {
    BASES.iter().any(|base| base.file == file)
}

pub(super) fn read(leaves: &mut Leaves<'_>) {
    let base = leaves.text("defaults").map(|name| name.rsplit('/').next().unwrap_or(name).to_owned());
    let known = base.as_deref().and_then(|file| BASES.iter().find(|base| base.file == file));
    let of_base = |path: &str| -> Option<&'static str> {
        known?.values.iter().find(|(known, _)| *known == path).map(|(_, value)| *value)
    };
    let note = format!("{} of {NEMO}", base.as_deref().unwrap_or("a base file"));
    let rules = [
        ("policy.max_total_sequence_length", Field::SeqLength),
        ("policy.train_global_batch_size", Field::GlobalBatchSize),
        ("policy.train_micro_batch_size", Field::MicroBatchSize),
        ("cluster.gpus_per_node", Field::GpusPerNode),
        ("cluster.num_nodes", Field::NumNodes),
    ];
    for (path, field) in rules {
        leaves.take(&[path], field);
        if let Some(value) = of_base(path) {
            leaves.state(field, value, Origin::Default, &note);
        }
    }
    let group = ["grpo.", "ppo.", "sft.", "dpo.", "rm.", "distillation."];
    let task = group
        .into_iter()
        .find(|group| leaves.all().iter().any(|leaf| leaf.path.starts_with(group)))
        .or(match known.map(|base| base.file) {
            Some("sft.yaml") => Some("sft."),
            Some("dpo.yaml") => Some("dpo."),
            Some(_) => Some("grpo."),
            None => None,
        });
    let megatron = leaves.flag("policy.megatron_cfg.enabled") == Some(true);
    if megatron {
        self::megatron(leaves)
    } else {
        dtensor(leaves)
    }
    match task {
        Some("grpo." | "ppo.") => {
            policy(leaves, NEMO);
            quantisation(leaves);
            rollout(leaves, &of_base, &note);
        }
        Some("dpo.") => {
            leaves.state(Field::TrainingObjective, "dpo", Origin::Derived, "dpo");
            leaves.state(
                Field::ReferenceModel,
                "loaded",
                Origin::Default,
                "a reference model beside the policy",
            );
        }
        Some("sft.") | None => {}
        Some(other) => {
            let what = "a head or a teacher that is not the policy's";
            let name = other.trim_end_matches('.').to_owned();
            let item = crate::NotModelled::new(&name, "", Effect::Model, what);
            leaves.reading.not_modelled.push(item);
        }
    }
    packing(leaves);
    model(leaves, &["policy.model_name"]);
    if let Some(name) = of_base("policy.model_name").filter(|_| !leaves.has("policy.model_name")) {
        crate::named::take_model(&mut leaves.reading, name, "policy.model_name", None);
    }
    ask(
        leaves,
        &[
            (Field::MicroBatchSize, "Micro-batch size (policy.train_micro_batch_size)?", "1"),
            (Field::SeqLength, "Sequence length (policy.max_total_sequence_length)?", "4096"),
            (Field::GlobalBatchSize, "Global batch size (policy.train_global_batch_size)?", "512"),
        ],
    );
    leaves.pass_below(&[
        "checkpointing.",
        "logger.",
        "data.",
        "env.",
        "grpo.",
        "sft.",
        "dpo.",
        "ppo.",
        "loss_fn.",
        "policy.tokenizer",
        "policy.optimizer",
        "policy.scheduler",
        "policy.megatron_cfg.scheduler",
        "policy.megatron_cfg.env_vars",
        "policy.dtensor_cfg.env_vars",
        "policy.generation.",
        "policy.make_sequence_length",
        "policy.max_grad_norm",
        "policy.logprob_batch_size",
        "policy.generation_batch_size",
        "policy.megatron_cfg.optimizer.lr",
        "policy.megatron_cfg.optimizer.min_lr",
        "policy.megatron_cfg.optimizer.weight_decay",
        "data_plane.",
        "defaults",
        "cluster.",
        "reward_penalties",
        "policy.logprob_chunk_size",
        "policy.megatron_cfg.empty_unused_memory_level",
        "policy.megatron_cfg.force_reconvert",
        "policy.megatron_cfg.checkpoint",
        "policy.hf_config_overrides",
        "policy.dtensor_cfg._v2",
        "policy.dtensor_cfg.automodel_kwargs",
        "policy.dtensor_cfg.custom_parallel_plan",
        "policy.megatron_cfg.moe_router_bias_update_rate",
        "policy.megatron_cfg.moe_per_layer_logging",
        "policy.megatron_cfg.pipeline_dtype",
        "policy.megatron_cfg.freeze_moe_router",
        "policy.megatron_cfg.optimizer.",
        "policy.megatron_cfg.distributed_data_parallel_config.",
        "policy.refit",
        "policy.precision",
        "policy.megatron_cfg.use_gloo",
        "policy.megatron_cfg.mtp_loss",
        "policy.megatron_cfg.track",
        "policy.offload_optimizer",
        "policy.megatron_cfg.cuda_graph_warmup",
        "policy.router_replay.enabled",
    ]);
}

/// Samples joined or cut by tokens: a micro-batch is as many tokens as `train_mb_tokens`.
fn packing(leaves: &mut Leaves<'_>) {
    for group in ["policy.sequence_packing", "policy.dynamic_batching"] {
        for key in [
            "enabled",
            "train_mb_tokens",
            "logprob_mb_tokens",
            "algorithm",
            "sequence_length_round",
            "microbatch_order",
        ] {
            leaves.pass(&format!("{group}.{key}"));
        }
    }
    let on = ["policy.sequence_packing.enabled", "policy.dynamic_batching.enabled"]
        .iter()
        .any(|path| leaves.flag(path) == Some(true));
    // `${mul:...}` is the product of length and micro-batch: what the two say by themselves.
    let tokens = leaves
        .first(&["policy.sequence_packing.train_mb_tokens", "policy.dynamic_batching.train_mb_tokens"])
        .filter(|leaf| leaf.whole().is_some());
    if let Some(leaf) = tokens.filter(|_| on) {
        leaves.say(Field::MaxTokensPerGpu, &leaf.value, leaf);
        leaves.reading.keep(&|found| !matches!(found.field, Field::SeqLength | Field::MicroBatchSize));
    }
}

fn dtensor(leaves: &mut Leaves<'_>) {
    transformers(leaves, NEMO, "fsdp2");
    leaves.state(Field::Bf16, "true", Origin::Default, "policy.precision bfloat16");
    leaves.state(
        Field::ZeroStage,
        "3",
        Origin::Default,
        "DTensor shards weights, gradients and states (fully_shard)",
    );
    leaves.state(Field::GradientCheckpointing, "false", Origin::Default, "default of NeMo-RL");
    if let Some(leaf) = leaves.get("policy.dtensor_cfg.activation_checkpointing") {
        leaves.switch(Field::GradientCheckpointing, leaf.flag() == Some(true), leaf);
    }
    for (key, field) in [
        ("policy.dtensor_cfg.tensor_parallel_size", Field::TensorModelParallelSize),
        ("policy.dtensor_cfg.context_parallel_size", Field::ContextParallelSize),
        ("policy.dtensor_cfg.expert_parallel_size", Field::ExpertModelParallelSize),
    ] {
        if let Some(leaf) = leaves.get(key).filter(|leaf| leaf.whole() != Some(1)) {
            leaves.say(field, &leaf.value, leaf);
        }
    }
    for key in ["sequence_parallel", "clear_cache_every_n_steps", "enabled"] {
        leaves.pass(&format!("policy.dtensor_cfg.{key}"));
    }
    if let Some(leaf) = leaves.yes("policy.dtensor_cfg.lora_cfg.enabled") {
        let _ = leaf;
        lora(
            leaves,
            "policy.dtensor_cfg.lora_cfg.dim",
            &[
                ("policy.dtensor_cfg.lora_cfg.alpha", Field::LoraAlpha),
                ("policy.dtensor_cfg.lora_cfg.dropout", Field::LoraDropout),
            ],
            "policy.dtensor_cfg.lora_cfg.target_modules",
        );
        leaves.state(Field::LoraRank, "8", Origin::Default, "default of NeMo-RL");
        leaves.state(Field::TrainType, "lora", Origin::Derived, "lora_cfg.enabled");
        leaves.state(Field::LoraTargetModules, "all-linear", Origin::Default, "match_all_linear");
    }
    leaves.pass_below(&["policy.dtensor_cfg.lora_cfg.", "policy.megatron_cfg."]);
    lack_yes(
        leaves,
        &[(
            "policy.dtensor_cfg.cpu_offload",
            Effect::Memory,
            "weights, gradients and optimizer states on the host (FSDP)",
        )],
    );
}

fn megatron(leaves: &mut Leaves<'_>) {
    leaves.pass_below(&["policy.dtensor_cfg."]);
    leaves.pass("policy.megatron_cfg.enabled");
    let named: Vec<(String, Field)> = leaves
        .all()
        .iter()
        .filter_map(|leaf| {
            let rest = leaf.path.strip_prefix("policy.megatron_cfg.")?;
            let name = rest
                .strip_prefix("optimizer.")
                .or(rest.strip_prefix("distributed_data_parallel_config."))
                .unwrap_or(rest);
            let field = match name {
                "grad_reduce_in_fp32" => Field::AccumulateAllreduceGradsInFp32,
                "num_layers_in_first_pipeline_stage" => Field::DecoderFirstPipelineNumLayers,
                "num_layers_in_last_pipeline_stage" => Field::DecoderLastPipelineNumLayers,
                // Of the optimizer's weights; the model's are in `policy.precision`.
                "params_dtype" | "recompute_granularity" => return None,
                other => Field::named(other)?,
            };
            Some((leaf.path.clone(), field))
        })
        .collect();
    for (path, field) in named {
        leaves.take(&[&path], field);
    }
    if let Some(leaf) = leaves.yes("policy.megatron_cfg.activation_checkpointing") {
        // Whole layers, one by one (`recompute_granularity: full`, its default in NeMo-RL's files).
        let selective = leaves.text("policy.megatron_cfg.recompute_granularity") == Some("selective");
        if selective {
            leaves.say(Field::RecomputeGranularity, "selective", leaf);
        } else {
            leaves.recompute_all(leaf);
            leaves.say(Field::RecomputeNumLayers, "1", leaf);
        }
    }
    leaves.pass("policy.megatron_cfg.recompute_granularity");
    for path in ["policy.megatron_cfg.bias_activation_fusion", "policy.megatron_cfg.peft.enabled"] {
        leaves.pass(path);
    }
    if let Some(leaf) = leaves.yes("policy.megatron_cfg.peft.enabled") {
        leaves.say(Field::TrainType, "lora", leaf);
        leaves.take_all(&[
            ("policy.megatron_cfg.peft.dim", Field::LoraRank),
            ("policy.megatron_cfg.peft.alpha", Field::LoraAlpha),
            ("policy.megatron_cfg.peft.dropout", Field::LoraDropout),
        ]);
        // Without names Megatron-Bridge adapts whatever is parallel, the output layer too and grouped experts not.
        let names = leaves.get("policy.megatron_cfg.peft.target_modules").cloned();
        if let Some(names) = names.filter(|leaf| !matches!(leaf.value.trim(), "" | "[]")) {
            leaves.say(Field::LoraTargetModules, &names.value, &names);
            leaves.say(Field::AdapterLibrary, "megatron-bridge", &names);
        }
    }
    leaves.pass_below(&["policy.megatron_cfg.peft."]);
    if let Some(leaf) = leaves.yes("policy.megatron_cfg.fp8_cfg.enabled") {
        let format = leaves.text("policy.megatron_cfg.fp8_cfg.fp8").unwrap_or("e4m3").to_owned();
        leaves.say(Field::Fp8, &format, leaf);
        leaves.take_all(&[
            ("policy.megatron_cfg.fp8_cfg.fp8_recipe", Field::Fp8Recipe),
            ("policy.megatron_cfg.fp8_cfg.fp8_param", Field::Fp8ParamGather),
        ]);
    }
    leaves.pass_below(&["policy.megatron_cfg.fp8_cfg."]);
    lack_yes(
        leaves,
        &[
            (
                "policy.megatron_cfg.fine_grained_activation_offloading",
                Effect::Memory,
                "activations that go to the host module by module",
            ),
            (
                "policy.megatron_cfg.use_fused_linear_logprobs",
                Effect::Memory,
                "log-probabilities fused with the output layer",
            ),
        ],
    );
    for (field, value) in [
        (Field::Bf16, "true"),
        (Field::UseDistributedOptimizer, "true"),
        (Field::UsePrecisionAwareOptimizer, "true"),
        (Field::MoeTokenDispatcherType, "alltoall"),
        (Field::HiddenDropout, "0"),
        (Field::AttentionDropout, "0"),
        (Field::MakeVocabSizeDivisibleBy, "1"),
        (Field::GradientAccumulationFusion, "false"),
    ] {
        leaves.state(field, value, Origin::Default, "default of NeMo-RL");
    }
    leaves.reading.software = Some((Software::MegatronCoreTe, "NeMo-RL's Megatron policy".to_owned()));
}

/// Weights that are trained as if they were quantised.
fn quantisation(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("policy.quant_cfg") {
        lack(leaves, leaf, Effect::Memory, "training aware of quantisation (ModelOpt)");
    }
}

fn rollout(leaves: &mut Leaves<'_>, of_base: &dyn Fn(&str) -> Option<&'static str>, note: &str) {
    leaves.state(Field::RlFramework, "nemo_rl", Origin::Derived, "NeMo-RL's keys");
    match leaves.get("policy.generation.backend").filter(|leaf| leaf.value != "vllm") {
        Some(leaf) if leaf.value == "sglang" => leaves.say(Field::RolloutEngine, "sglang", leaf),
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "this rollout engine"),
        None => leaves.state(Field::RolloutEngine, "vllm", Origin::Default, "default of NeMo-RL"),
    }
    let rules = [
        ("policy.generation.vllm_cfg.tensor_parallel_size", Field::RolloutTensorParallelSize),
        ("policy.generation.vllm_cfg.gpu_memory_utilization", Field::RolloutMemoryFraction),
        ("grpo.num_generations_per_prompt", Field::RolloutsPerPrompt),
        ("grpo.num_prompts_per_step", Field::RolloutPrompts),
    ];
    for (path, field) in rules {
        leaves.take(&[path], field);
        if let Some(value) = of_base(path) {
            leaves.state(field, value, Origin::Default, note);
        }
    }
    if let Some(leaf) = leaves.get("policy.generation.vllm_cfg.enforce_eager") {
        leaves.switch(Field::RolloutCudaGraphs, leaf.flag() != Some(true), leaf);
    }
    if let Some(leaf) =
        leaves.get("policy.generation.vllm_cfg.precision").filter(|leaf| leaf.value.contains("fp8"))
    {
        leaves.say(Field::RolloutDtype, "fp8", leaf);
    }
    let apart = leaves.flag("policy.generation.colocated.enabled") == Some(false);
    if apart {
        let nodes = leaves.whole("policy.generation.colocated.resources.num_nodes");
        let each = leaves.whole("policy.generation.colocated.resources.gpus_per_node");
        let per_node = leaves.reading.count(Field::GpusPerNode).unwrap_or(8);
        let all_nodes = leaves.reading.count(Field::NumNodes).unwrap_or(1);
        // Of one node, so many GPUs generate; of several, so many nodes.
        let own = match (nodes, each) {
            (Some(nodes), each) if all_nodes > 1 => nodes.saturating_mul(each.unwrap_or(per_node)),
            (_, Some(each)) => each,
            (Some(nodes), None) => nodes.saturating_mul(per_node),
            (None, None) => 0,
        };
        let world = all_nodes.saturating_mul(per_node);
        if own > 0 && own < world {
            leaves.state(
                Field::RolloutGpus,
                &own.to_string(),
                Origin::Derived,
                "generation.colocated.resources",
            );
            // What is left trains.
            let rest = world - own;
            leaves.reading.keep(&|found| !matches!(found.field, Field::NumNodes | Field::GpusPerNode));
            let (left_nodes, left_each) =
                if rest.is_multiple_of(per_node) { (rest / per_node, per_node) } else { (1, rest) };
            let why = "cluster less the accelerators that generate";
            leaves.state(Field::NumNodes, &left_nodes.to_string(), Origin::Derived, why);
            leaves.state(Field::GpusPerNode, &left_each.to_string(), Origin::Derived, why);
        }
    } else {
        leaves.state(
            Field::RolloutSleep,
            "true",
            Origin::Default,
            "co-located vLLM sleeps while the policy trains",
        );
        offloads(leaves, [true, true, true], "offload_after_refit moves the policy to the host");
    }
    // The reference is a copy of the weights on the host, swapped in for its log-probabilities.
    let none = leaves
        .get("loss_fn.reference_policy_kl_penalty")
        .is_some_and(|leaf| matches!(leaf.value.as_str(), "0" | "0.0"));
    leaves.state(
        Field::RlReference,
        if none { "none" } else { "host" },
        Origin::Derived,
        "NeMo-RL keeps the reference's weights on the host (use_reference_model)",
    );
    leaves.state(Field::RlCritic, "none", Origin::Derived, "grpo has no critic");
    if leaves.all().iter().any(|leaf| leaf.path.starts_with("value.") || leaf.path.starts_with("ppo.")) {
        leaves.reading.keep(&|found| found.field != Field::RlCritic);
        leaves.reading.not_modelled.push(crate::NotModelled::new(
            "value",
            "",
            Effect::Memory,
            "a critic beside the policy",
        ));
        leaves.pass_below(&["value."]);
    }
}

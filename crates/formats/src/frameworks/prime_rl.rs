//! Prime Intellect's prime-rl. Keys and defaults: `packages/prime-rl-configs/src/prime_rl/configs`; the trainer:
//! `src/prime_rl/trainer/model.py`, `rl/train.py`, `sft/train.py`.

use super::row::Row;
use crate::leaves::Leaves;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

/// prime-rl's settings file for reinforcement learning.
pub(crate) const PRIME_RL: Row = Row {
    trainer: "prime-rl",
    title: "a configuration of prime-rl",
    about: "prime-rl: dense transformers models under FSDP2, rollouts by vLLM on separate accelerators",
    signs: &[&["model.name", "orchestrator"]],
    keys: &[],
    models: &["model.name", "trainer.model.name"],
    software: Software::HfTransformers,
    lacking: None,
    extra: |leaves| rl(leaves),
    program: None,
};

/// prime-rl's settings file for supervised fine-tuning.
pub(crate) const PRIME_SFT: Row = Row {
    title: "a configuration of prime-rl's supervised fine-tuning",
    about: "prime-rl's supervised fine-tuning: dense transformers models under FSDP2",
    signs: &[
        &["model.name", "data.name", "optim"],
        &["model.name", "data.type", "max_steps"],
        &["model.name", "data", "ckpt", "max_steps"],
        &["model.name", "max_steps", "optim"],
    ],
    extra: |leaves| sft(leaves),
    ..PRIME_RL
};

const LACKING: &[(&str, Effect, &str)] = &[
    ("lora.rank", Effect::Memory, "prime-rl's own adapters"),
    ("quantization.type", Effect::Memory, "8-bit GEMMs"),
    ("vlm.vision_encoder_attr", Effect::Model, "a vision model under prime-rl"),
    ("index_cache.topk_freq", Effect::Model, "sparse attention over tokens selected by an indexer"),
    ("debug.num_layers", Effect::Model, "a truncated model for debugging"),
];

fn sft(leaves: &mut Leaves<'_>) {
    leaves.take_all(&[
        ("data.seq_len", Field::SeqLength),
        ("data.batch_size", Field::GlobalBatchSize),
        ("data.micro_batch_size", Field::MicroBatchSize),
    ]);
    let defaults = [(Field::SeqLength, "128"), (Field::GlobalBatchSize, "128"), (Field::MicroBatchSize, "1")];
    leaves.state_all(&defaults, Origin::Default, "SFTDataConfig of prime-rl");
    leaves.state(Field::TrainingObjective, "sft", Origin::Derived, "prime-rl's supervised fine-tuning");
    trainer(leaves, "model.", "optim.", 2);
    // Servers for evaluations have GPUs of their own, and passes without gradients need less memory than training.
    leaves.pass_below(&["data.", "eval.", "val.", "inference."]);
    idle(leaves);
}

/// Keys of prime-rl before its trainer had today's defaults (`configs/trainer.py` of c5afcaa2e, June 26, 2026): `group_size` took
/// the place of the first on May 22 (#2599), `deployment` that of the others in February (#1859).
const BEFORE: [&str; 3] = ["orchestrator.rollouts_per_example", "trainer_gpu_ids", "inference_gpu_ids"];
const DEFAULTS_BEFORE: &str = "prime-rl before June 26, 2026, whose trainer neither recomputes nor offloads nor computes log-probabilities \
                               in chunks unless it is told";

/// A step takes `batch_size` rollouts, packed into micro-batches of `seq_len` tokens (`orchestrator/packing.py`).
fn rl(leaves: &mut Leaves<'_>) {
    let length = leaves.first(&["trainer.model.seq_len", "seq_len", "orchestrator.seq_len"]);
    let each = leaves.first(&["orchestrator.seq_len", "seq_len", "trainer.model.seq_len"]);
    for (leaf, field) in [(length, Field::MaxTokensPerMicroBatch), (each, Field::RolloutLength)] {
        match leaf {
            Some(leaf) => leaves.say(field, &leaf.value, leaf),
            None => leaves.state(field, "2048", Origin::Default, "seq_len of prime-rl"),
        }
    }
    if let Some(leaf) = leaves.get("orchestrator.token_batch_size") {
        leaves.lack(leaf, Effect::Time, "steps sized in tokens");
    }
    leaves.take_all(&[
        ("orchestrator.batch_size", Field::GlobalBatchSize),
        ("orchestrator.group_size", Field::RolloutsPerPrompt),
        ("inference.vllm.tensor_parallel_size", Field::RolloutTensorParallelSize),
        ("inference.vllm.gpu_memory_utilization", Field::RolloutMemoryFraction),
    ]);
    leaves.follow("inference.vllm.enforce_eager", Field::RolloutCudaGraphs, false);
    leaves.state(Field::GlobalBatchSize, "128", Origin::Default, "OrchestratorConfig of prime-rl");
    leaves.state(Field::RolloutsPerPrompt, "1", Origin::Default, "OrchestratorConfig of prime-rl");
    leaves.state(Field::RolloutMemoryFraction, "0.9", Origin::Default, "InferenceConfig of prime-rl");
    leaves.state(Field::RlFramework, "prime_rl", Origin::Derived, "prime-rl's keys");
    leaves.state(Field::RolloutEngine, "vllm", Origin::Default, "prime-rl generates by vLLM");
    let why = "prime-rl trains on log-probabilities of sampled tokens";
    leaves.state(Field::TrainingObjective, "policy", Origin::Derived, why);
    // The trainer has neither; the teachers of other algorithms run on separate servers.
    leaves.state(Field::RlReference, "none", Origin::Derived, "prime-rl's trainer has only the policy");
    leaves.state(Field::RlCritic, "none", Origin::Derived, "prime-rl's trainer has only the policy");
    trainer(leaves, "trainer.model.", "trainer.optim.", 1);
    generating(leaves);
    if leaves.get("trainer.model.fused_lm_head_token_chunk_size").is_some_and(|leaf| leaf.whole().is_none()) {
        let what = "log-probabilities from full logits (RLTrainer's vanilla output layer)";
        leaves.reading.not_modelled.push(NotModelled::new(
            "fused_lm_head_token_chunk_size",
            "",
            Effect::Memory,
            what,
        ));
    }
    if let Some(leaf) = leaves.get("inference.vllm.quantization") {
        leaves.lack(leaf, Effect::Memory, "a rollout engine whose weights are quantized");
    }
    if let Some(leaf) = leaves.first(&BEFORE) {
        leaves.lack(leaf, Effect::Memory, DEFAULTS_BEFORE);
    }
    leaves.pass_below(&BEFORE);
    // None of the remaining keys of both affects memory on the trainer's GPUs.
    leaves.pass_below(&["orchestrator.", "inference.", "eval."]);
    let others = [
        "data.",
        "loss.",
        "scheduler.",
        "ckpt",
        "log.",
        "monitors.",
        "gc.",
        "env_vars.",
        "tokenizer.",
        "weight_broadcast.",
    ];
    for start in others.iter().chain(IDLE) {
        leaves.pass_below(&[&format!("trainer.{start}")]);
    }
    idle(leaves);
}

/// The number of GPUs that generate, which the trainer does not use.
fn generating(leaves: &mut Leaves<'_>) {
    let nodes = leaves.whole("deployment.num_infer_nodes");
    let replicas = leaves.whole("deployment.num_infer_replicas").unwrap_or(1);
    let each = leaves.whole("deployment.gpus_per_node").unwrap_or(8);
    let own = if several(leaves) {
        nodes.map(|nodes| nodes.saturating_mul(replicas).saturating_mul(each))
    } else {
        Some(leaves.whole("deployment.num_infer_gpus").unwrap_or(1))
    };
    let described =
        leaves.all().iter().any(|leaf| leaf.path.starts_with("inference")) || leaves.has("inference");
    let own = if described { own.unwrap_or(0) } else { 0 };
    leaves.state(Field::RolloutGpus, &own.to_string(), Origin::Derived, "deployment of prime-rl");
}

fn several(leaves: &Leaves<'_>) -> bool {
    leaves.text("deployment.type") == Some("multi_node")
}

/// Model, machines and optimizer of both trainers; `model` and `optim` are the prefixes of their keys.
fn trainer(leaves: &mut Leaves<'_>, model: &str, optim: &str, nodes: u64) {
    machines(leaves, nodes);
    let at = |key: &str| format!("{model}{key}");
    let why = "default of prime-rl";
    let defaults: &[(Field, &str)] = &[
        (Field::TrainType, "full"),
        (Field::Bf16, "true"),
        (Field::DataParallelEngine, "fsdp2"),
        (Field::AttnImplementation, "flash_attention_2"),
        (Field::Packing, "true"),
        (Field::PaddingMask, "false"),
        (Field::UseCache, "false"),
    ];
    for (key, field) in [("optimization_dtype", Field::ParamsDtype), ("reduce_dtype", Field::ReduceDtype)] {
        let bf16 = leaves.text(&at(key)) == Some("bfloat16");
        leaves.state(field, if bf16 { "bf16" } else { "fp32" }, Origin::Default, "default of prime-rl");
    }
    let keeps = leaves.flag(&at("reshard_after_forward")) == Some(false);
    leaves.state(
        Field::ZeroStage,
        if keeps { "2" } else { "3" },
        Origin::Default,
        "reshard_after_forward of prime-rl",
    );
    leaves.state_all(defaults, Origin::Default, why);
    memory(leaves, model);
    match leaves.get(&at("fused_lm_head_token_chunk_size")) {
        Some(leaf) if leaf.whole().is_some() => {
            leaves.say(Field::LogProbChunk, &leaf.value, leaf);
            leaves.state(Field::LossKind, "tiled", Origin::Derived, "fused_lm_head_token_chunk_size");
        }
        Some(_) => leaves.state(Field::LossKind, "torch", Origin::Derived, "fused_lm_head_token_chunk_size"),
        None => leaves.state(
            Field::LossKind,
            "tiled",
            Origin::Default,
            "fused_lm_head_token_chunk_size of prime-rl",
        ),
    }
    if let Some(leaf) = leaves.get(&at("dp_replicate")).filter(|leaf| leaf.whole() > Some(1)) {
        leaves.say(Field::NumDistributedOptimizerInstances, &leaf.value, leaf);
    }
    for key in ["cp", "ep"] {
        if let Some(leaf) = leaves.get(&at(key)).filter(|leaf| leaf.whole() > Some(1)) {
            leaves.lack(leaf, Effect::Communication, "context or expert parallelism of prime-rl");
        }
    }
    for (key, effect, what) in LACKING {
        if let Some(leaf) = leaves.get(&at(key)) {
            leaves.lack(leaf, *effect, what);
        }
    }
    optimizer(leaves, optim);
    // Variants of one kernel, kinds of communication that does not occur, and settings of experts only.
    for key in [
        "name",
        "seq_len",
        "trust_remote_code",
        "conversion_dir",
        "attn",
        "impl",
        "ac",
        "compile",
        "full_offload",
        "cp_style",
        "ep",
        "deepep_",
        "moe_",
        "freeze_moe_router",
        "debug.random_init",
        "debug.force_balanced_routing",
    ] {
        leaves.pass_below(&[&at(key)]);
    }
    for key in ["lr", "weight_decay", "max_norm", "betas1", "betas2", "mu", "nesterov", "momentum"] {
        leaves.pass(&format!("{optim}{key}"));
    }
}

/// `gpus_per_node` with either a number of GPUs on one node or a number of nodes. Beside rollouts those of the trainer
/// have names of their own (`configs/rl.py`); fine-tuning has only one kind (`configs/sft.py`: `num_gpus`, `num_nodes`).
fn machines(leaves: &mut Leaves<'_>, nodes: u64) {
    leaves.pass_below(&["deployment."]);
    if several(leaves) {
        leaves.take_all(&[
            ("deployment.num_train_nodes", Field::NumNodes),
            ("deployment.num_nodes", Field::NumNodes),
            ("deployment.gpus_per_node", Field::GpusPerNode),
        ]);
        leaves.state(Field::NumNodes, &nodes.to_string(), Origin::Default, "deployment of prime-rl");
        leaves.state(Field::GpusPerNode, "8", Origin::Default, "deployment of prime-rl");
        if let (Some(group), Some(leaf)) =
            (leaves.whole("deployment.nodes_per_fsdp_group"), leaves.get("deployment.nodes_per_fsdp_group"))
        {
            let copies = leaves.reading.count(Field::NumNodes).unwrap_or(nodes) / group.max(1);
            leaves.say(Field::NumDistributedOptimizerInstances, &copies.to_string(), leaf);
        }
        return;
    }
    leaves.take(&["deployment.num_train_gpus", "deployment.num_gpus"], Field::GpusPerNode);
    leaves.state(Field::GpusPerNode, "1", Origin::Default, "num_train_gpus of prime-rl");
    leaves.state(Field::NumNodes, "1", Origin::Derived, "one node");
}

/// By default layers are checkpointed in full, saved tensors are offloaded to the host, and so are optimizer states
/// except during the step (`setup_model`, `utils/act_offloading.py`, `optim/state_offload.py`).
fn memory(leaves: &mut Leaves<'_>, model: &str) {
    let at = |key: &str| format!("{model}{key}");
    // An explicit none replaces the table and is read as an empty value.
    let off = |leaves: &Leaves<'_>, key: &str| leaves.has(&at(key)) && leaves.flag(&at(key)) != Some(true);
    let checkpoints = !off(leaves, "ac");
    let some = leaves.get(&at("ac.mode")).filter(|leaf| leaf.value == "selective");
    let every = leaves.get(&at("ac.freq")).filter(|leaf| leaf.whole() != Some(1));
    if let Some(leaf) = some.or(every) {
        leaves.lack(leaf, Effect::Memory, "checkpointing of some layers or parts of layers");
    }
    let why = "ac, ac_offloading and optim_cpu_offload of prime-rl";
    leaves.state(
        Field::GradientCheckpointing,
        if checkpoints { "true" } else { "false" },
        Origin::Default,
        why,
    );
    if !off(leaves, "ac_offloading") {
        leaves.state(Field::OffloadSavedTensors, "true", Origin::Default, why);
    }
    if leaves.yes(&at("fsdp_cpu_offload")).is_some() {
        leaves.state(Field::OffloadParam, "true", Origin::Derived, "fsdp_cpu_offload");
        leaves.state(Field::OffloadOptimizer, "true", Origin::Derived, "fsdp_cpu_offload");
    } else if leaves.flag(&at("optim_cpu_offload")) != Some(false) {
        leaves.state(Field::StatesForStep, "true", Origin::Default, why);
    }
    let full = leaves.all().iter().find(|leaf| leaf.path.starts_with(&at("full_offload")));
    if let Some(leaf) = full.filter(|leaf| leaf.flag() != Some(false)) {
        leaves.lack(leaf, Effect::Memory, "an optimizer that steps on the host while backward runs");
    }
    if off(leaves, "compile") {
        return;
    }
    if checkpoints {
        leaves.state(Field::CompiledCheckpoints, "true", Origin::Default, "compile of prime-rl");
    } else {
        let what = "what compiled layers save without checkpointing";
        leaves.reading.not_modelled.push(NotModelled::new("compile", "", Effect::Memory, what));
    }
}

fn optimizer(leaves: &mut Leaves<'_>, optim: &str) {
    match leaves.get(&format!("{optim}type")) {
        Some(leaf) if leaf.value == "sgd" => {
            leaves.say(Field::Optimizer, "sgd", leaf);
            leaves.state(Field::SgdMomentum, "0.9", Origin::Default, "SGDConfig of prime-rl");
        }
        Some(leaf) if leaf.value != "adamw" => {
            leaves.lack(leaf, Effect::Memory, "the states of this prime-rl optimizer");
        }
        _ => leaves.state(Field::Optimizer, "adam", Origin::Default, "AdamWConfig of prime-rl"),
    }
}

/// Settings of both trainers that change no figure: names, logs, checkpoints, time limits.
const IDLE: &[&str] = &[
    "rollout_transport.",
    "resume",
    "max_steps",
    "output_dir",
    "matmul_precision",
    "dist_timeout_seconds",
    "heartbeat",
    "metrics_server",
    "trace_path",
    "memory_profiler_path",
    "enable_token_export",
    "enable_router_replay",
];

/// Keys for names, logs, servers and weight transfer, none of which affects the trainer's memory.
fn idle(leaves: &mut Leaves<'_>) {
    leaves.pass_below(IDLE);
    leaves.pass_below(&[
        "monitors.",
        "ckpt",
        "slurm.",
        "run.",
        "log.",
        "env_vars.",
        "renderer.",
        "tokenizer.",
        "scheduler.",
        "weight_broadcast.",
        "wandb",
        "clean",
        "gc.",
        "seq_len",
        "dry_run",
        "model.name",
        "model.trust_remote_code",
    ]);
}

//! Registries of torchtitan since February 2026: functions that return a `Trainer.Config`. They are read like
//! its former TOML files, key by key; names and defaults: `torchtitan/config/configs.py`,
//! `torchtitan/trainer.py` (commit of August 2026).

use super::super::leaves::{Leaf, Scalars};
use super::super::titan;
use super::table;
use crate::named::take_model;
use crate::{Effect, Found, NotModelled, NotRead, Origin, Reading};
use shardscope_plan::{Field, Software};
use shardscope_python::evaluate::{Calls, Outcome};
use shardscope_python::tree::{Tree, scalar, text};
use shardscope_source::{Code, Diagnostic, Span};

/// `TrainingConfig.num_tokens_per_microbatch_per_dp_rank`. Unit: token.
const TOKENS: u64 = 16_384;
/// `TrainingConfig.max_context_length`. Unit: token.
const CONTEXT: u64 = 2048;

/// The functions and classes that registries call.
pub(super) struct Titan;

/// Declared return types of a registry's functions, and features of that trainer that are not modelled
/// (`torchtitan/trainer.py`, `torchtitan/experiments`). TorchFT's groups are separate runs, each of
/// which shards as torchtitan does.
const TRAINERS: [(&str, Option<(Effect, &str)>); 6] = [
    ("Trainer.Config", None),
    ("FaultTolerantTrainer.Config", None),
    (
        "GraphTrainer.Config",
        Some((Effect::Memory, "GraphTrainer, which traces the whole model and decides what is saved")),
    ),
    ("FluxTrainer.Config", Some((Effect::Model, "a diffusion model in place of the decoder"))),
    (
        "Controller.Config",
        Some((Effect::Memory, "reinforcement learning in torchtitan, its losses and its rollouts")),
    ),
    ("TransformersBackendConfig", Some((Effect::Memory, "transformers modules under torchtitan's trainer"))),
];

/// The trainer whose configuration a function returns, if it is one of torchtitan's.
pub(super) fn trainer(returns: &str) -> Option<Option<(Effect, &'static str)>> {
    let returns = returns.trim_matches(['"', '\'']);
    TRAINERS.iter().find(|(name, _)| *name == returns).map(|(_, lacking)| *lacking)
}

/// Reports the features of a trainer other than torchtitan's own, and the transformers model that it receives.
pub(super) fn tell_trainer(reading: &mut Reading, returns: &str, outcome: &Outcome) {
    if let Some(Some((effect, what))) = trainer(returns) {
        reading.not_modelled.push(NotModelled::new("trainer", returns, effect, what));
    }
    if let Some(method) =
        text(&outcome.tree, "fault_tolerance.semi_sync_method").filter(|said| !said.is_empty())
    {
        let what = "DiLoCo, whose replicas synchronize every few steps and hold a second copy of the weights";
        let name = "fault_tolerance.semi_sync_method";
        reading.not_modelled.push(NotModelled::new(name, method, Effect::Memory, what));
    }
    if let Some(model) = text(&outcome.tree, "hf_model").filter(|model| !model.is_empty()) {
        take_model(reading, model, "hf_model", None);
    }
}

impl Calls for Titan {
    fn value(&self, name: &str, given: &[(Option<String>, Tree)]) -> Option<Tree> {
        match name.rsplit('.').next().unwrap_or(name) {
            "default_adamw" => Some(scalar("AdamW")),
            // Learning rates, data and losses whose size follows from the model.
            "decoder_vocab_size" => Some(scalar("")),
            // `experiments/graph_trainer/configs.py`: the same configuration for another trainer.
            "to_graph_trainer_config" => given.first().map(|(_, tree)| tree.clone()),
            // A function of another registry, whose source is not supplied.
            other => table::titan_by_name(other).map(|outcome| outcome.tree),
        }
    }

    fn assigns(&self, _: &str, _: &Tree) -> Option<Tree> {
        None
    }

    fn is_class(&self, name: &str) -> bool {
        // The registry of models: its first argument is the flavor, converters modify layers.
        let last = name.rsplit('.').next().unwrap_or(name);
        let class = last.trim_start_matches('_').starts_with(|first: char| first.is_ascii_uppercase());
        class || last == "model_registry"
    }
}

/// Keys that are identical under both names, and the one that the reader of TOML files knows.
const SAME: &[(&str, &str)] = &[
    ("training.max_context_length", "training.seq_len"),
    ("training.steps", "training.steps"),
    ("training.enable_cpu_offload", "training.enable_cpu_offload"),
    ("training.mixed_precision_param", "training.mixed_precision_param"),
    ("training.mixed_precision_reduce", "training.mixed_precision_reduce"),
    ("training.dtype", "training.dtype"),
    ("optimizer.implementation", "optimizer.implementation"),
    ("parallelism.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"),
    ("parallelism.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"),
    ("parallelism.fsdp_reshard_after_forward", "parallelism.fsdp_reshard_after_forward"),
    ("parallelism.tensor_parallel_degree", "parallelism.tensor_parallel_degree"),
    ("parallelism.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"),
    ("parallelism.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"),
    ("parallelism.pipeline_parallel_layers_per_stage", "parallelism.pipeline_parallel_layers_per_stage"),
    ("parallelism.context_parallel_degree", "parallelism.context_parallel_degree"),
    ("parallelism.expert_parallel_degree", "parallelism.expert_parallel_degree"),
    ("compile.enable", "compile.enable"),
    ("compile.components", "compile.components"),
    ("compile.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel"),
];

/// Groups of keys that do not affect the estimate: data, logs, checkpoints, evaluation, learning rates, and the
/// rendezvous of TorchFT's groups.
const IDLE: [&str; 10] = [
    "fault_tolerance",
    "dataloader",
    "metrics",
    "profiler",
    "lr_scheduler",
    "checkpoint",
    "validator",
    "comm",
    "debug",
    "hf_assets_path",
];

/// Reads the settings that a registry's function returns.
pub(super) fn read(outcome: &Outcome, name: &str, base: u32) -> Reading {
    let value = |path: &str| text(&outcome.tree, path).unwrap_or("");
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut push = |path: &str, text: &str, from: &str| {
        let stated = outcome.tree.iter().rev().find(|(known, _)| known == from).map(|(_, scalar)| scalar);
        let at = stated.and_then(|scalar| u32::try_from(scalar.at).ok()).filter(|at| *at > 0);
        let place = at.map(|at| at.saturating_add(base));
        leaves.push(Leaf {
            path: path.to_owned(),
            value: text.to_owned(),
            span: place.map(|at| Span::new(at, at)),
            hole: stated.and_then(|scalar| scalar.hole.clone()),
            ..Leaf::default()
        });
    };
    for (theirs, ours) in SAME {
        if outcome.tree.iter().any(|(path, _)| path == theirs) {
            push(ours, value(theirs), theirs);
        }
    }
    let count = |path: &str, usual: u64| value(path).parse::<u64>().unwrap_or(usual);
    let context = count("training.max_context_length", CONTEXT).max(1);
    let micro = (count("training.num_tokens_per_microbatch_per_dp_rank", TOKENS) / context).max(1);
    let tokens = "training.num_tokens_per_microbatch_per_dp_rank";
    let slices = count("parallelism.num_pp_microbatches", 1);
    let piped = count("parallelism.pipeline_parallel_degree", 1) > 1;
    push("training.local_batch_size", &(micro * if piped { slices } else { 1 }).to_string(), tokens);
    if piped {
        push("parallelism.pipeline_parallel_microbatch_size", &micro.to_string(), tokens);
    }
    if let Ok(step) = value("training.num_tokens_per_train_step").parse::<u64>() {
        push(
            "training.global_batch_size",
            &(step / context).to_string(),
            "training.num_tokens_per_train_step",
        );
    }
    // If no policy is named, the trainer uses the selective one.
    let kept = "activation_checkpoint";
    let named = outcome.tree.iter().any(|(path, _)| path == kept);
    let policy = match value(kept) {
        "" if named => "none",
        said if said.contains("FullAC") => "full",
        said if said.contains("MemoryBudget") => "memory_budget",
        _ => "selective",
    };
    push("activation_checkpoint.mode", policy, kept);
    if policy == "selective" {
        push("activation_checkpoint.selective_ac_option", "op", kept);
    }
    let scalars = Scalars::from_leaves(leaves);
    let mut reading = titan::finish(&scalars);
    beside(&mut reading, outcome, name);
    reading
}

/// Settings of registries beyond the keys of TOML files: the model, the loss, converters of layers.
fn beside(reading: &mut Reading, outcome: &Outcome, name: &str) {
    let value = |path: &str| text(&outcome.tree, path).unwrap_or("");
    if value("loss").contains("ChunkedLossWrapper") {
        reading.take(Found::new(Field::LossKind, "chunked", Origin::Derived).note("ChunkedLossWrapper"));
    }
    for part in ["model_spec.converters", "model_converters", "override"] {
        let stated = outcome.tree.iter().find(|(path, _)| path == part);
        if stated.is_some_and(|(_, scalar)| scalar.hole.is_some() || scalar.text.len() > 2) {
            let what = "converters of the model's layers (float8, MX, LoRA)";
            reading.not_modelled.push(NotModelled::new(part, "", Effect::Memory, what));
        }
    }
    let optimizer = outcome.tree.iter().rev().find(|(path, _)| path == "optimizer").map(|(_, scalar)| scalar);
    if let Some(scalar) = optimizer
        .filter(|scalar| !scalar.text.contains("AdamW") && !scalar.text.contains("OptimizersContainer"))
    {
        let said = if scalar.text.is_empty() { scalar.hole.as_deref().unwrap_or("") } else { &scalar.text };
        let what = "this optimizer's states; Adam's would be counted";
        reading.not_modelled.push(NotModelled::new("optimizer", said, Effect::Memory, what));
    }
    for call in &outcome.unknown {
        let what = "what this call changes in the configuration";
        reading.not_modelled.push(NotModelled::new("recipe", call, Effect::Memory, what));
    }
    let assets = value("hf_assets_path");
    let model = assets.rsplit('/').next().unwrap_or("");
    // Test assets contain only a tokenizer, and the model is one for debugging.
    if !assets.contains("tests/") && !model.is_empty() {
        // Flavors are tied where the published model is (`enable_weight_tying`: of Qwen3 since August 2025, of Llama 3 since March 2026).
        reading.found.retain(|found| found.field != Field::UntieEmbeddingsAndOutputWeights);
        take_model(reading, model, "hf_assets_path", None);
    }
    reading.software = Some((Software::Torchtitan, format!("{name}, a registry of torchtitan")));
    let known = |path: &str| {
        let group = path.split('.').next().unwrap_or("");
        IDLE.contains(&group)
            || SAME.iter().any(|(theirs, _)| *theirs == path)
            || [
                "loss",
                "model_spec",
                "optimizer",
                "activation_checkpoint",
                "compile",
                "training",
                "parallelism",
                "hf_model",
                "optimizer.param_groups",
                "",
            ]
            .contains(&path)
            || path.starts_with("loss.")
            || path.starts_with("activation_checkpoint.")
            || [
                "training.num_tokens_per_microbatch_per_dp_rank",
                "training.num_tokens_per_train_step",
                "training.max_norm",
                "parallelism.num_pp_microbatches",
                "model_spec.converters",
                "model_spec.attn_backend",
            ]
            .contains(&path)
    };
    let mut unread: Vec<&str> = Vec::new();
    for (path, _) in &outcome.tree {
        if !known(path) && !reading.not_read.iter().any(|one| one.name == *path) {
            unread.push(path);
            reading.not_read.push(NotRead::new(path, None));
        }
    }
    if !unread.is_empty() {
        let names = unread.join(", ");
        let message = format!(
            "keys of the recipe are not known here; they are not read and may change the estimate: {names}"
        );
        reading.diagnostics.push(Diagnostic::warning(Code::KeysNotRead, message));
    }
}

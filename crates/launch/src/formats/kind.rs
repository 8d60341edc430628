//! Which framework's file a tree is, and the reader for it.

use super::frameworks::{self, Framework};
use super::trainer::{self, Dialect};
use super::{accelerate, deepspeed, flags, huggingface, kubernetes, nanotron, nemo, neox, titan};
use crate::{Argument, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_source::Span;

/// Keys of Megatron that make a flat file one of flags.
const ENOUGH_FLAGS: usize = 3;

/// A framework's settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Hugging Face `config.json`.
    HuggingFace,
    /// DeepSpeed JSON.
    DeepSpeed,
    /// What `accelerate config` writes.
    Accelerate,
    /// GPT-NeoX.
    GptNeox,
    /// nanotron.
    Nanotron,
    /// NeMo 1 and its launcher.
    Nemo,
    /// Megatron's flags as keys: Megatron-LM's tests, Primus, FlagScale, ms-swift.
    Flags,
    /// torchtitan.
    Torchtitan,
    /// A trainer of models of transformers.
    Trainer(Dialect),
    /// A trainer with a settings file and layers of its own.
    Framework(Framework),
    /// A Kubernetes job.
    Kubernetes,
}

impl Format {
    /// What it is called in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HuggingFace => "a Hugging Face model configuration",
            Self::DeepSpeed => "a DeepSpeed configuration",
            Self::Accelerate => "an accelerate configuration",
            Self::GptNeox => "a GPT-NeoX configuration",
            Self::Nanotron => "a nanotron configuration",
            Self::Nemo => "a NeMo configuration",
            Self::Flags => "Megatron's flags as keys",
            Self::Torchtitan => "a torchtitan configuration",
            Self::Trainer(Dialect::Transformers) => "arguments of transformers' Trainer",
            Self::Trainer(Dialect::Trl) => "a TRL configuration",
            Self::Trainer(Dialect::LlamaFactory) => "a LLaMA-Factory configuration",
            Self::Trainer(Dialect::Axolotl) => "an axolotl configuration",
            Self::Trainer(Dialect::Swift) => "an ms-swift configuration",
            Self::Framework(_) => "a configuration of a trainer of its own",
            Self::Kubernetes => "a Kubernetes job",
        }
    }
}

/// What in a settings file tells its framework.
enum Sign {
    /// One of these paths.
    Any(&'static [&'static str]),
    /// All of these paths.
    All(&'static [&'static str]),
    /// All of these keys, with further keys below each.
    Maps(&'static [&'static str]),
}

/// The signs in the order in which they count.
const SIGNS: &[(Sign, Format)] = &[
    (Sign::All(&["base_model", "micro_batch_size"]), Format::Trainer(Dialect::Axolotl)),
    (Sign::All(&["base_model", "sequence_len"]), Format::Trainer(Dialect::Axolotl)),
    (Sign::All(&["model_name_or_path", "finetuning_type"]), Format::Trainer(Dialect::LlamaFactory)),
    (Sign::All(&["model_name_or_path", "cutoff_len"]), Format::Trainer(Dialect::LlamaFactory)),
    (Sign::All(&["model_name_or_path", "per_device_train_batch_size"]), Format::Trainer(Dialect::Trl)),
    (Sign::All(&["model_name_or_path", "learning_rate"]), Format::Trainer(Dialect::Trl)),
    (Sign::All(&["model", "per_device_train_batch_size"]), Format::Trainer(Dialect::Swift)),
    (Sign::All(&["model", "tuner_type", "learning_rate"]), Format::Trainer(Dialect::Swift)),
    (Sign::Any(&["MODEL_ARGS", "modules"]), Format::Flags),
    (Sign::All(&["experiment", "defaults"]), Format::Flags),
    (Sign::Any(&["model.model_config", "parallelism.tp_mode"]), Format::Nanotron),
    (Sign::All(&["tokens", "parallelism"]), Format::Nanotron),
    (Sign::Maps(&["system", "model"]), Format::Flags),
    (Sign::Maps(&["system", "data"]), Format::Flags),
    (
        Sign::Any(&[
            "model.flavor",
            "training.seq_len",
            "parallelism.tensor_parallel_degree",
            "activation_checkpoint.mode",
        ]),
        Format::Torchtitan,
    ),
    (Sign::Any(&["trainer.num_nodes", "model.tensor_model_parallel_size", "training.model"]), Format::Nemo),
    (Sign::All(&["trainer", "model"]), Format::Nemo),
    (
        Sign::Any(&["train.micro_batch_size", "train.global_batch_size", "ddp.use_distributed_optimizer"]),
        Format::Nemo,
    ),
    (
        Sign::Any(&["pipe_parallel_size", "model_parallel_size", "no_weight_tying", "gpt_j_residual"]),
        Format::GptNeox,
    ),
    (Sign::All(&["train_micro_batch_size_per_gpu", "num_layers"]), Format::GptNeox),
    (Sign::Any(&["distributed_type", "num_machines"]), Format::Accelerate),
    (
        Sign::Any(&["architectures", "model_type", "text_config.model_type", "num_hidden_layers", "n_layer"]),
        Format::HuggingFace,
    ),
    (
        Sign::Any(&[
            "zero_optimization",
            "train_micro_batch_size_per_gpu",
            "train_batch_size",
            "fp16.enabled",
            "bf16.enabled",
        ]),
        Format::DeepSpeed,
    ),
];

/// The framework of a settings file, told by its keys; none when no framework has such keys.
#[must_use]
pub fn classify(tree: &Tree) -> Option<Format> {
    if tree.documents.iter().any(|node| node.get("apiVersion").is_some() && node.get("kind").is_some()) {
        return Some(Format::Kubernetes);
    }
    let root = tree.documents.first()?;
    if let Some(framework) = Framework::of(root) {
        return Some(Format::Framework(framework));
    }
    let there = |path: &&str| root.at(path).is_some();
    let is_map = |key: &&str| root.get(key).is_some_and(|node| !node.entries().is_empty());
    for (sign, format) in SIGNS {
        let shown = match sign {
            Sign::Any(paths) => paths.iter().any(there),
            Sign::All(paths) => paths.iter().all(there),
            Sign::Maps(keys) => keys.iter().all(is_map),
        };
        if shown {
            return Some(*format);
        }
    }
    let flags = flags::count(root);
    let builds = ["extends", "includes"].iter().any(there);
    (flags >= ENOUGH_FLAGS || (flags > 0 && builds)).then_some(Format::Flags)
}

/// Reads a settings file that is no job of Kubernetes.
#[must_use]
pub fn read(format: Format, tree: &Tree) -> Reading {
    let nothing = Node::null(Span::default());
    let root = tree.documents.first().unwrap_or(&nothing);
    let mut reading = match format {
        Format::HuggingFace => huggingface::read(root),
        Format::DeepSpeed => deepspeed::read(root),
        Format::Accelerate => accelerate::read(root),
        Format::GptNeox => neox::read(root),
        Format::Nanotron => nanotron::read(root),
        Format::Nemo => nemo::read(root),
        Format::Flags => flags::read(root),
        Format::Torchtitan => titan::read(root),
        Format::Trainer(dialect) => trainer::read(dialect, root),
        Format::Framework(framework) => frameworks::read(framework, root),
        Format::Kubernetes => Reading::default(),
    };
    let own = std::mem::replace(&mut reading.diagnostics, tree.diagnostics.clone());
    reading.diagnostics.extend(own);
    reading
}

/// Files whose settings a settings file builds on, each with the place that names it.
#[must_use]
pub fn bases(tree: &Tree) -> Vec<(String, Span)> {
    tree.documents.first().map(flags::bases).unwrap_or_default()
}

/// Reads torchtitan's file together with the words of the command that takes it.
#[must_use]
pub fn read_titan(tree: &Tree, words: &[Argument]) -> Reading {
    tree.documents.first().map(|root| titan::read_both(root, words)).unwrap_or_default()
}

/// Reads the job in a text of Kubernetes; `base` is where the text starts in its source.
#[must_use]
pub fn read_job(tree: &Tree, text: &str, base: u32) -> kubernetes::Workload {
    kubernetes::read(tree, text, base)
}

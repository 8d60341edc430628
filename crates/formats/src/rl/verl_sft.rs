//! verl's supervised trainers: the one on FSDP (`verl/trainer/fsdp_sft_trainer.py`, `verl/trainer/config/sft_trainer.yaml`) and
//! the one over engines (`verl/trainer/sft_trainer.py`, `sft_trainer_ray.py`, `verl/trainer/config/sft_trainer_engine.yaml`).

use super::super::leaves::{Leaf, Leaves};
use super::common::{
    ask, defaults, gathers_layers, lack, lack_yes, loaded_adapters, lora, model, on_npu, own_code,
    reduces_in_fp32, shards, transformers,
};
use super::verl_sft_early;
use crate::{Asked, Effect, Found, NotRead, Origin, Question, Reading};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};

const VERL: &str = "verl";

/// Which of the trainers reads the keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Fsdp,
    Engines,
    Unknown,
}

impl Program {
    /// The FSDP trainer alone loads a model by `model.partial_pretrain`.
    fn named(name: &str, leaves: &Leaves<'_>) -> Self {
        match name {
            _ if leaves.has("model.partial_pretrain") => Self::Fsdp,
            "fsdp_sft_trainer" => Self::Fsdp,
            "sft_trainer" | RAY => Self::Engines,
            _ if leaves.all().iter().any(is_of_engines) => Self::Engines,
            _ => Self::Unknown,
        }
    }

    /// Its own key: that of the FSDP trainer or that of the engines.
    fn own(self, of_fsdp: &'static str, of_engines: &'static str) -> Vec<&'static str> {
        match self {
            Self::Fsdp => vec![of_fsdp],
            Self::Engines => vec![of_engines],
            Self::Unknown => vec![of_fsdp, of_engines],
        }
    }
}

/// The trainer over engines whose workers Ray starts.
const RAY: &str = "sft_trainer_ray";

/// The name of a program, which is a path or a module.
fn name_of(program: &str) -> &str {
    let stem = program.strip_suffix(".py").unwrap_or(program);
    stem.rsplit(['.', '/']).next().unwrap_or_default()
}

/// Whether a program starts its workers by Ray, on as many accelerators as its keys say.
pub(crate) fn starts_workers(program: &str) -> bool {
    program.contains("verl") && name_of(program) == RAY
}

/// Its YAML has had `model.strategy: fsdp2` since 0.4; 0.2 and 0.3 know FSDP1 only.
const ENGINE: &str = "default of verl's FSDP trainer since 0.4; FSDP1 before";
/// `model.enable_gradient_checkpointing` of its YAML.
const CHECKPOINTS: &str = "default of verl's FSDP trainer since 0.4.1; off before";

/// `program`: what the command starts; empty for a settings file, `is_file`.
pub(super) fn read(leaves: &mut Leaves<'_>, program: &str, is_file: bool) {
    let name = name_of(program);
    let kind = Program::named(name, leaves);
    if kind == Program::Engines {
        over_engines(leaves);
    }
    // The engine of `sft_trainer.py` is FSDP1 (`config/engine/fsdp.yaml`).
    if kind == Program::Fsdp {
        verl_sft_early::read(leaves, is_file);
        if !leaves.has("model.strategy") {
            leaves.state(Field::DataParallelEngine, "fsdp2", Origin::Default, ENGINE);
        }
        if !leaves.has("model.enable_gradient_checkpointing") {
            leaves.state(Field::GradientCheckpointing, "true", Origin::Default, CHECKPOINTS);
        }
    }
    padded(leaves, kind);
    transformers(leaves, VERL, "fsdp1");
    super::verl::units(leaves);
    for path in kind.own("model.strategy", "engine.strategy") {
        if let Some(leaf) = leaves.get(path).filter(|leaf| leaf.value == "fsdp2") {
            leaves.say(Field::DataParallelEngine, "fsdp2", leaf);
        }
    }
    for group in kind.own("model.fsdp_config.", "engine.") {
        gathers_layers(leaves, group);
    }
    leaves.state(Field::Bf16, "true", Origin::Default, "verl computes in bf16");
    if kind != Program::Fsdp {
        engine(leaves);
    }
    reduces_in_fp32(leaves);
    if let Some(leaf) = leaves.first(&kind.own("model.fsdp_config.model_dtype", "engine.model_dtype")) {
        leaves.say(Field::ParamsDtype, &leaf.value, leaf);
        if !matches!(leaf.value.as_str(), "fp32" | "float32") {
            leaves.say(Field::Autocast, "none", leaf);
        }
    }
    defaults(
        leaves,
        VERL,
        &[(Field::ParamsDtype, "fp32"), (Field::ZeroStage, "3"), (Field::GradientCheckpointing, "true")],
    );
    if let Some(leaf) = leaves.get("model.enable_gradient_checkpointing") {
        leaves.switch(Field::GradientCheckpointing, leaf.flag() != Some(false), leaf);
    }
    // Micro-batches of a number of tokens take up samples of up to this length.
    let packs = leaves.reading.value(Field::MaxTokensPerGpu).is_some();
    let length = if packs { Field::RolloutLength } else { Field::SeqLength };
    leaves.pass("data.micro_batch_size_per_gpu");
    if !packs {
        let told = leaves.take(&["data.micro_batch_size_per_gpu"], Field::MicroBatchSize);
        // verl 0.1 has micro-batches of all ranks instead.
        let asks = |question: &Question| question.asks == Asked::Setting(Field::MicroBatchSize);
        let over_ranks = leaves.reading.value(Field::NumMicroBatches).is_some();
        if !told && !over_ranks && !leaves.reading.questions.iter().any(asks) {
            defaults(leaves, VERL, &[(Field::MicroBatchSize, "4")]);
        }
    }
    leaves.take_all(&[
        ("data.max_length", length),
        ("data.train_batch_size", Field::GlobalBatchSize),
        ("trainer.nnodes", Field::NumNodes),
        ("trainer.n_gpus_per_node", Field::GpusPerNode),
    ]);
    if name == RAY {
        defaults(leaves, VERL, &[(Field::NumNodes, "1"), (Field::GpusPerNode, "1")]);
    }
    if kind != Program::Fsdp {
        sized_shards(leaves);
    }
    defaults(leaves, VERL, &[(length, "1024"), (Field::GlobalBatchSize, "256")]);
    let ulysses = kind.own("ulysses_sequence_parallel_size", "engine.ulysses_sequence_parallel_size");
    if let Some(leaf) = leaves.first(&ulysses).filter(|leaf| leaf.whole() != Some(1)) {
        leaves.say(Field::ContextParallelSize, &leaf.value, leaf);
        leaves.say(Field::CpCommType, "a2a", leaf);
    }
    if packs {
        cut(leaves);
    }
    if let Some(leaf) = leaves.yes("model.use_liger") {
        leaves.switch(Field::LigerKernel, true, leaf);
    }
    loaded_adapters(leaves, "model.lora_adapter_path");
    lora(leaves, "model.lora_rank", &[("model.lora_alpha", Field::LoraAlpha)], "model.target_modules");
    // `workers/config/model.py:HFModelConfig`, handed to PEFT.
    let excluded = "model.exclude_modules";
    leaves.pass(excluded);
    let adapts = leaves.reading.value(Field::TrainType) == Some("lora");
    let named = |leaf: &&Leaf| !matches!(leaf.value.as_str(), "" | "null" | "[]");
    if let Some(leaf) = leaves.get(excluded).filter(|leaf| adapts && named(leaf)) {
        lack(leaves, leaf, Effect::Model, "adapters with excluded modules");
    }
    lack_yes(
        leaves,
        &[
            (
                "model.fsdp_config.cpu_offload",
                Effect::Memory,
                "weights, gradients and optimizer states on the host (FSDP)",
            ),
            ("model.enable_activation_offload", Effect::Memory, "saved layer inputs offloaded to the host"),
        ],
    );
    super::verl_idle::own_classes(leaves);
    optimizer(leaves);
    if kind == Program::Fsdp {
        foreign(leaves);
    }
    leaves.pass_below(&[
        "data.",
        "optim.",
        "trainer.",
        "checkpoint.",
        "use_remove_padding",
        "model.use_remove_padding",
        "model.trust_remote_code",
        "model.external_lib",
        "model.use_shm",
        "model.fsdp_config.wrap_policy",
        "model.fsdp_config.offload_params",
    ]);
    on_npu(leaves);
    let model_paths = ["model.partial_pretrain", "model.path"];
    own_code(leaves, &model_paths, "model.trust_remote_code", false);
    model(leaves, &model_paths);
    ask(leaves, &[(length, "Sequence length samples are truncated to?", "1024")]);
}

/// The FSDP trainer's datasets pad samples to `data.max_length`, and it hands over the mask, except under Ulysses: padding is removed
/// there alone, whatever `use_remove_padding` says (`fsdp_sft_trainer.py:_compute_loss_and_backward`, `sft_dataset.py`).
fn padded(leaves: &mut Leaves<'_>, kind: Program) {
    let cut = leaves.get("ulysses_sequence_parallel_size").is_some_and(|leaf| leaf.whole() != Some(1));
    if kind == Program::Fsdp && !cut {
        let note = "verl's FSDP trainer pads samples to data.max_length";
        leaves.state_all(&[(Field::Packing, "false"), (Field::PaddingMask, "true")], Origin::Default, note);
    }
}

/// Whether only the trainer over engines has the option.
fn is_of_engines(leaf: &Leaf) -> bool {
    const OWN: [&str; 3] = ["data.use_dynamic_bsz", "data.max_token_len_per_gpu", "data.pad_mode"];
    leaf.path == "engine" || leaf.path.starts_with("engine.") || OWN.contains(&leaf.path.as_str())
}

/// It concatenates samples to micro-batches of `data.max_token_len_per_gpu` tokens unless `data.use_dynamic_bsz` is off, and its
/// loss is made of log-probabilities by the functions that verl's policies have, without entropies
/// (`verl/workers/engine/utils.py:prepare_micro_batches`, `verl/workers/utils/losses.py:sft_loss`).
fn over_engines(leaves: &mut Leaves<'_>) {
    let why = "verl takes log-probabilities of the logits in place, by flash-attn's kernel";
    leaves.state(Field::LossKind, "in_place_logits", Origin::Derived, why);
    if leaves.flag("data.use_dynamic_bsz") != Some(false) {
        match leaves.get("data.max_token_len_per_gpu") {
            Some(leaf) => leaves.say(Field::MaxTokensPerGpu, &leaf.value, leaf),
            None => leaves.state(Field::MaxTokensPerGpu, "8192", Origin::Default, "default of verl"),
        }
    }
    leaves.pass_below(&["data.use_dynamic_bsz", "data.max_token_len_per_gpu"]);
    let padded = leaves.get("model.use_remove_padding").filter(|leaf| leaf.flag() == Some(false));
    // `engine/fsdp/transformer_impl.py:prepare_model_inputs` asserts it.
    let mode = leaves.get("data.pad_mode").filter(|leaf| leaf.value != "no_padding");
    if let Some(leaf) = padded.or(mode) {
        lack(leaves, leaf, Effect::Memory, "padded samples under verl's supervised trainer over engines");
    }
}

/// Keys of the trainer over engines, which the FSDP trainer does not have.
fn foreign(leaves: &mut Leaves<'_>) {
    let found: Vec<&Leaf> = leaves.all().iter().filter(|leaf| is_of_engines(leaf)).collect();
    let Some(first) = found.first() else { return };
    let names: Vec<&str> = found.iter().map(|leaf| leaf.path.as_str()).collect();
    let message =
        format!("verl's FSDP trainer does not know {}, which its trainer over engines has", names.join(", "));
    leaves.reading.diagnostics.push(Diagnostic::warning(Code::KeysNotRead, message).at_some(first.span));
    for leaf in found {
        leaf.used.set(true);
        leaves.reading.not_read.push(NotRead::new(&leaf.path, leaf.span));
    }
}

/// Keys of the engine itself.
fn engine(leaves: &mut Leaves<'_>) {
    let engine = leaves.first(&["engine", "engine.strategy"]);
    if let Some(leaf) = engine.filter(|leaf| !matches!(leaf.value.as_str(), "fsdp" | "fsdp2")) {
        lack(leaves, leaf, Effect::Memory, "this engine under verl's supervised trainer");
    }
    if let Some(leaf) = leaves.get("engine.mixed_precision.reduce_dtype") {
        leaves.say(Field::ReduceDtype, &leaf.value, leaf);
    }
}

/// A sample longer than a micro-batch ends the run (`verl/utils/seqlen_balancing.py:rearrange_micro_batches` asserts it).
fn cut(leaves: &mut Leaves<'_>) {
    let ranks = leaves.reading.count(Field::ContextParallelSize).unwrap_or(1);
    let tokens = leaves.reading.count(Field::MaxTokensPerGpu).map(|tokens| tokens.saturating_mul(ranks));
    let longest = leaves.get("data.max_length").filter(|leaf| leaf.whole() > tokens);
    if let (Some(leaf), Some(tokens)) = (longest, tokens) {
        let note = "max_token_len_per_gpu x Ulysses ranks; verl stops at a longer sample";
        leaves.say_noted(Field::RolloutLength, &tokens.to_string(), leaf, note);
    }
}

/// The class is taken by its name from a module, with arguments of its own (`verl/workers/config/optimizer.py:build_optimizer`).
fn optimizer(leaves: &mut Leaves<'_>) {
    let unset = |leaf: &Leaf| matches!(leaf.value.as_str(), "" | "null" | "None" | "{}");
    for leaf in leaves.all().iter().filter(|leaf| !unset(leaf)) {
        let known: &[&str] = match leaf.path.as_str() {
            "optim.optimizer" => &["Adam", "AdamW"],
            "optim.optimizer_impl" => &["torch.optim"],
            path if path.starts_with("optim.override_optimizer_config") => &[],
            _ => continue,
        };
        if !known.contains(&leaf.value.as_str()) {
            lack(
                leaves,
                leaf,
                Effect::Memory,
                "an optimizer other than PyTorch's AdamW, or with its own arguments",
            );
        }
    }
}

/// Puts the FSDP trainer's defaults of a release that the text installs in place of today's.
pub(super) fn date(reading: &mut Reading, installed: Option<[u64; 2]>) {
    if installed.is_some_and(|release| release >= [0, 4]) {
        verl_sft_early::overruled(reading, [ENGINE, CHECKPOINTS]);
    }
    let Some(release) = installed.filter(|release| *release <= [0, 4]) else { return };
    if release < [0, 4] {
        verl_sft_early::settled(reading);
    }
    let is = |found: &Found, note: &str| found.note.as_deref() == Some(note);
    if release == [0, 4] {
        let field = Field::GradientCheckpointing;
        if reading.found.iter().any(|found| is(found, CHECKPOINTS)) {
            reading.keep(&|found| !is(found, CHECKPOINTS));
            reading.questions.push(Question {
                asks: Asked::Setting(field),
                prompt: "Are layers checkpointed? verl's FSDP trainer does so by default since 0.4.1, not in 0.4.0"
                    .to_owned(),
                choices: vec!["true".to_owned(), "false".to_owned()],
                proposal: Some("true".to_owned()),
            });
        }
        return;
    }
    for (note, value) in [(ENGINE, "fsdp1"), (CHECKPOINTS, "false")] {
        if let Some(found) = reading.found.iter_mut().find(|found| is(found, note)) {
            value.clone_into(&mut found.value);
            found.note = Some("default of verl before 0.4, which the text installs".to_owned());
        }
    }
}

/// Groups smaller than the world are replicas of each other; -1 is the world. Under torchrun
/// the launch states the machines.
fn sized_shards(leaves: &mut Leaves<'_>) {
    let path = "engine.fsdp_size";
    let Some(leaf) = leaves.get(path).filter(|leaf| leaf.whole().is_some()) else { return };
    if leaves.reading.count(Field::NumNodes).is_some() && leaves.reading.count(Field::GpusPerNode).is_some() {
        shards(leaves, path);
    } else {
        lack(leaves, leaf, Effect::Memory, "sharding within groups, replicated across them (HSDP)");
    }
}

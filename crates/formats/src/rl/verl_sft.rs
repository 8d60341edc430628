//! verl's supervised trainers: the one on FSDP (`verl/trainer/fsdp_sft_trainer.py`, `verl/trainer/config/sft_trainer.yaml`) and
//! the one over engines (`verl/trainer/sft_trainer.py`, `verl/trainer/config/sft_trainer_engine.yaml`).

use super::super::leaves::{Leaf, Leaves};
use super::common::{
    ask, defaults, gathers_layers, lack, lack_yes, loaded_adapters, lora, model, on_npu, own_code,
    reduces_in_fp32, shards, transformers,
};
use crate::{Effect, Origin};
use shardscope_plan::Field;

const VERL: &str = "verl";

/// Whether `program` is the trainer over engines.
pub(super) fn runs_engines(program: &str) -> bool {
    let stem = program.strip_suffix(".py").unwrap_or(program);
    let name = stem.rsplit(['.', '/']).next().unwrap_or_default();
    matches!(name, "sft_trainer" | "sft_trainer_ray")
}

/// `engines`: whether the command names the trainer over engines.
pub(super) fn read(leaves: &mut Leaves<'_>, engines: bool) {
    let engines = engines || leaves.all().iter().any(is_of_engines);
    if engines {
        over_engines(leaves);
    }
    // `fsdp_sft_trainer.py` alone loads a model by this key, and has had `model.strategy: fsdp2` in its YAML since 0.4 (0.2 and 0.3
    // know FSDP1 only); the engine of `sft_trainer.py` is FSDP1 (`config/engine/fsdp.yaml`).
    if leaves.has("model.partial_pretrain") && !leaves.has("model.strategy") {
        let note = "default of verl's FSDP trainer since 0.4; FSDP1 before";
        leaves.state(Field::DataParallelEngine, "fsdp2", Origin::Default, note);
    }
    padded(leaves);
    transformers(leaves, VERL, "fsdp1");
    super::verl::units(leaves);
    for path in ["model.strategy", "engine.strategy"] {
        if let Some(leaf) = leaves.get(path).filter(|leaf| leaf.value == "fsdp2") {
            leaves.say(Field::DataParallelEngine, "fsdp2", leaf);
        }
    }
    for group in ["engine.", "model.fsdp_config."] {
        gathers_layers(leaves, group);
    }
    let engine = leaves.first(&["engine", "engine.strategy"]);
    if let Some(leaf) = engine.filter(|leaf| !matches!(leaf.value.as_str(), "fsdp" | "fsdp2")) {
        lack(leaves, leaf, Effect::Memory, "this engine under verl's supervised trainer");
    }
    leaves.state(Field::Bf16, "true", Origin::Default, "verl computes in bf16");
    if let Some(leaf) = leaves.get("engine.mixed_precision.reduce_dtype") {
        leaves.say(Field::ReduceDtype, &leaf.value, leaf);
    }
    reduces_in_fp32(leaves);
    if let Some(leaf) = leaves.first(&["model.fsdp_config.model_dtype", "engine.model_dtype"]) {
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
        leaves.take(&["data.micro_batch_size_per_gpu"], Field::MicroBatchSize);
        defaults(leaves, VERL, &[(Field::MicroBatchSize, "4")]);
    }
    leaves.take_all(&[
        ("data.max_length", length),
        ("data.train_batch_size", Field::GlobalBatchSize),
        ("trainer.nnodes", Field::NumNodes),
        ("trainer.n_gpus_per_node", Field::GpusPerNode),
    ]);
    sized_shards(leaves);
    defaults(leaves, VERL, &[(length, "1024"), (Field::GlobalBatchSize, "256")]);
    let ulysses = ["ulysses_sequence_parallel_size", "engine.ulysses_sequence_parallel_size"];
    if let Some(leaf) = leaves.first(&ulysses).filter(|leaf| leaf.whole() != Some(1)) {
        leaves.say(Field::ContextParallelSize, &leaf.value, leaf);
        leaves.say(Field::CpCommType, "a2a", leaf);
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
fn padded(leaves: &mut Leaves<'_>) {
    let cut = leaves.get("ulysses_sequence_parallel_size").is_some_and(|leaf| leaf.whole() != Some(1));
    if leaves.has("model.partial_pretrain") && !cut {
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
    if let Some(leaf) = padded {
        lack(leaves, leaf, Effect::Memory, "padded samples under verl's supervised trainer over engines");
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

//! The settings of a torchtune configuration. Keys: its own files.

use crate::frameworks::row::Row;
use crate::known_model;
use crate::leaves::{Leaf, Leaves};
use crate::llama_like::LLAMA_LAYER;
use crate::named::take_model;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

/// torchtune's settings file.
pub(crate) const TORCHTUNE: Row = Row {
    trainer: "torchtune",
    title: "a configuration of torchtune",
    about: "torchtune: model by name, batch, adapters, its losses; Llama, Mistral, Qwen, Phi and Gemma up to 2",
    signs: &[&["model._component_", "tokenizer._component_"]],
    keys: &[
        (&["tokenizer.max_seq_len"], Field::SeqLength),
        (&["batch_size"], Field::MicroBatchSize),
        (&["gradient_accumulation_steps"], Field::NumMicroBatches),
        (&["model.lora_rank"], Field::LoraRank),
        (&["model.lora_alpha"], Field::LoraAlpha),
        (&["model.lora_dropout"], Field::LoraDropout),
    ],
    models: &[],
    software: Software::Torchtune06,
    lacking: None,
    extra: torchtune,
    program: None,
};

/// The number of loss chunks that is modelled, torchtune's default.
const CHUNKS: u64 = 8;

/// Families of `torchtune.models` whose layers were recorded.
const FAMILIES: [&str; 14] = [
    "gemma",
    "gemma2",
    "llama2",
    "code_llama2",
    "llama3",
    "llama3_1",
    "llama3_2",
    "llama3_3",
    "mistral",
    "qwen2",
    "qwen2_5",
    "qwen3",
    "phi3",
    "phi4",
];

/// Settings that change a figure and have no formula when they are on or name something.
const LACKING: &[(&str, Effect, &str)] = &[
    ("compile", Effect::Memory, "layers and loss fused by torch.compile, which save less for backward"),
    ("enable_fp8_training", Effect::Memory, "fp8 GEMMs (torchao.float8)"),
    ("ac_mode", Effect::Memory, "checkpointing of some layers or operations (ac_mode)"),
    ("quantizer._component_", Effect::Memory, "training with simulated quantization (QAT)"),
    ("teacher_model._component_", Effect::Memory, "the teacher's forward pass and the loss of distillation"),
    ("early_exit_loss.scale", Effect::Memory, "losses of layers before the last (early exit)"),
    ("layer_dropout.prob", Effect::Memory, "layers skipped at random (layer dropout)"),
    ("ppo_epochs", Effect::Memory, "reinforcement learning (torchtune's PPO and GRPO recipes)"),
    ("grpo_samples", Effect::Memory, "reinforcement learning (torchtune's PPO and GRPO recipes)"),
];

/// Degrees that split the run beyond FSDP.
const DEGREES: &[(&str, &str)] = &[
    ("tensor_parallel_dim", "tensor parallelism in torchtune"),
    ("context_parallel_dim", "context parallelism in torchtune"),
];

/// Groups and keys for paths, logging and the length of training.
const HARMLESS: &[&str] = &[
    "profiler.",
    "metric_logger.",
    "checkpointer.",
    "lr_scheduler.",
    "dataset.",
    "dataset_val.",
    "tokenizer.",
    "log_",
    "save_adapter_weights_only",
    "resume_from_checkpoint",
    "epochs",
    "shuffle",
    "early_exit_loss.",
    "layer_dropout.",
    "max_steps_per_epoch",
    "run_val_every_n_steps",
    "low_cpu_ram",
    "model.lora_alpha",
    "clip_grad_norm",
    // Its kernel updates in place; `stepping` handles the case in which it is not set.
    "optimizer.fused",
];

fn torchtune(leaves: &mut Leaves<'_>) {
    model(leaves);
    adapters(leaves);
    loss(leaves);
    for (path, effect, what) in LACKING {
        if let Some(leaf) = leaves.get(path).filter(|leaf| is_on(leaf)) {
            lack(leaves, leaf, *effect, what);
        }
    }
    for (path, what) in DEGREES {
        if let Some(leaf) = leaves.get(path).filter(|leaf| !matches!(leaf.value.as_str(), "1" | "-1" | "")) {
            lack(leaves, leaf, Effect::Communication, what);
        }
    }
    // `torchtune/training/_distributed.py:ParallelDims`: the remaining GPUs shard the model;
    // their number may be stated, too.
    let shards = leaves.whole("data_parallel_shard_dim");
    leaves.pass("data_parallel_shard_dim");
    match leaves.get("data_parallel_replicate_dim").filter(|leaf| leaf.whole() > Some(1)) {
        Some(leaf) if shards == Some(1) => {
            lack(leaves, leaf, Effect::Memory, "unsharded replicas in torchtune")
        }
        Some(leaf) => leaves.say(Field::NumDistributedOptimizerInstances, &leaf.value, leaf),
        None => {}
    }
    sharding(leaves);
    stepping(leaves);
    offloading(leaves);
    // `recipes/full_finetune_distributed.py`: by default the training batch size.
    if let (Some(leaf), trained) = (leaves.get("batch_size_val"), leaves.whole("batch_size"))
        && leaf.whole().is_none_or(|batch| trained.is_none_or(|trained| batch > trained))
    {
        lack(
            leaves,
            leaf,
            Effect::Memory,
            "validation in larger batches than training's: its logits may be the peak",
        );
    }
    if leaves.get("optimizer._component_").is_none() {
        let what = "a script for generation, evaluation or conversion, not for training";
        leaves.reading.not_modelled.push(NotModelled::new("optimizer", "", Effect::Model, what));
    }
    leaves.turn_on("dataset.packed", Field::Packing);
    // Weights stay gathered from a layer's forward pass to its backward pass
    // (`full_finetune_distributed.py`: `SHARD_GRAD_OP`).
    if let Some(leaf) = leaves.get("fsdp_reshard_after_forward") {
        leaves.say(Field::ZeroStage, if leaf.flag() == Some(false) { "2" } else { "3" }, leaf);
    }
    leaves.state(Field::ZeroStage, "3", Origin::Default, "torchtune's distributed recipes shard by FSDP2");
    let why = "torchtune's distributed recipes call fully_shard on every layer";
    leaves.state(Field::DataParallelEngine, "fsdp2", Origin::Default, why);
    leaves.pass_below(HARMLESS);
    if leaves.text("device") == Some("cuda") {
        leaves.pass("device");
    }
}

/// An optimizer that steps each parameter as soon as backward has its gradient
/// (`torchtune/training/memory.py:register_optim_in_bwd_hooks`), with a kernel that needs no scratch memory.
fn stepping(leaves: &mut Leaves<'_>) {
    leaves.pass("optimizer_in_bwd");
    let fused = leaves.flag("optimizer.fused") == Some(true);
    let of_torch =
        matches!(leaves.text("optimizer._component_"), Some("torch.optim.AdamW" | "torch.optim.Adam"));
    // `fused: False` also turns foreach off (`torch/optim/adam.py:adam`): tensors are then stepped one after another.
    let unsaid = leaves.flag("optimizer.fused").is_none() && !leaves.has("optimizer.foreach");
    if of_torch && unsaid && leaves.flag("optimizer_in_bwd") != Some(true) {
        let why = "torch.optim.AdamW with fused not set: its foreach implementation";
        leaves.state(Field::OptimizerForeach, "true", Origin::Derived, why);
    }
    let Some(leaf) = leaves.yes("optimizer_in_bwd") else { return };
    let kernel =
        fused || leaves.text("optimizer._component_").is_some_and(|name| name.starts_with("bitsandbytes."));
    // The recipes reject it together with accumulated gradients.
    if kernel && leaves.whole("gradient_accumulation_steps").unwrap_or(1) == 1 {
        leaves.switch(Field::StepInBackward, true, leaf);
    } else {
        let what =
            "an optimizer that steps within the backward pass, with scratch tensors or accumulated gradients";
        lack(leaves, leaf, Effect::Memory, what);
    }
}

/// Which weights FSDP2 shards apart from the layers, and where shards live
/// (`torchtune/training/_distributed.py:shard_model`, `CPUOffloadPolicy`).
fn sharding(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.yes("fsdp_cpu_offload") {
        leaves.switch(Field::OffloadParam, true, leaf);
        leaves.switch(Field::OffloadOptimizer, true, leaf);
    }
    leaves.pass("fsdp_cpu_offload");
    let Some(leaf) = leaves.get("custom_sharded_layers").filter(|leaf| is_on(leaf)) else { return };
    let named = |name: &str| leaf.value.contains(name);
    let tied =
        leaves.reading.value(Field::UntieEmbeddingsAndOutputWeights).is_some_and(|said| said == "false");
    // A tied output layer has no weight to shard (`modules/tied_linear.py:TiedLinear`).
    if named("tok_embeddings") && named("output") && !tied {
        leaves.switch(Field::FsdpEndsApart, true, leaf);
    } else {
        lack(
            leaves,
            leaf,
            Effect::Memory,
            "only the embedding or only the output layer as its own FSDP unit",
        );
    }
}

/// Offloads the saved tensors of checkpointed layers, that is, their inputs
/// (`torchtune/training/_activation_offloading.py:OffloadActivations`; `recipes/full_finetune_single_device.py` rejects
/// it without checkpointing). Without a second stream the host waits for each copy.
fn offloading(leaves: &mut Leaves<'_>) {
    leaves.pass("enable_activation_offloading");
    let Some(leaf) = leaves.yes("enable_activation_offloading") else { return };
    if leaves.flag("enable_activation_checkpointing") != Some(true) {
        lack(
            leaves,
            leaf,
            Effect::Memory,
            "activation offloading without checkpointing, which torchtune rejects",
        );
    } else if let Some(leaf) =
        leaves.get("activation_offloading_use_streams").filter(|leaf| leaf.flag() == Some(false))
    {
        lack(
            leaves,
            leaf,
            Effect::Memory,
            "activation offloading that blocks the device (no separate stream)",
        );
    } else {
        leaves.switch(Field::OffloadLayerInputs, true, leaf);
    }
}

/// Whether a leaf turns something on or names it.
fn is_on(leaf: &Leaf) -> bool {
    leaf.flag() != Some(false) && !matches!(leaf.value.as_str(), "" | "null" | "None" | "~" | "[]" | "0")
}

fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, effect: Effect, what: &str) {
    let item = NotModelled::new(&leaf.path, "", effect, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// The model, by the name of the function that builds it: `torchtune.models.llama3_1.lora_llama3_1_8b`.
fn model(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("model._component_") else { return };
    let mut path = leaf.value.rsplit('.');
    let mut name = path.next().unwrap_or(&leaf.value);
    let family = path.next().unwrap_or_default();
    if !FAMILIES.contains(&family) {
        let what = format!("what torchtune's {family} layers save for backward");
        lack(leaves, leaf, Effect::Memory, &what);
    }
    if family == "gemma2" {
        let why = "torchtune/models/gemma2/_attention.py: scores, cap and softmax one after the other";
        leaves.state(Field::AttnImplementation, "eager", Origin::Derived, why);
    }
    for (prefix, kind, decomposes) in [
        ("qlora_", "qlora", false),
        ("qdora_", "qlora", true),
        ("lora_", "lora", false),
        ("dora_", "lora", true),
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            leaves.say(Field::TrainType, kind, leaf);
            if decomposes {
                leaves.switch(Field::UseDora, true, leaf);
            }
            name = rest;
        }
    }
    let quantized = leaves.yes("model.quantize_base").or_else(|| {
        Some(leaf).filter(|leaf| leaf.value.contains(".qlora_") || leaf.value.contains(".qdora_"))
    });
    if let Some(quantized) = quantized {
        leaves.say(Field::BaseQuantization, "nf4", quantized);
        if family.starts_with("qwen") && leaves.flag("model.apply_lora_to_mlp") != Some(true) {
            let what = "Qwen's MLP in torchtune, whose weights stay in 16 bits where it is not adapted";
            lack(leaves, quantized, Effect::Memory, what);
        }
    }
    leaves.turn_on("model.use_dora", Field::UseDora);
    if name == family && matches!(family, "llama2" | "llama3") && leaves.has("model.embed_dim") {
        return built(leaves);
    }
    let dotted = dotted(family, name);
    match known_model(&dotted) {
        Some((known, settings)) => {
            let note = format!("{known}, named as {}", leaf.value);
            for (field, value) in settings {
                // transformers' Phi has fused projections; torchtune's has separate ones like Llama
                // (`models/phi3/_component_builders.py`).
                if matches!(field, Field::FusedQkv | Field::FusedGateUp) {
                    continue;
                }
                leaves.state(field, &value, Origin::Catalog, &note);
            }
        }
        None => take_model(&mut leaves.reading, &dotted, &leaf.path, leaf.span),
    }
}

/// A decoder of Llama layers whose sizes are arguments of its builder (`models/llama2/_component_builders.py:llama2`).
fn built(leaves: &mut Leaves<'_>) {
    leaves.take_all(&[
        ("model.num_layers", Field::NumLayers),
        ("model.embed_dim", Field::HiddenSize),
        ("model.num_heads", Field::NumAttentionHeads),
        ("model.intermediate_dim", Field::FfnHiddenSize),
        ("model.vocab_size", Field::VocabSize),
    ]);
    if let Some(leaf) = leaves.get("model.num_kv_heads") {
        leaves.query_groups(&leaf.value, leaf);
    }
    // `scale_hidden_dim_for_mlp`: four times the integer part of two thirds of the width,
    // rounded up to a multiple of 256.
    let width = leaves
        .whole("model.embed_dim")
        .and_then(|width| (width.checked_mul(2)? / 3).checked_mul(4)?.checked_next_multiple_of(256));
    if let Some(width) = width {
        let why = "torchtune's MLP width when intermediate_dim is not set";
        leaves.state(Field::FfnHiddenSize, &width.to_string(), Origin::Derived, why);
    }
    leaves.state_all(&LLAMA_LAYER, Origin::Derived, "torchtune's layers of Llama");
    leaves.state(Field::PadVocabSize, "false", Origin::Derived, "torchtune pads no vocabulary");
    leaves.pass_below(&["model.max_seq_len", "model.attn_dropout", "model.norm_eps", "model.rope_base"]);
}

/// A builder's name in the form of a model's name: dots in the family's version and in the billions of parameters.
fn dotted(family: &str, name: &str) -> String {
    // `models/phi3/_model_builders.py`, `models/phi4/_model_builders.py`.
    match name {
        "phi3_mini" => return "phi-3-mini-4k-instruct".to_owned(),
        "phi4_14b" => return "phi-4".to_owned(),
        _ => {}
    }
    let size = name.strip_prefix(family).unwrap_or(name);
    let size = ["_0_5b", "_1_5b", "_0_6b", "_1_7b"]
        .iter()
        .fold(size.to_owned(), |size, part| size.replace(part, &format!("_{}", part[1..].replace('_', "."))));
    // Qwen2's small models have the shapes of Qwen2.5's; Qwen3's builders are named after the
    // chat models, which have no suffix.
    let family = if family == "qwen2" && size.contains('.') { "qwen2_5" } else { family };
    let size = if family == "qwen3" { size.replace("_instruct", "").replace("_base", "") } else { size };
    format!("{}{size}", family.replace('_', "."))
}

/// Which linear layers have adapters.
fn adapters(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("model.lora_attn_modules") else {
        // The builders' argument has no default: the run would not start without it.
        if let Some(leaf) = leaves.get("model._component_").filter(|leaf| leaf.value.contains("ora_")) {
            lack(leaves, leaf, Effect::Model, "adapters of attention without lora_attn_modules");
        }
        return;
    };
    let mut names: Vec<&str> = leaf
        .value
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|name| !name.is_empty())
        .collect();
    if leaves.flag("model.apply_lora_to_mlp") == Some(true) {
        names.extend(["gate_proj", "up_proj", "down_proj"]);
    }
    if leaves.flag("model.apply_lora_to_output") == Some(true) {
        names.push("lm_head");
    }
    leaves.say(Field::LoraTargetModules, &names.join(" "), leaf);
}

/// The loss, and the version that it implies.
fn loss(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("loss._component_") else { return };
    let name = leaf.value.rsplit('.').next().unwrap_or(&leaf.value);
    match name {
        "LinearCrossEntropyLoss" => {
            let why = "LinearCrossEntropyLoss came after torchtune 0.6".to_owned();
            leaves.reading.software = Some((Software::Torchtune, why));
        }
        "CEWithChunkedOutputLoss" => {}
        "CrossEntropyLoss" => leaves.say(Field::LossKind, "torch", leaf),
        // Only with adapters: the full-weight recipe has a reference model of its own, whose logits it frees.
        "DPOLoss" if leaves.text("model._component_").is_some_and(|name| name.contains("lora_")) => {
            leaves.say(Field::TrainingObjective, "dpo", leaf);
            leaves.say(Field::LossKind, "torch", leaf);
            leaves.say(Field::PreferenceLogits, "named", leaf);
            leaves.pass_below(&["loss."]);
        }
        _ => lack(leaves, leaf, Effect::Memory, "what this loss keeps"),
    }
    if let Some(chunks) = leaves.get("loss.num_output_chunks").filter(|leaf| leaf.whole() != Some(CHUNKS)) {
        lack(leaves, chunks, Effect::Memory, "a loss with a number of chunks other than 8");
    }
}

//! OLMo's own trainer (allenai/OLMo). Keys: `olmo/config.py`.

use super::row::Row;
use crate::formats::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

/// OLMo's settings file.
pub(in crate::formats) const OLMO: Row = Row {
    trainer: "OLMo",
    title: "a configuration of OLMo",
    about: "OLMo: shape, norms, batch, loss, checkpointing, FSDP and its units",
    signs: &[&["model.d_model", "model.n_heads", "global_train_batch_size"]],
    keys: &[
        (&["model.n_layers"], Field::NumLayers),
        (&["model.d_model"], Field::HiddenSize),
        (&["model.n_heads"], Field::NumAttentionHeads),
        (&["model.vocab_size"], Field::VocabSize),
        (&["model.max_sequence_length"], Field::SeqLength),
        (&["global_train_batch_size"], Field::GlobalBatchSize),
        (&["device_train_microbatch_size"], Field::MicroBatchSize),
    ],
    models: &[],
    software: Software::Olmo,
    lacking: None,
    extra: olmo,
};

const DEFAULT: &str = "default of OLMo";

/// What `olmo/config.py` has where the file says nothing.
const DEFAULTS: &[(Field, &str)] = &[
    (Field::NumLayers, "12"),
    (Field::VocabSize, "50257"),
    (Field::SeqLength, "1024"),
    (Field::MicroBatchSize, "16"),
];

/// Switches that change a figure and have no formula, where they are on.
const LACKING: &[(&str, Effect, &str)] = &[
    ("model.alibi", Effect::Memory, "a bias on every score (ALiBi) in OLMo's layers"),
    ("model.embedding_layer_norm", Effect::Memory, "a norm behind OLMo's embedding"),
    ("model.scale_logits", Effect::Memory, "logits that OLMo scales in place"),
    ("data.generate_attention_mask", Effect::Memory, "a mask on every score, which flash-attn does not take"),
    (
        "data.generate_doc_lengths",
        Effect::Time,
        "attention that ends at the documents of a sequence, whose lengths are not known",
    ),
];

/// Numbers that change a figure and have no formula, unless they are this.
const ONLY: &[(&str, u64, Effect, &str)] = &[
    ("model.attention_dropout", 0, Effect::Memory, "dropout in OLMo's layers"),
    ("model.residual_dropout", 0, Effect::Memory, "dropout in OLMo's layers"),
    ("model.embedding_dropout", 0, Effect::Memory, "dropout in OLMo's layers"),
    ("model.block_group_size", 1, Effect::Memory, "FSDP units of several layers"),
];

/// Groups and keys that say where things lie, what is logged and how long is trained.
const HARMLESS: &[&str] = &[
    "data.",
    "evaluators",
    "model.init_",
    "model.rope_theta",
    "model.layer_norm_eps",
    "model.eos_token_id",
    "model.pad_token_id",
    "model.precision",
    "model.emb_init_std",
    "model.scale_emb_init",
    "model.alibi_bias_max",
    "optimizer.",
    "auxiliary_loss_multiplier",
    "scheduler.",
    "tokenizer.",
    "speed_monitor.",
    "wandb.",
    "fsdp.use_orig_params",
    "run_name",
    "seed",
    "epoch",
    "dry_run",
    "save_",
    "remote_save_folder",
    "sharded_checkpointer",
    "load_path",
    "restore_dataloader",
    "reset_",
    "no_pre_train_checkpoint",
    "try_load_latest_save",
    "force_save_unsharded",
    "fast_forward_batches",
    "max_duration",
    "stop_a",
    "time_limit",
    "extra_steps_after_cancel",
    "early_stopping_factor",
    "canceled_check_interval",
    "max_grad_norm",
    "eval_interval",
    "eval_subset_num_batches",
    "eval_on_load",
    "gen1_gc_interval",
    "console_log_interval",
    "hf_datasets_cache_dir",
];

fn olmo(leaves: &mut Leaves<'_>) {
    shape(leaves);
    let mut variants: Vec<&str> = Vec::with_capacity(4);
    norms(leaves, &mut variants);
    mlp(leaves, &mut variants);
    attention(leaves, &mut variants);
    if let Some(leaf) = leaves.get("model.d_model").filter(|_| !variants.is_empty()) {
        leaves.say(Field::ModuleVariants, &variants.join(" "), leaf);
    }
    engine(leaves);
    compiled(leaves, &variants);
    checkpointing(leaves);
    loss(leaves);
    rest(leaves);
    leaves.state_all(DEFAULTS, Origin::Default, DEFAULT);
    leaves.pass_below(HARMLESS);
}

/// A leaf that is not null.
fn stated<'t>(leaves: &Leaves<'t>, path: &str) -> Option<&'t Leaf> {
    leaves.get(path).filter(|leaf| !matches!(leaf.value.as_str(), "null" | "None" | "~"))
}

fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, effect: Effect, what: &str) {
    let item = NotModelled::new(&leaf.path, "", effect, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// The same of a setting that the file leaves at its default.
fn lack_default(leaves: &mut Leaves<'_>, path: &str, effect: Effect, what: &str) {
    let value = format!("{DEFAULT}, where the file says nothing else");
    leaves.reading.not_modelled.push(NotModelled::new(path, &value, effect, what));
}

/// Layers and vocabulary.
fn shape(leaves: &mut Leaves<'_>) {
    match (stated(leaves, "model.embedding_size"), leaves.get("model.vocab_size")) {
        (Some(leaf), _) => leaves.say(Field::PaddedVocabSize, &leaf.value, leaf),
        (None, Some(leaf)) if leaves.has("model.embedding_size") => {
            leaves.say(Field::PaddedVocabSize, &leaf.value, leaf);
        }
        _ => leaves.state(Field::PaddedVocabSize, "50304", Origin::Default, DEFAULT),
    }
    let tied = leaves.flag("model.weight_tying").unwrap_or(true);
    leaves.follow("model.weight_tying", Field::UntieEmbeddingsAndOutputWeights, false);
    leaves.state(
        Field::UntieEmbeddingsAndOutputWeights,
        if tied { "false" } else { "true" },
        Origin::Default,
        DEFAULT,
    );
    leaves.follow("model.include_bias", Field::AddBiasLinear, true);
    leaves.state(Field::AddBiasLinear, "true", Origin::Default, DEFAULT);
    if let Some(leaf) = leaves.get("model.block_type").filter(|leaf| leaf.value != "sequential") {
        lack(leaves, leaf, Effect::Memory, "OLMo's blocks after Llama's, whose attention keeps scores");
    }
    for (path, effect, what) in LACKING {
        if let Some(leaf) = leaves.yes(path) {
            lack(leaves, leaf, *effect, what);
        }
    }
    for (path, only, effect, what) in ONLY {
        match leaves.get(path) {
            Some(leaf) if leaf.value.parse::<f64>().ok().is_none_or(|number| number != real(*only)) => {
                lack(leaves, leaf, *effect, what);
            }
            // Dropout is on unless it is turned off.
            None if *only == 0 => lack_default(leaves, path, *effect, what),
            _ => {}
        }
    }
}

/// A small number as it is compared.
fn real(small: u64) -> f64 {
    u32::try_from(small).map_or(f64::NAN, f64::from)
}

/// Which norms there are, and which of them have weights.
fn norms(leaves: &mut Leaves<'_>, variants: &mut Vec<&str>) {
    let kind = leaves.get("model.layer_norm_type");
    let layer = kind.is_none_or(|leaf| leaf.value != "rms");
    match kind {
        Some(leaf) if matches!(leaf.value.as_str(), "rms" | "default") => {
            leaves.say(Field::Normalization, if layer { "LayerNorm" } else { "RMSNorm" }, leaf);
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "norms in 16 bits in OLMo's layers"),
        None => leaves.state(Field::Normalization, "LayerNorm", Origin::Default, DEFAULT),
    }
    leaves.turn_on("model.norm_after", Field::NormsBehind);
    let weights = leaves.flag("model.layer_norm_with_affine").unwrap_or(true);
    if !weights {
        variants.push("norms_without_weights");
    }
    let of_heads = leaves.yes("model.attention_layer_norm");
    let heads = leaves.flag("model.attention_layer_norm_with_affine").unwrap_or(true);
    if let Some(leaf) = of_heads {
        leaves.switch(Field::QkLayernorm, true, leaf);
        leaves.switch(Field::NormsOverHeads, true, leaf);
        if !heads {
            variants.push("head_norms_without_weights");
        }
    }
    // `LayerNormBase.__init__`: where nothing is said of norms they have biases where linear layers have.
    let linear = leaves.flag("model.include_bias").unwrap_or(true);
    let biases = leaves.flag("model.bias_for_layer_norm").unwrap_or(linear);
    if layer && !biases {
        variants.push("norms_without_biases");
    }
    let any = weights || (of_heads.is_some() && heads);
    if !layer && biases && any {
        let path = "model.bias_for_layer_norm";
        lack_default(leaves, path, Effect::Memory, "RMS norms with a bias");
    }
}

/// OLMo counts both halves of a gated MLP (`olmo/config.py`, ModelConfig).
fn mlp(leaves: &mut Leaves<'_>, variants: &mut Vec<&str>) {
    let kind = leaves.get("model.activation_type");
    let gated = kind.is_none_or(|leaf| leaf.value == "swiglu");
    match kind {
        Some(leaf) if !matches!(leaf.value.as_str(), "swiglu" | "gelu" | "relu") => {
            lack(leaves, leaf, Effect::Memory, "what this activation keeps");
        }
        Some(leaf) if leaf.value == "relu" => variants.push("relu"),
        _ => {}
    }
    // `mlp_ratio` counts where no width is given; its default is 4.
    let width = leaves.get("model.mlp_hidden_size").filter(|leaf| leaf.whole().is_some());
    let ratio = leaves.get("model.mlp_ratio");
    let hidden = leaves.reading.count(Field::HiddenSize);
    let of_ratio =
        hidden.zip(ratio.map_or(Some(4), Leaf::whole)).and_then(|(hidden, ratio)| hidden.checked_mul(ratio));
    let place = width.or(ratio).or_else(|| leaves.get("model.d_model"));
    if let (Some(width), Some(leaf)) = (width.and_then(Leaf::whole).or(of_ratio), place) {
        let own = if gated { width / 2 } else { width };
        let note = "OLMo counts both halves of a gated MLP";
        leaves.say_noted(Field::FfnHiddenSize, &own.to_string(), leaf, note);
    }
    if let Some(leaf) = kind.or(place) {
        leaves.switch(Field::Swiglu, gated, leaf);
        leaves.switch(Field::FusedGateUp, gated, leaf);
    }
}

fn attention(leaves: &mut Leaves<'_>, variants: &mut Vec<&str>) {
    let Some(place) = leaves.get("model.d_model") else { return };
    leaves.switch(Field::FusedQkv, true, place);
    if let Some(leaf) = leaves.yes("model.multi_query_attention") {
        leaves.query_groups("1", leaf);
    }
    if let Some(leaf) = leaves.yes("model.rope") {
        leaves.say(Field::PositionEmbeddingType, "rope", leaf);
    } else if leaves.yes("model.alibi").is_none() {
        lack_default(leaves, "model.rope", Effect::Memory, "learned positions in OLMo's model");
    }
    match leaves.get("model.rope_full_precision") {
        Some(leaf) if leaf.flag() == Some(false) => {
            lack(leaves, leaf, Effect::Memory, "a rotation in 16 bits in OLMo's layers");
        }
        _ => leaves.state(Field::Fp32Rotation, "true", Origin::Default, "OLMo rotates in fp32"),
    }
    let kernel = leaves.yes("model.flash_attention");
    if let Some(leaf) = kernel {
        leaves.say(Field::AttnImplementation, "flash_attention_2", leaf);
    } else {
        leaves.state(Field::AttnImplementation, "sdpa", Origin::Default, DEFAULT);
    }
    if stated(leaves, "model.clip_qkv").is_some() {
        variants.push("clipped_queries");
    }
    if leaves.reading.value(Field::AddBiasLinear) == Some("true")
        && leaves.flag("model.weight_tying") == Some(false)
    {
        variants.push("head_bias");
    }
}

/// What shards the model (`scripts/train.py`).
fn engine(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = stated(leaves, "distributed_strategy").filter(|leaf| leaf.value != "fsdp") {
        let what = "weights in fp32 under autocast in OLMo's layers, whose residual stream is then in fp32";
        lack(leaves, leaf, Effect::Memory, what);
        return;
    }
    let why = "OLMo's trainer shards by FSDP";
    leaves.state(Field::DataParallelEngine, "fsdp1", Origin::Default, why);
    match stated(leaves, "fsdp.sharding_strategy") {
        None => leaves.state(Field::ZeroStage, "3", Origin::Default, "FULL_SHARD, default of OLMo"),
        Some(leaf) if leaf.value == "FULL_SHARD" => leaves.say(Field::ZeroStage, "3", leaf),
        Some(leaf) if leaf.value == "SHARD_GRAD_OP" => leaves.say(Field::ZeroStage, "2", leaf),
        Some(leaf) if leaf.value.contains("HYBRID") => {
            let what = "sharding inside groups with copies between them (HSDP)";
            lack(leaves, leaf, Effect::Memory, what);
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "this way of FSDP to shard"),
    }
    match leaves.text("fsdp.wrapping_strategy") {
        Some("by_block") => {}
        Some("by_block_and_size") => {
            if let Some(leaf) = leaves.get("fsdp.wrapping_strategy") {
                leaves.switch(Field::FsdpEndsApart, true, leaf);
                if leaves.flag("model.weight_tying").unwrap_or(true) {
                    lack(leaves, leaf, Effect::Memory, "a tied embedding that is an FSDP unit of its own");
                }
            }
        }
        _ => {
            let what = "FSDP units of other parts of the model than its layers";
            match stated(leaves, "fsdp.wrapping_strategy") {
                Some(leaf) => lack(leaves, leaf, Effect::Memory, what),
                None => lack_default(leaves, "fsdp.wrapping_strategy", Effect::Memory, what),
            }
        }
    }
    match leaves.get("fsdp.precision") {
        Some(leaf) if leaf.value == "mixed" => leaves.say(Field::ReduceDtype, "fp32", leaf),
        Some(leaf) if leaf.value != "pure" => {
            lack(leaves, leaf, Effect::Memory, "weights that FSDP gathers in fp32 under autocast");
        }
        _ => {}
    }
    match stated(leaves, "precision") {
        Some(leaf) if leaf.value == "amp_bf16" => {}
        Some(leaf) if leaf.value == "amp_fp16" => {}
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "OLMo's layers under autocast in fp32"),
        None => lack_default(leaves, "precision", Effect::Memory, "a training without a precision"),
    }
}

/// Blocks that are compiled one by one (`scripts/train.py`).
fn compiled(leaves: &mut Leaves<'_>, variants: &[&str]) {
    let keys = ["compile.fullgraph", "compile.mode", "compile.backend", "compile.dynamic"];
    let Some(leaf) = leaves.first(&keys) else { return };
    for key in keys {
        leaves.pass(key);
    }
    let usual = |path, usual| stated(leaves, path).is_none_or(|leaf| leaf.value == usual);
    let on = |field| leaves.reading.value(field) == Some("true");
    // Whose weights norms have, where they stand, and whether queries and keys have some: as it was recorded.
    let first = leaves.reading.value(Field::Normalization) == Some("LayerNorm")
        && variants.contains(&"norms_without_weights")
        && !on(Field::NormsBehind)
        && !on(Field::QkLayernorm);
    let second = leaves.reading.value(Field::Normalization) == Some("RMSNorm")
        && !variants.contains(&"norms_without_weights")
        && on(Field::NormsBehind)
        && on(Field::QkLayernorm);
    let others = ["clipped_queries", "relu", "head_norms_without_weights", "head_bias"];
    let known = (first || second)
        && usual("compile.mode", "default")
        && usual("compile.backend", "inductor")
        && on(Field::Swiglu)
        && leaves.yes("model.flash_attention").is_some()
        && !on(Field::GroupQueryAttention)
        && !others.iter().any(|other| variants.contains(other));
    if known {
        leaves.switch(Field::CompiledLayers, true, leaf);
    } else {
        let what =
            "layers of this arrangement as torch.compile fuses them, which keep less for the backward pass";
        lack(leaves, leaf, Effect::Memory, what);
    }
}

/// Layers that are checkpointed (`olmo/model.py:should_checkpoint_block`).
fn checkpointing(leaves: &mut Leaves<'_>) {
    let Some(leaf) = stated(leaves, "activation_checkpointing") else { return };
    let (method, layers) = match leaf.value.as_str() {
        _ if leaf.flag() == Some(false) => return,
        _ if leaf.flag() == Some(true) => ("uniform", "1"),
        "whole_layer" => ("uniform", "1"),
        "one_in_two" => ("every", "2"),
        "one_in_three" => ("every", "3"),
        "one_in_four" => ("every", "4"),
        "one_in_eight" => ("every", "8"),
        "two_in_three" => ("all_but_every", "3"),
        "three_in_four" => ("all_but_every", "4"),
        _ => return lack(leaves, leaf, Effect::Memory, "checkpointing of parts of OLMo's layers"),
    };
    leaves.say(Field::RecomputeGranularity, "full", leaf);
    leaves.say(Field::RecomputeMethod, method, leaf);
    leaves.say(Field::RecomputeNumLayers, layers, leaf);
}

fn loss(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.yes("fused_loss") {
        leaves.say(Field::LossKind, "fused_logits", leaf);
    } else if let Some(leaf) = leaves.yes("softmax_auxiliary_loss") {
        lack(
            leaves,
            leaf,
            Effect::Memory,
            "an auxiliary loss of the logits that is not fused with the other",
        );
    }
    leaves.pass("softmax_auxiliary_loss");
}

fn rest(leaves: &mut Leaves<'_>) {
    match leaves.text("optimizer.name") {
        Some("adamw") => {}
        Some("lionw" | "decoupled_lionw") => {
            leaves.reading.found.retain(|found| found.field != Field::Optimizer);
            if let Some(leaf) = leaves.get("optimizer.name") {
                leaves.say(Field::Optimizer, "lion", leaf);
            }
        }
        Some(_) => {}
        None => leaves.state(Field::Optimizer, "lion", Origin::Default, DEFAULT),
    }
    evaluation(leaves);
    // `2e12T` is a number of tokens, `1ep` of epochs, and a plain number one of steps.
    if let Some(leaf) = stated(leaves, "max_duration") {
        match leaf.value.strip_suffix('T').and_then(tokens) {
            Some(tokens) => leaves.say(Field::TokenBudget, &tokens.to_string(), leaf),
            None if leaf.whole().is_some() => leaves.say(Field::TrainIters, &leaf.value, leaf),
            None => {}
        }
    }
    leaves.state(Field::CreateAttentionMaskInDataloader, "false", Origin::Default, DEFAULT);
}

/// A whole number of tokens, as Python reads it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn tokens(text: &str) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    (number >= 1.0 && number <= 1e18).then_some(number as u64)
}

/// Sequences of an evaluation's batch unless the file says otherwise (`device_eval_batch_size`).
const USUAL_EVALUATION: u64 = 16;

/// Evaluations between steps: their batches are 16 sequences unless they are told otherwise.
fn evaluation(leaves: &mut Leaves<'_>) {
    if !leaves.all().iter().any(|leaf| leaf.path.starts_with("evaluators")) {
        return leaves.pass("device_eval_batch_size");
    }
    let trained = leaves.reading.count(Field::MicroBatchSize).unwrap_or(16);
    match leaves.get("device_eval_batch_size") {
        // What a configuration refers to by name is the size of training's batches in all of OLMo's.
        Some(leaf) if leaf.value.contains("device_train_microbatch_size") => {}
        // Without a backward pass no smaller batch holds more than training does.
        Some(leaf) if leaf.whole().is_some_and(|batch| batch <= trained) => {}
        Some(leaf) => leaves.say(Field::EvaluationBatchSize, &leaf.value, leaf),
        None if trained < USUAL_EVALUATION => {
            leaves.state(Field::EvaluationBatchSize, "16", Origin::Default, DEFAULT);
        }
        None => {}
    }
}

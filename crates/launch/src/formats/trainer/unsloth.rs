//! Programs around unsloth's `FastLanguageModel`, `FastModel` and `FastVisionModel` (`unsloth/models/loader.py`, `llama.py`, `vision.py`):
//! what it chooses, what it overrules of the trainer's arguments, and what of it has no figures.

use super::dialect::Dialect;
use super::{authors, checkpoint, unsloth_preferences, unsloth_rollouts};
use crate::formats::leaves::{Leaf, Leaves};
use crate::formats::names;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// Below so many tokens it recomputes without sending anything to the host (`_utils.py:apply_unsloth_gradient_checkpointing`).
const LEAST_SENT_TOKENS: u64 = 512;

/// Arguments that lead to modules that torch.compile fuses, to other formats of weights or to an engine for rollouts.
const LACKING: [(&str, Effect, &str); 10] = [
    ("full_finetuning", Effect::Memory, "full fine-tuning, for which unsloth compiles transformers' modules"),
    ("load_in_8bit", Effect::Memory, "8-bit weights, for which unsloth compiles transformers' modules"),
    ("load_in_fp8", Effect::Memory, "weights in fp8 under unsloth"),
    ("qat_scheme", Effect::Memory, "quantization-aware training (torchao)"),
    ("fast_inference", Effect::Memory, "a vLLM engine that shares the model's weights"),
    ("unsloth_tiled_mlp", Effect::Memory, "a tiled MLP"),
    ("offload_embedding", Effect::Memory, "an embedding on the host"),
    ("unsloth_force_compile", Effect::Memory, "modules of custom model code as unsloth compiles them"),
    ("finetune_last_n_layers", Effect::Model, "adapters on only some layers"),
    ("layers_to_transform", Effect::Model, "adapters on only some layers"),
];

/// Arguments that change no figure.
const IDLE: [&str; 16] = [
    "fix_tokenizer",
    "use_exact_model_name",
    "random_state",
    "load_in_16bit",
    "loftq_config",
    "bias",
    "use_rslora",
    "token",
    "max_lora_rank",
    "disable_log_stats",
    "temporary_location",
    "float8_kv_cache",
    "float32_mixed_precision",
    "gpu_memory_utilization",
    "whisper_language",
    "whisper_task",
];

/// Beginnings of names of models that unsloth hands to modules it compiles, or that it writes in a way of their own.
const OTHERS: [&str; 23] = [
    "gemma",
    "phi",
    "gpt-oss",
    "granite",
    "c4ai",
    "aya",
    "falcon",
    "olmo",
    "glm",
    "lfm2",
    "smollm3",
    "apertus",
    "reka",
    "nemotron",
    "ernie",
    "internlm",
    "exaone",
    "mixtral",
    "starcoder",
    "bloom",
    "gpt2",
    "ministral-3",
    "llama-4",
];

/// Modules that may train in full beside adapters.
const SAVED: [&str; 2] = ["embed_tokens", "lm_head"];

/// Beginnings of names of Gemma's first models, whose layers differ from Llama's by kernels alone (`models/gemma.py`).
const FIRST_GEMMA: [&str; 4] = ["gemma-2b", "gemma-7b", "gemma-1.1-", "codegemma-"];

/// Beginnings of names of Gemma 2, whose scores are capped in a region that torch.compile compiles (`models/gemma2.py`).
const SECOND_GEMMA: &str = "gemma-2-";

/// Names of Phi that unsloth has as a Llama or a Mistral, with a projection each for queries, keys, values, gate and up: what its
/// notebooks print of them ("Fast Llama patching", "Fast Mistral patching", layers of QKV, and 29,884,416 or 65,536,000 trainable
/// parameters; unslothai/notebooks@bdda2efc7ad5, `nb/Phi_3.5_Mini-Conversational.ipynb`, `Phi_3_Medium-`, `Phi_4-Conversational.ipynb`).
const UNFUSED_PHI: [&str; 3] = ["phi-3.5-mini-instruct", "phi-3-medium-4k-instruct", "phi-4"];

/// What says that a program loads its model by `FastModel` or `FastVisionModel`, which compile transformers' modules.
pub(super) const COMPILED: &str = "unsloth_fast_model";

/// Whether the program loads its model so.
pub(super) fn is_compiled(leaves: &Leaves<'_>) -> bool {
    leaves.has(COMPILED)
}

pub(super) fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, effect: Effect, what: &str) {
    let item = NotModelled::new(&leaf.path, &leaf.value, effect, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// Before adapters are read.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    // With GRPO its engine is read where the rollouts are (`unsloth_rollouts.rs`).
    let policy = leaves.get("rl").is_some_and(|leaf| leaf.value == "grpo");
    leaves.pass(unsloth_rollouts::STANDBY);
    for (path, effect, what) in LACKING {
        if policy && path == "fast_inference" {
            leaves.pass(path);
        } else if let Some(leaf) = leaves.get(path).filter(|leaf| leaf.flag() != Some(false)) {
            lack(leaves, leaf, effect, what);
        }
    }
    for path in IDLE {
        leaves.pass(path);
    }
    leaves.pass(COMPILED);
    let whose = "default of unsloth";
    if leaves.reading.value(Field::Fp16).is_none() {
        let why = "unsloth runs in bf16 wherever the accelerator has it";
        leaves.state(Field::Bf16, "true", Origin::Default, why);
        leaves.state(Field::ParamsDtype, "bf16", Origin::Default, why);
    }
    let other = ["load_in_8bit", "load_in_fp8", "load_in_16bit", "full_finetuning"]
        .iter()
        .any(|path| leaves.yes(path).is_some());
    if !leaves.has("load_in_4bit") && !other {
        leaves.state(Field::BaseQuantization, "nf4", Origin::Default, whose);
    }
    leaves.state(
        Field::DoubleQuantization,
        "true",
        Origin::Derived,
        "unsloth/models/llama.py: BitsAndBytesConfig",
    );
    let why = "unsloth trains on one GPU unless it is launched on more";
    leaves.state(Field::WorldSize, "1", Origin::Default, why);
    length(leaves);
    checkpointing(leaves);
    model(leaves);
}

/// Whether a trainer that is none of unsloth's runs unsloth's model all the same (`use_unsloth`), and what comes of it. Known of
/// LLaMA-Factory (`model/model_utils/unsloth.py`) and of Firefly (`train.py:load_unsloth_model`).
pub(super) fn under(leaves: &mut Leaves<'_>, dialect: Dialect) -> bool {
    /// What of these trainers is not known to go with it.
    const BESIDE: [(&str, &str); 7] = [
        ("deepspeed", "unsloth's model under DeepSpeed"),
        ("fsdp", "unsloth's model under FSDP"),
        ("enable_liger_kernel", "Liger's kernels together with unsloth's"),
        ("neat_packing", "packing without cross-sample attention in unsloth's model"),
        ("shift_attn", "shifted attention in unsloth's model"),
        ("resize_vocab", "an embedding and output layer trained in fp32 under unsloth"),
        ("adapter_name_or_path", "adapters loaded from a checkpoint"),
    ];
    leaves.pass("use_unsloth");
    let Some(leaf) = leaves.yes("use_unsloth") else { return false };
    let firefly = authors::is_firefly(leaves);
    if dialect != Dialect::LlamaFactory && !firefly {
        lack(leaves, leaf, Effect::Memory, "unsloth under this program");
        return false;
    }
    for (path, what) in BESIDE {
        if let Some(leaf) =
            leaves.get(path).filter(|leaf| leaf.flag() != Some(false) && !leaf.value.is_empty())
        {
            lack(leaves, leaf, Effect::Memory, what);
        }
    }
    // Its loader is told of 4 bits alone and would take the weights in 16.
    if let Some(leaf) = leaves.get("quantization_bit").filter(|leaf| leaf.whole() != Some(4)) {
        lack(leaves, leaf, Effect::Memory, "weights in 8 bits under unsloth");
    }
    let chosen = [Field::AttnImplementation, Field::PaddingMask, Field::InputRequireGrads];
    leaves.reading.keep(&|found| !chosen.contains(&found.field));
    if firefly {
        let overruled = [Field::GradientCheckpointing, Field::OffloadLayerInputs];
        leaves.reading.keep(&|found| !overruled.contains(&found.field));
        let rule = "train.py:load_unsloth_model";
        leaves.state(Field::GradientCheckpointing, "true", Origin::Derived, rule);
    } else {
        checkpointing(leaves);
    }
    model(leaves);
    true
}

/// How its models run, whatever trains them.
fn model(leaves: &mut Leaves<'_>) {
    let rule = "unsloth";
    leaves.state_all(
        &[
            (Field::InputRequireGrads, "true"),
            (Field::UpcastNonQuantized, "false"),
            (Field::UseCache, "false"),
        ],
        Origin::Derived,
        rule,
    );
    let why = "unsloth's models take no padding mask in training";
    leaves.state(Field::PaddingMask, "false", Origin::Derived, why);
    let why = "xFormers, which unsloth installs and which runs flash attention";
    leaves.state(Field::AttnImplementation, "flash_attention_2", Origin::Default, why);
    saved_modules(leaves);
}

/// The model's length is the trainer's, which is cut to it (`unsloth/models/rl.py`).
fn length(leaves: &mut Leaves<'_>) {
    let first = leaves.all().iter().find(|leaf| leaf.path == "max_seq_length" && leaf.whole().is_some());
    leaves.reading.found.retain(|found| found.field != Field::SeqLength);
    match first {
        Some(leaf) => leaves.say(Field::SeqLength, &leaf.value, leaf),
        None => leaves.state(
            Field::SeqLength,
            "2048",
            Origin::Default,
            "default of FastLanguageModel.from_pretrained",
        ),
    }
}

/// What `get_peft_model` is told, whatever the trainer's `gradient_checkpointing` says.
fn checkpointing(leaves: &mut Leaves<'_>) {
    let told =
        leaves.all().iter().rfind(|leaf| leaf.path == "use_gradient_checkpointing" && !leaf.value.is_empty());
    leaves.pass("use_gradient_checkpointing");
    let overruled = [Field::GradientCheckpointing, Field::OffloadLayerInputs];
    leaves.reading.found.retain(|found| !overruled.contains(&found.field));
    let short = leaves.reading.count(Field::SeqLength).is_some_and(|tokens| tokens < LEAST_SENT_TOKENS);
    let sends = told.is_none_or(|leaf| leaf.value == "unsloth") && !short;
    match told {
        Some(leaf) => {
            leaves.switch(Field::GradientCheckpointing, leaf.flag() != Some(false), leaf);
            leaves.switch(Field::OffloadLayerInputs, sends, leaf);
        }
        None => {
            let rule = "default of get_peft_model";
            leaves.state(Field::GradientCheckpointing, "true", Origin::Default, rule);
            leaves.state(
                Field::OffloadLayerInputs,
                if sends { "true" } else { "false" },
                Origin::Default,
                rule,
            );
        }
    }
}

/// Modules that train in full as copies, which unsloth leaves in bf16, with the frozen originals on the disk
/// (`models/llama.py:get_peft_model`, `_offload_frozen_module_for_training`). fp16 becomes fp32, and without its own checkpointing the originals
/// stay.
fn saved_modules(leaves: &mut Leaves<'_>) {
    let paths = ["modules_to_save", "target_modules", "additional_target", "lora_target"];
    let path = paths
        .into_iter()
        .find(|path| leaves.get(path).is_some_and(|leaf| SAVED.iter().any(|name| leaf.value.contains(name))));
    let Some(leaf) = path.and_then(|path| leaves.get(path)) else { return };
    let own =
        matches!(leaf.path.as_str(), "modules_to_save" | "target_modules") && !leaves.has("use_unsloth");
    let sent = leaves.text("use_gradient_checkpointing").is_none_or(|said| said == "unsloth");
    let half = leaves.flag("fp16") != Some(true) && leaves.text("dtype").is_none_or(|said| said != "float16");
    if own && sent && half {
        leaves.reading.keep(&|found| found.field != Field::ModulesToSave);
        let names = SAVED.into_iter().filter(|name| leaf.value.contains(name)).collect::<Vec<_>>().join(" ");
        leaves.say(Field::ModulesToSave, &names, leaf);
    } else {
        let what = "an embedding and output layer trained in fp32, or beside frozen copies, under unsloth";
        lack(leaves, leaf, Effect::Memory, what);
    }
}

/// Takes modules that train in full out of the adapters' targets, once these are read.
fn without_saved(leaves: &mut Leaves<'_>) {
    if leaves.reading.value(Field::ModulesToSave).is_none() {
        return;
    }
    for found in leaves.reading.found.iter_mut().filter(|found| found.field == Field::LoraTargetModules) {
        let words = found.value.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        let kept: Vec<&str> = words.filter(|word| !word.is_empty() && !SAVED.contains(word)).collect();
        found.value = kept.join(" ");
    }
    let known = leaves.reading.value(Field::HiddenSize).is_some();
    if known && leaves.reading.value(Field::UntieEmbeddingsAndOutputWeights) != Some("true") {
        let what = "copies of tied weights that train under unsloth";
        leaves.reading.not_modelled.push(NotModelled::new("modules_to_save", "", Effect::Memory, what));
    }
}

/// Who names the model, and the last part of its name in lower case.
pub(super) fn named<'t>(leaves: &Leaves<'t>) -> (Option<&'t Leaf>, String) {
    let leaf = leaves.first(&["model_name_or_path", "model_name"]);
    let lower = leaf.map(|leaf| leaf.value.trim_end_matches('/').to_ascii_lowercase()).unwrap_or_default();
    let last = lower.rsplit('/').next().unwrap_or(&lower).to_owned();
    (leaf, last)
}

/// Once the model is known.
pub(super) fn with_model(leaves: &mut Leaves<'_>) {
    without_saved(leaves);
    let whole = matches!(leaves.reading.value(Field::TrainType), Some("full" | "freeze"));
    if whole && !leaves.has("full_finetuning") {
        let what = "full fine-tuning, for which unsloth compiles transformers' modules";
        leaves.reading.not_modelled.push(NotModelled::new("get_peft_model", "", Effect::Memory, what));
    }
    let (leaf, last) = named(leaves);
    let lower = leaf.map(|leaf| leaf.value.to_ascii_lowercase()).unwrap_or_default();
    let last = last.as_str();
    let compiled = is_compiled(leaves);
    let gemma = FIRST_GEMMA.iter().any(|start| last.starts_with(start));
    let second = last.starts_with(SECOND_GEMMA) && !compiled;
    if second {
        capped_scores(leaves);
    }
    for field in [
        Field::NumExperts,
        Field::MultiLatentAttention,
        Field::LinearMixer,
        Field::PostNorms,
        Field::Fp32Norms,
        Field::ModuleVariants,
    ] {
        let is_known =
            compiled || (gemma || second) && field == Field::Fp32Norms || second && field == Field::PostNorms;
        if !is_known && leaves.reading.value(field).is_some_and(|said| said != "false") {
            let what = "layers of this model as unsloth runs them";
            leaves.reading.not_modelled.push(NotModelled::new(field.name(), "", Effect::Memory, what));
        }
    }
    // Log-probabilities of packed rows run its own layers, which modules that it compiles have not.
    let policy = leaves.reading.value(Field::RlFramework) == Some("unsloth");
    let compares = leaves.reading.value(Field::TrainingObjective).is_some_and(|said| said != "next_token");
    if compares && (!policy || compiled) {
        unsloth_preferences::with_model(leaves, compiled);
    }
    let Some(leaf) = leaf else { return };
    let base = last.strip_suffix("-bnb-4bit").unwrap_or(last);
    let unfused = lower.starts_with("unsloth/") && UNFUSED_PHI.contains(&base);
    if unfused {
        let fused = [Field::FusedQkv, Field::FusedGateUp];
        leaves.reading.keep(&|found| !fused.contains(&found.field));
    }
    if !(unfused || gemma || second || compiled) && OTHERS.iter().any(|start| last.starts_with(start)) {
        lack(leaves, leaf, Effect::Memory, "layers of this model as unsloth runs them");
    }
    let dynamic = names::words("unsloth").any(|name| match name.strip_suffix('*') {
        Some(start) => base.starts_with(start),
        None => base == name,
    });
    let four = leaves.reading.value(Field::BaseQuantization) == Some("nf4");
    let exact = leaves.yes("use_exact_model_name").is_some();
    if dynamic && four && !exact && !base.ends_with("-unsloth") {
        // The names it maps have the end of the one they are mapped to (`unsloth/models/mapper.py`).
        let name = leaf.value.trim_end_matches('/');
        let last = name.rsplit('/').next().unwrap_or(name);
        let last = last.get(..base.len()).unwrap_or(last);
        checkpoint::ask_for_whole(leaves, leaf, &format!("unsloth/{last}-unsloth-bnb-4bit"));
    }
}

/// Gemma 2's attention, unless flash-attn is installed, which caps scores since 2.6.3.
fn capped_scores(leaves: &mut Leaves<'_>) {
    let of_others = [Field::AttnImplementation, Field::AttentionKernel];
    let stated = leaves.reading.found.iter().any(|found| {
        of_others.contains(&found.field) && found.origin == Origin::Script && found.value.contains("flash")
    });
    if stated {
        return;
    }
    leaves.reading.keep(&|found| !of_others.contains(&found.field));
    let why = "unsloth compiles Gemma 2's capped attention where flash-attn 2.6.3 or later is not installed";
    leaves.state(Field::AttnImplementation, "eager", Origin::Default, why);
}

impl Dialect {
    /// Whether unsloth's `FastLanguageModel` is around the trainer.
    pub(super) const fn is_unsloth(self) -> bool {
        matches!(self, Self::Unsloth | Self::UnslothArguments)
    }
}

//! Programs around unsloth's `FastLanguageModel`, `FastModel` and `FastVisionModel`
//! (`unsloth/models/loader.py`, `llama.py`, `vision.py`): its choices, the trainer arguments that it overrides,
//! and the features that are not modelled.

use super::dialect::Dialect;
use super::{authors, checkpoint, unsloth_full, unsloth_preferences, unsloth_rollouts};
use crate::leaves::{Leaf, Leaves};
use crate::names;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// Below this number of tokens it recomputes without offloading (`_utils.py:apply_unsloth_gradient_checkpointing`).
const LEAST_SENT_TOKENS: u64 = 512;

/// Arguments that lead to modules fused by torch.compile, to other weight formats or to a rollout engine.
const LACKING: [(&str, Effect, &str); 11] = [
    (unsloth_rollouts::LOGITS, Effect::Memory, "all logits in place of unsloth's fused loss"),
    (unsloth_full::PROCESSES, Effect::Memory, "several GPUs by unsloth_multigpu, in processes of its own"),
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

/// Prefixes of names of models that unsloth passes to modules it compiles, or implements separately.
const OTHERS: &str = "gemma phi gpt-oss granite c4ai aya falcon olmo glm lfm2 smollm3 apertus reka nemotron \
    ernie internlm exaone mixtral starcoder bloom gpt2 ministral-3 llama-4";

/// Prefixes of names of models whose layers are gated convolutions and attention, and of
/// models that prefer flex attention.
pub(super) const LIQUID: &str = "lfm2";
pub(super) const GEMMA: &str = "gemma-3-";

/// Models for which `FastLanguageModel` has no functions and which it passes to `FastModel`'s code
/// (`models/loader.py`); their layers were recorded as compiled by unsloth
/// (`tests/data/activations/unsloth_compiled.jsonl`).
pub(super) const RECORDED: [&str; 5] = [GEMMA, "qwen2-vl-", "qwen2.5-vl-", "qwen3-vl-", LIQUID];

/// Modules that may train in full in addition to adapters.
const SAVED: [&str; 2] = ["embed_tokens", "lm_head"];

/// Prefixes of names of the first Gemma models, whose layers differ from Llama's only in kernels (`models/gemma.py`).
const FIRST_GEMMA: [&str; 4] = ["gemma-2b", "gemma-7b", "gemma-1.1-", "codegemma-"];

/// Prefix of names of Gemma 2, whose attention scores are capped in a region compiled by
/// torch.compile (`models/gemma2.py`).
const SECOND_GEMMA: &str = "gemma-2-";

/// Names of Phi models that unsloth implements as Llama or Mistral, with separate projections for queries, keys,
/// values, gate and up, as its notebooks print ("Fast Llama patching", "Fast Mistral patching", layers of QKV, and
/// 29,884,416 or 65,536,000 trainable parameters; unslothai/notebooks@bdda2efc7ad5,
/// `nb/Phi_3.5_Mini-Conversational.ipynb`, `Phi_3_Medium-`, `Phi_4-Conversational.ipynb`).
const UNFUSED_PHI: [&str; 3] = ["phi-3.5-mini-instruct", "phi-3-medium-4k-instruct", "phi-4"];

/// The key for a program that loads its model with `FastModel` or `FastVisionModel`, which
/// compile transformers' modules.
pub(super) const COMPILED: &str = "unsloth_fast_model";

/// The key for what a program around unsloth mentions: images or videos, or only text.
pub(super) const SHOWN: &str = "unsloth_shown";
pub(super) const TEXT: &str = "text";

/// Whether the program loads its model in this way.
pub(super) fn is_compiled(leaves: &Leaves<'_>) -> bool {
    let whole = unsloth_full::switch(leaves).is_some();
    let name = named(leaves).1;
    let handed_on = !leaves.has("use_unsloth") && RECORDED.iter().any(|start| name.starts_with(start));
    whole || leaves.has(COMPILED) || handed_on
}

/// Whether a model of that name is not implemented like Llama.
pub(super) fn is_other(name: &str) -> bool {
    OTHERS.split_ascii_whitespace().any(|start| name.starts_with(start))
}

/// Whether a format of weights is fp16, as a program writes it.
fn is_half(dtype: &str) -> bool {
    matches!(dtype.rsplit('.').next(), Some("float16" | "half" | "fp16"))
}

/// Runs before adapters are read.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    // With GRPO its engine is read together with the rollouts (`unsloth_rollouts.rs`).
    let policy = leaves.get("rl").is_some_and(|leaf| leaf.value == "grpo");
    let whole = unsloth_full::switch(leaves).is_some();
    leaves.pass(unsloth_rollouts::STANDBY);
    for (path, effect, what) in LACKING {
        // All weights train unquantized, whatever the setting for 8 bits.
        if policy && path == "fast_inference" || whole && path == "load_in_8bit" {
            leaves.pass(path);
        } else if let Some(leaf) = leaves.get(path).filter(|leaf| leaf.flag() != Some(false)) {
            leaves.lack(leaf, effect, what);
        }
    }
    for path in IDLE {
        leaves.pass(path);
    }
    leaves.pass(COMPILED);
    leaves.pass(SHOWN);
    unsloth_full::without_adapters(leaves);
    // Querying the accelerator gives the same result as unsloth's own choice.
    if leaves.text("bf16") == Some("auto") {
        leaves.reading.keep(&|found| found.field != Field::Bf16);
    }
    let whose = "default of unsloth";
    let half = ["dtype", "torch_dtype"].iter().filter_map(|path| leaves.text(path)).any(is_half);
    let stated = |field| leaves.reading.value(field).is_some();
    if half && !stated(Field::Fp16) && !stated(Field::Bf16) {
        // `unsloth/models/rl.py`: "Model is in float16 precision but you want to use bfloat16 precision".
        leaves.state(Field::Fp16, "true", Origin::Derived, "unsloth refuses bf16 over weights in fp16");
    } else if leaves.reading.value(Field::Fp16).is_none() {
        let why = "unsloth runs in bf16 wherever the accelerator has it";
        leaves.state(Field::Bf16, "true", Origin::Default, why);
        leaves.state(Field::ParamsDtype, "bf16", Origin::Default, why);
    }
    let other =
        ["load_in_8bit", "load_in_fp8", "load_in_16bit"].iter().any(|path| leaves.yes(path).is_some());
    match leaves.get("load_in_4bit") {
        None if !other && !whole => leaves.state(Field::BaseQuantization, "nf4", Origin::Default, whose),
        Some(leaf) if leaf.hole.is_some() && !other && !whole => {
            unsloth_full::ask_for_bits(leaves, leaf);
        }
        _ => {}
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

/// Whether a trainer other than unsloth's runs unsloth's model (`use_unsloth`), and the consequences. Known for
/// LLaMA-Factory (`model/model_utils/unsloth.py`) and Firefly (`train.py:load_unsloth_model`).
pub(super) fn under(leaves: &mut Leaves<'_>, dialect: Dialect) -> bool {
    /// Settings of these trainers whose combination with it is not known.
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
        leaves.lack(leaf, Effect::Memory, "unsloth under this program");
        return false;
    }
    for (path, what) in BESIDE {
        if let Some(leaf) =
            leaves.get(path).filter(|leaf| leaf.flag() != Some(false) && !leaf.value.is_empty())
        {
            leaves.lack(leaf, Effect::Memory, what);
        }
    }
    // Its loader only handles 4 bits and would load these weights in 16.
    if let Some(leaf) = leaves.get("quantization_bit").filter(|leaf| leaf.whole() != Some(4)) {
        leaves.lack(leaf, Effect::Memory, "weights in 8 bits under unsloth");
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

/// The model's length is the trainer's, which is capped to it (`unsloth/models/rl.py`).
fn length(leaves: &mut Leaves<'_>) {
    let stated = |leaf: &&Leaf| leaf.hole.is_some() || leaf.whole().is_some();
    let first = leaves.all().iter().filter(stated).find(|leaf| leaf.path == "max_seq_length");
    leaves.reading.found.retain(|found| found.field != Field::SeqLength);
    let rule = "default of FastLanguageModel.from_pretrained";
    match first {
        Some(leaf) => leaves.say(Field::SeqLength, &leaf.value, leaf),
        None => leaves.state(Field::SeqLength, "2048", Origin::Default, rule),
    }
}

/// The argument of `get_peft_model`, regardless of the trainer's `gradient_checkpointing`.
fn checkpointing(leaves: &mut Leaves<'_>) {
    let stated =
        leaves.all().iter().rfind(|leaf| leaf.path == "use_gradient_checkpointing" && !leaf.value.is_empty());
    leaves.pass("use_gradient_checkpointing");
    let overruled = [Field::GradientCheckpointing, Field::OffloadLayerInputs];
    leaves.reading.found.retain(|found| !overruled.contains(&found.field));
    let short = leaves.reading.count(Field::SeqLength).is_some_and(|tokens| tokens < LEAST_SENT_TOKENS);
    let sends = stated.is_none_or(|leaf| leaf.value == "unsloth") && !short;
    match stated {
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

/// Modules that train in full as copies, which unsloth leaves in bf16, with the frozen originals on disk
/// (`models/llama.py:get_peft_model`, `_offload_frozen_module_for_training`). fp16 becomes fp32, and without its own
/// checkpointing the originals stay in memory.
fn saved_modules(leaves: &mut Leaves<'_>) {
    let paths = ["modules_to_save", "target_modules", "additional_target", "lora_target"];
    let path = paths
        .into_iter()
        .find(|path| leaves.get(path).is_some_and(|leaf| SAVED.iter().any(|name| leaf.value.contains(name))));
    let Some(leaf) = path.and_then(|path| leaves.get(path)) else { return };
    if unsloth_full::switch(leaves).is_some() {
        return;
    }
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
        leaves.lack(leaf, Effect::Memory, what);
    }
}

/// Removes modules that train in full from the adapters' targets, once these are read.
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

/// The leaf that names the model, and the last part of its name in lower case.
pub(super) fn named<'t>(leaves: &Leaves<'t>) -> (Option<&'t Leaf>, String) {
    let leaf = leaves.first(&["model_name_or_path", "model_name"]);
    let lower = leaf.map(|leaf| leaf.value.trim_end_matches('/').to_ascii_lowercase()).unwrap_or_default();
    let last = lower.rsplit('/').next().unwrap_or(&lower).to_owned();
    (leaf, last)
}

/// Runs once the model is known.
pub(super) fn with_model(leaves: &mut Leaves<'_>) {
    without_saved(leaves);
    let whole = matches!(leaves.reading.value(Field::TrainType), Some("full" | "freeze"));
    unsloth_full::with_model(leaves, whole);
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
    // Log-probabilities of packed rows run unsloth's own layers, which the modules that it compiles do not have.
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
    if !(unfused || gemma || second || compiled) && is_other(last) {
        leaves.lack(leaf, Effect::Memory, "layers of this model as unsloth runs them");
    }
    let dynamic = names::words("unsloth").any(|name| match name.strip_suffix('*') {
        Some(start) => base.starts_with(start),
        None => base == name,
    });
    let four = leaves.reading.value(Field::BaseQuantization) == Some("nf4");
    let exact = leaves.yes("use_exact_model_name").is_some();
    if let Some(open) = leaves.get("load_in_4bit").filter(|open| dynamic && open.hole.is_some()) {
        // In 4 bits it would load another checkpoint.
        leaves.lack(open, Effect::Memory, "keywords that the program computes");
    }
    if dynamic && four && !exact && !base.ends_with("-unsloth") {
        // The names in its map end like the names that they map to (`unsloth/models/mapper.py`).
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
    /// Whether the trainer runs unsloth's `FastLanguageModel`.
    pub(super) const fn is_unsloth(self) -> bool {
        matches!(self, Self::Unsloth | Self::UnslothArguments)
    }
}

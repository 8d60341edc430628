//! The settings of a litgpt configuration. Keys: its own files.

use crate::frameworks::row::Row;
use crate::leaves::{Leaf, Leaves};
use crate::releases::Installed;
use crate::{Effect, NotModelled, Origin, Reading};
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic};

/// litgpt's settings file.
pub(crate) const LITGPT: Row = Row {
    trainer: "litgpt",
    title: "a configuration of litgpt",
    about: "litgpt: model by name, batch, machines, adapters; Llama, Mistral, Gemma and Qwen",
    signs: &[&["train.global_batch_size", "devices"]],
    keys: &[
        (&["train.max_seq_length"], Field::SeqLength),
        (&["train.global_batch_size"], Field::GlobalBatchSize),
        (&["train.micro_batch_size"], Field::MicroBatchSize),
        (&["devices"], Field::GpusPerNode),
        (&["num_nodes"], Field::NumNodes),
        (&["lora_r"], Field::LoraRank),
        (&["lora_alpha"], Field::LoraAlpha),
        (&["lora_dropout"], Field::LoraDropout),
    ],
    models: &["model_name", "checkpoint_dir"],
    software: Software::Litgpt,
    lacking: None,
    extra: litgpt,
    program: None,
};

/// Prefixes of names of models whose layers were recorded: RMSNorm before attention and before a gated MLP, with full
/// attention or a window in every layer.
const FAMILIES: [&str; 15] = [
    "codegemma",
    "gemma-2b",
    "gemma-7b",
    "llama",
    "codellama",
    "tinyllama",
    "tiny-llama",
    "micro-llama",
    "vicuna",
    "longchat",
    "mistral",
    "qwen2.5",
    "qwen3",
    "smollm2",
    "nous-hermes",
];
/// Parts of such names whose models' layers were not recorded.
const OTHERS: [&str; 3] = ["a3b", "a22b", "thinking-2507"];

/// Which layers have adapters: the key, its module, and whether it has one by default (`finetune/lora.py:setup`).
const MODULES: [(&str, &str, bool); 5] = [
    ("lora_query", "q_proj", true),
    ("lora_key", "k_proj", false),
    ("lora_value", "v_proj", true),
    ("lora_projection", "o_proj", false),
    ("lora_head", "lm_head", false),
];

/// Settings of pre-training alone.
const OF_PRETRAINING: [&str; 3] = ["model_name", "initial_checkpoint_dir", "tokenizer_dir"];

/// Groups and keys for paths, logging and the length of training.
const HARMLESS: &[&str] = &[
    "data",
    "eval.",
    "out_dir",
    "logger_name",
    "log",
    "seed",
    "access_token",
    "resume",
    "tokenizer_dir",
    "initial_checkpoint_dir",
    "train.save_interval",
    "train.log_interval",
    "train.lr_warmup",
    "train.epochs",
    "train.max_tokens",
    "train.max_steps",
    "train.max_norm",
    "train.min_lr",
    "train.learning_rate",
    "train.weight_decay",
    "train.beta",
    "optimizer.init_args.",
];

/// With adapters FSDP2 gathers weights as they are, and autocast casts what it gathered (`lora.py:parallelize_fn`), which
/// was not recorded. Without, FSDP1 gathers them in 16 bits
/// (`lightning/fabric/plugins/precision/fsdp.py:mixed_precision_config`).
const MIXED: &str = "fp32 weights under autocast (litgpt's default precision) that FSDP2 shards beside adapters; bf16-true, or one GPU, is modelled";
const BY_DEFAULT: &str = "litgpt's precision unless told otherwise: fp32 weights under autocast";

fn litgpt(leaves: &mut Leaves<'_>) {
    family(leaves);
    let adapters = leaves.all().iter().any(|leaf| leaf.path.starts_with("lora_"));
    let pretrains = !adapters && leaves.first(&OF_PRETRAINING).is_some();
    let auto = match leaves.text("devices") {
        Some(devices) => matches!(devices, "auto" | "-1"),
        // `pretrain.py:setup` takes all GPUs by default.
        None => pretrains,
    };
    // `args.py:TrainArgs.gradient_accumulation_iters` divides with a remainder that it leaves out.
    let why = "litgpt leaves out what is over of a global batch that does not divide";
    leaves.state(Field::DecreaseBatchSizeIfNeeded, "true", Origin::Derived, why);
    let many = auto
        || ["devices", "num_nodes"].iter().any(|path| leaves.get(path).is_some_and(|leaf| leaf.value != "1"));
    precision(leaves, many && adapters);
    if pretrains {
        compiled(leaves);
    } else if adapters {
        lora(leaves);
    } else {
        full(leaves);
    }
    if many && !adapters {
        made_in_half(leaves);
    }
    quantized(leaves, adapters);
    leaves.state(
        Field::UntieEmbeddingsAndOutputWeights,
        "true",
        Origin::Default,
        "litgpt's fine-tuning does not tie embeddings, and loads a tied output layer as separate weights",
    );
    if let Some(leaf) = leaves.yes("train.tie_embeddings") {
        lack(leaves, leaf, Effect::Model, "tied embeddings (tie_embeddings)");
    }
    if many && pretrains {
        // `pretrain.py:setup`: `FSDPStrategy(auto_wrap_policy={Block}, sharding_strategy="HYBRID_SHARD")`.
        let why = "litgpt's pre-training shards every block within a node where there is more than one GPU";
        leaves.state(Field::DataParallelEngine, "fsdp1", Origin::Default, why);
        leaves.state(Field::ZeroStage, "3", Origin::Default, why);
        leaves.state(Field::ShardWithinNodes, "true", Origin::Default, why);
        let why = "litgpt's no_backward_sync: FSDP reduces gradients only on the last micro-batch of a step";
        leaves.state(Field::DeferReduction, "true", Origin::Default, why);
    } else if many {
        let why = "litgpt's fine-tuning shards and checkpoints every block where there is more than one GPU";
        let engine = if adapters { "fsdp2" } else { "fsdp1" };
        leaves.state(Field::DataParallelEngine, engine, Origin::Default, why);
        leaves.state(Field::ZeroStage, "3", Origin::Default, why);
        // `finetune/full.py:fit`, `lora.py:fit`: `fabric.no_backward_sync(model, enabled=is_accumulating)`.
        let why = "litgpt's no_backward_sync: FSDP reduces gradients only on the last micro-batch of a step";
        leaves.state(Field::DeferReduction, "true", Origin::Default, why);
        leaves.state(Field::GradientCheckpointing, "true", Origin::Default, why);
    }
    if !auto {
        leaves.state(Field::GpusPerNode, "1", Origin::Default, "default of litgpt");
    }
    leaves.state(Field::NumNodes, "1", Origin::Default, "default of litgpt");
    leaves.state(Field::Optimizer, "adam", Origin::Default, "default of litgpt");
    if leaves.reading.value(Field::Optimizer) == Some("adam") && !pretrains {
        // `finetune/full.py`, `lora.py`: `instantiate_torch_optimizer` without `fused`,
        // which only `pretrain.py` requests.
        let why = "torch.optim.AdamW without fused: its foreach implementation";
        leaves.state(Field::OptimizerForeach, "true", Origin::Derived, why);
    }
    leaves.pass_below(HARMLESS);
}

/// `litgpt/utils.py:get_default_supported_precision`: the default precision of training is `bf16-mixed`, with
/// weights and optimizer in fp32.
fn precision(leaves: &mut Leaves<'_>, gathered: bool) {
    let stated = leaves.get("precision");
    if stated.is_some_and(|leaf| !leaf.value.ends_with("-mixed")) {
        return;
    }
    if gathered {
        let value = stated.map_or("not stated", |leaf| leaf.value.as_str());
        let item = NotModelled::new("precision", value, Effect::Memory, MIXED);
        leaves.reading.not_modelled.push(item.at_some(stated.and_then(|leaf| leaf.span)));
        return;
    }
    let half = if stated.is_some_and(|leaf| leaf.value == "16-mixed") { "fp16" } else { "bf16" };
    match stated {
        Some(leaf) => {
            leaves.say(Field::ParamsDtype, "fp32", leaf);
            leaves.say(Field::Autocast, half, leaf);
        }
        None => {
            leaves.state(Field::ParamsDtype, "fp32", Origin::Default, BY_DEFAULT);
            leaves.state(Field::Autocast, half, Origin::Default, BY_DEFAULT);
        }
    }
}

fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, effect: Effect, what: &str) {
    let item = NotModelled::new(&leaf.path, "", effect, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// Frozen weights that Lightning's plugin quantizes (`quantize: bnb.nf4-dq`), with bitsandbytes' paged optimizer.
fn quantized(leaves: &mut Leaves<'_>, adapters: bool) {
    let none = |leaf: &&Leaf| matches!(leaf.value.as_str(), "" | "null" | "None" | "~");
    let Some(leaf) = leaves.get("quantize").filter(|leaf| !none(leaf)) else { return };
    let format = leaf.value.strip_prefix("bnb.").unwrap_or(&leaf.value);
    let (format, double) = format.strip_suffix("-dq").map_or((format, false), |format| (format, true));
    // The plugin does not support mixed precision, and `finetune/lora.py` rejects it on several
    // GPUs; its copies in fp32 differ.
    let plain = leaves.text("precision").is_none_or(|word| matches!(word, "bf16-true" | "16-true"));
    if !adapters || !matches!(format, "nf4" | "fp4") || !plain {
        let what =
            "this quantization without LoRA, in 8 bits, or with a precision other than bf16-true or 16-true";
        lack(leaves, leaf, Effect::Memory, what);
        return;
    }
    leaves.say(Field::BaseQuantization, format, leaf);
    leaves.switch(Field::DoubleQuantization, double, leaf);
    leaves.reading.found.retain(|found| found.field != Field::Optimizer);
    let note = "litgpt uses bitsandbytes' PagedAdamW instead of AdamW when weights are quantized";
    leaves.say_noted(Field::Optimizer, "paged_adamw", leaf, note);
}

/// Models whose modules are written differently were not recorded.
fn family(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.first(&["model_name", "checkpoint_dir"]) else { return };
    let lower = leaf.value.to_ascii_lowercase();
    let name = lower.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let known = FAMILIES.iter().any(|family| name.strip_prefix("meta-").unwrap_or(name).starts_with(family));
    let other = OTHERS.iter().any(|part| name.contains(part));
    if !known || other {
        let what = format!("what litgpt's {name} layers save for backward");
        lack(leaves, leaf, Effect::Memory, &what);
    }
}

fn lora(leaves: &mut Leaves<'_>) {
    let first = leaves.first(&["lora_r", "lora_query", "lora_alpha"]);
    let mut names: Vec<&str> = Vec::with_capacity(8);
    for (path, module, usual) in MODULES {
        if leaves.flag(path).unwrap_or(usual) {
            names.push(module);
        }
    }
    if leaves.flag("lora_mlp") == Some(true) {
        names.extend(["gate_proj", "up_proj", "down_proj"]);
    }
    if let Some(leaf) = first {
        leaves.say(Field::TrainType, "lora", leaf);
        leaves.say(Field::LoraTargetModules, &names.join(" "), leaf);
    }
    leaves.state(Field::LoraRank, "8", Origin::Default, "default of litgpt");
    leaves.state(Field::LoraDropout, "0.05", Origin::Default, "default of litgpt");
}

/// The format in which FSDP's plugin makes a model under mixed precision (`lightning/fabric/plugins/precision/fsdp.py:module_init_context`
/// of 2.6.1 and 2.6.2), of which litgpt admits both.
fn made_in_half(leaves: &mut Leaves<'_>) {
    if leaves.reading.value(Field::Autocast).is_some_and(|half| half != "none") {
        let message = "Lightning since 2.6.2 (March 2026) holds weights and optimizer states in fp32 under mixed precision with FSDP; \
                       earlier releases made the model in 16 bits";
        let hint = "if yours is older, set params_dtype to bf16 or fp16";
        leaves.reading.diagnostics.push(Diagnostic::warning(Code::NotEstimated, message).hint(hint));
    }
}

/// Stops where a text installs a release that does so, unless the weights' format is stated.
pub(super) fn date(reading: &mut Reading, installed: Installed) {
    let Some([major, minor]) = installed.lightning.filter(|release| *release < [2, 6]) else { return };
    let half = reading.value(Field::Autocast).filter(|half| *half != "none").map(str::to_owned);
    if let Some(half) = half.filter(|_| reading.value(Field::DataParallelEngine) == Some("fsdp1")) {
        let what = "weights and optimizer states in 16 bits, as Lightning before 2.6.2 makes them under mixed precision with FSDP; set \
                    params_dtype to that format";
        let item = NotModelled::new("lightning", &format!("{major}.{minor}"), Effect::Memory, what);
        reading.not_modelled.push(item.unless_at(Field::ParamsDtype, &half));
    }
}

/// Pre-training compiles the model once it is sharded (`pretrain.py:main`), and trains all of it.
fn compiled(leaves: &mut Leaves<'_>) {
    leaves.reading.software = Some((Software::LitgptPretrain, LITGPT.title.to_owned()));
    let why = "litgpt's pre-training compiles the model";
    leaves.state(Field::CompiledLayers, "true", Origin::Default, why);
}

/// Without LoRA: among the commands that fine-tune only those of LLaMA-Adapter take `quantize`.
fn full(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("quantize").filter(|_| !leaves.has("resume")) {
        lack(leaves, leaf, Effect::Model, "adapters of litgpt's `finetune_adapter` (LLaMA-Adapter)");
    }
}

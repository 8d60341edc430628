//! oumi: its settings are those of TRL's trainers and of transformers', under its own names and in groups.
//!
//! Keys and defaults: `oumi/core/configs/params/{model,training,peft,fsdp,data}_params.py`; how they are used:
//! `TrainingParams.to_hf`, `PeftParams.to_lora`, `oumi/core/distributed.py:get_accelerate_env_vars`.

use super::dialect::Dialect;
use super::read::read_scalars;
use crate::beneath::overridden;
use crate::reader::{Claim, Command, Reader};
use crate::scalars::{Leaf, Scalars};
use crate::signs;
use crate::{Argument, Effect, NotModelled, Reading};
use shardscope_config_tree::{Node, Tree};

/// Its keys, and the corresponding names of transformers' trainers.
const NAMES: [(&str, &str); 35] = [
    ("model.model_name", "model_name_or_path"),
    ("model.model_max_length", "max_length"),
    ("model.torch_dtype_str", "torch_dtype"),
    ("model.attn_implementation", "attn_implementation"),
    ("model.enable_liger_kernel", "use_liger_kernel"),
    ("model.trust_remote_code", "trust_remote_code"),
    ("training.per_device_train_batch_size", "per_device_train_batch_size"),
    ("training.per_device_eval_batch_size", "per_device_eval_batch_size"),
    ("training.gradient_accumulation_steps", "gradient_accumulation_steps"),
    ("training.enable_gradient_checkpointing", "gradient_checkpointing"),
    ("training.gradient_checkpointing_kwargs", "gradient_checkpointing_kwargs"),
    ("training.gradient_checkpointing_kwargs.use_reentrant", "gradient_checkpointing_kwargs.use_reentrant"),
    ("training.optimizer", "optim"),
    ("training.compile", "torch_compile"),
    ("training.max_steps", "max_steps"),
    ("training.num_train_epochs", "num_train_epochs"),
    ("training.eval_strategy", "eval_strategy"),
    ("training.use_peft", "use_peft"),
    ("training.ddp_find_unused_parameters", "ddp_find_unused_parameters"),
    ("peft.lora_r", "lora_r"),
    ("peft.lora_alpha", "lora_alpha"),
    ("peft.lora_dropout", "lora_dropout"),
    ("peft.lora_bias", "lora_bias"),
    ("peft.lora_target_modules", "lora_target_modules"),
    ("peft.lora_modules_to_save", "lora_modules_to_save"),
    ("peft.bnb_4bit_quant_type", "bnb_4bit_quant_type"),
    ("peft.use_bnb_nested_quant", "use_bnb_nested_quant"),
    ("data.train.pack", "packing"),
    ("fsdp.cpu_offload", "fsdp_config.cpu_offload"),
    ("fsdp.forward_prefetch", "fsdp_config.forward_prefetch"),
    ("fsdp.backward_prefetch", "fsdp_config.backward_prefetch"),
    ("fsdp.sharding_strategy", "fsdp_config.sharding_strategy"),
    ("fsdp.transformer_layer_cls", "fsdp_config.transformer_layer_cls_to_wrap"),
    ("fsdp.state_dict_type", "fsdp_config.state_dict_type"),
    ("fsdp.use_orig_params", "fsdp_config.use_orig_params"),
];

/// Its defaults for missing keys that differ from those of the underlying trainers.
const DEFAULTS: [(&str, &str); 4] = [
    ("training.optimizer", "adamw_torch"),
    ("training.enable_gradient_checkpointing", "false"),
    ("peft.lora_r", "8"),
    ("peft.lora_dropout", "0.0"),
];

/// Keys that change no figure: data, output and its timing, training length, learning rates, and loaders.
const IDLE: [&str; 34] = [
    "model.tokenizer_",
    "model.chat_template",
    "model.load_pretrained_weights",
    "model.model_revision",
    "model.shard_for_eval",
    "model.tool_call_parser",
    "data.train.datasets",
    "data.train.target_col",
    "data.train.mixture_strategy",
    "data.train.seed",
    "data.train.stream",
    "data.train.use_torchdata",
    "data.train.use_async_dataset",
    "data.train.collator_name",
    "data.train.train_target",
    "data.validation",
    "data.test",
    "training.save_",
    "training.logging_",
    "training.log_",
    "training.dep_log_level",
    "training.enable_wandb",
    "training.enable_mlflow",
    "training.enable_tensorboard",
    "training.output_dir",
    "training.run_name",
    "training.learning_rate",
    "training.lr_scheduler_",
    "training.warmup_",
    "training.weight_decay",
    "training.adam_",
    "training.max_grad_norm",
    "training.dataloader_",
    "training.include_",
];
/// More of them: seeds, checks, and cache clearing or timeouts between steps.
const IDLE_TOO: [&str; 13] = [
    "training.seed",
    "training.data_seed",
    "training.resume_from_checkpoint",
    "training.try_resume_from_last_checkpoint",
    "training.empty_device_cache_steps",
    "training.nccl_default_timeout_minutes",
    "training.eval_steps",
    "training.metrics_function",
    "training.label_ignore_index",
    "training.telemetry",
    "training.profiler.",
    "peft.peft_save_mode",
    "peft.lora_task_type",
];

/// oumi's training configuration.
#[derive(Debug)]
pub(crate) struct Oumi;

impl Reader for Oumi {
    fn name(&self) -> &'static str {
        "an oumi configuration"
    }

    fn about(&self) -> &'static str {
        "oumi: TRL's SFT, DPO and KTO and transformers' Trainer, adapters, quantization, FSDP"
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        signs::any(
            tree,
            &["training.trainer_type", "training.use_peft", "training.enable_gradient_checkpointing"],
        )
        .and_then(|_| signs::all(tree, &["model.model_name", "data.train"]))
    }

    fn read(&self, root: &Node) -> Reading {
        let scalars = Scalars::from_node(root);
        let (dialect, objective) = trainer(&scalars);
        let renamed = renamed(&scalars, objective);
        let mut reading = read_scalars(dialect, &renamed);
        lacking(&scalars, &mut reading);
        reading
    }

    fn read_beneath(&self, root: &Node, command: &Command<'_>) -> Option<(Reading, Vec<Argument>)> {
        let (patched, left) = overridden(root, command.words)?;
        Some((self.read(&patched), left))
    }
}

/// Whether words are those of `oumi train`, which change keys of the file that `-c` names; groups of other frameworks are
/// called `training` too.
pub fn is_of_oumi(words: &[Argument]) -> bool {
    const OWN: [&str; 6] =
        ["trainer_type", "max_steps", "run_name", "output_dir", "save_steps", "enable_wandb"];
    let own = |word: &Argument| {
        let key = word.text.strip_prefix("--training.").unwrap_or_default();
        OWN.contains(&key.split('=').next().unwrap_or_default())
    };
    words.iter().any(own) && words.iter().any(|word| matches!(word.text.as_str(), "-c" | "--config"))
}

fn find<'t>(scalars: &'t Scalars, path: &str) -> Option<&'t Leaf> {
    scalars.all().iter().rfind(|leaf| leaf.path == path && !leaf.value.is_empty() && leaf.value != "null")
}

fn says(scalars: &Scalars, path: &str) -> bool {
    find(scalars, path).and_then(Leaf::flag) == Some(true)
}

/// The underlying trainer, and the objective if it is not next-token prediction.
fn trainer(scalars: &Scalars) -> (Dialect, Option<&'static str>) {
    match find(scalars, "training.trainer_type").map(|leaf| leaf.value.to_ascii_uppercase()).as_deref() {
        Some("TRL_SFT") => (Dialect::Trl, None),
        Some("TRL_DPO") => (Dialect::Trl, Some("dpo")),
        Some("TRL_KTO") => (Dialect::Trl, Some("kto")),
        _ => (Dialect::Transformers, None),
    }
}

/// The scalars under the names of transformers' trainers.
fn renamed(scalars: &Scalars, objective: Option<&str>) -> Scalars {
    const WHOSE: &str = "oumi/core/configs/params";
    let (peft, fsdp) = (says(scalars, "training.use_peft"), says(scalars, "fsdp.enable_fsdp"));
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut put = |path: &str, value: &str, from: Option<&Leaf>| {
        let leaf = match from {
            Some(leaf) => Leaf { path: path.to_owned(), value: value.to_owned(), ..leaf.clone() },
            None => Leaf::of_base(WHOSE, path, value),
        };
        leaves.push(leaf);
    };
    // Groups that are not enabled have no effect.
    let counts = |path: &str| match path.split('.').next() {
        Some("peft") => peft,
        Some("fsdp") => fsdp,
        _ => true,
    };
    let unread = |path: &str| {
        // Arguments of a dataset may include the length of its samples.
        let known = IDLE.iter().chain(&IDLE_TOO).any(|start| path.starts_with(start))
            && !path.contains("dataset_kwargs");
        let own = OWN.contains(&path) || LACKING.iter().any(|(key, ..)| *key == path);
        !known && !own && counts(path)
    };
    for leaf in scalars.all() {
        match NAMES.iter().find(|(own, _)| *own == leaf.path) {
            Some((own, name)) if counts(own) => put(name, &leaf.value, Some(leaf)),
            Some(_) => {}
            // Arguments of the underlying trainer, under their own names.
            None if unread(&leaf.path) => {
                let own = leaf.path.strip_prefix("training.trainer_kwargs.").unwrap_or(&leaf.path);
                put(own, &leaf.value, Some(leaf));
            }
            None => {}
        }
    }
    // `oumi/train.py:train` sets `skip_prepare_dataset`, so that TRL cuts nothing: oumi's own data sets cut samples to the length of the
    // tokenizer (`oumi/core/datasets/base_sft_dataset.py`), which `model_max_length` sets (`oumi/builders/models.py`).
    let by_tokenizer = find(scalars, "training.trainer_type")
        .is_some_and(|leaf| leaf.value.eq_ignore_ascii_case("TRL_SFT"))
        && find(scalars, "model.model_max_length").is_none()
        && !says(scalars, "data.train.pack");
    // oumi itself requires a release below 1.5 (`pyproject.toml`).
    put(super::behind::RELEASE, "1.4", None);
    for (own, value) in DEFAULTS {
        if counts(own) && find(scalars, own).is_none() {
            let name = NAMES.iter().find(|(key, _)| *key == own).map_or(own, |(_, name)| name);
            put(name, value, None);
        }
    }
    // "auto" is the checkpoint's own format.
    if find(scalars, "model.torch_dtype_str").is_none_or(|leaf| leaf.value == "auto") {
        put("torch_dtype", "bfloat16", find(scalars, "model.torch_dtype_str"));
    }
    let mixed = [
        find(scalars, "training.mixed_precision_dtype"),
        find(scalars, "fsdp.mixed_precision").filter(|_| fsdp),
    ];
    let mixed = mixed.into_iter().flatten().find(|leaf| !leaf.value.eq_ignore_ascii_case("none"));
    match mixed.map(|leaf| (leaf, leaf.value.to_ascii_lowercase())) {
        Some((leaf, name)) if name.contains("bf16") => put("bf16", "true", Some(leaf)),
        Some((leaf, name)) if name.contains("fp16") => put("fp16", "true", Some(leaf)),
        _ => put("bf16", "false", None),
    }
    if peft && says(scalars, "peft.q_lora") {
        let eight = find(scalars, "peft.q_lora_bits").and_then(Leaf::whole) == Some(8);
        put(if eight { "load_in_8bit" } else { "load_in_4bit" }, "true", find(scalars, "peft.q_lora"));
        if !eight && find(scalars, "peft.bnb_4bit_quant_type").is_none() {
            put("bnb_4bit_quant_type", "fp4", None);
        }
    }
    if fsdp {
        let leaf = find(scalars, "fsdp.enable_fsdp");
        put("fsdp", "full_shard auto_wrap", leaf);
        // Accelerate's FSDP checkpoints layers instead of transformers.
        let checkpoints = says(scalars, "training.enable_gradient_checkpointing");
        put("fsdp_config.activation_checkpointing", if checkpoints { "true" } else { "false" }, leaf);
    }
    if let Some(objective) = objective {
        put("rl", objective, find(scalars, "training.trainer_type"));
    }
    if by_tokenizer {
        let hole = Some("the tokenizer's model_max_length".to_owned());
        leaves.push(Leaf { hole, ..Leaf::of_base(WHOSE, "max_length", "tokenizer.model_max_length") });
    }
    Scalars::from_leaves(leaves)
}

/// Keys that are read by dedicated code.
const OWN: [&str; 12] = [
    "training.trainer_type",
    "training.mixed_precision_dtype",
    "peft.q_lora",
    "peft.q_lora_bits",
    "peft.bnb_4bit_compute_dtype",
    "peft.bnb_4bit_quant_storage",
    "fsdp.enable_fsdp",
    "fsdp.mixed_precision",
    "fsdp.auto_wrap_policy",
    "fsdp.sync_module_states",
    "fsdp.min_num_params",
    "deepspeed.enable_deepspeed",
];

/// Keys that change a figure, each with the values that do not.
const LACKING: [(&str, &str, Effect, &str); 7] = [
    ("model.compile", "false", Effect::Memory, "torch.compile, which saves other tensors for backward"),
    ("model.adapter_model", "", Effect::Memory, "adapters loaded from a checkpoint"),
    ("model.freeze_layers", "[]", Effect::Memory, "frozen parts; all weights would be counted as trained"),
    ("peft.lora_exclude_modules", "[]", Effect::Memory, "adapters on only some of the modules of that name"),
    ("peft.lora_target_parameters", "[]", Effect::Memory, "adapters on parameters of experts"),
    ("peft.llm_int8_skip_modules", "[]", Effect::Memory, "linear layers that stay whole"),
    ("deepspeed.enable_deepspeed", "false", Effect::Memory, "DeepSpeed under oumi"),
];

/// Features of it that are not modelled.
fn lacking(scalars: &Scalars, reading: &mut Reading) {
    let mut lack = |leaf: &Leaf, effect: Effect, what: &str| {
        reading
            .not_modelled
            .push(NotModelled::new(&leaf.path, leaf.shown(), effect, what).at_some(leaf.span));
    };
    for (path, harmless, effect, what) in LACKING {
        let on = !path.starts_with("peft.") || says(scalars, "training.use_peft");
        if let Some(leaf) =
            find(scalars, path).filter(|leaf| on && !leaf.value.eq_ignore_ascii_case(harmless))
        {
            lack(leaf, effect, what);
        }
    }
    let known = ["TRL_SFT", "TRL_DPO", "TRL_KTO", "HF"];
    if let Some(leaf) = find(scalars, "training.trainer_type") {
        match leaf.value.to_ascii_uppercase().as_str() {
            name if known.contains(&name) => {}
            "OUMI" => lack(leaf, Effect::Memory, "oumi's own training loop"),
            _ => lack(
                leaf,
                Effect::Memory,
                "training with rollouts or a teacher, and the models that it holds",
            ),
        }
    }
    if says(scalars, "fsdp.enable_fsdp") {
        let policy = find(scalars, "fsdp.auto_wrap_policy").map_or("NO_WRAP", |leaf| leaf.value.as_str());
        if !policy.eq_ignore_ascii_case("TRANSFORMER_BASED_WRAP")
            && let Some(leaf) =
                find(scalars, "fsdp.auto_wrap_policy").or_else(|| find(scalars, "fsdp.enable_fsdp"))
        {
            lack(leaf, Effect::Memory, "FSDP units other than layers");
        }
        // FSDP shards weights stored in a float format; oumi's default is bytes (`PeftParams.bnb_4bit_quant_storage`).
        let stored = find(scalars, "peft.bnb_4bit_quant_storage").map_or("uint8", |leaf| leaf.value.as_str());
        if says(scalars, "training.use_peft")
            && !stored.contains("float")
            && let Some(leaf) = find(scalars, "peft.q_lora").filter(|leaf| leaf.flag() == Some(true))
        {
            lack(leaf, Effect::Memory, "packed weights stored as bytes, which FSDP does not shard");
        }
    }
}

//! MosaicML's llm-foundry. Keys: `llmfoundry/command_utils/train.py`.

use super::row::Row;
use crate::leaves::Leaves;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

/// llm-foundry's settings file.
pub(crate) const LLM_FOUNDRY: Row = Row {
    trainer: "llm-foundry",
    title: "a configuration of llm-foundry",
    about: "llm-foundry: MPT and models of transformers, batch, FSDP",
    signs: &[
        &["device_train_microbatch_size", "train_loader"],
        &["parameters.device_train_microbatch_size", "parameters.train_loader"],
    ],
    keys: &[
        (&["model.n_layers"], Field::NumLayers),
        (&["model.d_model"], Field::HiddenSize),
        (&["model.n_heads"], Field::NumAttentionHeads),
        (&["model.vocab_size"], Field::VocabSize),
        (&["max_seq_len", "model.max_seq_len", "variables.max_seq_len"], Field::SeqLength),
        (&["global_train_batch_size"], Field::GlobalBatchSize),
        (&["device_train_microbatch_size"], Field::MicroBatchSize),
        (&["gpus"], Field::WorldSize),
    ],
    models: &["model.pretrained_model_name_or_path"],
    software: Software::TorchFsdp,
    lacking: None,
    extra: foundry,
    program: None,
};

/// The names of accelerators on MosaicML's cluster (`compute.gpu_type`).
const ACCELERATORS: [(&str, &str); 3] =
    [("a100_40gb", "A100-SXM-40GB"), ("a100_80gb", "A100-SXM-80GB"), ("h100_80gb", "H100-SXM")];

fn foundry(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("gpu_type")
        && let Some((_, name)) = ACCELERATORS.iter().find(|(known, _)| *known == leaf.value)
    {
        leaves.say(Field::Accelerator, name, leaf);
    }
    // `hf_t5`, `hf_prefix_lm` (`llmfoundry/models/__init__.py`).
    if let Some(leaf) = leaves
        .get("model.name")
        .filter(|leaf| !matches!(leaf.value.as_str(), "hf_causal_lm" | "mpt_causal_lm"))
    {
        let what = "a model other than MPT or a transformers decoder";
        let item = NotModelled::new("model.name", &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    // It depends on transformers before version 5, which loads weights in fp32 (`setup.py`).
    if let Some(leaf) = leaves.all().iter().find(|leaf| leaf.path.starts_with("model.peft_config.")) {
        let what = "adapters under llm-foundry, whose frozen weights are held in fp32";
        let item = NotModelled::new("model.peft_config", "", Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
        leaves.pass_below(&["model.peft_config."]);
    }
    leaves.pass_words("llm-foundry");
    // `composer/trainer/trainer.py:_train_microbatch`: `self.state.outputs`, until the next micro-batch's replace them.
    leaves.state(Field::LogitsHeld, "true", Origin::Default, "Composer keeps the outputs of a micro-batch");
    fsdp(leaves);
    let named = leaves.text("model.pretrained_model_name_or_path").unwrap_or_default().to_ascii_lowercase();
    let (named, overrides) =
        (named.rsplit('/').next().unwrap_or_default().to_owned(), "model.config_overrides.");
    match leaves.text("model.name") {
        // Loaded with the code in its repository, which is llm-foundry's MPT (`trust_remote_code` is on by default).
        Some("hf_causal_lm")
            if named.starts_with("mpt-") && leaves.flag("model.trust_remote_code") != Some(false) =>
        {
            mpt(leaves, overrides);
        }
        Some("hf_causal_lm") => transformers(leaves, &named),
        _ => mpt(leaves, "model."),
    }
    reductions(leaves);
}

/// Composer shards the model if there is an `fsdp_config` and replicates it otherwise (`composer/trainer/trainer.py`).
fn fsdp(leaves: &mut Leaves<'_>) {
    let there = leaves.all().iter().any(|leaf| leaf.path.starts_with("fsdp_config."));
    if !there {
        leaves.state(Field::ZeroStage, "0", Origin::Default, "Composer without an fsdp_config");
        return;
    }
    if let Some(leaf) = leaves.get("fsdp_config.sharding_strategy") {
        let stage = match leaf.value.as_str() {
            "NO_SHARD" => "0",
            "SHARD_GRAD_OP" => "2",
            _ => "3",
        };
        leaves.say(Field::ZeroStage, stage, leaf);
    }
    leaves.pass_below(&[
        "fsdp_config.activation_checkpointing_reentrant",
        "fsdp_config.limit_all_gathers",
        "fsdp_config.sync_module_states",
        "fsdp_config.state_dict_type",
        "fsdp_config.backward_prefetch",
    ]);
}

/// Both PURE and DEFAULT gather weights in 16 bits; PURE reduces gradients in 16 bits, DEFAULT in fp32; FULL computes in fp32
/// (`composer/distributed/mosaic_parallelism.py:get_mixed_precision`). DEFAULT also where nothing is stated
/// (`composer/utils/parallelism.py:FSDPConfig`).
fn reductions(leaves: &mut Leaves<'_>) {
    if !leaves.all().iter().any(|leaf| leaf.path.starts_with("fsdp_config.")) {
        return;
    }
    let wraps_modules = matches!(leaves.reading.software, Some((Software::HfTransformers, _)));
    let in_bf16 = leaves.text("precision").is_some_and(|precision| precision.ends_with("bf16"));
    match leaves.get("fsdp_config.mixed_precision") {
        Some(leaf) if leaf.value == "FULL" => {
            let what = "FSDP that gathers weights in fp32 under autocast";
            leaves.lack(leaf, Effect::Memory, what);
        }
        // The shards of transformers' gradients are reduced as they were gathered unless something else is said.
        Some(leaf) if leaf.value == "PURE" && in_bf16 && !wraps_modules => {
            leaves.switch(Field::GradReduceInBf16, true, leaf);
            leaves.say(Field::GradsDtype, "bf16", leaf);
        }
        Some(leaf) if leaf.value == "PURE" => {}
        Some(leaf) => leaves.say(Field::ReduceDtype, "fp32", leaf),
        None if wraps_modules => {
            leaves.state(Field::ReduceDtype, "fp32", Origin::Default, "mixed_precision DEFAULT of Composer");
        }
        None => {}
    }
}

fn transformers(leaves: &mut Leaves<'_>, name: &str) {
    leaves.reading.software =
        Some((Software::HfTransformers, "llm-foundry with a transformers model".to_owned()));
    let engine = if leaves.reading.value(Field::ZeroStage) == Some("0") { "ddp" } else { "fsdp1" };
    leaves.state(Field::DataParallelEngine, engine, Origin::Default, "llm-foundry shards by FSDP");
    // `llmfoundry/utils/config_utils.py:set_config_overrides` sets any key that the configuration has. The
    // position tables of GPT-2 and GPT-Neo have that many rows, and a model that is not loaded from a checkpoint
    // may have more than the checkpoint.
    let learned = [("gpt2", "n_positions"), ("gpt-neo", "max_position_embeddings")];
    for (model, key) in learned {
        if name.starts_with(model)
            && let Some(leaf) = leaves.get(&format!("model.config_overrides.{key}"))
        {
            leaves.say(Field::MaxPositionEmbeddings, &leaf.value, leaf);
        }
    }
    // Names of MPT's configuration that Llama's does not have (`transformers/models/llama/configuration_llama.py`).
    if name.contains("llama") {
        let mpts = ["model.config_overrides.max_seq_len", "model.config_overrides.attn_config."];
        if let Some(leaf) = leaves.all().iter().find(|leaf| mpts.iter().any(|own| leaf.path.starts_with(own)))
        {
            let what =
                "an override that Llama's configuration has no attribute for, at which llm-foundry stops";
            let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
        leaves.pass_below(&mpts);
    }
    if let Some(leaf) = leaves.yes("model.use_flash_attention_2") {
        leaves.say(Field::AttnImplementation, "flash_attention_2", leaf);
    }
}

/// MPT (`llmfoundry/models/mpt/configuration_mpt.py`): biases and learned positions by default, tied embeddings. Its
/// settings are keys below `group`; a checkpoint's own configuration is not in the text.
fn mpt(leaves: &mut Leaves<'_>, group: &str) {
    let why = "the code of MPT";
    let key = |name: &str| format!("{group}{name}");
    let ratio = leaves.whole("model.expansion_ratio").unwrap_or(4);
    if let Some(width) = leaves.reading.count(Field::HiddenSize).and_then(|hidden| hidden.checked_mul(ratio))
    {
        leaves.state(Field::FfnHiddenSize, &width.to_string(), Origin::Derived, why);
    }
    leaves.follow("model.no_bias", Field::AddBiasLinear, false);
    if let Some(leaf) = leaves.yes("model.attn_config.alibi") {
        leaves.say(Field::PositionEmbeddingType, "alibi", leaf);
    }
    if let Some(leaf) = leaves.yes("model.attn_config.rope") {
        leaves.say(Field::PositionEmbeddingType, "rope", leaf);
    }
    let implementation = leaves.get(&key("attn_config.attn_impl"));
    let loaded = group != "model.";
    match implementation.map(|leaf| (leaf.value.as_str(), leaf)) {
        Some(("torch", leaf)) => leaves.say(Field::AttentionKernel, "unfused", leaf),
        Some(("flash", leaf)) => leaves.say(Field::AttentionKernel, "flash", leaf),
        // The settings of mosaicml/mpt-7b and mpt-30b in their own `config.json`.
        None if loaded => leaves.state(
            Field::AttentionKernel,
            "unfused",
            Origin::Default,
            "attn_impl torch of MPT's checkpoints",
        ),
        _ => {}
    }
    if loaded {
        // The model cards of mosaicml/mpt-7b and mpt-30b: ALiBi instead of position embeddings, no biases.
        let own = [(Field::PositionEmbeddingType, "alibi"), (Field::AddBiasLinear, "false")];
        leaves.state_all(&own, Origin::Default, "MPT's checkpoints");
        // Positions are encoded by ALiBi, so no table has `max_seq_len` rows (`modeling_mpt.py:MPTModel`).
        leaves.pass(&key("max_seq_len"));
        if let Some(leaf) = leaves.yes(&key("attn_config.attn_uses_sequence_id")) {
            let what = "attention that is kept within each sample of a pack";
            let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
        leaves.pass(&key("attn_config.attn_uses_sequence_id"));
    }
    if !loaded {
        loss(leaves);
    }
    evaluation(leaves);
    leaves.state_all(
        &[
            (Field::HiddenDropout, "0"),
            (Field::AttentionDropout, "0"),
            (Field::AttentionKernel, "flash"),
            // The table has exactly `vocab_size` rows (`modeling_mpt.py`).
            (Field::PadVocabSize, "false"),
        ],
        Origin::Default,
        why,
    );
}

/// `modeling_mpt.py:ComposerMPTCausalLM`. A checkpoint that transformers loads has the loss of its own code, PyTorch's.
fn loss(leaves: &mut Leaves<'_>) {
    const KERNEL: &str = "fused_logits";
    match leaves.get("model.loss_fn") {
        Some(leaf) if leaf.value == "torch_crossentropy" => leaves.say(Field::LossKind, "torch", leaf),
        Some(leaf) if leaf.value == "fused_crossentropy" => leaves.say(Field::LossKind, KERNEL, leaf),
        Some(leaf) => leaves.lack(leaf, Effect::Memory, "this cross entropy of MPT"),
        None => leaves.state(Field::LossKind, KERNEL, Origin::Default, "fused_crossentropy of MPT"),
    }
}

/// Batch size of an evaluation, if there is one and it is larger than a micro-batch
/// (`llmfoundry/command_utils/train.py`).
fn evaluation(leaves: &mut Leaves<'_>) {
    let evaluates = leaves.all().iter().any(|leaf| leaf.path.starts_with("eval_loader."));
    let trained = leaves.whole("device_train_microbatch_size");
    if let Some(leaf) = leaves.get("device_eval_batch_size")
        && evaluates
        && leaf.whole().zip(trained).is_some_and(|(own, trained)| own > trained)
    {
        leaves.say(Field::EvaluationBatchSize, &leaf.value, leaf);
    }
}

//! MosaicML's llm-foundry. Keys: `llmfoundry/command_utils/train.py`.

use super::row::Row;
use crate::formats::leaves::Leaves;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

/// llm-foundry's settings file.
pub(in crate::formats) const LLM_FOUNDRY: Row = Row {
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

/// MosaicML's cluster names its accelerators so (`compute.gpu_type`).
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
    // transformers before 5, on which it stands, loads them in fp32 (`setup.py`).
    if let Some(leaf) = leaves.all().iter().find(|leaf| leaf.path.starts_with("model.peft_config.")) {
        let what = "adapters under llm-foundry, whose frozen weights are held in fp32";
        let item = NotModelled::new("model.peft_config", "", Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
        leaves.pass_below(&["model.peft_config."]);
    }
    leaves.pass_words("llm-foundry");
    fsdp(leaves);
    if leaves.text("model.name") == Some("hf_causal_lm") {
        transformers(leaves);
    } else {
        mpt(leaves);
    }
}

/// Composer shards where `fsdp_config` is there, and copies the model where it is not (`composer/trainer/trainer.py`).
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
    // `composer/distributed/mosaic_parallelism.py:get_mixed_precision`: weights in 16 bits under each, gradients reduced in 16
    // under PURE and in fp32 under DEFAULT; FULL computes in fp32.
    match leaves.get("fsdp_config.mixed_precision") {
        Some(leaf) if leaf.value == "FULL" => {
            let what = "FSDP that gathers weights in fp32 under autocast";
            let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
        Some(leaf) if leaf.value == "DEFAULT" => leaves.say(Field::ReduceDtype, "fp32", leaf),
        _ => {}
    }
    leaves.pass_below(&[
        "fsdp_config.activation_checkpointing_reentrant",
        "fsdp_config.limit_all_gathers",
        "fsdp_config.sync_module_states",
        "fsdp_config.state_dict_type",
        "fsdp_config.backward_prefetch",
    ]);
}

fn transformers(leaves: &mut Leaves<'_>) {
    leaves.reading.software =
        Some((Software::HfTransformers, "llm-foundry with a transformers model".to_owned()));
    let engine = if leaves.reading.value(Field::ZeroStage) == Some("0") { "ddp" } else { "fsdp1" };
    leaves.state(Field::DataParallelEngine, engine, Origin::Default, "llm-foundry shards by FSDP");
    // `llmfoundry/utils/config_utils.py:set_config_overrides`: a key that the configuration has is set. GPT-2's and GPT-Neo's table of
    // positions has as many rows, and a model that is not loaded may have more than the checkpoint.
    let name = leaves.text("model.pretrained_model_name_or_path").unwrap_or_default().to_ascii_lowercase();
    let learned = [("gpt2", "n_positions"), ("gpt-neo", "max_position_embeddings")];
    for (model, key) in learned {
        let own = name.rsplit('/').next().is_some_and(|name| name.starts_with(model));
        if own && let Some(leaf) = leaves.get(&format!("model.config_overrides.{key}")) {
            leaves.say(Field::MaxPositionEmbeddings, &leaf.value, leaf);
        }
    }
    if let Some(leaf) = leaves.yes("model.use_flash_attention_2") {
        leaves.say(Field::AttnImplementation, "flash_attention_2", leaf);
    }
}

/// MPT (`llmfoundry/models/mpt/configuration_mpt.py`): biases and learned positions unless told otherwise, tied.
fn mpt(leaves: &mut Leaves<'_>) {
    let why = "the code of MPT";
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
    let scores = leaves.get("model.attn_config.attn_impl").filter(|leaf| leaf.value == "torch");
    if let Some(leaf) = scores {
        leaves.say(Field::AttentionKernel, "unfused", leaf);
    }
    leaves.state_all(
        &[
            (Field::HiddenDropout, "0"),
            (Field::AttentionDropout, "0"),
            (Field::AttentionKernel, "flash"),
            // The table has as many rows as `vocab_size` says (`modeling_mpt.py`).
            (Field::PadVocabSize, "false"),
        ],
        Origin::Default,
        why,
    );
}

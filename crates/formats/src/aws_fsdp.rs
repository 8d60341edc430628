//! The FSDP example of awsome-distributed-training: a model defined by its own options and trained from scratch
//! with transformers modules under FSDP2. Options and defaults:
//! `3.test_cases/pytorch/FSDP/src/model_utils/arguments.py`, `train.py`.

use super::leaves::Leaves;
use super::llama_like::LLAMA_LAYER;
use super::reader::{Claim, Command, Reader};
use super::trainer::words;
use crate::{Argument, Effect, NotModelled, Origin, Reading};
use shardscope_plan::{Field, Software};

/// The options of the example's `train.py`.
#[derive(Debug)]
pub(super) struct AwsFsdp;

const NAME: &str = "the FSDP example of awsome-distributed-training";

impl Reader for AwsFsdp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "awsome-distributed-training's FSDP example: shape, batch, FSDP2, saved tensors on the host"
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        let has = |name: &str| {
            command.words.iter().any(|word| {
                word.text.strip_prefix("--").is_some_and(|text| text.split('=').next() == Some(name))
            })
        };
        (has("hidden_width") && has("model_type")).then_some(Claim::Certain)
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        let scalars = words::leaves(words);
        let mut leaves = Leaves::over(&scalars);
        read(&mut leaves);
        leaves.finish(NAME)
    }
}

fn read(leaves: &mut Leaves<'_>) {
    leaves.take_all(&[
        ("num_layers", Field::NumLayers),
        ("hidden_width", Field::HiddenSize),
        ("num_heads", Field::NumAttentionHeads),
        ("intermediate_size", Field::FfnHiddenSize),
        ("vocab_size", Field::VocabSize),
        ("train_batch_size", Field::MicroBatchSize),
        ("max_steps", Field::TrainIters),
    ]);
    if let Some(leaf) = leaves.get("num_key_value_heads") {
        leaves.query_groups(&leaf.value, leaf);
    }
    shape(leaves);
    let note = "default of the example";
    leaves.state_all(
        &[
            (Field::NumLayers, "12"),
            (Field::HiddenSize, "768"),
            (Field::NumAttentionHeads, "12"),
            (Field::FfnHiddenSize, "11008"),
            (Field::VocabSize, "50432"),
            (Field::MicroBatchSize, "2"),
            (Field::NumMicroBatches, "1"),
            (Field::Optimizer, "adam"),
        ],
        Origin::Default,
        note,
    );
    let note = "its data loader joins samples to 4,096 tokens, whatever max_context_width says";
    leaves.state(Field::SeqLength, "4096", Origin::Derived, note);
    leaves.pass("max_context_width");
    engine(leaves);
    leaves.pass_below(&[
        "tokenizer",
        "dataset",
        "checkpoint_",
        "resume_from",
        "val",
        "lr",
        "min_lr",
        "warmup",
        "plateau",
        "beta",
        "weight_decay",
        "grad_clip",
        "logging_freq",
        "tensorboard_dir",
        "seed",
        "same_seed",
        "epochs",
        // Dropout and weight initialization, which are not passed to the configurations of these models.
        "resid_pdrop",
        "embd_pdrop",
        "attn_pdrop",
        "summary_first_pdrop",
        "initializer_range",
        "rotary_",
        "limit_all_gathers",
        "activation_loading_horizon",
    ]);
    leaves.reading.software =
        Some((Software::HfTransformers, "LlamaConfig, MistralConfig and their like".to_owned()));
}

/// The settings that `get_model_config` derives from the model's type.
fn shape(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("model_type") else { return };
    match leaf.value.as_str() {
        "llama_v2" | "llama_v3" | "mistral" => {}
        "mixtral" => {
            leaves.say(Field::NumExperts, "8", leaf);
            leaves.say(Field::MoeRouterTopk, "2", leaf);
        }
        other => {
            let item = NotModelled::new("model_type", other, Effect::Model, "a model of this type");
            leaves.reading.not_modelled.push(item.at_some(leaf.span));
        }
    }
    leaves.state_all(&LLAMA_LAYER, Origin::Derived, "as the model's type has it");
}

/// FSDP2 over fp32 weights that are gathered in bf16; each layer is recomputed by default.
fn engine(leaves: &mut Leaves<'_>) {
    let off = |leaves: &Leaves<'_>, path: &str| leaves.whole(path) == Some(0);
    let bf16 = if off(leaves, "bf16") { "false" } else { "true" };
    let recomputes = if off(leaves, "activation_checkpointing") { "false" } else { "true" };
    leaves.state_all(
        &[
            (Field::Bf16, bf16),
            (Field::GradientCheckpointing, recomputes),
            (Field::ParamsDtype, "fp32"),
            (Field::ReduceDtype, "fp32"),
            (Field::DataParallelEngine, "fsdp2"),
            (Field::ZeroStage, "3"),
            (Field::UseCache, "false"),
            (Field::PaddingMask, "false"),
            (Field::TrainType, "full"),
        ],
        Origin::Derived,
        "train.py",
    );
    leaves.pass("sharding_strategy");
    let on = |leaf: &&super::leaves::Leaf| leaf.whole().is_some_and(|value| value > 0);
    if let Some(leaf) = leaves.get("offload_activations").filter(on) {
        // `offload_wrapper` around the whole model.
        leaves.switch(Field::OffloadSavedTensors, true, leaf);
    }
    if let Some(leaf) = leaves.get("cpu_offload").filter(on) {
        leaves.switch(Field::OffloadParam, true, leaf);
        leaves.switch(Field::OffloadOptimizer, true, leaf);
    }
}

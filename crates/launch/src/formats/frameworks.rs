//! Trainers whose settings files name model, batch and machines, and whose own layers are not modelled: what they say is read,
//! and the verdict stops at what their layers keep. One row each; what needs more than a look stands below the table.

use super::leaves::{Leaf, Leaves, Scalars};
use crate::named::take_model;
use crate::{Effect, NotModelled, Origin, Question, Reading};
use shardscope_config_tree::Node;
use shardscope_plan::{Field, Software};

/// A trainer with a settings file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// MosaicML's llm-foundry.
    LlmFoundry,
    /// OLMo.
    Olmo,
    /// Meta's lingua.
    Lingua,
    /// NeMo Automodel.
    Automodel,
    /// torchtune.
    Torchtune,
    /// litgpt.
    Litgpt,
    /// levanter, in JAX.
    Levanter,
    /// MaxText, in JAX.
    MaxText,
}

struct Row {
    framework: Framework,
    name: &'static str,
    /// Paths that all must be there.
    signs: &'static [&'static str],
    keys: &'static [(&'static [&'static str], Field)],
    /// Paths that name a model.
    models: &'static [&'static str],
    software: Software,
    /// What of it is not modelled; none where its layers are transformers' own.
    lacking: Option<&'static str>,
}

use Field::{
    ContextParallelSize, ExpertModelParallelSize, FfnHiddenSize, GlobalBatchSize, GpusPerNode, HiddenSize,
    MicroBatchSize, NumAttentionHeads, NumLayers, NumMicroBatches, NumNodes, PaddedVocabSize,
    PipelineModelParallelSize, SeqLength, TensorModelParallelSize, VocabSize,
};

/// Keys: `llmfoundry/command_utils/train.py`, `olmo/config.py`, `lingua/args.py`, Automodel's recipes, torchtune's and
/// litgpt's configurations, `levanter/trainer.py`, MaxText's `base.yml`.
const ROWS: &[Row] = &[
    Row {
        framework: Framework::LlmFoundry,
        name: "llm-foundry",
        signs: &["device_train_microbatch_size", "train_loader"],
        keys: &[
            (&["model.n_layers"], NumLayers),
            (&["model.d_model"], HiddenSize),
            (&["model.n_heads"], NumAttentionHeads),
            (&["model.vocab_size"], VocabSize),
            (&["max_seq_len", "model.max_seq_len", "variables.max_seq_len"], SeqLength),
            (&["global_train_batch_size"], GlobalBatchSize),
            (&["device_train_microbatch_size"], MicroBatchSize),
        ],
        models: &["model.pretrained_model_name_or_path"],
        software: Software::TorchFsdp,
        lacking: None,
    },
    Row {
        framework: Framework::Olmo,
        name: "OLMo",
        signs: &["model.d_model", "model.mlp_hidden_size", "global_train_batch_size"],
        keys: &[
            (&["model.n_layers"], NumLayers),
            (&["model.d_model"], HiddenSize),
            (&["model.n_heads"], NumAttentionHeads),
            (&["model.vocab_size"], VocabSize),
            (&["model.embedding_size"], PaddedVocabSize),
            (&["model.max_sequence_length"], SeqLength),
            (&["global_train_batch_size"], GlobalBatchSize),
            (&["device_train_microbatch_size"], MicroBatchSize),
        ],
        models: &[],
        software: Software::TorchFsdp,
        lacking: Some("what OLMo's own layers keep for the backward pass, and its norms"),
    },
    Row {
        framework: Framework::Lingua,
        name: "lingua",
        signs: &["distributed.fsdp_type", "model.dim"],
        keys: &[
            (&["model.n_layers"], NumLayers),
            (&["model.dim"], HiddenSize),
            (&["model.n_heads"], NumAttentionHeads),
            (&["model.vocab_size"], VocabSize),
            (&["data.seq_len"], SeqLength),
            (&["data.batch_size"], MicroBatchSize),
            (&["grad_acc_steps"], NumMicroBatches),
            (&["distributed.tp_size"], TensorModelParallelSize),
        ],
        models: &[],
        software: Software::TorchFsdp,
        lacking: Some("what lingua's own layers keep for the backward pass, compiled"),
    },
    Row {
        framework: Framework::Automodel,
        name: "NeMo Automodel",
        signs: &["step_scheduler", "model"],
        keys: &[
            (&["step_scheduler.global_batch_size"], GlobalBatchSize),
            (&["step_scheduler.local_batch_size"], MicroBatchSize),
            (
                &[
                    "packed_sequence.packed_sequence_size",
                    "dataset.seq_length",
                    "dataset.seq_len",
                    "dataset.max_length",
                ],
                SeqLength,
            ),
            (&["distributed.tp_size"], TensorModelParallelSize),
            (&["distributed.cp_size"], ContextParallelSize),
            (&["distributed.pp_size"], PipelineModelParallelSize),
            (&["distributed.ep_size"], ExpertModelParallelSize),
            (&["benchmark.num_nodes"], NumNodes),
            (&["peft.dim"], Field::LoraRank),
            (&["peft.alpha"], Field::LoraAlpha),
            (&["peft.dropout"], Field::LoraDropout),
        ],
        models: &[
            "model.pretrained_model_name_or_path",
            "model.config.pretrained_model_name_or_path",
            "model.config",
        ],
        software: Software::HfTransformers,
        lacking: None,
    },
    Row {
        framework: Framework::Torchtune,
        name: "torchtune",
        signs: &["model._component_", "tokenizer._component_"],
        keys: &[
            (&["tokenizer.max_seq_len"], SeqLength),
            (&["batch_size"], MicroBatchSize),
            (&["gradient_accumulation_steps"], NumMicroBatches),
            (&["model.lora_rank"], Field::LoraRank),
            (&["model.lora_alpha"], Field::LoraAlpha),
            (&["model.lora_dropout"], Field::LoraDropout),
        ],
        models: &[],
        software: Software::TorchFsdp,
        lacking: Some("what torchtune's own layers keep for the backward pass"),
    },
    Row {
        framework: Framework::Litgpt,
        name: "litgpt",
        signs: &["train.global_batch_size", "devices"],
        keys: &[
            (&["train.max_seq_length"], SeqLength),
            (&["train.global_batch_size"], GlobalBatchSize),
            (&["train.micro_batch_size"], MicroBatchSize),
            (&["devices"], GpusPerNode),
            (&["num_nodes"], NumNodes),
            (&["lora_r"], Field::LoraRank),
            (&["lora_alpha"], Field::LoraAlpha),
            (&["lora_dropout"], Field::LoraDropout),
        ],
        models: &["model_name", "checkpoint_dir"],
        software: Software::TorchFsdp,
        lacking: Some("what litgpt's own layers keep for the backward pass"),
    },
    Row {
        framework: Framework::Levanter,
        name: "levanter",
        signs: &["trainer.train_batch_size", "model"],
        keys: &[
            (&["model.num_layers"], NumLayers),
            (&["model.hidden_dim"], HiddenSize),
            (&["model.num_heads"], NumAttentionHeads),
            (&["model.intermediate_dim"], FfnHiddenSize),
            (&["train_seq_len", "model.max_seq_len", "model.seq_len"], SeqLength),
            (&["trainer.train_batch_size"], GlobalBatchSize),
        ],
        models: &["initialize_from_hf"],
        software: Software::TorchFsdp,
        lacking: Some("a trainer in JAX, whose compiler decides what is kept and sent"),
    },
    Row {
        framework: Framework::MaxText,
        name: "MaxText",
        signs: &["per_device_batch_size", "max_target_length"],
        keys: &[
            (&["base_num_decoder_layers"], NumLayers),
            (&["base_emb_dim"], HiddenSize),
            (&["base_num_query_heads"], NumAttentionHeads),
            (&["base_mlp_dim"], FfnHiddenSize),
            (&["max_target_length"], SeqLength),
            (&["per_device_batch_size"], MicroBatchSize),
            (&["ici_tensor_parallelism"], TensorModelParallelSize),
            (&["vocab_size"], VocabSize),
        ],
        models: &["model_name"],
        software: Software::TorchFsdp,
        lacking: Some("a trainer in JAX, whose compiler decides what is kept and sent"),
    },
];

impl Framework {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::LlmFoundry,
        Self::Olmo,
        Self::Lingua,
        Self::Automodel,
        Self::Torchtune,
        Self::Litgpt,
        Self::Levanter,
        Self::MaxText,
    ];

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.framework == self)
    }

    /// Whose file a tree is, told by its keys.
    pub(super) fn of(root: &Node) -> Option<Self> {
        let there = |path: &&str| root.at(path).is_some();
        let other = ["MODEL_ARGS", "modules", "actor_rollout_ref"].iter().any(|path| root.at(path).is_some());
        ROWS.iter().find(|row| !other && row.signs.iter().all(there)).map(|row| row.framework)
    }
}

/// Reads such a file.
pub(super) fn read(framework: Framework, root: &Node) -> Reading {
    let Some(row) = framework.row() else { return Reading::default() };
    let scalars = Scalars::of(root);
    let mut leaves = Leaves::over(&scalars);
    for (paths, field) in row.keys {
        leaves.take(paths, *field);
    }
    common(&mut leaves, row);
    match framework {
        Framework::LlmFoundry => foundry(&mut leaves),
        Framework::Olmo => olmo(&mut leaves),
        Framework::Lingua => lingua(&mut leaves),
        Framework::Automodel => automodel(&mut leaves),
        Framework::Torchtune => torchtune(&mut leaves),
        Framework::Litgpt | Framework::Levanter | Framework::MaxText => {}
    }
    if leaves.reading.software.is_none() {
        leaves.reading.software = Some((row.software, format!("a configuration of {}", row.name)));
    }
    for path in row.models {
        let Some(leaf) = leaves.get(path).filter(|leaf| leaf.hole.is_none() && leaf.flag().is_none()) else {
            continue;
        };
        take_model(&mut leaves.reading, &leaf.value, &leaf.path, leaf.span);
        break;
    }
    if let Some(what) = row.lacking {
        leaves.reading.not_modelled.push(NotModelled::new("framework", row.name, Effect::Memory, what));
    }
    ask(&mut leaves);
    leaves.finish(row.name)
}

/// Keys that several of them have.
fn common(leaves: &mut Leaves<'_>, row: &Row) {
    for path in [
        "precision",
        "dtype",
        "distributed.model_dtype",
        "model.torch_dtype",
        "trainer.mp",
        "mixed_precision",
    ] {
        let Some(leaf) = leaves.get(path) else { continue };
        let lower = leaf.value.to_ascii_lowercase();
        match () {
            () if lower.contains("bf16") || lower.contains("bfloat16") => {
                leaves.switch(Field::Bf16, true, leaf)
            }
            () if lower.contains("fp16") || lower.contains("float16") || lower == "16-mixed" => {
                leaves.switch(Field::Fp16, true, leaf);
            }
            () => {}
        }
    }
    let usual = [Field::Bf16, Field::Fp16].iter().all(|field| leaves.reading.value(*field).is_none());
    if usual {
        let whose = format!("as {} trains unless told otherwise", row.name);
        leaves.state(Field::Bf16, "true", Origin::Default, &whose);
    }
    for path in
        ["model.n_kv_heads", "model.num_kv_heads", "base_num_kv_heads", "model.attn_config.kv_n_heads"]
    {
        let heads = leaves.reading.value(NumAttentionHeads).map(str::to_owned);
        if let Some(leaf) = leaves.get(path).filter(|leaf| Some(&leaf.value) != heads.as_ref()) {
            leaves.query_groups(&leaf.value, leaf);
        }
    }
    for path in [
        "optimizer.name",
        "optimizer._component_",
        "optimizer._target_",
        "optimizer.class_path",
        "optimizer.type",
    ] {
        if let Some(leaf) = leaves.get(path) {
            let name = leaf.value.rsplit('.').next().unwrap_or(&leaf.value).to_owned();
            leaves.say(Field::Optimizer, &name, leaf);
        }
    }
    for path in [
        "distributed.activation_checkpointing",
        "enable_activation_checkpointing",
        "fsdp_config.activation_checkpointing",
    ] {
        if let Some(leaf) = leaves.yes(path) {
            recompute(leaves, row.software, leaf);
        }
    }
    let offloads = [
        ("fsdp_config.activation_cpu_offload", "kept layer inputs that go to the host"),
        ("enable_activation_offloading", "kept layer inputs that go to the host"),
        ("fsdp_cpu_offload", "weights, gradients and optimizer states on the host (FSDP)"),
    ];
    for (path, what) in offloads {
        if let Some(leaf) = leaves.yes(path) {
            let item = NotModelled::new(path, "", Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
}

fn recompute(leaves: &mut Leaves<'_>, software: Software, leaf: &Leaf) {
    if software == Software::HfTransformers {
        leaves.switch(Field::GradientCheckpointing, true, leaf);
    } else {
        leaves.recompute_all(leaf);
        leaves.say(Field::RecomputeNumLayers, "1", leaf);
    }
}

fn foundry(leaves: &mut Leaves<'_>) {
    let strategy = leaves.get("fsdp_config.sharding_strategy");
    if let Some(leaf) = strategy {
        let stage = match leaf.value.as_str() {
            "NO_SHARD" => "0",
            "SHARD_GRAD_OP" => "2",
            _ => "3",
        };
        leaves.say(Field::ZeroStage, stage, leaf);
    }
    if leaves.text("model.name") == Some("hf_causal_lm") {
        leaves.reading.software =
            Some((Software::HfTransformers, "llm-foundry with a model of transformers".to_owned()));
        leaves.state(Field::DataParallelEngine, "fsdp1", Origin::Default, "llm-foundry shards by FSDP");
        if let Some(leaf) = leaves.yes("model.use_flash_attention_2") {
            leaves.say(Field::AttnImplementation, "flash_attention_2", leaf);
        }
        return;
    }
    // MPT (`llmfoundry/models/mpt/configuration_mpt.py`): biases and learned positions unless told otherwise, tied.
    let why = "the code of MPT";
    let ratio = leaves.whole("model.expansion_ratio").unwrap_or(4);
    if let Some(width) = leaves.reading.count(HiddenSize).and_then(|hidden| hidden.checked_mul(ratio)) {
        leaves.state(FfnHiddenSize, &width.to_string(), Origin::Derived, why);
    }
    leaves.follow("model.no_bias", Field::AddBiasLinear, false);
    if let Some(leaf) = leaves.yes("model.attn_config.alibi") {
        leaves.say(Field::PositionEmbeddingType, "alibi", leaf);
    }
    if let Some(leaf) = leaves.yes("model.attn_config.rope") {
        leaves.say(Field::PositionEmbeddingType, "rope", leaf);
    }
    leaves.state_all(
        &[(Field::HiddenDropout, "0"), (Field::AttentionDropout, "0"), (Field::AttentionKernel, "flash")],
        Origin::Default,
        why,
    );
}

/// OLMo counts both halves of a gated MLP (`olmo/config.py`, ModelConfig).
fn olmo(leaves: &mut Leaves<'_>) {
    let gated = leaves.text("model.activation_type") == Some("swiglu");
    if let Some(leaf) = leaves.get("model.mlp_hidden_size")
        && let Some(width) = leaf.whole()
    {
        let own = if gated { width / 2 } else { width };
        leaves.say_noted(FfnHiddenSize, &own.to_string(), leaf, "OLMo counts both halves of a gated MLP");
        if gated {
            leaves.switch(Field::Swiglu, true, leaf);
        }
    }
    leaves.follow("model.weight_tying", Field::UntieEmbeddingsAndOutputWeights, false);
    leaves.follow("model.include_bias", Field::AddBiasLinear, true);
    if let Some(leaf) = leaves.yes("model.rope") {
        leaves.say(Field::PositionEmbeddingType, "rope", leaf);
    }
    if let Some(leaf) = leaves.get("model.layer_norm_type") {
        leaves.say(Field::Normalization, if leaf.value == "rms" { "RMSNorm" } else { "LayerNorm" }, leaf);
    }
    leaves.state_all(
        &[(Field::ZeroStage, "3"), (Field::HiddenDropout, "0"), (Field::AttentionDropout, "0")],
        Origin::Default,
        "OLMo's FSDP",
    );
}

fn lingua(leaves: &mut Leaves<'_>) {
    let why =
        "lingua's transformer: gated, RMS norms, rotary positions, MLP of 8/3 the width in multiples of 256";
    if let Some(hidden) = leaves.reading.count(HiddenSize) {
        /// `lingua/transformer.py`, FeedForward with multiple_of.
        const MULTIPLE: u64 = 256;
        let width = hidden.saturating_mul(8).div_ceil(3).next_multiple_of(MULTIPLE);
        leaves.state(FfnHiddenSize, &width.to_string(), Origin::Derived, why);
    }
    leaves.state_all(
        &[
            (Field::Swiglu, "true"),
            (Field::Normalization, "RMSNorm"),
            (Field::PositionEmbeddingType, "rope"),
            (Field::AddBiasLinear, "false"),
            (Field::UntieEmbeddingsAndOutputWeights, "true"),
            (Field::HiddenDropout, "0"),
            (Field::AttentionDropout, "0"),
        ],
        Origin::Derived,
        why,
    );
    let stage = if leaves.text("distributed.fsdp_type") == Some("no_shard") { "0" } else { "3" };
    if let Some(leaf) = leaves.get("distributed.fsdp_type") {
        leaves.say(Field::ZeroStage, stage, leaf);
    }
}

fn automodel(leaves: &mut Leaves<'_>) {
    let second = leaves.text("distributed.strategy").is_none_or(|strategy| strategy == "fsdp2");
    let engine = if second { "fsdp2" } else { "ddp" };
    leaves.state(Field::DataParallelEngine, engine, Origin::Default, "default of Automodel");
    leaves.state(
        Field::ZeroStage,
        if second { "3" } else { "0" },
        Origin::Default,
        "Automodel shards by FSDP2",
    );
    if leaves.reading.value(Field::LoraRank).is_some() {
        leaves.state(Field::TrainType, "lora", Origin::Derived, "the text sets up LoRA");
        leaves.state(Field::LoraTargetModules, "all-linear", Origin::Default, "default of Automodel");
    }
    let own = leaves.all().iter().find(|leaf| leaf.path.starts_with("model.backend."));
    if let Some(leaf) = own {
        let what = "kernels and layers of Automodel's own in the place of transformers'";
        let item = NotModelled::new("model.backend", "", Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    let cut =
        [TensorModelParallelSize, PipelineModelParallelSize, ContextParallelSize, ExpertModelParallelSize];
    if cut.iter().any(|field| leaves.reading.count(*field).is_some_and(|degree| degree > 1)) {
        let what =
            "a model of transformers cut by Automodel (tensor, pipeline, context or expert parallelism)";
        leaves.reading.not_modelled.push(NotModelled::new("distributed", "", Effect::Memory, what));
    }
    if leaves.all().iter().any(|leaf| leaf.path.starts_with("fp8.") || leaf.path.starts_with("quantization."))
    {
        leaves.reading.not_modelled.push(NotModelled::new(
            "fp8",
            "",
            Effect::Memory,
            "linear layers in fp8 or quantised",
        ));
    }
}

/// Models by the name of the function that builds them: `torchtune.models.llama3_1.lora_llama3_1_8b`.
fn torchtune(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("model._component_") else { return };
    let mut name = leaf.value.rsplit('.').next().unwrap_or(&leaf.value);
    for (prefix, kind) in [("qlora_", "qlora"), ("lora_", "lora"), ("dora_", "lora")] {
        if let Some(rest) = name.strip_prefix(prefix) {
            leaves.say(Field::TrainType, kind, leaf);
            name = rest;
        }
    }
    let dotted = ["3_1", "3_2", "3_3", "2_5"]
        .iter()
        .fold(name.to_owned(), |name, part| name.replace(part, &part.replace('_', ".")));
    match super::known_model(&dotted) {
        Some((known, settings)) => {
            let note = [known, ", named as ", &leaf.value].concat();
            for (field, value) in settings {
                leaves.state(field, &value, Origin::Catalog, &note);
            }
        }
        None => take_model(&mut leaves.reading, &dotted, &leaf.path, leaf.span),
    }
    leaves.state(Field::ZeroStage, "3", Origin::Default, "torchtune's distributed recipes shard by FSDP2");
}

fn ask(leaves: &mut Leaves<'_>) {
    for (field, prompt, proposal) in [
        (SeqLength, "On sequences of how many tokens is it trained?", "4096"),
        (MicroBatchSize, "How many sequences has a micro-batch?", "1"),
    ] {
        if !leaves.reading.found.iter().any(|found| found.field == field) {
            leaves.reading.questions.push(Question {
                name: field.name().to_owned(),
                prompt: prompt.to_owned(),
                choices: Vec::new(),
                proposal: Some(proposal.to_owned()),
            });
        }
    }
}

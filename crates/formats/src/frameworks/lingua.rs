//! Meta's lingua. Keys: `apps/main/train.py:TrainArgs`, `lingua/distributed.py`, `apps/main/transformer.py`.

use super::row::Row;
use crate::leaves::{Leaf, Leaves};
use crate::llama_like::{LLAMA_LAYER, inner_width};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

/// lingua's settings file.
pub(crate) const LINGUA: Row = Row {
    trainer: "lingua",
    title: "a configuration of lingua",
    about: "lingua: its transformer, compiled, under FSDP2",
    signs: &[&["distributed.fsdp_type", "model.dim"]],
    keys: &[
        (&["model.n_layers"], Field::NumLayers),
        (&["model.dim"], Field::HiddenSize),
        (&["model.n_heads"], Field::NumAttentionHeads),
        (&["model.vocab_size"], Field::VocabSize),
        (&["data.seq_len"], Field::SeqLength),
        (&["data.batch_size"], Field::MicroBatchSize),
        (&["grad_acc_steps"], Field::NumMicroBatches),
        (&["steps"], Field::TrainIters),
        (&["distributed.tp_size"], Field::TensorModelParallelSize),
    ],
    models: &[],
    // Its compiled layers save the same tensors as torchtitan's, and its FSDP2 shards are the same.
    software: Software::Torchtitan,
    lacking: None,
    extra: lingua,
    program: None,
};

fn lingua(leaves: &mut Leaves<'_>) {
    let why =
        "lingua's transformer: gated, RMS norms, rotary positions, MLP of 8/3 the width in multiples of 256";
    if let Some(hidden) = leaves.reading.count(Field::HiddenSize) {
        // `lingua/transformer.py:FeedForward`: int(2/3 of four times the width), times a
        // factor, rounded up to a multiple.
        let multiple = leaves.whole("model.multiple_of").unwrap_or(256).max(1);
        let factor = leaves.text("model.ffn_dim_multiplier").and_then(|factor| factor.parse::<f64>().ok());
        if let Some(width) = inner_width(hidden, factor, multiple) {
            leaves.state(Field::FfnHiddenSize, &width.to_string(), Origin::Derived, why);
        }
    }
    leaves.follow("model.weight_tying", Field::UntieEmbeddingsAndOutputWeights, false);
    leaves.state_all(&LLAMA_LAYER, Origin::Derived, why);
    leaves.take(&["model.head_dim"], Field::KvChannels);
    // Layers stay gathered from forward to backward (`apps/main/transformer.py:build_fsdp_grouping_plan`).
    let stage = if leaves.text("distributed.fsdp_type") == Some("no_shard") { "0" } else { "2" };
    if let Some(leaf) = leaves.get("distributed.fsdp_type") {
        leaves.say(Field::ZeroStage, stage, leaf);
    }
    leaves.state_all(&FIXED, Origin::Default, "lingua");
    copies(leaves);
    stops(leaves);
}

/// The number of ranks that share one copy (`lingua/distributed.py:get_device_mesh`); there are as many copies as the
/// machines hold, whatever `dp_replicate` says (`apps/main/train.py:validate_train_args`). With one shard FSDP2 shards
/// over the ranks that would hold copies.
fn copies(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("distributed.dp_shard").filter(|leaf| leaf.whole() > Some(1)) {
        leaves.say(Field::ShardRanks, &leaf.value, leaf);
    }
}

/// Settings of every run: compiled layers and loss, FSDP2 with fp32 shards and reductions.
const FIXED: [(Field, &str); 9] = [
    (Field::CompiledLayers, "true"),
    (Field::LossKind, "compiled"),
    (Field::AttentionKernel, "flash"),
    (Field::GradsDtype, "fp32"),
    (Field::OverlapGradReduce, "true"),
    (Field::OverlapParamGather, "true"),
    (Field::MakeVocabSizeDivisibleBy, "1"),
    (Field::PadVocabSize, "false"),
    (Field::Optimizer, "adam"),
];
/// Keys of the transformer.
const MODEL: &str = "dim n_layers head_dim n_heads n_kv_heads ffn_dim_multiplier multiple_of norm_eps rope_theta init_base_std \
    init_std_factor max_seqlen seed vocab_size weight_tying sliding_window";

fn stops(leaves: &mut Leaves<'_>) {
    let all = leaves.all();
    let mut lack = |path: &str, leaf: Option<&Leaf>, effect, what: &str| {
        let value = leaf.map_or("", |leaf| leaf.value.as_str());
        let item = NotModelled::new(path, value, effect, what).at_some(leaf.and_then(|leaf| leaf.span));
        leaves.reading.not_modelled.push(item);
    };
    let find = |path: &str| {
        all.iter().rfind(|leaf| leaf.path == path && !matches!(leaf.value.as_str(), "" | "null" | "~"))
    };
    let more = |path: &str| find(path).filter(|leaf| leaf.whole() != Some(1));
    if find("distributed.compile").and_then(Leaf::flag) != Some(true) {
        lack("distributed.compile", None, Effect::Memory, "layers that are not compiled");
    }
    for (path, effect, what) in [
        ("distributed.tp_size", Effect::Memory, "tensor parallelism of lingua"),
        ("grad_acc_steps", Effect::Communication, "gradients reduced only after the last micro-batch"),
    ] {
        if let Some(leaf) = more(path) {
            lack(path, Some(leaf), effect, what);
        }
    }
    let checkpoints = find("distributed.selective_activation_checkpointing");
    for (leaf, what) in [
        (checkpoints.filter(|leaf| leaf.flag() == Some(true)), "selective checkpointing by op name"),
        (find("distributed.float8_recipe"), "linear layers in fp8"),
        (find("probe_freq"), "a probe, which runs half a batch uncompiled"),
        (
            find("distributed.fsdp_type").filter(|leaf| leaf.value == "no_shard"),
            "FSDP2 over one rank, which holds weights in fp32 and again in the compute dtype",
        ),
    ] {
        if let Some(leaf) = leaf {
            lack(&leaf.path, Some(leaf), Effect::Memory, what);
        }
    }
    let evaluates = all.iter().find(|leaf| leaf.path.starts_with("eval."));
    if let Some(leaf) = evaluates.filter(|_| find("async_eval_gpus").is_none()) {
        lack(
            "eval",
            Some(leaf),
            Effect::Memory,
            "evaluation during training, which loads the model a second time",
        );
    }
    let other = |leaf: &&Leaf| {
        let name = leaf.path.strip_prefix("model.");
        name.is_some_and(|name| !MODEL.split_ascii_whitespace().any(|known| known == name))
    };
    if let Some(leaf) = all.iter().find(other) {
        lack(&leaf.path, Some(leaf), Effect::Model, "layers other than those of lingua's transformer");
    }
    leaves.pass_below(&[
        "name",
        "dump_dir",
        "seed",
        "gc_collect_freq",
        "probe_freq",
        "async_eval_gpus",
        "eval.",
        "optim.",
        "profiling.",
        "env.",
        "model.",
        "distributed.dp_",
        "distributed.compile",
        "distributed.selective",
        "distributed.float8_",
        "distributed.matmul_",
        "distributed.allow_",
        "distributed.spawn_",
    ]);
    if let Some(leaf) = leaves.get("model.dim") {
        leaves.not_estimated(
            leaf,
            "FSDP2 casts the table of rotations for every layer, 4 bytes for each token of a sequence \
            and each element of a head",
        );
    }
}

//! `TransformerTrainModuleConfig`: batch, data parallelism, compiler, checkpointing, loss and optimizer.

use super::stated::{DEFAULT, lack, lack_below, stated};
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// Parts of `train_module` that change a figure and have no formula.
const LACKING: &[(&str, Effect, &str)] = &[
    ("tp_config", Effect::Memory, "tensor parallelism with plain PyTorch modules (DTensor)"),
    ("cp_config", Effect::Memory, "context parallelism with plain PyTorch modules"),
    ("ep_config", Effect::Model, "expert parallelism with plain PyTorch modules"),
    ("pp_config", Effect::Memory, "pipelines of plain PyTorch modules"),
    ("autocast_precision", Effect::Memory, "OLMo-core's layers under autocast"),
];

pub(super) fn training(leaves: &mut Leaves<'_>) {
    batch(leaves);
    for (key, effect, what) in LACKING {
        lack_below(leaves, &format!("train_module.{key}"), *effect, what);
    }
    if let Some(leaf) = leaves.yes("train_module.float8_config.enabled") {
        lack(leaves, leaf, Effect::Memory, "float8 in OLMo-core's layers");
    }
    leaves.pass_below(&["train_module.float8_config."]);
    data_parallel(leaves);
    checkpointing(leaves);
    let squared = stated(leaves, "train_module.z_loss_multiplier");
    if let Some(leaf) = leaves.yes("train_module.compile_model") {
        leaves.switch(Field::CompiledLayers, true, leaf);
        let note = "output layer and loss are compiled together: no fp32 logits are made";
        leaves.say_noted(Field::LossKind, "compiled", leaf, note);
        if let Some(leaf) = squared {
            leaves.switch(Field::LogitsZLoss, true, leaf);
        }
    } else if let Some(leaf) = squared {
        lack(
            leaves,
            leaf,
            Effect::Memory,
            "an auxiliary loss on the logits that is not compiled with the main loss",
        );
    }
    leaves.pass("train_module.compile_model");
    optimizer(leaves);
    for path in ["dataset.generate_doc_lengths", "data_loader.generate_doc_lengths"] {
        if let Some(leaf) = leaves.yes(path) {
            let what = "document masking, with document lengths that are unknown";
            lack(leaves, leaf, Effect::Time, what);
        }
    }
    leaves.state(Field::CreateAttentionMaskInDataloader, "false", Origin::Default, DEFAULT);
}

/// Batches are stated in tokens.
fn batch(leaves: &mut Leaves<'_>) {
    let length = leaves.reading.count(Field::SeqLength).filter(|length| *length > 0);
    for (path, field) in [
        ("train_module.rank_microbatch_size", Field::MicroBatchSize),
        ("data_loader.global_batch_size", Field::GlobalBatchSize),
    ] {
        let Some(leaf) = stated(leaves, path) else { continue };
        let Some(tokens) = leaf.whole().filter(|_| leaf.hole.is_none()) else {
            leaves.say(field, &leaf.value, leaf);
            continue;
        };
        match length {
            Some(length) if tokens.is_multiple_of(length) => {
                leaves.say_noted(
                    field,
                    &(tokens / length).to_string(),
                    leaf,
                    "tokens over the sequence length",
                );
            }
            Some(_) => lack(
                leaves,
                leaf,
                Effect::Memory,
                "a batch that is not a whole number of sequences, which OLMo-core rejects",
            ),
            None => {}
        }
    }
}

/// `DataParallelConfig` (`distributed/parallel/data_parallel.py`).
fn data_parallel(leaves: &mut Leaves<'_>) {
    let Some(name) = stated(leaves, "train_module.dp_config.name") else {
        let what = "training without FSDP, in fp32";
        let item = NotModelled::new("train_module.dp_config", "", Effect::Memory, what);
        leaves.reading.not_modelled.push(item);
        return;
    };
    let kind = name.value.rsplit('.').next().unwrap_or("");
    if kind != "fsdp" && kind != "hsdp" {
        return lack(leaves, name, Effect::Memory, "OLMo-core under DDP");
    }
    leaves.say(Field::DataParallelEngine, "fsdp2", name);
    leaves.say(Field::ZeroStage, "3", name);
    if kind == "hsdp" {
        let copies = stated(leaves, "train_module.dp_config.num_replicas");
        let shards = stated(leaves, "train_module.dp_config.shard_degree");
        match (copies, shards) {
            (Some(copies), _) => leaves.say(Field::NumDistributedOptimizerInstances, &copies.value, copies),
            (None, Some(shards)) => leaves.say(Field::ShardRanks, &shards.value, shards),
            (None, None) => leaves.switch(Field::ShardWithinNodes, true, name),
        }
    }
    for path in ["num_replicas", "shard_degree"] {
        leaves.pass(&format!("train_module.dp_config.{path}"));
    }
    let format = |leaf: &Leaf| leaf.value.rsplit('.').next().unwrap_or("").to_owned();
    match stated(leaves, "train_module.dp_config.param_dtype") {
        Some(leaf) if format(leaf) == "bfloat16" => leaves.switch(Field::Bf16, true, leaf),
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "this dtype of OLMo-core's gathered weights"),
        None => leaves.state(
            Field::Bf16,
            "false",
            Origin::Default,
            "gathered in fp32, unless dp_config says otherwise",
        ),
    }
    match stated(leaves, "train_module.dp_config.reduce_dtype") {
        Some(leaf) if format(leaf) == "bfloat16" => leaves.say(Field::ReduceDtype, "bf16", leaf),
        Some(leaf) if format(leaf) != "float32" => {
            lack(leaves, leaf, Effect::Memory, "this dtype of OLMo-core's reduced gradients");
        }
        Some(leaf) => leaves.say(Field::ReduceDtype, "fp32", leaf),
        None => leaves.state(Field::ReduceDtype, "fp32", Origin::Default, DEFAULT),
    }
    // `nn/transformer/model.py:apply_fsdp`.
    let tied = leaves.flag("model.tie_word_embeddings") == Some(true);
    match stated(leaves, "train_module.dp_config.wrapping_strategy") {
        Some(leaf) if format(leaf) == "blocks" && !tied => {
            leaves.switch(Field::FsdpEmbeddingApart, true, leaf)
        }
        Some(leaf) if !matches!(format(leaf).as_str(), "full" | "blocks") => {
            lack(leaves, leaf, Effect::Memory, "FSDP units of parts of a layer");
        }
        // A tied weight belongs to the unit outside the layers.
        _ if tied => {}
        Some(leaf) => leaves.switch(Field::FsdpEndsApart, true, leaf),
        None => leaves.state(Field::FsdpEndsApart, "true", Origin::Default, DEFAULT),
    }
    // FSDP2 prefetches one layer ahead by default.
    if let Some(leaf) =
        stated(leaves, "train_module.dp_config.prefetch_factor").filter(|leaf| leaf.whole() > Some(1))
    {
        lack(leaves, leaf, Effect::Memory, "prefetching several layers");
    }
}

/// `TransformerActivationCheckpointingConfig`; `full` if it is present without a mode.
fn checkpointing(leaves: &mut Leaves<'_>) {
    let below = "train_module.ac_config.";
    let within = leaves.all().iter().find(|leaf| leaf.path.starts_with(below));
    let Some(first) = within.or_else(|| stated(leaves, "train_module.ac_config")) else {
        return;
    };
    let mode = stated(leaves, "train_module.ac_config.mode");
    let leaf = mode.unwrap_or(first);
    let named = mode.map_or("full", |leaf| leaf.value.rsplit('.').next().unwrap_or(""));
    match named {
        "full" => whole_layers(leaves, leaf, "uniform", "1"),
        "selected_blocks" => {
            let every = stated(leaves, "train_module.ac_config.block_interval").and_then(Leaf::whole);
            let every = every.filter(|every| *every > 0).unwrap_or(1);
            whole_layers(leaves, leaf, "every", &every.to_string());
        }
        "selected_modules" if only_mlp(leaves) => {
            leaves.say(Field::RecomputeGranularity, "selective", leaf);
            leaves.say(Field::RecomputeModules, "mlp", leaf);
        }
        "budget" => {
            lack(
                leaves,
                leaf,
                Effect::Memory,
                "torch.compile's activation memory budget, whose partitioner decides what is saved",
            );
        }
        _ => lack(leaves, leaf, Effect::Memory, "checkpointing of these parts of OLMo-core's layers"),
    }
    leaves.pass_below(&[below]);
}

fn whole_layers(leaves: &mut Leaves<'_>, leaf: &Leaf, method: &str, layers: &str) {
    leaves.say(Field::RecomputeGranularity, "full", leaf);
    leaves.say(Field::RecomputeMethod, method, leaf);
    leaves.say(Field::RecomputeNumLayers, layers, leaf);
}

/// Whether only the MLPs of compiled layers are checkpointed, a case that was recorded.
fn only_mlp(leaves: &mut Leaves<'_>) -> bool {
    let modules: Vec<&Leaf> =
        leaves.all().iter().filter(|leaf| leaf.path.starts_with("train_module.ac_config.modules")).collect();
    let all = "blocks.*.feed_forward";
    let only = !modules.is_empty()
        && modules.iter().all(|leaf| leaf.value.trim_matches(['[', ']', '"', '\'']) == all);
    only && leaves.yes("train_module.compile_model").is_some()
}

/// Adam's states have the type of the weights, fp32 (`optim/adamw.py`, `optim/lion.py`).
fn optimizer(leaves: &mut Leaves<'_>) {
    let paths = [
        "train_module.optim._CLASS_",
        "train_module.optim",
        "train_module.optim.name",
        "train_module.optim.type",
    ];
    if let Some(leaf) = paths.into_iter().find_map(|path| stated(leaves, path)) {
        let class =
            leaf.value.rsplit('.').next().unwrap_or("").trim_end_matches("Config").to_ascii_lowercase();
        match class.as_str() {
            "adamw" | "skipstepadamw" | "adam" => leaves.say(Field::Optimizer, "adamw", leaf),
            "lion" | "skipsteplion" => leaves.say(Field::Optimizer, "lion", leaf),
            _ => lack(leaves, leaf, Effect::Memory, "the states of this OLMo-core optimizer"),
        }
    }
    if let Some(leaf) =
        stated(leaves, "train_module.optim.dtype").filter(|leaf| !leaf.value.ends_with("float32"))
    {
        lack(leaves, leaf, Effect::Memory, "optimizer states in a dtype other than the weights'");
    }
    leaves.pass_below(&["train_module.optim."]);
}

//! torchtitan: the TOML files it had until February 2026, and its command line (`--training.seq_len 8192`).
//! Keys and defaults: `torchtitan/config/job_config.py` of January 2026 and older names of its keys.

use super::leaves::{Leaf, Leaves, Scalars};
use super::llama_like::LLAMA_LAYER;
use super::reader::{Claim, Reader};
use super::signs;
use crate::{Argument, Origin, Reading};
use shardscope_catalog as catalog;
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic};

const WHOSE: &str = "default of torchtitan";

const PLAIN: &[(&[&str], Field)] = &[
    (&["training.seq_len"], Field::SeqLength),
    (&["training.steps"], Field::TrainIters),
    (
        &["parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"],
        Field::TensorModelParallelSize,
    ),
    (
        &["parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"],
        Field::PipelineModelParallelSize,
    ),
    (
        &["parallelism.context_parallel_degree", "experimental.context_parallel_degree"],
        Field::ContextParallelSize,
    ),
    (&["parallelism.expert_parallel_degree"], Field::ExpertModelParallelSize),
    (&["parallelism.expert_tensor_parallel_degree"], Field::ExpertTensorParallelSize),
    (
        &["parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"],
        Field::TpCommOverlap,
    ),
];

/// What torchtitan's models and trainer have in common beyond a Llama-like layer.
const FIXED: &[(Field, &str)] = &[
    (Field::AttentionKernel, "flash"),
    (Field::SequenceParallel, "true"),
    (Field::OverlapGradReduce, "true"),
    (Field::OverlapParamGather, "true"),
    (Field::MakeVocabSizeDivisibleBy, "1"),
    (Field::PadVocabSize, "false"),
    (Field::GradsDtype, "fp32"),
];

/// First keys of its settings.
const KEYS: &[&str] =
    &["training.", "parallelism.", "activation_checkpoint.", "job.", "compile.", "lr_scheduler.", "metrics."];

/// torchtitan's TOML and command line.
#[derive(Debug)]
pub(super) struct Torchtitan;

impl Reader for Torchtitan {
    fn name(&self) -> &'static str {
        "a torchtitan configuration"
    }

    fn about(&self) -> &'static str {
        "torchtitan's TOML and its command line"
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        const SIGNS: &[&str] = &[
            "model.flavor",
            "training.seq_len",
            "parallelism.tensor_parallel_degree",
            "activation_checkpoint.mode",
        ];
        signs::any(tree, SIGNS)
    }

    fn read(&self, root: &Node) -> Reading {
        read(root)
    }

    fn read_with_words(&self, root: &Node, words: &[Argument]) -> Option<Reading> {
        Some(read_both(root, words))
    }

    fn keys(&self) -> Vec<(&'static str, Field)> {
        PLAIN.iter().flat_map(|(names, field)| names.iter().map(|name| (*name, *field))).collect()
    }

    fn dotted(&self) -> &'static [&'static str] {
        KEYS
    }

    fn programs(&self) -> &'static [&'static str] {
        &["torchtitan.train", "torchtitan/train.py"]
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        read_words(words)
    }
}

/// Reads a torchtitan TOML file.
fn read(root: &Node) -> Reading {
    finish(&Scalars::of(root))
}

/// Reads the words of a torchtitan command.
fn read_words(words: &[Argument]) -> Reading {
    finish(&Scalars::of_words(words))
}

/// Reads a TOML file with the words of the command that takes it, which win.
fn read_both(root: &Node, words: &[Argument]) -> Reading {
    let mut scalars = Scalars::of(root);
    scalars.extend(Scalars::of_words(words));
    finish(&scalars)
}

/// Reads these scalars as a configuration.
pub(super) fn finish(scalars: &Scalars) -> Reading {
    let mut leaves = Leaves::over(scalars);
    for (paths, field) in PLAIN {
        leaves.take(paths, *field);
    }
    leaves.state(Field::SeqLength, "2048", Origin::Default, WHOSE);
    model(&mut leaves);
    batch(&mut leaves);
    sharding(&mut leaves);
    pipeline(&mut leaves);
    recompute(&mut leaves);
    compiled(&mut leaves);
    precision(&mut leaves);
    if leaves.reading.value(Field::TensorModelParallelSize).is_none_or(|degree| degree == "1") {
        leaves.state(Field::SequenceParallel, "false", Origin::Derived, "without tensor parallelism");
    }
    leaves.state_all(&LLAMA_LAYER, Origin::Derived, "the code of torchtitan's models");
    leaves.state_all(FIXED, Origin::Derived, "the code of torchtitan's models");
    leaves.reading.software = Some((Software::Torchtitan, "a torchtitan configuration".to_owned()));
    // The file whose settings these are, or that is asked for by name.
    leaves.pass("job.config_file");
    leaves.finish("a torchtitan configuration")
}

/// The shape, by name and flavor.
fn model(leaves: &mut Leaves<'_>) {
    let name = leaves.get("model.name");
    let flavor = leaves.get("model.flavor");
    let (Some(name), Some(flavor)) = (name, flavor) else { return };
    let size = flavor.value.split('_').next().unwrap_or("");
    let (family, size) = match (name.value.as_str(), size) {
        ("llama3", size) => ("Llama-3.1", size),
        ("llama2", size) => ("Llama-2", size),
        ("deepseek_v3", "16B") => ("DeepSeek-V2", "Lite"),
        ("deepseek_v3", "236B") => ("DeepSeek-V2", ""),
        ("deepseek_v3", "671B") => ("DeepSeek-V3", ""),
        ("qwen3", size) => ("Qwen3", size),
        ("gpt_oss", size) => ("gpt-oss", size),
        (name, size) => (name, size),
    };
    let wanted = format!("{family}{}{size}", if size.is_empty() { "" } else { "-" });
    match catalog::model(&wanted) {
        Some((known, settings)) => {
            let note = format!("{known}, the model of {} {}", name.value, flavor.value);
            for (field, value) in settings {
                leaves.state(field, &value, Origin::Catalog, &note);
            }
        }
        None => {
            let message = format!("the shape of {} {} is not known here", name.value, flavor.value);
            let hint = "torchtitan keeps it in code; add the model's config.json, or set its sizes by hand";
            leaves
                .reading
                .diagnostics
                .push(Diagnostic::warning(Code::UnknownModel, message).hint(hint).at_some(flavor.span));
        }
    }
}

/// The local batch is of a data-parallel rank; a pipeline cuts it into micro-batches (of one sequence unless given).
fn batch(leaves: &mut Leaves<'_>) {
    let local = leaves.first(&["training.local_batch_size", "training.batch_size"]);
    let stages = leaves.reading.count(Field::PipelineModelParallelSize);
    let size = local.map_or(Some(8), Leaf::whole);
    let slice = leaves.get("parallelism.pipeline_parallel_microbatch_size");
    let global = leaves.get("training.global_batch_size").filter(|leaf| leaf.whole().is_some());
    if stages.unwrap_or(1) > 1 {
        let older = older_slice(leaves, size, stages.unwrap_or(1));
        let micro = slice.and_then(Leaf::whole).or(older).unwrap_or(1).max(1);
        match slice {
            Some(leaf) => leaves.say(Field::MicroBatchSize, &micro.to_string(), leaf),
            None => leaves.state(Field::MicroBatchSize, &micro.to_string(), Origin::Default, WHOSE),
        }
        let count = size.unwrap_or(micro) / micro;
        match (local, global) {
            (Some(leaf), None) => leaves.say_noted(
                Field::NumMicroBatches,
                &count.to_string(),
                leaf,
                "the local batch over its micro-batches",
            ),
            (None, None) => leaves.state(Field::NumMicroBatches, &count.to_string(), Origin::Default, WHOSE),
            _ => {}
        }
    } else {
        match local {
            Some(leaf) => drop(leaves.take(&[&leaf.path], Field::MicroBatchSize)),
            None => leaves.state(Field::MicroBatchSize, "8", Origin::Default, WHOSE),
        }
        if global.is_none() {
            leaves.state(Field::NumMicroBatches, "1", Origin::Default, WHOSE);
        }
    }
    if let Some(leaf) = global {
        leaves.say(Field::GlobalBatchSize, &leaf.value, leaf);
    }
}

/// Sequences of a micro-batch as configurations from before April 2025 have it (torchtitan's pull request 1073): the local
/// batch is cut into a number of micro-batches, as many as pipeline ranks unless given. They are told by that number, or by
/// the pipeline's degree under `experimental`.
fn older_slice(leaves: &mut Leaves<'_>, local: Option<u64>, stages: u64) -> Option<u64> {
    let given = leaves.first(&[
        "parallelism.pipeline_parallel_microbatches",
        "experimental.pipeline_parallel_microbatches",
    ]);
    let is_older = given.is_some() || leaves.get("experimental.pipeline_parallel_degree").is_some();
    let count = given.and_then(Leaf::whole).unwrap_or(stages).max(1);
    local.filter(|local| is_older && local.is_multiple_of(count)).map(|local| local / count)
}

/// FSDP2 over the shard degree, replicas of it over the replicate degree; -1 takes all ranks left.
fn sharding(leaves: &mut Leaves<'_>) {
    let shard =
        leaves.first(&["parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree"]);
    let replicate = leaves
        .first(&["parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"]);
    let shards = shard.and_then(Leaf::whole);
    let replicas = replicate.and_then(Leaf::whole).unwrap_or(1).max(1);
    if let (Some(shards), Some(leaf)) = (shards, shard) {
        let data = shards.max(1).saturating_mul(replicas);
        leaves.say_noted(Field::DataParallelSize, &data.to_string(), leaf, "replicas x shards");
    }
    if let Some(leaf) = replicate.filter(|_| replicas > 1 && shards != Some(1)) {
        leaves.not_estimated(
            leaf,
            "weights are sharded inside each replica; here they count as sharded over all",
        );
    }
    let reshard = leaves.get("parallelism.fsdp_reshard_after_forward");
    let piped = leaves.reading.value(Field::PipelineModelParallelSize).is_some_and(|stages| stages != "1");
    let keep = match reshard.map_or("default", |leaf| leaf.value.as_str()) {
        "never" => true,
        "always" => false,
        _ => piped,
    };
    let (stage, note) = match (shards, keep) {
        (Some(0 | 1), _) => ("0", "one shard: nothing is shared"),
        (_, true) => ("2", "FSDP2 that keeps gathered weights until the backward pass"),
        (_, false) => ("3", "FSDP2"),
    };
    leaves.state(Field::ZeroStage, stage, Origin::Derived, note);
    leaves.turn_on("training.enable_cpu_offload", Field::OffloadOptimizer);
    leaves.turn_on("training.enable_cpu_offload", Field::OffloadParam);
}

fn pipeline(leaves: &mut Leaves<'_>) {
    let piped = leaves.reading.value(Field::PipelineModelParallelSize).is_some_and(|stages| stages != "1");
    let Some(leaf) =
        leaves.first(&["parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"])
    else {
        return;
    };
    if !piped {
        return;
    }
    let name = leaf.value.to_ascii_lowercase();
    let (schedule, chunks) = match name.as_str() {
        "gpipe" => ("gpipe", 1),
        "interleaved1f1b" | "loopedbfs" => ("1f1b", 2),
        "zbvzerobubble" => ("zb-v", 2),
        "dualpipev" => ("dualpipe-v", 2),
        "interleavedzerobubble" => ("zb-h1", 2),
        _ => ("1f1b", 1),
    };
    leaves.say(Field::PipelineSchedule, schedule, leaf);
    let per_stage = leaves.get("parallelism.pipeline_parallel_layers_per_stage");
    if chunks > 1 {
        match per_stage {
            Some(leaf) => leaves.say(Field::NumLayersPerVirtualPipelineStage, &leaf.value, leaf),
            None => leaves.say_noted(
                Field::VirtualPipelineModelParallelSize,
                "2",
                leaf,
                "two stages per rank, torchtitan's default",
            ),
        }
    }
}

fn recompute(leaves: &mut Leaves<'_>) {
    let mode = leaves.get("activation_checkpoint.mode");
    let option = leaves.get("activation_checkpoint.selective_ac_option");
    let word = mode.map_or("selective", |leaf| leaf.value.as_str());
    let every = option.map_or(Some(2), Leaf::whole);
    let layers = leaves.reading.count(Field::NumLayers);
    let stages = leaves.reading.count(Field::PipelineModelParallelSize);
    let per_rank = layers.map(|layers| layers / stages.unwrap_or(1).max(1));
    let nowhere = Leaf::default();
    let place = option.or(mode).unwrap_or(&nowhere);
    match (word, every, per_rank) {
        ("full", ..) => whole_layers(leaves, mode.unwrap_or(&nowhere), "uniform", 1, "every layer"),
        ("selective", Some(every), Some(layers)) if every > 0 => {
            let note = format!("one layer in {every} is recomputed");
            whole_layers(leaves, place, "block", (layers / every).max(1), &note);
        }
        ("selective", ..) => {
            let note = "every second matrix product and the attention are kept";
            leaves.say_noted(Field::RecomputeGranularity, "selective", place, note);
        }
        ("memory_budget", ..) => {
            leaves.not_estimated(place, "activations are chosen by the compiler; here nothing is recomputed");
        }
        _ => {}
    }
}

fn whole_layers(leaves: &mut Leaves<'_>, leaf: &Leaf, method: &str, layers: u64, note: &str) {
    let values = [
        (Field::RecomputeGranularity, "full".to_owned()),
        (Field::RecomputeMethod, method.to_owned()),
        (Field::RecomputeNumLayers, layers.to_string()),
    ];
    for (field, value) in values {
        if leaf.path.is_empty() {
            leaves.state(field, &value, Origin::Default, &format!("{note}: {WHOSE}"));
        } else {
            leaves.say_noted(field, &value, leaf, note);
        }
    }
}

/// `compile.enable` compiles model and loss unless `compile.components` leaves the loss out; `training.compile`, as it was
/// called in 2024, the model alone (`torchtitan/config/job_config.py:Compile`).
fn compiled(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.yes("training.compile") {
        leaves.switch(Field::CompiledLayers, true, leaf);
    }
    let Some(leaf) = leaves.yes("compile.enable") else { return };
    let components: Vec<&Leaf> =
        leaves.all().iter().filter(|leaf| leaf.path.starts_with("compile.components")).collect();
    for leaf in &components {
        leaf.used.set(true);
    }
    let names = |what: &str| components.is_empty() || components.iter().any(|leaf| leaf.value.contains(what));
    if names("model") {
        leaves.switch(Field::CompiledLayers, true, leaf);
    }
    if names("loss") {
        leaves.say_noted(
            Field::LossKind,
            "compiled",
            leaf,
            "the loss is compiled too: no fp32 logits are made",
        );
    }
}

fn precision(leaves: &mut Leaves<'_>) {
    match leaves.get("training.mixed_precision_param") {
        Some(leaf) if leaf.value == "float32" => leaves.switch(Field::Bf16, false, leaf),
        Some(leaf) => leaves.switch(Field::Bf16, true, leaf),
        None => leaves.state(Field::Bf16, "true", Origin::Default, WHOSE),
    }
    let float8 = leaves.first(&["model.converters", "float8.enable_float8_linear"]);
    if let Some(leaf) = float8.filter(|leaf| leaf.value.contains("float8") || leaf.value == "true") {
        leaves.say(Field::Fp8, "e4m3", leaf);
        leaves.state(Field::Fp8Recipe, "tensorwise", Origin::Default, WHOSE);
    }
}

#[cfg(test)]
mod tests {
    use super::read_words;
    use crate::Argument;
    use shardscope_plan::Field;

    #[test]
    fn a_compiled_loss_makes_no_fp32_logits() {
        let loss = |words: &str| {
            let reading = read_words(&Argument::split(words));
            reading.value(Field::LossKind).map(str::to_owned)
        };
        assert_eq!(loss("--compile.enable").as_deref(), Some("compiled"));
        assert_eq!(loss("--compile.enable --compile.components=model,loss").as_deref(), Some("compiled"));
        assert_eq!(loss("--compile.enable --compile.components=model"), None);
        assert_eq!(loss("--training.compile"), None);
        let layers = |words: &str| {
            read_words(&Argument::split(words))
                .value(Field::CompiledLayers)
                .is_some_and(|value| value == "true")
        };
        assert!(layers("--training.compile") && layers("--compile.enable"));
        assert!(!layers("--compile.enable --compile.components=loss") && !layers(""));
    }
}

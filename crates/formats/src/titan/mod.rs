//! torchtitan: its TOML files until February 2026, and its command line (`--training.seq_len 8192`). Keys and defaults:
//! `torchtitan/config/job_config.py` of January 2026 and older names of its keys.

mod held;
mod layout;

use super::dotted;
use super::leaves::{Leaf, Leaves, Scalars};
use super::llama_like::LLAMA_LAYER;
use super::reader::{Claim, Command, Reader};
use super::signs;
use super::trainer::is_of_oumi;
use crate::{Argument, Effect, NotModelled, Origin, Reading};
use layout::WHOSE;
use shardscope_catalog as catalog;
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic};

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

/// Settings that torchtitan's models and trainer share beyond a Llama-like layer.
const FIXED: &[(Field, &str)] = &[
    (Field::AttentionKernel, "flash"),
    (Field::SequenceParallel, "true"),
    (Field::OverlapGradReduce, "true"),
    (Field::OverlapParamGather, "true"),
    (Field::MakeVocabSizeDivisibleBy, "1"),
    (Field::PadVocabSize, "false"),
    (Field::GradsDtype, "fp32"),
];

/// Settings of the trainer, the values that are modelled, the effect of any other value, and its description
/// (`torchtitan/config/job_config.py`, `components/optimizer.py`).
const USUAL: &[(&str, &[&str], Effect, &str)] = &[
    // Until 2024-11 (`torchtitan/models/norms.py`).
    ("model.norm_type", &["rmsnorm", "fused_rmsnorm"], Effect::Model, "a norm other than RMSNorm"),
    // flame, which is torchtitan with models of flash-linear-attention (`flame/config_manager.py`).
    (
        "training.gradient_accumulation_steps",
        &["1"],
        Effect::Memory,
        "gradients accumulated over several local batches",
    ),
    ("training.varlen", &["false"], Effect::Time, "packed samples with document masking"),
    ("optimizer.name", &["Adam", "AdamW"], Effect::Memory, "an optimizer other than Adam"),
];

/// Key prefixes of its settings.
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

    /// Its own program needs only one such word to be recognized: `torchtitan.train --job.config_file x.toml`.
    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        let count = dotted::count(command.words, self.dotted());
        let own = self.programs().iter().any(|program| command.program.ends_with(program));
        let enough = if own { 1 } else { dotted::ENOUGH };
        (count >= enough && !is_of_oumi(command.words)).then_some(Claim::Shared(count))
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        read_words(words)
    }
}

/// Reads a torchtitan TOML file.
fn read(root: &Node) -> Reading {
    finish(&Scalars::from_node(root))
}

/// Reads the words of a torchtitan command.
fn read_words(words: &[Argument]) -> Reading {
    finish(&Scalars::of_words(words))
}

/// Reads a TOML file with the words of the command that takes it, which override it.
fn read_both(root: &Node, words: &[Argument]) -> Reading {
    let mut scalars = Scalars::from_node(root);
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
    layout::batch(&mut leaves);
    layout::sharding(&mut leaves);
    layout::pipeline(&mut leaves);
    recompute(&mut leaves);
    compiled(&mut leaves);
    precision(&mut leaves);
    held::formats(&mut leaves);
    held::steps(&mut leaves);
    usual(&mut leaves);
    leaves.pass_words("torchtitan");
    if leaves.reading.value(Field::TensorModelParallelSize).is_none_or(|degree| degree == "1") {
        leaves.state(Field::SequenceParallel, "false", Origin::Derived, "without tensor parallelism");
    }
    leaves.state_all(&LLAMA_LAYER, Origin::Derived, "the code of torchtitan's models");
    leaves.state_all(FIXED, Origin::Derived, "the code of torchtitan's models");
    leaves.reading.software = Some((Software::Torchtitan, "a torchtitan configuration".to_owned()));
    // The file that these settings come from; a missing one is asked for by name.
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
        // How many that are depends on the model, which is asked for (`shardscope_resolve`, `spelling.rs`).
        ("selective", Some(every), None) if every > 1 => {
            let note = format!("one layer in {every} is recomputed");
            whole_layers(leaves, place, "every", every, &note);
        }
        ("selective", Some(1), None) => whole_layers(leaves, place, "uniform", 1, "every layer"),
        ("selective", ..) => {
            let note = "every second matmul and the attention output are saved";
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

fn usual(leaves: &mut Leaves<'_>) {
    for (path, values, effect, what) in USUAL {
        let leaf = leaves.get(path);
        if let Some(leaf) = leaf.filter(|leaf| !values.contains(&leaf.value.as_str())) {
            let item = NotModelled::new(path, &leaf.value, *effect, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
    let foreign = |names: &str| {
        names
            .split(|letter: char| !letter.is_alphanumeric() && !"._".contains(letter))
            .any(|name| !name.is_empty() && !name.contains("float8"))
    };
    if let Some(leaf) = leaves.get("model.converters").filter(|leaf| foreign(&leaf.value)) {
        let what = "layer converters other than float8";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
}

/// `compile.enable` compiles model and loss unless `compile.components` omits the loss; `training.compile`, its name in
/// 2024, compiles only the model (`torchtitan/config/job_config.py:Compile`).
fn compiled(leaves: &mut Leaves<'_>) {
    // Its other value is Triton's kernel, and `nn.RMSNorm`, which came later, has PyTorch's.
    if let Some(leaf) = leaves.get("model.norm_type").filter(|leaf| leaf.value == "rmsnorm") {
        leaves.switch(Field::NormFusion, false, leaf);
    }
    if let Some(leaf) = leaves.yes("training.compile") {
        leaves.switch(Field::CompiledLayers, true, leaf);
    }
    let components: Vec<&Leaf> =
        leaves.all().iter().filter(|leaf| leaf.path.starts_with("compile.components")).collect();
    for leaf in &components {
        leaf.used.set(true);
    }
    let Some(leaf) = leaves.yes("compile.enable") else { return };
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
        held::in_float8(leaves, leaf);
    } else {
        // Settings of a converter that is not in `model.converters`.
        leaves.pass_below(&["float8.", "quantize.linear.float8."]);
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
        let norms = |kind: &str| {
            let reading = read_words(&Argument::split(&format!("--model.norm_type {kind}")));
            reading.value(Field::NormFusion).map(str::to_owned)
        };
        assert_eq!(norms("rmsnorm").as_deref(), Some("false"));
        assert_eq!(norms("fused_rmsnorm"), None);
    }
}

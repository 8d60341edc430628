//! Megatron's flags as keys of a YAML file: Megatron-LM's functional tests (`MODEL_ARGS`), Primus
//! (`overrides`), FlagScale (`system`, `model`, `data`), ms-swift. They are passed to the reader of the
//! command line, which knows every flag.

use super::leaves::{Leaf, Leaves, Scalars, no_layers_is_none};
use super::models_by_file::preset;
use super::reader::{Claim, Reader};
use super::{bases, primus, signs};
use crate::{Argument, Effect, Found, NotModelled, Origin, Reading, megatron};
use shardscope_config_tree::{Node, Tree, Value};
use shardscope_plan::Field;
use shardscope_source::Span;

/// Groups of keys that are not flags of the training.
const NOT_FLAGS: &[&str] = &[
    "experiment",
    "defaults",
    "hydra",
    "action",
    "ENV_VARS",
    "METRICS",
    "TEST_TYPE",
    "LAUNCHER",
    "MODE",
    "BEFORE_SCRIPT",
    "AFTER_SCRIPT",
    "SCRIPT_SETUP",
    "work_group",
    "user_name",
];

/// Groups whose nested keys keep their own names: FlagScale's, and those of Megatron-LM's `--yaml-cfg`
/// (`megatron/training/yaml_arguments.py`).
const GROUPED: &[&str] = &["system", "model", "data", "train", "language_model", "model_parallel"];

/// Number of Megatron's keys that makes a flat file one of flags.
const ENOUGH: usize = 3;

/// Megatron's flags as keys.
#[derive(Debug)]
pub(super) struct MegatronFlags;

impl Reader for MegatronFlags {
    fn name(&self) -> &'static str {
        "Megatron's flags as keys"
    }

    fn about(&self) -> &'static str {
        "files of Megatron-LM's own tests, Primus, FlagScale, ms-swift"
    }

    /// Keys that only these files have; otherwise a sufficient number of Megatron's, fewer
    /// if the file builds on another.
    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        let recognised = signs::any(tree, &["MODEL_ARGS", "modules"])
            // FlagScale's (`examples/*/conf/train.yaml`); other programs of Hydra have experiments too.
            .or_else(|| signs::all(tree, &["experiment.task", "defaults"]))
            .or_else(|| signs::all(tree, &["experiment.exp_name", "defaults"]))
            .or_else(|| signs::maps(tree, &["system", "model"]))
            .or_else(|| signs::maps(tree, &["system", "data"]));
        let counted = || {
            let count = count(of_one_model(tree.documents.first()?));
            let builds = signs::any(tree, &["extends", "includes"]).is_some();
            (count >= ENOUGH || (count > 0 && builds)).then_some(Claim::Shared(count))
        };
        recognised.or_else(counted)
    }

    fn read(&self, root: &Node) -> Reading {
        read(root)
    }

    fn bases(&self, root: &Node) -> Vec<(String, Span)> {
        let mut named = bases::named(root);
        if let Some((node, name)) = primus::named_model(root).filter(|(_, name)| !primus::is_published(name))
        {
            named.push((bases::file(&name), node.span));
        }
        named
    }

    fn needs_bases(&self) -> bool {
        true
    }

    /// An experiment of Primus overrides the model's file, whatever its name.
    fn overrides_all(&self, root: &Node) -> bool {
        root.get("modules").is_some()
    }
}

/// Reads flags written as keys.
fn read(root: &Node) -> Reading {
    if let Some(reading) = primus::of_another_trainer(root) {
        return reading;
    }
    let (node, primus) = match primus::overrides(root) {
        Some(node) => (node, true),
        None => (root.get("MODEL_ARGS").unwrap_or_else(|| of_one_model(root)), false),
    };
    let words = words(node, primus);
    let mut reading = megatron::read(&words);
    if root.get("MODEL_ARGS").is_some() {
        of_another_program(&mut reading, root, &words);
    }
    no_layers_is_none(&mut reading);
    machines(&mut reading, root);
    if primus {
        if let Some((named, name)) = primus::named_model(root) {
            primus::model(&mut reading, node, named, &name);
        }
        primus::defaults(&mut reading, root, node);
        primus::turbo(&mut reading, node);
        primus::groups(&mut reading, node);
    }
    if let Some(named) = root.get("model").filter(|node| !primus && node.word().is_some()) {
        // ms-swift: the model by name, and the maximum sample length.
        preset(&mut reading, named, named.word().unwrap_or(""));
        if let Some(node) = root.get("max_length").filter(|node| node.whole().is_some()) {
            let length = node.whole().unwrap_or(0).to_string();
            reading
                .take(Found::new(Field::SeqLength, length, Origin::Script).by("max_length", Some(node.span)));
        }
    }
    reading
}

/// Files of Megatron-LM's tests leave the program to their launcher: `MODE` says that it generates text, and flags that
/// no decoder training reads reveal another kind of training.
fn of_another_program(reading: &mut Reading, root: &Node, words: &[Argument]) {
    const VISION: &str = "a vision model in addition to or in place of the decoder";
    const OTHER: &str = "a model other than a decoder-only language model";
    const SIGNS: [(&str, &str); 5] = [
        ("--img-", VISION),
        ("--patch-dim", VISION),
        ("--bert-", OTHER),
        ("--biencoder-", OTHER),
        ("--ict-", OTHER),
    ];
    if let Some(mode) = root.get("MODE").filter(|mode| mode.word() == Some("inference")) {
        let what = "a text generation program, not a training run";
        reading
            .not_modelled
            .push(NotModelled::new("MODE", "inference", Effect::Memory, what).at_some(Some(mode.span)));
    }
    let sign = |word: &Argument| SIGNS.iter().find(|(start, _)| word.text.starts_with(start));
    if let Some((word, (_, what))) = words.iter().find_map(|word| Some((word, sign(word)?))) {
        reading.not_modelled.push(NotModelled::new(&word.text, "", Effect::Model, what).at_some(word.span));
    }
}

fn words(node: &Node, primus: bool) -> Vec<Argument> {
    let scalars = Scalars::from_node(node);
    let leaves = Leaves::over(&scalars);
    let mut words = Vec::new();
    for Leaf { path, .. } in scalars.all() {
        let first = path.split('.').next().unwrap_or("");
        let deep = path.contains('.');
        if NOT_FLAGS.contains(&first)
            || primus && primus::is_of_turbo(path)
            || (deep && primus)
            || (deep && !GROUPED.contains(&first))
        {
            continue;
        }
        let Some(leaf) = leaves.get(path) else { continue };
        push(&mut words, leaf);
    }
    words
}

/// A flag's name without its dashes.
fn undashed(flag: &str) -> &str {
    flag.strip_prefix("--").unwrap_or(flag)
}

/// The flag of a leaf, with its value.
fn push(words: &mut Vec<Argument>, leaf: &Leaf) {
    let name = undashed(leaf.path.rsplit('.').next().unwrap_or(""));
    let argument = |text: String, span: Option<Span>, hole: Option<String>| Argument {
        text,
        span,
        hole,
        answered: false,
    };
    let flag = argument(format!("--{name}"), leaf.span, None);
    let listed = leaf.value.starts_with('[');
    match leaf.switched() {
        Some(true) => words.push(flag),
        Some(false) => words.extend([flag, argument("false".to_owned(), leaf.span, None)]),
        None if listed && name != "moe_layer_freq" && name != "moe-layer-freq" => {
            words.push(flag);
            for value in leaf.value.split(['[', ']', ',']) {
                if !value.trim().is_empty() {
                    words.push(argument(value.trim().to_owned(), leaf.span, None));
                }
            }
        }
        None => words.extend([flag, argument(leaf.value.clone(), leaf.span, leaf.hole.clone())]),
    }
}

/// The machines, if the file names them.
fn machines(reading: &mut Reading, root: &Node) {
    let rules = &[
        ("experiment.runner.nnodes", Field::NumNodes),
        ("experiment.runner.nproc_per_node", Field::GpusPerNode),
        ("ENV_VARS.GPUS_PER_NODE", Field::GpusPerNode),
        ("ENV_VARS.NNODES", Field::NumNodes),
        ("ENV_VARS.NUM_NODES", Field::NumNodes),
    ];
    for &(path, field) in rules {
        if let Some(node) = root.at(path).filter(|node| node.whole().is_some()) {
            let count = node.whole().unwrap_or(0).to_string();
            reading.take(Found::new(field, count, Origin::Script).by(path, Some(node.span)));
        }
    }
}

/// The content of a file's only key: MindSpeed-RL's files of models (`configs/model/`).
fn of_one_model(root: &Node) -> &Node {
    match root.entries() {
        [only] if count(&only.node) >= ENOUGH => &only.node,
        _ => root,
    }
}

/// The number of a map's keys that are Megatron's flags or settings.
fn count(node: &Node) -> usize {
    let is_flag = |key: &str| {
        let name = undashed(key);
        Field::named(name).is_some() || (key.starts_with("--") && name.contains('-'))
    };
    node.entries()
        .iter()
        .filter(|entry| !matches!(entry.node.value, Value::Map(_)) && is_flag(&entry.key))
        .count()
}

//! The common form of these trainers' settings files: one row each, and the keys that several of them share.

use super::own_names;
use crate::beneath::overridden;
use crate::leaves::{Leaf, Leaves, Scalars};
use crate::named::take_model;
use crate::reader::{Claim, Command, Reader};
use crate::signs;
use crate::{Argument, Asked, Effect, NotModelled, Origin, Question, Reading};
use shardscope_bash::base_name;
use shardscope_config_tree::{Node, Tree, Value};
use shardscope_plan::{Field, Software};

/// A trainer with a settings file of its own.
#[derive(Debug)]
pub(crate) struct Row {
    /// Name of the trainer.
    pub(super) trainer: &'static str,
    /// The description of its file, with an article.
    pub(super) title: &'static str,
    /// Which settings are read, for the guide.
    pub(super) about: &'static str,
    /// Lists of paths; a file is recognized if all paths of one list are present.
    pub(super) signs: &'static [&'static [&'static str]],
    /// Paths of each setting; the first one present counts.
    pub(super) keys: &'static [(&'static [&'static str], Field)],
    /// Paths that name a model.
    pub(super) models: &'static [&'static str],
    /// Whose memory and communication its runs follow, as far as known.
    pub(super) software: Software,
    /// What its own layers save that is not modelled; `None` if it trains transformers models.
    pub(super) lacking: Option<&'static str>,
    /// Settings that do not map key by key.
    pub(super) extra: fn(&mut Leaves<'_>),
    /// The program that takes the file, and prefixes of the keys that its arguments override;
    /// `None` if arguments are not read.
    pub(super) program: Option<(&'static str, &'static [&'static str])>,
}

/// Keys of other formats whose files also contain keys of these trainers.
const OTHERS: &[&str] = &["MODEL_ARGS", "modules", "actor_rollout_ref"];

/// Groups that stand for their defaults where they are empty, not for nothing, by trainer: `clip_update_norm: {}` clips.
const EMPTY: [(&str, &[&str]); 1] = [(
    "levanter",
    &[
        "optimizer.skip_bad_steps",
        "optimizer.clip_update_norm",
        "trainer.quantization",
        "trainer.model_averaging",
    ],
)];

/// levanter's list of tensors that norms are taken of, which is off if it is empty.
pub(super) const WATCH_TARGETS: &str = "trainer.watch.watch_targets";

/// Adds those of `paths` that are empty groups: they have no scalars of their own.
fn add_empty(root: &Node, paths: &[&str], scalars: &mut Scalars) {
    let targets = WATCH_TARGETS;
    if let Some(list) =
        root.at(targets).filter(|node| matches!(&node.value, Value::List(items) if items.is_empty()))
    {
        scalars.push(targets, "[]", Some(list.span), None);
    }
    for path in paths {
        let group = root.at(path).filter(|node| matches!(&node.value, Value::Map(keys) if keys.is_empty()));
        if let Some(group) = group {
            scalars.push(path, "{}", Some(group.span), None);
        }
    }
}

impl Reader for Row {
    fn name(&self) -> &'static str {
        self.title
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        if signs::any(tree, OTHERS).is_some() {
            return None;
        }
        self.signs.iter().find_map(|signs| signs::all(tree, signs))
    }

    fn read(&self, root: &Node) -> Reading {
        // A job for MosaicML's cluster has its settings under `parameters` and its machines under `compute`.
        let own = root.get("parameters").filter(|node| node.get("train_loader").is_some());
        let mut scalars = Scalars::from_node(own.unwrap_or(root));
        if let Some(machines) = root.get("compute").filter(|_| own.is_some()) {
            scalars.extend(Scalars::from_node(machines));
        }
        for (_, paths) in EMPTY.iter().filter(|(trainer, _)| *trainer == self.trainer) {
            add_empty(root, paths, &mut scalars);
        }
        self.read_scalars(&scalars)
    }

    fn read_with_words(&self, root: &Node, words: &[Argument]) -> Option<Reading> {
        let (_, keys) = self.program?;
        self.overriding(words)?;
        let mut scalars = Scalars::from_node(root);
        scalars.extend(Scalars::of_words_under(words, keys));
        Some(self.read_scalars(&scalars))
    }

    fn read_beneath(&self, root: &Node, command: &Command<'_>) -> Option<(Reading, Vec<Argument>)> {
        let (patched, left) = overridden(root, command.words).filter(|_| self.program.is_none())?;
        Some((self.read(&patched), left))
    }

    fn dotted(&self) -> &'static [&'static str] {
        self.program
            .map(|(_, keys)| keys)
            .filter(|keys| keys.iter().all(|key| key.ends_with('.')))
            .unwrap_or(&[])
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        let (program, _) = self.program?;
        let count = self.overriding(command.words)?;
        command.program.ends_with(program).then_some(Claim::Own(count))
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        let keys = self.program.map_or(&[][..], |(_, keys)| keys);
        self.read_scalars(&Scalars::of_words_under(words, keys))
    }

    fn keys(&self) -> Vec<(&'static str, Field)> {
        self.keys.iter().flat_map(|(paths, field)| paths.iter().map(|path| (*path, *field))).collect()
    }
}

impl Row {
    /// The number of `words` that override keys of the file; `None` if there are none.
    fn overriding(&self, words: &[Argument]) -> Option<usize> {
        let (_, keys) = self.program?;
        let key = |word: &Argument| word.text.trim_start_matches('-').to_owned();
        let own = |word: &&Argument| keys.iter().any(|start| key(word).starts_with(start));
        Some(words.iter().filter(own).count()).filter(|count| *count > 0)
    }

    /// Reads settings that a program computed.
    pub(crate) fn read_leaves(&self, scalars: &Scalars) -> Reading {
        self.read_scalars(scalars)
    }

    fn read_scalars(&self, scalars: &Scalars) -> Reading {
        let mut leaves = Leaves::over(scalars);
        for (paths, field) in self.keys {
            // A size of 0 means no packing, and "auto" that the size is found by trial.
            // So are litgpt's devices at -1, those that there are (`litgpt/utils.py:parse_devices`).
            let counted = |text: &str| text == "auto" || text == "-1" && self.software == Software::Litgpt;
            let is_said =
                |path: &&&str| leaves.whole(path) != Some(0) && !leaves.text(path).is_some_and(counted);
            let said: Vec<&str> = paths.iter().filter(is_said).copied().collect();
            leaves.take(&said, *field);
        }
        common(&mut leaves, self);
        (self.extra)(&mut leaves);
        if leaves.reading.software.is_none() {
            leaves.reading.software = Some((self.software, self.title.to_owned()));
        }
        for path in self.models {
            let Some(leaf) = leaves.get(path).filter(|leaf| leaf.flag().is_none()) else { continue };
            // The end of a path names the model, even if a variable leaves its folder open.
            let name = match leaf.hole {
                Some(_) => base_name(leaf.value.trim_end_matches('/')),
                None => &leaf.value,
            };
            if name.is_empty() || leaf.hole.is_some() && name.contains('$') {
                continue;
            }
            let name = if self.software == Software::Litgpt { own_names::on_hub(name) } else { name };
            take_model(&mut leaves.reading, name, &leaf.path, leaf.span);
            break;
        }
        if let Some(what) = self.lacking {
            let item = NotModelled::new("framework", self.trainer, Effect::Memory, what);
            leaves.reading.not_modelled.push(item);
        }
        ask(&mut leaves);
        leaves.finish(self.trainer)
    }
}

/// Keys that several trainers share.
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
            () if lower.contains("32") => leaves.switch(Field::Bf16, false, leaf),
            () => {}
        }
    }
    let usual = [Field::Bf16, Field::Fp16].iter().all(|field| leaves.reading.value(*field).is_none());
    if usual {
        let whose = format!("as {} trains unless told otherwise", row.trainer);
        leaves.state(Field::Bf16, "true", Origin::Default, &whose);
    }
    for path in
        ["model.n_kv_heads", "model.num_kv_heads", "base_num_kv_heads", "model.attn_config.kv_n_heads"]
    {
        let heads = leaves.reading.value(Field::NumAttentionHeads).map(str::to_owned);
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
            // bitsandbytes' classes share names with PyTorch's, but their states are fp32
            // whatever the format of the weights.
            let whole = leaf.value.starts_with("bitsandbytes.");
            let name = leaf.value.rsplit('.').next().filter(|_| !whole).unwrap_or(&leaf.value).to_owned();
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
    let path = "fsdp_config.activation_cpu_offload";
    if let Some(leaf) = leaves.yes(path) {
        let what = "saved layer inputs offloaded to the host";
        let item = NotModelled::new(path, "", Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
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

/// Asks for length and micro-batch unless they, or settings that determine them, are present.
pub(super) fn ask(leaves: &mut Leaves<'_>) {
    // Packs of a fixed number of tokens determine both.
    if leaves.reading.value(Field::MaxTokensPerMicroBatch).is_some() {
        return;
    }
    for (field, prompt, proposal) in
        [(Field::SeqLength, "Sequence length?", "4096"), (Field::MicroBatchSize, "Micro-batch size?", "1")]
    {
        let follows = field == Field::MicroBatchSize
            && [Field::GlobalBatchSize, Field::NumMicroBatches]
                .iter()
                .all(|field| leaves.reading.value(*field).is_some());
        if !follows && !leaves.reading.found.iter().any(|found| found.field == field) {
            leaves.reading.questions.push(Question {
                asks: Asked::Setting(field),
                prompt: prompt.to_owned(),
                choices: Vec::new(),
                proposal: Some(proposal.to_owned()),
            });
        }
    }
}

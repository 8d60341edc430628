//! The settings that a reader takes from the scalars of a settings file, and the keys that it leaves unread.

use super::names::words;
pub(super) use super::scalars::{Leaf, Scalars};
use super::scalars::{find, open_switches};
use crate::megatron::{reason_anywhere, reason_of};
use crate::options::{Changes, OfKeys, little};
use crate::telling;
use crate::{Effect, Found, NotModelled, NotRead, Origin, Reading};
use shardscope_plan::{Field, ValueKind};
use shardscope_source::{Code, Diagnostic};
use std::collections::HashSet;

/// Most keys listed by name in one note.
const LISTED: usize = 12;
/// The scalars of a settings file, and the settings taken from them.
#[derive(Debug)]
pub(super) struct Leaves<'t> {
    leaves: &'t [Leaf],
    pub(super) reading: Reading,
}

impl<'t> Leaves<'t> {
    /// Starts with these scalars and nothing taken.
    pub(super) fn over(scalars: &'t Scalars) -> Self {
        Self { leaves: scalars.all(), reading: Reading::default() }
    }

    /// All scalars.
    pub(super) fn all(&self) -> &'t [Leaf] {
        self.leaves
    }

    /// The last leaf with this path, if it is not empty.
    pub(super) fn get(&self, path: &str) -> Option<&'t Leaf> {
        let leaf = find(self.leaves, path)?;
        leaf.used.set(true);
        if leaf.value.is_empty() { None } else { Some(leaf) }
    }

    /// The same, if its value is true.
    pub(super) fn yes(&self, path: &str) -> Option<&'t Leaf> {
        self.get(path).filter(|leaf| leaf.decides() == Some(true))
    }

    /// The first of several paths whose value is not empty.
    pub(super) fn first(&self, paths: &[&str]) -> Option<&'t Leaf> {
        paths.iter().find_map(|path| self.get(path))
    }

    /// Whether a path is present, even if its value is empty.
    pub(super) fn has(&self, path: &str) -> bool {
        find(self.leaves, path).is_some()
    }

    /// The value at a path, as text.
    pub(super) fn text(&self, path: &str) -> Option<&'t str> {
        self.get(path).map(|leaf| leaf.value.as_str())
    }

    /// The value at a path, as a whole number.
    pub(super) fn whole(&self, path: &str) -> Option<u64> {
        self.get(path).and_then(|leaf| leaf.whole())
    }

    /// The value at a path, as a boolean.
    pub(super) fn flag(&self, path: &str) -> Option<bool> {
        self.get(path).and_then(Leaf::decides)
    }

    /// Takes the value of the first of these paths that is not empty.
    pub(super) fn take(&mut self, paths: &[&str], field: Field) -> bool {
        let Some(leaf) = self.first(paths) else { return false };
        let value = match field.kind() {
            // Numbers in the notation of any format.
            ValueKind::Count(..) => leaf.whole().map(|whole| whole.to_string()),
            ValueKind::Flag => leaf.flag().map(|flag| flag.to_string()),
            _ => None,
        };
        self.say(field, value.as_deref().unwrap_or(&leaf.value), leaf);
        true
    }

    /// Takes each of these paths whose value is not empty.
    pub(super) fn take_all(&mut self, rules: &[(&str, Field)]) {
        for (path, field) in rules {
            self.take(&[path], *field);
        }
    }

    /// Stops the verdict because of a leaf that is not modelled.
    pub(super) fn lack(&mut self, leaf: &Leaf, effect: Effect, what: &str) {
        let item = NotModelled::new(&leaf.path, &leaf.value, effect, what).at_some(leaf.span);
        self.reading.not_modelled.push(item);
    }

    /// States a value that follows from a leaf.
    pub(super) fn say(&mut self, field: Field, value: &str, leaf: &Leaf) {
        let origin = if leaf.base.is_some() { Origin::Default } else { Origin::Script };
        let mut found = Found::new(field, value, origin).by(leaf.path.clone(), leaf.span);
        found.note = leaf.base.as_ref().map(|file| format!("{file}, which the text builds on"));
        found.hole = leaf.hole.clone().or_else(|| placeholder(field, &found.value));
        self.reading.take(found);
    }

    /// The same with a remark.
    pub(super) fn say_noted(&mut self, field: Field, value: &str, leaf: &Leaf, note: &str) {
        self.say(field, value, leaf);
        if let Some(found) = self.reading.found.iter_mut().find(|found| found.field == field) {
            found.note = Some(note.to_owned());
        }
    }

    /// If samples are packed by tokens, the value that was read as the sequence length is
    /// the length of the longest sample.
    pub(super) fn longest_sample(&mut self) {
        let known = self.reading.value(Field::RolloutLength).is_some();
        self.reading.keep(&|found| {
            found.field != Field::MicroBatchSize && (found.field != Field::SeqLength || !known)
        });
        for found in &mut self.reading.found {
            if found.field == Field::SeqLength {
                found.field = Field::RolloutLength;
            }
        }
    }

    /// Turns a setting on or off because of a leaf.
    pub(super) fn switch(&mut self, field: Field, on: bool, leaf: &Leaf) {
        self.say(field, if on { "true" } else { "false" }, leaf);
    }

    /// Turns a setting on if the value at a path is `on`, and off if it is anything else.
    pub(super) fn follow(&mut self, path: &str, field: Field, on: bool) {
        if let Some(leaf) = self.get(path) {
            self.switch(field, leaf.flag() == Some(on), leaf);
        }
    }

    /// Turns a setting on if the value at a path is true.
    pub(super) fn turn_on(&mut self, path: &str, field: Field) {
        if let Some(leaf) = self.yes(path) {
            self.switch(field, true, leaf);
        }
    }

    /// Takes the training precision, in any spelling.
    pub(super) fn precision(&mut self, path: &str) {
        let Some(leaf) = self.get(path) else { return };
        match dtype(&leaf.value) {
            "bf16" => self.switch(Field::Bf16, true, leaf),
            "fp16" => self.switch(Field::Fp16, true, leaf),
            _ => {}
        }
    }

    /// Takes the number of query groups, which is less than the number of heads.
    pub(super) fn query_groups(&mut self, groups: &str, leaf: &Leaf) {
        self.switch(Field::GroupQueryAttention, true, leaf);
        self.say(Field::NumQueryGroups, groups, leaf);
    }

    /// Full layers are recomputed.
    pub(super) fn recompute_all(&mut self, leaf: &Leaf) {
        self.say(Field::RecomputeGranularity, "full", leaf);
        self.say(Field::RecomputeMethod, "uniform", leaf);
    }

    /// States a value that follows from the file as a whole, unless it is already stated.
    pub(super) fn state(&mut self, field: Field, value: &str, origin: Origin, note: &str) {
        if !self.reading.found.iter().any(|found| found.field == field) {
            self.reading.take(Found::new(field, value, origin).note(note));
        }
    }

    /// States several such values.
    pub(super) fn state_all(&mut self, values: &[(Field, &str)], origin: Origin, note: &str) {
        for (field, value) in values {
            self.state(*field, value, origin, note);
        }
    }

    /// Reports that a key has an effect that is not estimated.
    pub(super) fn not_estimated(&mut self, leaf: &Leaf, what: &str) {
        let message = format!("{}: {what}, which is not estimated yet", leaf.path);
        self.reading.diagnostics.push(Diagnostic::warning(Code::NotEstimated, message).at_some(leaf.span));
    }

    /// Marks a key as read.
    pub(super) fn pass(&self, path: &str) {
        self.get(path);
    }

    /// Marks every key with one of these prefixes as read.
    pub(super) fn pass_below(&self, groups: &[&str]) {
        for leaf in self.leaves {
            // GPT-NeoX's files use either hyphens or underscores.
            let path = leaf.path.replace('-', "_");
            if groups.iter().any(|group| leaf.path.starts_with(group) || path.starts_with(group)) {
                leaf.used.set(true);
            }
        }
    }

    /// Marks keys as read that a reader's section of `names.txt` lists as changing no figure.
    pub(super) fn pass_words(&self, section: &str) {
        let known: Vec<&str> = words(section).collect();
        self.pass_below(&known);
    }

    /// Marks a key as read wherever it occurs, including inside groups.
    pub(super) fn pass_everywhere(&self, key: &str) {
        for leaf in self.leaves {
            if leaf.path.split('.').any(|name| name == key) {
                leaf.used.set(true);
            }
        }
    }

    /// What keys change that no reader looked at, beside the others.
    fn unread_of(&self, format: &str) -> OfKeys {
        OfKeys::new(format, &|sign| {
            self.leaves.iter().any(|leaf| match sign.strip_suffix('*') {
                Some(start) => leaf.path.starts_with(start),
                None => leaf.path.eq_ignore_ascii_case(sign),
            })
        })
    }

    /// The keys that no reader looked at: those that change nothing for a known reason, and the others.
    fn left(&self, format: &str) -> (Vec<&'t Leaf>, Vec<&'t Leaf>) {
        let keys = self.unread_of(format);
        let (mut idle, mut unread): (Vec<&Leaf>, Vec<&Leaf>) = (Vec::new(), Vec::new());
        // If a key is written twice, the last one counts, and that is the one that was read.
        let read: HashSet<&str> =
            self.leaves.iter().filter(|leaf| leaf.used.get()).map(|leaf| leaf.path.as_str()).collect();
        for leaf in self.leaves {
            if leaf.used.get() || leaf.value.is_empty() || read.contains(leaf.path.as_str()) {
                continue;
            }
            match keys.changes(&leaf.path, &leaf.value) {
                Some(Changes::Nothing(_)) => idle.push(leaf),
                None if changes_nothing(leaf) => idle.push(leaf),
                _ => unread.push(leaf),
            }
        }
        (idle, unread)
    }

    /// The reading, with notes on the keys that no reader looked at, which either stop the verdict or mark it.
    pub(super) fn finish(mut self, format: &str) -> Reading {
        let (_, unread) = self.left(format);
        let keys = self.unread_of(format);
        let mut items: Vec<NotModelled> = Vec::new();
        let (mut marks, mut first) = (Vec::new(), None);
        for leaf in unread {
            match keys.changes(&leaf.path, &leaf.value) {
                Some(Changes::Little(why)) => {
                    leaf.used.set(true);
                    first = first.or(leaf.span);
                    self.reading.not_read.push(NotRead::new(&leaf.path, leaf.span));
                    marks.push((why, leaf.path.clone()));
                }
                Some(changes) => {
                    // A key that is known to change a figure is reported by name, and settings
                    // with the same effect only once.
                    leaf.used.set(true);
                    let item = changes.stop(&leaf.path, leaf.shown(), leaf.span);
                    items.extend(item.filter(|item| items.iter().all(|known| known.message != item.message)));
                }
                None => {
                    if let Some(item) = stops(leaf) {
                        // Its error covers it; the list of unread keys need not repeat it.
                        leaf.used.set(true);
                        self.reading.not_read.push(NotRead::new(&leaf.path, leaf.span));
                        items.push(item);
                    }
                }
            }
        }
        items.extend(open_switches(self.leaves, &self.reading.found));
        self.reading.not_modelled.extend(items);
        self.reading.diagnostics.extend(little(marks, first));
        self.finish_architecture(format)
    }

    /// The same for a model's configuration, where an unread key only marks the verdict: the model type determines
    /// which keys it reads. For example, Falcon ignores `parallel_attn` if `new_decoder_architecture` is set,
    /// whatever the key's name suggests.
    pub(super) fn finish_architecture(mut self, format: &str) -> Reading {
        let (idle, unread) = self.left(format);
        if let Some(first) = idle.first() {
            let (count, names) = (idle.len(), listed(&idle));
            let message = match count {
                1 => format!("read as {format}; one of its keys does not affect the estimate: {names}"),
                _ => format!("read as {format}; {count} of its keys do not affect the estimate: {names}"),
            };
            self.reading.diagnostics.push(Diagnostic::note(Code::KeysLeftAside, message).at_some(first.span));
        }
        if let Some(first) = unread.first() {
            let (count, names) = (unread.len(), listed(&unread));
            let message = match count {
                1 => format!(
                    "a key of {format} is not known here; it is not read and may change the estimate: {names}"
                ),
                _ => format!(
                    "{count} keys of {format} are not known here; they are not read and may change the estimate: {names}"
                ),
            };
            // A warning: the verdict is marked with the same keys, so "everything was
            // understood" next to it would be wrong.
            self.reading
                .diagnostics
                .push(Diagnostic::warning(Code::KeysNotRead, message).at_some(first.span));
            self.reading.not_read.extend(unread.iter().map(|leaf| NotRead::new(&leaf.path, leaf.span)));
        }
        self.reading
    }
}

/// The item that stops the verdict at an unknown key, if its name suggests one. Many readers' groups contain Megatron's
/// own settings, some of which change next to nothing whatever their names suggest.
fn stops(leaf: &Leaf) -> Option<NotModelled> {
    let last = leaf.path.rsplit('.').next().unwrap_or(&leaf.path).replace('_', "-");
    let item = telling::stop(&leaf.path, &leaf.value).filter(|_| reason_of(&last).is_none())?;
    Some(item.at_some(leaf.span))
}

/// Whether a key changes no figure, for a reason that holds in any training.
fn changes_nothing(leaf: &Leaf) -> bool {
    /// Groups of keys about data, logs, checkpoints and evaluation, by any name in the path.
    const GROUPS: &str = "datasets dataset data checkpoint checkpoints logging logger wandb tensorboard callbacks eval \
        evaluation metrics profiling profiler scheduler lr_scheduler learning_rate_scheduler tokenizer tokens \
        special_tokens exp_manager tpu hub generation special_tokens_map dataset_mixture dataset_mixer dataset_kwargs pretraining_dataset dataloader data_stages tpu_env secrets eot_tokens";
    let mut names = leaf.path.split('.');
    let last = leaf.path.rsplit('.').next().unwrap_or(&leaf.path);
    let grouped = leaf.path.contains('.')
        && names.any(|name| GROUPS.split_ascii_whitespace().any(|known| known == name));
    grouped || reason_anywhere(&last.replace('_', "-")).is_some()
}

/// The first keys, by name.
fn listed(leaves: &[&Leaf]) -> String {
    let shown: Vec<&str> = leaves.iter().take(LISTED).map(|leaf| leaf.path.as_str()).collect();
    let more = if leaves.len() > LISTED { ", …" } else { "" };
    shown.join(", ") + more
}

/// Recomputing zero layers means no recomputation.
pub(super) fn no_layers_is_none(reading: &mut Reading) {
    if reading.value(Field::RecomputeNumLayers) == Some("0") {
        let gone = [Field::RecomputeNumLayers, Field::RecomputeMethod, Field::RecomputeGranularity];
        let place = reading.found.iter().find(|found| found.field == Field::RecomputeNumLayers);
        let note = Diagnostic::note(Code::NoRecomputation, "recomputing 0 layers recomputes nothing");
        let note = note.at_some(place.and_then(|found| found.span));
        reading.keep(&|found| !gone.contains(&found.field));
        reading.diagnostics.push(note);
    }
}

/// The name of a template's placeholder in the place of a number or boolean.
pub(super) fn placeholder(field: Field, value: &str) -> Option<String> {
    if !matches!(field.kind(), ValueKind::Count(..) | ValueKind::Real(..) | ValueKind::Flag) {
        return None;
    }
    let mut inner = value;
    while let Some(b'$' | b'{' | b'<' | b' ' | b'%') = inner.as_bytes().first() {
        inner = inner.get(1..).unwrap_or_default();
    }
    while let Some(b'}' | b'>' | b' ' | b'%') = inner.as_bytes().last() {
        inner = inner.get(..inner.len() - 1).unwrap_or_default();
    }
    let marked = inner.len() < value.len() && !inner.is_empty();
    let shouted = inner.len() > 1
        && inner.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
        && inner.starts_with(|c: char| c.is_ascii_uppercase())
        && !matches!(inner, "TRUE" | "FALSE" | "NULL");
    match () {
        () if value == "???" => Some(field.name().to_owned()),
        () if marked || shouted => Some(inner.to_owned()),
        () => None,
    }
}

/// The name of a number format in settings.
pub(super) fn dtype(name: &str) -> &str {
    match name.strip_prefix("torch.").unwrap_or(name) {
        "float32" | "float" | "32" | "32-true" => "fp32",
        "bfloat16" => "bf16",
        "float16" | "half" => "fp16",
        other => other,
    }
}

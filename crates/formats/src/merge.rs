//! Several texts of one training: which one takes precedence if they differ.

use super::format::Format;
use super::reader::Role;
use super::trainer::FSDP_SETTINGS;
use crate::named::forget_unknown;
use crate::{Asked, Found, Origin, Question, Reading};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};
use std::collections::{HashMap, HashSet};

/// One text as read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The file's name; empty for pasted text.
    pub name: String,
    /// Its format; `None` for a script.
    pub format: Option<Format>,
    /// The settings that it states.
    pub reading: Reading,
}

impl Text {
    /// What it decides; `None` for a script.
    fn role(&self) -> Option<Role> {
        self.format.map(|format| format.role())
    }
}

/// Orders the texts so that later ones take precedence: a model's configuration first, then DeepSpeed's and the
/// machines', then a framework's settings, and the script's own flags last. Reports differences.
#[must_use]
pub fn merge(mut texts: Vec<Text>) -> Vec<Reading> {
    // A script comes last.
    texts.sort_by_key(|text| text.role().map_or((1, Role::Training), |role| (0, role)));
    let several = texts.len() > 1;
    if several {
        yield_proposals(&mut texts);
        yield_unknowns(&mut texts);
        engine_decides(&mut texts);
        say_differences(&mut texts);
    }
    drop_answered(&mut texts);
    let shape = |found: &Found| found.field == Field::NumLayers && found.origin == Origin::Script;
    let states = |text: &Text| text.role() == Some(Role::Model) && text.reading.found.iter().any(shape);
    if texts.iter().any(states) {
        texts.iter_mut().for_each(|text| forget_unknown(&mut text.reading));
    }
    let mut readings = Vec::with_capacity(texts.len());
    for text in texts {
        readings.push(text.reading);
    }
    readings
}

/// A setting that a text only proposes gives way to a setting that another text states. This matters most for
/// precision: bf16 of a checkpoint and `--fp16` of a script do not contradict each other.
fn yield_proposals(texts: &mut [Text]) {
    let precision = [Field::Bf16, Field::Fp16];
    let stated = |found: &&Found| matches!(found.origin, Origin::Script | Origin::Environment);
    // The number of texts that state each setting: subtracting a text's own shows whether any other states it.
    let mut by: HashMap<Field, usize> = HashMap::new();
    for text in texts.iter() {
        #[expect(clippy::iter_over_hash_type, reason = "counted, in any order")]
        for field in stated_by(text, stated) {
            *by.entry(field).or_default() += 1;
        }
    }
    // A command that names the engine's file leaves the stage to it, even to what it does unless told.
    let stage = |found: &Found| found.field == Field::ZeroStage && found.hole.is_none();
    let left = !texts.iter().flat_map(|text| &text.reading.found).any(|found| stage(found) && stated(&found));
    for text in texts {
        let decides = left && text.role() == Some(Role::Engine);
        let own = stated_by(text, stated);
        let others = |field: Field| by.get(&field).copied().unwrap_or(0) > usize::from(own.contains(&field));
        let has_precision = precision.iter().any(|field| others(*field));
        text.reading.keep(&|found| {
            let proposed = matches!(found.origin, Origin::Default | Origin::Derived | Origin::Catalog);
            let beaten = others(found.field) || (precision.contains(&found.field) && has_precision);
            !(proposed && beaten) || decides && stage(found)
        });
    }
}

/// The settings of `text` that `is` accepts, each once.
fn stated_by(text: &Text, is: impl Fn(&&Found) -> bool) -> HashSet<Field> {
    text.reading.found.iter().filter(is).map(|found| found.field).collect()
}

/// A setting that a text leaves open gives way to the same setting stated by another.
fn yield_unknowns(texts: &mut [Text]) {
    let known = known(texts);
    for text in texts {
        text.reading.keep(&|found| found.hole.is_none() || !known.contains(&found.field));
    }
}

/// Settings that a text states completely.
fn known(texts: &[Text]) -> HashSet<Field> {
    texts.iter().flat_map(|text| stated_by(text, |found| found.hole.is_none())).collect()
}

/// DeepSpeed's engine shards and offloads as its own configuration says, regardless of the script's flag: settings
/// inferred from the configuration's name before it was supplied no longer count.
fn engine_decides(texts: &mut [Text]) {
    let shards = |found: &Found| found.field == Field::ZeroStage && found.hole.is_none();
    let is_here = |text: &Text| {
        matches!(text.role(), Some(Role::Engine | Role::Launcher)) && text.reading.found.iter().any(shards)
    };
    if texts.iter().any(is_here) {
        for text in texts.iter_mut().filter(|text| !is_here(text)) {
            text.reading.keep(&|found| {
                let offloads = matches!(found.field, Field::OffloadOptimizer | Field::OffloadParam);
                !offloads || (found.origin != Origin::Derived && found.hole.is_none())
            });
            let asks = |question: &Question| question.asks == Asked::Setting(Field::OffloadParam);
            text.reading.questions.retain(|question| !asks(question));
        }
    }
    let engine = texts.iter().find(|text| text.role() == Some(Role::Engine));
    // What the Trainer's FSDP file says of resharding counts before the words of any text (`training_args.py`: setdefault).
    let of_fsdp = engine.is_some_and(|text| text.format.is_some_and(|format| format.name() == FSDP_SETTINGS));
    let stage = engine
        .and_then(|text| text.reading.found.iter().find(|found| found.field == Field::ZeroStage))
        .cloned();
    let Some(stage) = stage.filter(|found| found.hole.is_none()) else { return };
    // accelerate's file may say that the model is replicated although the program passes it to DeepSpeed.
    for text in texts.iter_mut().filter(|text| text.role() == Some(Role::Launcher)) {
        text.reading.keep(&|found| found.field != Field::ZeroStage);
    }
    let follows = |text: &&mut Text| text.format.is_none() || of_fsdp && text.role() != Some(Role::Engine);
    for text in texts.iter_mut().filter(follows) {
        let flag = text.reading.found.iter().find(|found| found.field == Field::ZeroStage).cloned();
        let Some(flag) = flag else { continue };
        text.reading.keep(&|found| found.field != Field::ZeroStage);
        if flag.value != stage.value && !of_fsdp {
            let message = format!(
                "the script says ZeRO stage {} and the DeepSpeed configuration {}; DeepSpeed's engine follows its configuration",
                flag.value, stage.value
            );
            text.reading.diagnostics.push(Diagnostic::warning(Code::TextsDiffer, message).at_some(flag.span));
        }
    }
}

/// A note for each setting that two texts state differently.
fn say_differences(texts: &mut [Text]) {
    let mut notes = Vec::new();
    // The next later text that states each setting, and its value; filled from the last text backwards.
    let mut behind: HashMap<Field, (&Text, &Found)> = HashMap::new();
    for (index, text) in texts.iter().enumerate().rev() {
        let own = text.reading.found.iter().filter(|found| found.origin == Origin::Script);
        for found in own.clone() {
            let later = behind.get(&found.field).copied();
            let Some((later, other)) = later.filter(|(_, other)| !same(&other.value, &found.value)) else {
                continue;
            };
            let message = format!(
                "{} is {} in {} and {} in {}; the latter applies",
                found.field.name(),
                found.value,
                called(text),
                other.value,
                called(later)
            );
            notes.push((index, Diagnostic::note(Code::TextsDiffer, message).at_some(found.span)));
        }
        // If a text states a setting twice, the first one counts here.
        for found in own.rev() {
            behind.insert(found.field, (text, found));
        }
    }
    notes.sort_by_key(|(index, _)| *index);
    for (index, note) in notes {
        if let Some(text) = texts.get_mut(index) {
            text.reading.diagnostics.push(note);
        }
    }
}

fn same(left: &str, right: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    left == right || number(left).is_some_and(|left| number(right) == Some(left))
}

fn called(text: &Text) -> String {
    match (text.name.as_str(), text.format) {
        ("", Some(format)) => format.name().to_owned(),
        ("", None) => "the script".to_owned(),
        (name, _) => name.to_owned(),
    }
}

/// Drops questions that another text answers.
fn drop_answered(texts: &mut [Text]) {
    let stated = known(texts);
    for text in texts {
        text.reading
            .questions
            .retain(|question| question.asks.setting().is_none_or(|field| !stated.contains(&field)));
    }
}

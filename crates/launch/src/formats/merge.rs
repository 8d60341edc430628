//! Several texts of one training: which of them counts where they differ.

use super::format::Format;
use super::reader::Role;
use crate::named::forget_unknown;
use crate::{Found, Origin, Reading};
use shardscope_plan::Field;
use shardscope_sorting::sort_by_key;
use shardscope_source::{Code, Diagnostic};
use std::collections::{HashMap, HashSet};

/// One text as read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The file's name; empty for pasted text.
    pub name: String,
    /// Its format; none for a script.
    pub format: Option<Format>,
    /// What it states.
    pub reading: Reading,
}

impl Text {
    /// What it decides; none for a script.
    fn role(&self) -> Option<Role> {
        self.format.map(|format| format.role())
    }
}

/// Orders the texts so that later ones win: a model's configuration first, then DeepSpeed's and the
/// machines', then a framework's settings, and the script's own flags last. Says where they differ.
#[must_use]
pub fn merge(mut texts: Vec<Text>) -> Vec<Reading> {
    // A script counts last.
    sort_by_key(&mut texts, |text| text.role().map_or((1, Role::Training), |role| (0, role)));
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

/// What a text only proposes gives way to what another states, precision above all: bf16 of a
/// checkpoint and `--fp16` of a script do not contradict each other.
fn yield_proposals(texts: &mut [Text]) {
    let precision = [Field::Bf16, Field::Fp16];
    let stated = |found: &&Found| matches!(found.origin, Origin::Script | Origin::Environment);
    // How many texts state each setting, so that what the others state is what all do less what this one does.
    let mut by: HashMap<Field, usize> = HashMap::new();
    for text in texts.iter() {
        #[expect(clippy::iter_over_hash_type, reason = "counted, in any order")]
        for field in stated_by(text, stated) {
            *by.entry(field).or_default() += 1;
        }
    }
    for text in texts {
        let own = stated_by(text, stated);
        let others = |field: Field| by.get(&field).copied().unwrap_or(0) > usize::from(own.contains(&field));
        let has_precision = precision.iter().any(|field| others(*field));
        text.reading.keep(&|found| {
            let proposed = matches!(found.origin, Origin::Default | Origin::Derived | Origin::Catalog);
            let beaten = others(found.field) || (precision.contains(&found.field) && has_precision);
            !(proposed && beaten)
        });
    }
}

/// The settings that `text` has by what `is` takes, each once.
fn stated_by(text: &Text, is: impl Fn(&&Found) -> bool) -> HashSet<Field> {
    text.reading.found.iter().filter(is).map(|found| found.field).collect()
}

/// What a text leaves open gives way to what another states.
fn yield_unknowns(texts: &mut [Text]) {
    let known = known(texts);
    for text in texts {
        text.reading.keep(&|found| found.hole.is_none() || !known.contains(&found.field));
    }
}

/// Settings that a text states whole.
fn known(texts: &[Text]) -> HashSet<Field> {
    texts.iter().flat_map(|text| stated_by(text, |found| found.hole.is_none())).collect()
}

/// DeepSpeed's engine shards as its own configuration says, whatever the script's flag.
fn engine_decides(texts: &mut [Text]) {
    let engine = texts.iter().find(|text| text.role() == Some(Role::Engine));
    let stage = engine
        .and_then(|text| text.reading.found.iter().find(|found| found.field == Field::ZeroStage))
        .cloned();
    let Some(stage) = stage.filter(|found| found.hole.is_none()) else { return };
    // accelerate's file may say that it copies the model, and the program hands it to DeepSpeed.
    for text in texts.iter_mut().filter(|text| text.role() == Some(Role::Launcher)) {
        text.reading.keep(&|found| found.field != Field::ZeroStage);
    }
    for text in texts.iter_mut().filter(|text| text.format.is_none()) {
        let flag = text.reading.found.iter().find(|found| found.field == Field::ZeroStage).cloned();
        let Some(flag) = flag else { continue };
        text.reading.keep(&|found| found.field != Field::ZeroStage);
        if flag.value != stage.value {
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
    // The next text behind that states a setting, and how; filled from the last text on.
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
        // Of a setting that a text has twice, the first counts here.
        for found in own.rev() {
            behind.insert(found.field, (text, found));
        }
    }
    sort_by_key(&mut notes, |(index, _)| *index);
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

/// Questions that another text answers are not asked.
fn drop_answered(texts: &mut [Text]) {
    let stated = known(texts);
    for text in texts {
        text.reading
            .questions
            .retain(|question| Field::named(&question.name).is_none_or(|field| !stated.contains(&field)));
    }
}

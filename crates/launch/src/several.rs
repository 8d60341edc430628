//! Several texts that each describe a full run: one is answered, and a diagnostic names which one.

use crate::formats::{Role, Text};
use crate::launch::Launch;
use crate::limits::MAX_TEXTS;
use crate::{Asked, Reading};
use shardscope_bash::base_name;
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Source, Span};

/// Maximum number of scripts that are checked for a run of their own: few belong to one training, and each is
/// evaluated.
pub(crate) const LOOKED_AT: usize = 16;
const HINT: &str = "read each by itself (`shardscope check --each`), or leave the other out";

/// Whether one of two texts names the other as a file that it starts or reads.
pub(crate) fn together(source: &Source, one: usize, other: usize) -> bool {
    let names = |text: usize, named: usize| {
        let name = source.parts().get(named).map_or("", |part| base_name(&part.name));
        !name.is_empty() && source.part_text(text).contains(name)
    };
    names(one, other) || names(other, one)
}

/// Two scripts that each start a run; the first is answered.
pub(crate) fn scripts(source: &Source, first: usize, other: usize) -> Diagnostic {
    let name = |part: usize| source.parts().get(part).map_or("", |part| part.name.as_str());
    let message = format!(
        "{} and {} each start a run, and neither names the other; the estimate is for {0}",
        called(name(first), "the first text"),
        called(name(other), "another text"),
    );
    // Its first character, which may have several bytes.
    let first = source.part_text(other).chars().next().map_or(0, char::len_utf8);
    let place = source.parts().get(other).map(|part| {
        let start = part.span.start as usize;
        Span::from_bytes(start, start + first)
    });
    Diagnostic::warning(Code::SeveralCommands, message).hint(HINT).at_some(place)
}

/// Two settings files of one format that each hold a complete training, if neither builds on the other; `order` lists
/// for each file those that it builds on.
pub(crate) fn files(texts: &[Text], order: &[(String, Vec<String>)]) -> Option<Diagnostic> {
    let states = |text: &Text, field: Field| text.reading.found.iter().any(|found| found.field == field);
    let names_model = |text: &Text| {
        states(text, Field::NumLayers)
            || text.reading.questions.iter().any(|question| question.asks == Asked::Setting(Field::Model))
    };
    let batch = [Field::MicroBatchSize, Field::GlobalBatchSize, Field::NumMicroBatches];
    let whole = |text: &&Text| {
        text.format.is_some_and(|format| format.role() == Role::Training)
            && names_model(text)
            && batch.iter().any(|field| states(text, *field))
    };
    if order.iter().any(|(_, bases)| !bases.is_empty()) {
        return None;
    }
    let mut wholes = texts.iter().filter(whole);
    let first = wholes.next()?;
    let other = wholes.find(|text| text.format == first.format)?;
    let message = format!(
        "{} and {} each describe a whole run; they are read as one, and the latter applies where they differ",
        called(&first.name, "one text"),
        called(&other.name, "another text"),
    );
    Some(Diagnostic::warning(Code::SeveralCommands, message).hint(HINT))
}

/// A file whose keys were read with the command that names it is not read once more for itself: its defaults would be those
/// of the file without the command.
pub(super) fn covered(texts: &mut [Text]) {
    let names: Vec<String> = texts.iter().map(|text| text.reading.covers.clone()).collect();
    for text in texts.iter_mut().filter(|text| text.format.is_some() && !text.name.is_empty()) {
        if names.contains(&text.name) {
            let said = std::mem::take(&mut text.reading.diagnostics).into_iter();
            let diagnostics = said.filter(|said| said.code == Code::MissingFile).collect();
            text.reading = Reading { diagnostics, ..Reading::default() };
        }
    }
}

/// Leaves out the settings files of trainings that the command neither names nor builds on, where its own is known and read
/// beneath it; and says which. Files of engines, launchers and models stay.
pub(crate) fn left_out(
    texts: &mut [Text],
    launch: &Launch,
    order: &[(String, Vec<String>)],
) -> Option<Diagnostic> {
    let own = launch.settings_file()?;
    let named = |name: &str| launch.arguments.iter().any(|word| word.text.contains(base_name(name)));
    let mut kept: Vec<&str> = vec![own];
    kept.extend(order.iter().map(|(name, _)| name.as_str()).filter(|name| {
        // Of another file with the name of its own it is known that it is not the one.
        base_name(name) != base_name(own) && named(name)
    }));
    let mut at = 0;
    while let Some(name) = kept.get(at).copied() {
        at += 1;
        for base in order.iter().filter(|(known, _)| known == name).flat_map(|(_, bases)| bases) {
            if !kept.contains(&base.as_str()) {
                kept.push(base);
            }
        }
    }
    let mut stray: Vec<&str> = Vec::new();
    for text in texts {
        let training = text.format.is_some_and(|format| format.role() == Role::Training);
        let Some((name, _)) = order.iter().find(|(name, _)| !name.is_empty() && *name == text.name) else {
            continue;
        };
        if training && !kept.contains(&name.as_str()) {
            text.reading = Reading::default();
            stray.push(name);
        }
    }
    stray.dedup();
    let which = called(own, "the file that this script writes");
    let verb = if stray.len() == 1 { "is" } else { "are" };
    let message =
        format!("{} {verb} left out: the command takes its settings from {which}", stray.join(", "));
    (!stray.is_empty()).then(|| Diagnostic::warning(Code::SeveralCommands, message).hint(HINT))
}

/// The length of the longest chain of files that a file builds on.
pub(crate) fn depth(name: &str, order: &[(String, Vec<String>)], below: usize) -> usize {
    /// Longest chain that is followed.
    const LONGEST: usize = 8;
    let mut deepest = 0;
    let mut followed = 0;
    for (known, bases) in order {
        if known != name || below == LONGEST {
            continue;
        }
        for base in bases {
            if followed == LONGEST {
                break;
            }
            followed += 1;
            deepest = deepest.max(1 + depth(base, order, below + 1));
        }
    }
    deepest
}

fn called<'n>(name: &'n str, otherwise: &'n str) -> &'n str {
    if name.is_empty() { otherwise } else { name }
}

/// The warning about texts that are not read.
pub(super) fn too_many(source: &Source) -> Diagnostic {
    let more = source.parts().len().saturating_sub(MAX_TEXTS);
    let message = format!("{MAX_TEXTS} files are read at once, and there are {more} more");
    Diagnostic::warning(Code::TooManyFiles, message).hint("leave out what does not belong to this run")
}

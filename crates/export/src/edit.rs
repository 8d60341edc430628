//! The pasted texts with a setting changed: in place if it is stated, otherwise added next to the others in the same
//! style. Every attempt is read back; it is accepted if the setting then has the value and nothing else that the
//! texts state has changed.

use crate::place::{Change, added, in_place};
use crate::round::written;
use shardscope_bash::Environment;
use shardscope_launch::{Origin, Request, Resolution, Setting, read};
use shardscope_plan::Field;
use shardscope_source::{Source, Span};

/// Texts after changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edited {
    /// Name and text of each.
    pub files: Vec<(String, String)>,
    /// What was changed or added: index of the file, place in its new text.
    pub marks: Vec<(usize, Span)>,
    /// Changes for which no place was found.
    pub unplaced: Vec<(Field, String)>,
}

/// Changes settings in the texts, one after another.
#[must_use]
pub fn edit(source: &Source, environment: &Environment, changes: &[(Field, String)]) -> Edited {
    let parts = source.parts().iter().enumerate();
    let files = parts.map(|(index, part)| (part.name.clone(), source.part_text(index).to_owned())).collect();
    let mut edited = Edited { files, ..Edited::default() };
    for (field, value) in changes {
        edited.change(environment, *field, value);
    }
    edited
}

impl Edited {
    fn source(&self) -> Source {
        Source::from_files(self.files.iter().map(|(name, text)| (name.as_str(), text.as_str())))
    }

    fn change(&mut self, environment: &Environment, field: Field, value: &str) {
        let source = self.source();
        let now = resolved(&source, environment);
        if written(&now, field) == value {
            return;
        }
        let asked = field;
        let field = if is_target(&now, field) { Field::TargetLength } else { field };
        let mut tries = in_place(&source, &now, field, value);
        tries.extend(added(&source, &now, field, value));
        for change in tries {
            let mut after = self.clone();
            after.apply(&change);
            let then = resolved(&after.source(), environment);
            if written(&then, asked) == value && undisturbed(&now, &then, field) {
                *self = after;
                return;
            }
        }
        self.unplaced.push((asked, value.to_owned()));
    }

    fn apply(&mut self, change: &Change) {
        let Some((_, text)) = self.files.get_mut(change.file) else { return };
        let (from, to) = (change.span.start as usize, change.span.end as usize);
        if text.get(from..to).is_none() {
            return;
        }
        text.replace_range(from..to, &change.text);
        let (grown, shrunk) = (Span::from_bytes(0, change.text.len()).end, change.span.len());
        for (file, mark) in &mut self.marks {
            if *file == change.file && mark.start >= change.span.end {
                let moved = |byte: u32| byte.saturating_add(grown).saturating_sub(shrunk);
                *mark = Span::new(moved(mark.start), moved(mark.end));
            }
        }
        let lead = change.text.len() - change.text.trim_start().len();
        let inner = Span::from_bytes(from + lead, from + change.text.trim_end().len());
        self.marks.push((change.file, inner));
    }
}

/// Whether a text of an encoder-decoder states its sequence length as the target's.
fn is_target(now: &Resolution, field: Field) -> bool {
    let stated = |setting: &Setting| setting.origin == Origin::Script;
    field == Field::SeqLength
        && !written(now, Field::EncoderLayers).is_empty()
        && now.setting(Field::TargetLength).is_some_and(stated)
}

fn resolved(source: &Source, environment: &Environment) -> Resolution {
    read(&Request { source, environment, overrides: &[] })
}

/// Whether everything else that the texts state is unchanged.
fn undisturbed(before: &Resolution, after: &Resolution, changed: Field) -> bool {
    let stated = |field: &Field| {
        let origin = before.setting(*field).map(|setting| setting.origin);
        matches!(origin, Some(Origin::Script | Origin::Environment | Origin::Catalog))
    };
    let same = |field: &Field| written(before, *field) == written(after, *field);
    Field::ALL.iter().all(|field| *field == changed || !stated(field) || same(field))
}

//! Writes settings, reads the result back, and adds what is missing until both agree.

use serde::{Deserialize, Serialize};
use shardscope_bash::Environment;
use shardscope_launch::{Origin, Request, Resolution, read};
use shardscope_plan::{Field, Marks};
use shardscope_source::Source;

/// Maximum number of rounds.
const ROUNDS: usize = 4;

/// A plan written out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// The text.
    pub text: String,
    /// Settings that it cannot express, so that reading it back gives different values.
    pub unsaid: Vec<Field>,
}

/// Settings that follow from others, or that another setting of the list expresses.
const FOLLOWS: [Field; 24] = [
    Field::WorldSize,
    Field::NumNodes,
    Field::GpusPerNode,
    Field::DataParallelSize,
    Field::ExpertDataParallelSize,
    Field::NumMicroBatches,
    Field::PaddedVocabSize,
    Field::ParamsDtype,
    Field::GradsDtype,
    Field::UseRotaryPositionEmbeddings,
    Field::AddPositionEmbedding,
    Field::RecomputeActivations,
    Field::CheckpointActivations,
    Field::MoeLayerRecompute,
    Field::EnableCudaGraph,
    Field::MoeEnableDeepep,
    Field::UseMcoreModels,
    Field::UseLegacyModels,
    Field::TransformerImpl,
    Field::UseCheckpointArgs,
    Field::NumVirtualStagesPerPipelineRank,
    Field::NumLayersPerVirtualPipelineStage,
    // The reader's choices about the verdict are not part of a command.
    Field::Without,
    Field::NotRead,
];

/// How one setting is written; `None` if it cannot be expressed.
pub(super) type Spell<'a> = &'a dyn Fn(Field, &str) -> Option<String>;
/// How the written settings are laid out as a text.
pub(super) type Lay<'a> = &'a dyn Fn(&[(Field, String)]) -> String;

/// Writes a resolution as words, each setting through `spell`, with the text laid out by `lay`. It is read back together with the
/// files `beside`, by name and text.
pub(crate) fn write(
    target: &Resolution,
    spell: Spell<'_>,
    lay: Lay<'_>,
    beside: &[(&str, String)],
) -> Exported {
    fn with<'t>(text: &'t str, beside: &'t [(&str, String)]) -> Vec<(&'t str, &'t str)> {
        let others = beside.iter().map(|(name, text)| (*name, text.as_str()));
        [("", text)].into_iter().chain(others).collect()
    }
    let stated = |field: &Field| {
        let origin = target.setting(*field).map(|setting| setting.origin);
        matches!(origin, Some(Origin::Script | Origin::Environment | Origin::User | Origin::Catalog))
    };
    let mut said: Vec<(Field, String)> = Vec::new();
    let first = Field::ALL.iter().copied().filter(stated).collect();
    add(target, first, spell, &mut said);
    for _ in 0..ROUNDS {
        let now = again(target, &with(&lay(&said), beside));
        if same_plan(target, &now) {
            return Exported { text: lay(&said), unsaid: Vec::new() };
        }
        let lacking =
            differing(target, &now).into_iter().filter(|field| said.iter().all(|(known, _)| known != field));
        if add(target, lacking.collect(), spell, &mut said) == 0 {
            break;
        }
    }
    let text = lay(&said);
    let unsaid = unsaid(target, &with(&text, beside));
    Exported { text, unsaid }
}

/// The settings in which `files` differ from the plan of `target`; empty if they give the identical plan. If no
/// setting distinguishes the two, the software does: what its readers assume about a plan is in no setting.
pub(crate) fn unsaid(target: &Resolution, files: &[(&str, &str)]) -> Vec<Field> {
    let now = again(target, files);
    if same_plan(target, &now) {
        return Vec::new();
    }
    let differing = differing(target, &now);
    if differing.is_empty() { vec![Field::Software] } else { differing }
}

/// Whether both give the same plan, apart from the marks of their readers.
fn same_plan(target: &Resolution, now: &Resolution) -> bool {
    now.plan.as_ref().zip(target.plan.as_ref()).is_some_and(|(now, wanted)| {
        now.clone().marked(Marks::default()) == wanted.clone().marked(Marks::default())
    })
}

fn add(target: &Resolution, fields: Vec<Field>, spell: Spell<'_>, said: &mut Vec<(Field, String)>) -> usize {
    let before = said.len();
    for field in fields.into_iter().filter(|field| !FOLLOWS.contains(field)) {
        let value = written(target, field);
        if let Some(words) = spell(field, &value).filter(|_| !value.is_empty()) {
            said.push((field, words));
        }
    }
    said.sort_by_key(|(field, _)| field.index());
    said.len() - before
}

/// A setting's value as text; empty if it has none.
pub(crate) fn written(resolution: &Resolution, field: Field) -> String {
    resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
}

/// What texts resolve to on the target's machine.
fn again(target: &Resolution, files: &[(&str, &str)]) -> Resolution {
    let overrides = [(Field::Accelerator.name().to_owned(), written(target, Field::Accelerator))];
    let (source, environment) = (Source::from_files(files.iter().copied()), Environment::default());
    read(&Request { source: &source, environment: &environment, overrides: &overrides })
}

/// Settings in which two resolutions differ, except those that follow from others.
fn differing(target: &Resolution, now: &Resolution) -> Vec<Field> {
    let differs = |field: &Field| written(target, *field) != written(now, *field);
    Field::ALL.iter().copied().filter(|field| !FOLLOWS.contains(field) && differs(field)).collect()
}

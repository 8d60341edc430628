//! Writing, reading what was written, and writing what it lacks, until both say the same.

use serde::{Deserialize, Serialize};
use shardscope_bash::Environment;
use shardscope_launch::{Origin, Request, Resolution, read};
use shardscope_plan::{Field, Marks};
use shardscope_sorting::sort_by_key;
use shardscope_source::Source;

/// Most times a text is read and added to.
const ROUNDS: usize = 4;

/// A plan written out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// The text.
    pub text: String,
    /// Settings that it cannot say, and reading it gives otherwise.
    pub unsaid: Vec<Field>,
}

/// What follows from other settings, or is said by another setting of the list.
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
    // What the reader says of the verdict is no part of a command.
    Field::Without,
    Field::NotRead,
];

/// How one setting is said; none when it cannot be.
pub(super) type Spell<'a> = &'a dyn Fn(Field, &str) -> Option<String>;
/// How the settings said are laid out as a text.
pub(super) type Lay<'a> = &'a dyn Fn(&[(Field, String)]) -> String;

/// Writes a resolution as words, each setting by `spell`, the whole laid out by `lay`.
pub(crate) fn write(target: &Resolution, spell: Spell<'_>, lay: Lay<'_>) -> Exported {
    let stated = |field: &Field| {
        let origin = target.setting(*field).map(|setting| setting.origin);
        matches!(origin, Some(Origin::Script | Origin::Environment | Origin::User | Origin::Catalog))
    };
    let mut said: Vec<(Field, String)> = Vec::new();
    let first = Field::ALL.iter().copied().filter(stated).collect();
    add(target, first, spell, &mut said);
    for _ in 0..ROUNDS {
        let now = again(target, &[("", &lay(&said))]);
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
    let unsaid = unsaid(target, &[("", &text)]);
    Exported { text, unsaid }
}

/// The settings that `files` say otherwise than the plan of `target`; none where they make the identical plan. Where no setting
/// tells the two apart, the software does: what its readers assume of a plan stands in none.
pub(crate) fn unsaid(target: &Resolution, files: &[(&str, &str)]) -> Vec<Field> {
    let now = again(target, files);
    if same_plan(target, &now) {
        return Vec::new();
    }
    let differing = differing(target, &now);
    if differing.is_empty() { vec![Field::Software] } else { differing }
}

/// Whether both make one plan, whatever their readers marked it with.
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
    sort_by_key(said, |(field, _)| field.index());
    said.len() - before
}

/// A setting's value as text; empty when it has none.
pub(crate) fn written(resolution: &Resolution, field: Field) -> String {
    resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
}

/// What texts come to on the machine of the target.
fn again(target: &Resolution, files: &[(&str, &str)]) -> Resolution {
    let overrides = [(Field::Accelerator.name().to_owned(), written(target, Field::Accelerator))];
    let (source, environment) = (Source::from_files(files.iter().copied()), Environment::default());
    read(&Request { source: &source, environment: &environment, overrides: &overrides })
}

/// Settings in which two resolutions differ, but for those that follow from others.
fn differing(target: &Resolution, now: &Resolution) -> Vec<Field> {
    let differs = |field: &Field| written(target, *field) != written(now, *field);
    Field::ALL.iter().copied().filter(|field| !FOLLOWS.contains(field) && differs(field)).collect()
}

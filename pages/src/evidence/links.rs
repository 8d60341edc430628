//! The link that opens a run as a plan of the main page.

use shardscope::launch::{Origin, Resolution, Setting, SettingValue, resolve};
use shardscope::link::{Shared, encode};
use shardscope::plan::Field;

/// The fragment of the link that makes the plan of `resolution` again, by the fewest settings; none where it made none, or
/// where settings alone do not say it.
#[must_use]
pub fn link(resolution: &Resolution) -> Option<String> {
    least(resolution).map(|settings| encode(&Shared::Settings(settings)))
}

/// Said in any case: without them nothing else can be resolved, or the page would ask.
const ALWAYS: [Field; 10] = [
    Field::Software,
    Field::Accelerator,
    Field::NumNodes,
    Field::GpusPerNode,
    Field::NumLayers,
    Field::HiddenSize,
    Field::NumAttentionHeads,
    Field::SeqLength,
    Field::MicroBatchSize,
    Field::VocabSize,
];

/// Settings that may hold a path: the size of the vocabulary says what they tell.
const PATHS: [Field; 2] = [Field::TokenizerModel, Field::VocabFile];

/// Rounds of saying what the settings said so far do not come to.
const ROUNDS: usize = 8;

fn least(resolution: &Resolution) -> Option<Vec<(String, String)>> {
    // Derived, it follows again from the vocabulary's own size.
    let padded = |setting: &&Setting| {
        setting.name != Field::PaddedVocabSize.name() || setting.origin != Origin::Derived
    };
    let public: Vec<&Setting> = resolution
        .settings
        .iter()
        .filter(|setting| setting.value != SettingValue::Null)
        .filter(|setting| PATHS.iter().all(|path| path.name() != setting.name))
        .filter(padded)
        .collect();
    let always = |setting: &&&Setting| ALWAYS.iter().any(|field| field.name() == setting.name);
    let stated = |setting: &Setting| {
        let by_hand = matches!(setting.origin, Origin::Script | Origin::Environment | Origin::User);
        by_hand || setting.flag.is_some()
    };
    let mut said: Vec<&Setting> = public.iter().filter(always).copied().collect();
    for _ in 0..ROUNDS {
        let made = resolve(&[], &written(&said));
        // Whole plans are compared: a link to another one would open with other figures than its row has.
        if made.plan.is_some() && made.plan == resolution.plan {
            return Some(written(&said));
        }
        let missing = |setting: &&Setting| {
            let comes_to = Field::named(setting.name).and_then(|field| made.setting(field));
            !said.iter().any(|other| other.name == setting.name)
                && comes_to.is_none_or(|other| other.value != setting.value)
        };
        let missing: Vec<&Setting> = public.iter().copied().filter(missing).collect();
        // What follows from other settings may follow once those are said.
        let (first, rest): (Vec<&Setting>, Vec<&Setting>) = missing.into_iter().partition(|one| stated(one));
        let next = if first.is_empty() { rest } else { first };
        if next.is_empty() {
            break;
        }
        said.extend(next);
    }
    // Everything, where the rounds do not end at the same plan.
    let all = written(&public);
    (resolve(&[], &all).plan == resolution.plan && resolution.plan.is_some()).then_some(all)
}

fn written(settings: &[&Setting]) -> Vec<(String, String)> {
    settings.iter().map(|setting| (setting.name.to_owned(), setting.value.written())).collect()
}

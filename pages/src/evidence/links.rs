//! The link that opens a run as a plan of the main page.

use shardscope::launch::{Origin, Resolution, Setting, SettingValue, resolve};
use shardscope::link::{Shared, encode};
use shardscope::plan::Field;

/// The fragment of a link that reproduces the plan of `resolution` with the fewest settings; none if it has no plan,
/// or if settings alone cannot express it.
#[must_use]
pub fn link(resolution: &Resolution) -> Option<String> {
    least(resolution).map(|settings| encode(&Shared::Settings(settings)))
}

/// Always stated: without them nothing else can be resolved, or the page would ask.
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

/// Settings that may contain a path: the vocabulary size already says what matters about them.
const PATHS: [Field; 2] = [Field::TokenizerModel, Field::VocabFile];

/// Rounds of adding settings that the ones stated so far do not reproduce.
const ROUNDS: usize = 8;

fn least(resolution: &Resolution) -> Option<Vec<(String, String)>> {
    // A derived value follows again from the vocabulary size.
    let padded =
        |setting: &&Setting| setting.field != Field::PaddedVocabSize || setting.origin != Origin::Derived;
    let public: Vec<&Setting> = resolution
        .settings
        .iter()
        .filter(|setting| setting.value != SettingValue::Null)
        .filter(|setting| !PATHS.contains(&setting.field))
        .filter(padded)
        .collect();
    let always = |setting: &&&Setting| ALWAYS.contains(&setting.field);
    let stated = |setting: &Setting| {
        let by_hand = matches!(setting.origin, Origin::Script | Origin::Environment | Origin::User);
        by_hand || setting.flag.is_some()
    };
    let mut said: Vec<&Setting> = public.iter().filter(always).copied().collect();
    for _ in 0..ROUNDS {
        let made = resolve(&[], &written(&said));
        // Entire plans are compared: a link to a different one would open with figures that differ from the row's.
        if made.plan.is_some() && made.plan == resolution.plan {
            return Some(written(&said));
        }
        let missing = |setting: &&Setting| {
            let comes_to = made.setting(setting.field);
            !said.iter().any(|other| other.field == setting.field)
                && comes_to.is_none_or(|other| other.value != setting.value)
        };
        let missing: Vec<&Setting> = public.iter().copied().filter(missing).collect();
        // Derived settings may follow once the stated ones are there.
        let (first, rest): (Vec<&Setting>, Vec<&Setting>) = missing.into_iter().partition(|one| stated(one));
        let next = if first.is_empty() { rest } else { first };
        if next.is_empty() {
            break;
        }
        said.extend(next);
    }
    // All settings, if the rounds do not arrive at the same plan.
    let all = written(&public);
    (resolve(&[], &all).plan == resolution.plan && resolution.plan.is_some()).then_some(all)
}

fn written(settings: &[&Setting]) -> Vec<(String, String)> {
    settings.iter().map(|setting| (setting.name().to_owned(), setting.value.written())).collect()
}

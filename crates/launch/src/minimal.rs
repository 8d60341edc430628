//! The smallest set of settings that gives the same plan without the text.

use super::{Origin, Resolution, Setting, SettingValue, resolve};
use shardscope_plan::{Field, Plan};

/// Settings by name.
type Named = Vec<(String, String)>;

/// The settings that reproduce the plan of `resolution` when resolved without any text: none of them can be left out,
/// except the accelerator, which is always included. None if there is no plan, or if settings alone cannot express it.
#[must_use]
pub fn minimal_settings(resolution: &Resolution) -> Option<Named> {
    let plan = resolution.plan.as_ref()?;
    let stated = |setting: &Setting| {
        let said = matches!(setting.origin, Origin::Script | Origin::Environment | Origin::User);
        // A rule may have replaced a stated value, and the evidence for the software is not included here.
        let needed = matches!(setting.field, Field::Software | Field::Accelerator | Field::VocabSize);
        said || setting.flag.is_some() || needed
    };
    let derived = |setting: &Setting| stated(setting) || setting.origin != Origin::Default;
    let goal = Goal { plan, questions: resolution.questions.len() };
    // The length of a pack and the samples of its micro-batch, set by hand, would no longer be those of a pack, even
    // though the text states them; what the user has set is included.
    let packs = plan.recipe().sample_length.is_some();
    let packed = |setting: &Setting| {
        let of_pack = [Field::SeqLength, Field::MicroBatchSize, Field::NumMicroBatches];
        let of_text = setting.origin == Origin::Derived || packs && setting.origin != Origin::User;
        of_text && of_pack.contains(&setting.field)
    };
    let sets = [
        written(resolution, stated),
        written(resolution, derived),
        written(resolution, |setting| !packed(setting)),
        written(resolution, |_| true),
    ];
    sets.into_iter().find(|settings| goal.is_made_by(settings)).map(|settings| thinned(settings, &goal))
}

/// What the settings must resolve to.
struct Goal<'a> {
    plan: &'a Plan,
    /// At most as many open questions as before.
    questions: usize,
}

impl Goal<'_> {
    fn is_made_by(&self, settings: &[(String, String)]) -> bool {
        let made = resolve(&[], settings);
        made.plan.as_ref() == Some(self.plan) && made.questions.len() <= self.questions
    }
}

/// Settings that may hold a path on the author's machine, and never go into a link. The size of the vocabulary replaces
/// them.
const PATHS: [Field; 2] = [Field::TokenizerModel, Field::VocabFile];

fn written(resolution: &Resolution, keep: impl Fn(&Setting) -> bool) -> Named {
    // The result of padding is left out: the plan keeps how the vocabulary is padded.
    let padded =
        |setting: &Setting| setting.field == Field::PaddedVocabSize && setting.origin == Origin::Derived;
    let kept = resolution
        .settings
        .iter()
        .filter(|setting| setting.value != SettingValue::Null && keep(setting) && !padded(setting));
    let public = kept.filter(|setting| !PATHS.contains(&setting.field));
    public.map(|setting| (setting.name().to_owned(), setting.value.written())).collect()
}

/// Leaves out what is not needed, last settings first: the world size is tried before the nodes, derived settings
/// before those they follow from.
fn thinned(mut settings: Named, goal: &Goal) -> Named {
    loop {
        let before = settings.len();
        for index in (0..settings.len()).rev() {
            let Some((name, _)) = settings.get(index) else { continue };
            if name == Field::Accelerator.name() {
                continue;
            }
            let left_out = settings.remove(index);
            if !goal.is_made_by(&settings) {
                settings.insert(index, left_out);
            }
        }
        if settings.len() == before {
            return settings;
        }
    }
}

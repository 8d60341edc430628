//! The fewest settings that make the same plan without the text.

use super::{Origin, Resolution, Setting, SettingValue, resolve};
use shardscope_plan::{Field, Plan};

/// Settings by name.
type Named = Vec<(String, String)>;

/// The settings that make the plan of `resolution` again when resolved without any text: none of them can be
/// left out, but the accelerator, which is always said. None when there is no plan, or when settings alone
/// cannot say it.
#[must_use]
pub fn minimal_settings(resolution: &Resolution) -> Option<Named> {
    let plan = resolution.plan.as_ref()?;
    let stated = |setting: &Setting| {
        let field = Field::named(setting.name);
        let said = matches!(setting.origin, Origin::Script | Origin::Environment | Origin::User);
        // A rule may have put its value in the place of a statement, and what told the software is not said here.
        let needed = matches!(field, Some(Field::Software | Field::Accelerator | Field::VocabSize));
        said || setting.flag.is_some() || needed
    };
    let derived = |setting: &Setting| stated(setting) || setting.origin != Origin::Default;
    let goal = Goal { plan, questions: resolution.questions.len() };
    // The length of a pack and the samples of its micro-batch, set by hand, would no longer be those of a pack.
    let packed = |setting: &Setting| {
        let of_pack = [Field::SeqLength, Field::MicroBatchSize, Field::NumMicroBatches];
        let field = Field::named(setting.name);
        setting.origin == Origin::Derived && field.is_some_and(|field| of_pack.contains(&field))
    };
    let sets = [
        written(resolution, stated),
        written(resolution, derived),
        written(resolution, |setting| !packed(setting)),
        written(resolution, |_| true),
    ];
    sets.into_iter().find(|settings| goal.is_made_by(settings)).map(|settings| thinned(settings, &goal))
}

/// What the settings must come to.
struct Goal<'a> {
    plan: &'a Plan,
    /// No more is left open than was.
    questions: usize,
}

impl Goal<'_> {
    fn is_made_by(&self, settings: &[(String, String)]) -> bool {
        let made = resolve(&[], settings);
        made.plan.as_ref() == Some(self.plan) && made.questions.len() <= self.questions
    }
}

/// Settings that may hold a path of the author's machine, and never go into a link. What they tell is said by the
/// size of the vocabulary.
const PATHS: [Field; 2] = [Field::TokenizerModel, Field::VocabFile];

fn written(resolution: &Resolution, keep: impl Fn(&Setting) -> bool) -> Named {
    // What padding gives is not said: the plan keeps how the vocabulary is padded.
    let padded = |setting: &Setting| {
        setting.name == Field::PaddedVocabSize.name() && setting.origin == Origin::Derived
    };
    let kept = resolution
        .settings
        .iter()
        .filter(|setting| setting.value != SettingValue::Null && keep(setting) && !padded(setting));
    let public = kept.filter(|setting| PATHS.iter().all(|path| path.name() != setting.name));
    public.map(|setting| (setting.name.to_owned(), setting.value.written())).collect()
}

/// Leaves out what can be, last settings first: the world size goes before the nodes, what follows before what
/// it follows from.
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

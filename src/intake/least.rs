//! The fewest settings that make the same plan without the text.

use super::{Origin, Resolution, Setting, SettingValue, resolve};
use crate::plan::{Field, Plan};

/// Settings by name.
type Named = Vec<(String, String)>;

/// The settings that make the plan of `resolution` again when resolved without any text: none of them can be
/// left out, but the accelerator, which is always said. None when there is no plan, or when settings alone
/// cannot say it.
#[must_use]
pub fn least_settings(resolution: &Resolution) -> Option<Named> {
    let plan = resolution.plan.as_ref()?;
    let stated = |setting: &Setting| {
        let field = Field::named(setting.name);
        let said = matches!(setting.origin, Origin::Script | Origin::Environment | Origin::User);
        // A rule may have put its value in the place of a statement, and what told the software is not said here.
        said || setting.flag.is_some() || matches!(field, Some(Field::Software | Field::Accelerator))
    };
    let derived = |setting: &Setting| stated(setting) || setting.origin != Origin::Default;
    let sets = [written(resolution, stated), written(resolution, derived), written(resolution, |_| true)];
    sets.into_iter().find(|settings| makes(settings, plan)).map(|settings| thinned(settings, plan))
}

fn written(resolution: &Resolution, keep: impl Fn(&Setting) -> bool) -> Named {
    // What padding gives is not said: the plan keeps how the vocabulary is padded.
    let padded = |setting: &Setting| {
        setting.name == Field::PaddedVocabSize.name() && setting.origin == Origin::Derived
    };
    let kept = resolution
        .settings
        .iter()
        .filter(|setting| setting.value != SettingValue::Null && keep(setting) && !padded(setting));
    kept.map(|setting| (setting.name.to_owned(), setting.value.written())).collect()
}

fn makes(settings: &[(String, String)], plan: &Plan) -> bool {
    resolve(&[], settings).plan.as_ref() == Some(plan)
}

/// Leaves out what can be, last settings first: the world size goes before the nodes, what follows before what
/// it follows from.
fn thinned(mut settings: Named, plan: &Plan) -> Named {
    loop {
        let before = settings.len();
        for index in (0..settings.len()).rev() {
            let Some((name, _)) = settings.get(index) else { continue };
            if name == Field::Accelerator.name() {
                continue;
            }
            let left_out = settings.remove(index);
            if !makes(&settings, plan) {
                settings.insert(index, left_out);
            }
        }
        if settings.len() == before {
            return settings;
        }
    }
}

//! Plans from which formulas are shown with numbers: a well-known one, then others until every formula has been used.

use std::sync::OnceLock;

use shardscope::catalog;
use shardscope::launch::{Request, Setting, read};
use shardscope::link::{Shared, decode, encode};
use shardscope::plan::Plan;
use shardscope::session::UserInput;
use shardscope::session::examples::{Example, gallery};

/// A plan with its name in the guide.
pub(super) struct Named {
    /// Name in the guide: that of the example, or of the row in `plans.tsv`.
    pub(super) name: String,
    /// What it runs on, in one line.
    pub(super) about: String,
    /// The part of a main page link that opens it.
    pub(super) link: String,
    /// The plan.
    pub(super) plan: Plan,
    /// Its settings as resolved.
    pub(super) settings: Vec<Setting>,
}

/// The gallery example that is shown in full, and whose numbers are used wherever possible.
const FIRST: &str = "GPT-3 175B";

/// Models of the catalog (empty if the settings suffice), with settings in link syntax: each for formulas that the
/// gallery's examples and the rows above it do not use.
fn others() -> impl Iterator<Item = [&'static str; 3]> {
    let rows = include_str!("plans.tsv").lines().skip(1);
    rows.filter_map(|row| row.split('\t').collect::<Vec<_>>().try_into().ok())
}

/// All plans: the gallery's known models and one of each scaling table, then the others.
pub(super) fn plans() -> &'static [Named] {
    static PLANS: OnceLock<Vec<Named>> = OnceLock::new();
    PLANS.get_or_init(|| {
        let mut all = Vec::new();
        for (place, chapter) in gallery().into_iter().enumerate() {
            let most = if place == 0 { usize::MAX } else { 1 };
            all.extend(chapter.examples.iter().take(most).filter_map(of_example));
        }
        for [name, model, link] in others() {
            all.extend(of_link(name, model, link));
        }
        if let Some(first) = all.iter().position(|named| named.name == FIRST) {
            let first = all.remove(first);
            all.insert(0, first);
        }
        all
    })
}

/// The names of [`others`] that do not resolve to a plan, with the engine's message.
#[cfg(test)]
pub(super) fn refused() -> Vec<String> {
    let said = |name: &str, input: &UserInput| {
        let source = input.source();
        let resolution = read(&Request {
            source: &source,
            environment: &input.shell_environment(),
            overrides: &input.settings,
        });
        resolution.plan.is_none().then(|| format!("{name}: {:?}", resolution.diagnostics))
    };
    others().filter_map(|[name, model, link]| said(name, &input(model, link))).collect()
}

fn of_example(example: &Example) -> Option<Named> {
    named(&example.name, &example.about, &example.input)
}

fn of_link(name: &str, model: &str, link: &str) -> Option<Named> {
    named(name, "", &input(model, link))
}

fn named(name: &str, about: &str, input: &UserInput) -> Option<Named> {
    let source = input.source();
    let resolution = read(&Request {
        source: &source,
        environment: &input.shell_environment(),
        overrides: &input.settings,
    });
    let link = encode(&Shared::Settings(input.settings.clone()));
    let (name, about) = (name.to_owned(), about.to_owned());
    Some(Named { name, about, link, plan: resolution.plan?, settings: resolution.settings })
}

fn input(model: &str, link: &str) -> UserInput {
    let mut settings: Vec<(String, String)> = Vec::new();
    // Nodes of eight GPUs, unless the row states its own.
    let eight = if link.contains("gpus_per_node=") { "" } else { "gpus_per_node=8&" };
    let more = match decode(&format!("/1?accelerator=H100-SXM&{eight}{link}")) {
        Ok(Some(Shared::Settings(more))) => more,
        _ => Vec::new(),
    };
    if let Some((_, known)) = catalog::model(model) {
        for (field, value) in known {
            if more.iter().all(|(name, _)| name != field.name()) {
                settings.push((field.name().to_owned(), value));
            }
        }
    }
    settings.extend(more);
    UserInput::of_settings(settings)
}

#[cfg(test)]
mod tests {
    use super::{others, refused};

    #[test]
    fn every_plan_is_one() {
        assert_eq!(refused(), Vec::<String>::new());
        assert_eq!(
            others().count() + 1,
            include_str!("plans.tsv").lines().count(),
            "a row without its three columns"
        );
    }
}

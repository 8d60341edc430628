//! Fragments of links to a state, and the names of a plan: a title and the stem of a file name.

use super::{EXAMPLE, Shown, State, UserInput};
use shardscope_launch::minimal_settings;
use shardscope_link::{Shared, encode, encode_pair};
use shardscope_plan::Plan;
use shardscope_units::{grouped, rounded};

/// The fragment of the address: the plan as settings, together with the pinned one. Empty for what a first visit
/// shows, and for input that does not form a plan.
#[must_use]
pub fn fragment(state: &State) -> String {
    // The example is compared as input, not as text alone: once a setting is changed by hand it is no longer a first
    // visit.
    let first_visit = state.pinned.is_none() && state.input == UserInput::from_text(EXAMPLE);
    match (&state.shown, first_visit) {
        (Some(shown), false) => link(shown, state),
        _ => String::new(),
    }
}

/// The fragment of the link that carries the plan shown and the pinned one, without any text.
#[must_use]
pub fn settings_link(state: &State) -> Option<String> {
    state.shown.as_ref().map(|shown| link(shown, state)).filter(|link| !link.is_empty())
}

/// The fragment of the link that carries the complete input, including the texts.
#[must_use]
pub fn script_link(state: &State) -> String {
    let pasted = Shared::Pasted(state.input.pasted());
    match state.pinned.as_ref().and_then(|pinned| shared(&pinned.shown)) {
        Some(pinned) => encode_pair(&pasted, &pinned),
        None => encode(&pasted),
    }
}

/// The fragment of the link that carries the plan of `input` with `changes`: as settings, or with its texts if
/// settings cannot express it.
#[must_use]
pub fn changed_link(input: &UserInput, changes: &[(String, String)]) -> String {
    let mut input = input.clone();
    changes.iter().cloned().for_each(|change| input.put(change));
    let state = State::new(input);
    settings_link(&state).unwrap_or_else(|| script_link(&state))
}

fn link(shown: &Shown, state: &State) -> String {
    // The pinned plan is carried as settings even alongside texts: a link carries at most one set of texts.
    let pinned = state.pinned.as_ref().and_then(|pinned| shared(&pinned.shown));
    match (shared(shown), pinned) {
        (Some(shown), Some(pinned)) => encode_pair(&shown, &pinned),
        (Some(shown), None) => encode(&shown),
        // Without settings a plan cannot be expressed in a link, and a pinned one alone would open as the wrong plan.
        (None, _) => String::new(),
    }
}

fn shared(shown: &Shown) -> Option<Shared> {
    minimal_settings(&shown.answer.resolution).map(Shared::Settings)
}

/// A plan in a few words: `6.64B on 16 × H100-SXM, TP 2, PP 2, DP 4`.
#[must_use]
pub fn title(shown: &Shown) -> String {
    let parameters = shardscope_units::Quantity::number(shown.report.parameters.total);
    format!("{} on {}{}", rounded(parameters), cut(&shown.plan), shown.plan.recipe().marks.short())
}

/// The same as the name of a file: `5.04b-on-16-h100-sxm-tp-2-pp-2-dp-4`.
#[must_use]
pub fn file_stem(shown: &Shown) -> String {
    let mut stem = String::new();
    // Dots are kept for sizes such as 5.04b; everything else that a file system or a shell could trip over ends a
    // word.
    for word in title(shown).replace(',', "").split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')) {
        if !word.is_empty() {
            stem += if stem.is_empty() { "" } else { "-" };
            stem += &word.to_ascii_lowercase();
        }
    }
    stem
}

/// Machines and layout: `16 × H100-SXM, TP 2, PP 2, DP 4`.
#[must_use]
pub fn cut(plan: &Plan) -> String {
    let layout = plan.layout();
    let mut text = format!("{} × {}", grouped(layout.world_size), plan.cluster().accelerator.name);
    let degrees = [
        ("TP", layout.tensor),
        ("CP", layout.context),
        ("PP", layout.pipeline),
        ("EP", layout.expert),
        ("DP", layout.data),
    ];
    // A degree of 1 splits nothing. DP is left out likewise, so one GPU reads `1 × H100-SXM`.
    for (name, degree) in degrees.into_iter().filter(|(_, degree)| *degree > 1) {
        text += &format!(", {name} {degree}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, apply};

    #[test]
    fn a_link_to_a_found_layout_opens_as_that_layout() {
        let input = UserInput::from_text(EXAMPLE);
        let changes = [("tensor_model_parallel_size".to_owned(), "4".to_owned())];
        let opened =
            shardscope_link::decode(&changed_link(&input, &changes)).expect("a link").expect("a plan");
        let Shared::Settings(settings) = opened else { panic!("settings say it: {opened:?}") };
        let shown = State::new(UserInput { settings, ..UserInput::from_text("") }).shown.expect("a plan");
        let mut own = UserInput::from_text(EXAMPLE);
        changes.into_iter().for_each(|change| own.put(change));
        assert_eq!(shown.plan, State::new(own).shown.expect("a plan").plan);
    }

    #[test]
    fn the_address_follows_the_plan() {
        let state = State::default();
        assert_eq!(fragment(&state), "", "a first visit has a clean address");
        let state = apply(state, Event::Set { name: "num_nodes".into(), value: "4".into() });
        let address = fragment(&state);
        assert!(address.starts_with("/1?") && address.contains("nodes=4"), "{address}");
        let opened = apply(State::default(), Event::Follow(address.clone()));
        assert_eq!(
            opened.shown.as_ref().map(|shown| &shown.plan),
            state.shown.as_ref().map(|shown| &shown.plan)
        );
        assert_eq!(fragment(&opened), address);
        let broken = apply(apply(state, Event::Edit("prose".into())), Event::Settle);
        assert_eq!(fragment(&broken), "");
    }

    #[test]
    fn both_plans_travel_in_both_links() {
        let pinned = apply(State::default(), Event::Pin);
        let state = apply(pinned, Event::Set { name: "num_nodes".into(), value: "4".into() });
        for link in [settings_link(&state).expect("a link"), script_link(&state)] {
            let opened = apply(State::default(), Event::Follow(link));
            let world = |shown: &Shown| shown.plan.layout().world_size;
            assert_eq!(opened.shown.as_deref().map(world), Some(32));
            assert_eq!(opened.pinned.map(|pinned| world(&pinned.shown)), Some(16));
        }
    }

    #[test]
    fn plans_are_named_by_size_and_cut() {
        let state = State::default();
        assert_eq!(
            state.shown.as_deref().map(title).as_deref(),
            Some("5.04B on 16 × H100-SXM, TP 2, PP 2, DP 4")
        );
        let stem = state.shown.as_deref().map(file_stem);
        assert_eq!(stem.as_deref(), Some("5.04b-on-16-h100-sxm-tp-2-pp-2-dp-4"));
    }
}

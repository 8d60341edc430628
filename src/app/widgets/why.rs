//! A number that explains itself: pressing it opens the tree of its parts, with formulas and sources. The same card
//! explains terms too.

use shardscope::estimate::traffic::Operation;
use shardscope::explain::{anchor, meaning};
use shardscope::session::{Branch, Shown, explain_memory, explain_message, explain_phase, explain_wire};
use yew::prelude::*;

use super::{Sign, icon, tree};
use crate::app::action::Action;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::ui::Explained;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub text: String,
    pub why: Explained,
}

/// A number as a button that opens the card; its content is computed only then.
#[component(Number)]
pub(crate) fn number(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let why = props.why.clone();
    html! {
        <button
            type="button"
            class="number-button"
            popovertarget="why"
            onclick={move |_| dispatch.emit(Action::Explain(why.clone()))}
        >{ &props.text }</button>
    }
}

/// The one card in which numbers and terms are explained.
#[component(Card)]
pub(crate) fn card() -> Html {
    let app = use_context::<AppContext>();
    let why = app.as_ref().and_then(|app| app.ui.why.clone());
    let shown = app.as_ref().and_then(|app| app.session.shown.clone());
    // Computed when something is requested: trees of many layers are large.
    let content = use_memo((why, shown), |(why, shown)| match (why, shown) {
        // Terms need no plan.
        (Some(Explained::Term(name)), _) => Some((name.to_string(), term(name))),
        (Some(why), Some(shown)) => explain(shown, why).map(|branch| {
            let title = format!("{}: {}", branch.label, branch.value);
            (title, tree(&branch, 1))
        }),
        _ => None,
    });
    html! {
        <div id="why" class="why" popover="auto" role="dialog" aria-labelledby="why-title">
            if let Some((title, inside)) = &*content {
                <div class="why-head">
                    <h2 id="why-title">{ title }</h2>
                    <button
                        type="button"
                        class="button quiet"
                        popovertarget="why"
                        popovertargetaction="hide"
                        aria-label="Close"
                    >
                        { icon(Sign::Close) }
                    </button>
                </div>
                { inside.clone() }
            }
        </div>
    }
}

fn term(name: &str) -> Html {
    let more = format!("guide.html#term-{}", anchor(name));
    html! {
        <>
            <p>{ meaning(name).unwrap_or_default() }</p>
            <p class="small"><a href={more} target="_blank" rel="noopener">{ "More in the guide" }</a></p>
        </>
    }
}

fn explain(shown: &Shown, why: &Explained) -> Option<Branch> {
    match *why {
        Explained::Memory(stage, kind) => explain_memory(&shown.report.memory, stage, kind),
        Explained::Phase(kind) => explain_phase(&shown.report.memory, kind),
        Explained::Payload(dimension, place) => {
            operation(shown, dimension, place).map(|operation| explain_message(&shown.plan, operation))
        }
        Explained::Wire(dimension, place) => operation(shown, dimension, place).map(explain_wire),
        Explained::Term(_) => None,
    }
}

fn operation(shown: &Shown, dimension: usize, place: usize) -> Option<&Operation> {
    shown.report.traffic.dimensions.get(dimension)?.operations.get(place)
}

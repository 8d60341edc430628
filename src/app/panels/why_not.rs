//! Why a layout is not the answer of a search: for the selected one, and for any that is typed.

use shardscope::session::beside::{Layout, why_not_best, why_not_typed};
use shardscope::session::{Pinned, PtrEq};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{send, use_dispatch};
use crate::app::ui::Search;
use crate::app::words::sentence;

#[derive(Properties, PartialEq)]
pub(super) struct WhyProps {
    pub base: PtrEq<Pinned>,
    /// The layout's changes to it.
    pub changes: Vec<(String, String)>,
    /// The fastest so far.
    pub best: Option<Layout>,
}

/// Why one layout is not the answer; empty for the answer itself.
#[component(Why)]
pub(super) fn why(props: &WhyProps) -> Html {
    let of = (props.base.clone(), props.changes.clone(), props.best.clone());
    // This estimates two plans, so only do it when one of them changes.
    let why = use_memo(of, |(base, changes, best)| why_not_best(base, changes, best.as_ref()?));
    match &*why {
        Some(why) => html! { <span class="why-not-said">{ sentence(why) }{ "." }</span> },
        None => html!(),
    }
}

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub search: Search,
}

/// A field for a layout, and why it is not the answer.
#[component(WhyNot)]
pub(super) fn why_not(Props { search }: &Props) -> Html {
    let dispatch = use_dispatch();
    let asked = use_state_eq(String::new);
    let best = search.found.as_ref().and_then(|found| found.best.first().cloned());
    let of = (search.base.clone(), (*asked).clone(), best);
    let tried = use_memo(of, |(base, asked, best)| {
        (!asked.trim().is_empty()).then(|| why_not_typed(base, asked, best.as_ref()))
    });
    let onsubmit = {
        let asked = asked.setter();
        move |event: SubmitEvent| {
            event.prevent_default();
            // Read on submit, so that typing needs no redraw.
            asked.set(browser::value_in("why-not"));
        }
    };
    let said = match &*tried {
        None => html!(),
        Some(Err(word)) => html! {
            { format!("“{}” is not understood: write sizes as TP, PP, VPP, CP, EP, ETP and MBS; also SP on or off, and recompute none, selective or full.", word.trim()) }
        },
        Some(Ok(tried)) => {
            let changes = tried.changes.clone();
            html! {
                <>
                    { sentence(&tried.why) }{ ". " }
                    if tried.starts && tried.changes != search.chosen {
                        <button type="button" class="button" onclick={send(&dispatch, move || Action::Look(changes.clone()))}>{ "Preview" }</button>
                    }
                </>
            }
        }
    };
    html! {
        <form class="why-not" {onsubmit}>
            <label for="why-not">{ "Why not" }</label>
            <input id="why-not" class="field" placeholder="TP 4 PP 8 VPP 5 MBS 1 recompute full" autocomplete="off" spellcheck="false" aria-describedby="why-not-said" />
            <button type="submit" class="button">{ "Ask" }</button>
            <p id="why-not-said" class="small" role="status">{ said }</p>
        </form>
    }
}

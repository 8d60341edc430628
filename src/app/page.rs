//! The page: the plan on one side, its answer on the other.

use yew::prelude::*;

use super::dom;
use super::parts::Theme;
use super::store::Store;
use super::views::Script;
use shardscope::session::{Event, State, apply};

#[component]
pub(crate) fn Page() -> Html {
    let session = use_reducer(|| {
        let state = State::default();
        Store(match dom::kept(dom::TEXT) {
            Some(text) => apply(state, Event::Edit(text)),
            None => state,
        })
    });
    use_effect_with(session.text.clone(), |text| dom::keep(dom::TEXT, text));
    html! {
        <>
            <a class="skip" href="#answer">{ "To the answer" }</a>
            <header class="top">
                <h1>{ "Shardscope" }</h1>
                <p class="tagline">{ "What a training run takes, from its launch script" }</p>
                <Theme />
            </header>
            <main class="page">
                <div class="plan-side"><Script session={session.clone()} /></div>
                <div class="answer-side" id="answer"></div>
            </main>
        </>
    }
}

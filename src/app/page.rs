//! The page: the plan on one side, its answer on the other.

use gloo::timers::callback::Timeout;
use yew::prelude::*;

use super::dom;
use super::parts::{Explaining, Patterns, Theme};
use super::store::Store;
use super::views::{
    Communication, Layers, Map, Memory, Questions, Script, Settings, Time, Tool, Utilisation, Verdict,
    show_place,
};
use shardscope::session::{Event, Hand, State};
use shardscope::text::Span;

/// How long the reader must pause before the answer follows. Unit: millisecond.
const PAUSE: u32 = 150;

/// The parts of the answer, in their order.
const SECTIONS: [(&str, &str); 7] = [
    ("memory", "Memory"),
    ("time", "Time"),
    ("communication", "Communication"),
    ("map", "Group map"),
    ("layers", "Layers"),
    ("matmuls", "Matrix products"),
    ("analysis-tool", "Tool of 2023"),
];

#[component]
pub(crate) fn Page() -> Html {
    let session = use_reducer(|| {
        Store(match dom::kept(dom::TEXT) {
            Some(text) => State::new(Hand::of(&text)),
            None => State::default(),
        })
    });
    {
        let session = session.clone();
        use_effect_with(session.hand.text.clone(), move |text| {
            dom::keep(dom::TEXT, text);
            let pause = Timeout::new(PAUSE, move || session.dispatch(Event::Settle));
            move || drop(pause)
        });
    }
    let send = {
        let session = session.clone();
        Callback::from(move |event| session.dispatch(event))
    };
    let onplace = {
        let session = session.clone();
        Callback::from(move |span: Span| show_place(&session, span))
    };
    html! {
        <Explaining>
            <a class="skip" href="#answer">{ "To the answer" }</a>
            <header class="top">
                <h1>{ "Shardscope" }</h1>
                <p class="tagline">{ "What a training run takes, from its launch script" }</p>
                <Theme />
            </header>
            <Patterns />
            <main class="page">
                <div class="plan-side">
                    <Script session={session.clone()} />
                    <Questions answer={session.answer.clone()} send={send.clone()} />
                    <Settings answer={session.answer.clone()} changed={session.hand.is_changed()} send={send.clone()} {onplace} />
                </div>
                <div class={classes!("answer-side", session.stale.then_some("is-stale"))} id="answer">
                    if let Some(shown) = &session.shown {
                        <Verdict shown={shown.clone()} stale={session.stale} send={send.clone()} />
                        <nav class="sections" aria-label="Parts of the answer">
                            { for SECTIONS.iter().map(|(id, name)| html! { <a href={format!("#{id}")}>{ *name }</a> }) }
                        </nav>
                        <Memory shown={shown.clone()} />
                        <Time shown={shown.clone()} />
                        <Communication shown={shown.clone()} />
                        <Map shown={shown.clone()} colour={session.colour} picked={session.picked} send={send.clone()} />
                        <Layers shown={shown.clone()} />
                        <Utilisation shown={shown.clone()} />
                        <Tool shown={shown.clone()} />
                    }
                </div>
            </main>
            <footer class="foot">
                <p>{ "Everything is computed in this page. Nothing you paste is sent anywhere." }</p>
            </footer>
        </Explaining>
    }
}

//! The page: the plan on one side, its answer on the other.

use gloo::timers::callback::Timeout;
use yew::prelude::*;

use super::desk::{Desk, Panel};
use super::dom;
use super::parts::{Sign, Theme, card, icon};
use super::store::{Session, Store};
use super::views::{
    Map, Script, Search, Settings, advice, communication, layers, memory, questions, schedule, show_place,
    time, tool, utilisation, verdict,
};
use shardscope::session::{Branch, Event, Hand, Held, Shown, State};
use shardscope::text::Span;

/// How long the reader must pause before the answer follows. Unit: millisecond.
const PAUSE: u32 = 150;

/// The parts of the answer, in their order.
const SECTIONS: [(&str, &str); 9] = [
    ("memory", "Memory"),
    ("time", "Time"),
    ("schedule", "Schedule"),
    ("communication", "Communication"),
    ("map", "Group map"),
    ("layers", "Layers"),
    ("matmuls", "Matrix products"),
    ("search", "Other layouts"),
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
    let told = use_state(|| None::<Branch>);
    let explain = {
        let tell = told.setter();
        use_callback((), move |branch, ()| tell.set(branch))
    };
    let send = {
        let dispatcher = session.dispatcher();
        use_callback((), move |event, ()| dispatcher.dispatch(event))
    };
    let onplace = {
        let session = session.clone();
        Callback::from(move |span: Span| show_place(&session, span))
    };
    html! {
        <>
            <a class="skip" href="#answer">{ "To the answer" }</a>
            <header class="top">
                <h1>{ "Shardscope" }</h1>
                <p class="tagline">{ "What a training run takes, from its launch script" }</p>
                <Theme />
            </header>
            <main class="page">
                <div class="plan-side">
                    <Script session={session.clone()} />
                    { questions(&session.answer, &send) }
                    <Settings answer={session.answer.clone()} changed={session.hand.is_changed()} send={send.clone()} {onplace} />
                </div>
                <div class={classes!("answer-side", session.stale.then_some("is-stale"))} id="answer">
                    if session.stale {
                        <p class="stale" role="status">{ icon(Sign::Tight) }{ "The text as it is now makes no plan. This is the answer to the last one that did." }</p>
                    }
                    if let Some(shown) = &session.shown { { panels(&session, shown, send, explain) } }
                </div>
            </main>
            <footer class="foot">
                <p>{ "Everything is computed in this page. Nothing you paste is sent anywhere." }</p>
            </footer>
            { card(told.as_ref()) }
        </>
    }
}

fn panels(
    session: &Session,
    shown: &Held<Shown>,
    send: Callback<Event>,
    explain: Callback<Option<Branch>>,
) -> Html {
    let desk = Desk { shown: shown.clone(), send: send.clone(), explain };
    let panel = |draw: fn(&Desk) -> Html| html! { <Panel desk={desk.clone()} {draw} /> };
    html! {
        <>
            { panel(verdict) }
            <nav class="sections" aria-label="Parts of the answer">
                { for SECTIONS.iter().map(|(id, name)| html! { <a href={format!("#{id}")}>{ *name }</a> }) }
            </nav>
            { panel(advice) }
            { panel(memory) }
            { panel(time) }
            { panel(schedule) }
            { panel(communication) }
            <Map shown={shown.clone()} colour={session.colour} picked={session.picked} {send} />
            { panel(layers) }
            { panel(utilisation) }
            <Search desk={desk.clone()} />
            { panel(tool) }
        </>
    }
}

//! The page: the plan on one side, its answer on the other.

use gloo::timers::callback::Timeout;
use yew::prelude::*;

use super::address::{store, use_address};
use super::desk::{Desk, Panel};
use super::keys::use_keys;
use super::parts::{Sign, Theme, card, icon};
use super::store::Session;
use super::toolbar::{Sheet, broken_link, toolbar};
use super::views::{
    Compare, Gallery, Map, Script, Search, Settings, Share, advice, communication, layers, memory, questions,
    schedule, show_place, time, tool, utilisation, verdict,
};
use shardscope::session::{Branch, Event, Held, Shown};
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
    let session = use_reducer(store);
    use_address(&session);
    use_keys(&session);
    let sheet = use_state(|| None::<Sheet>);
    let open = {
        let set = sheet.setter();
        use_callback((), move |sheet, ()| set.set(sheet))
    };
    {
        let session = session.clone();
        use_effect_with(session.hand.text.clone(), move |_| {
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
                { toolbar(&session, &send, &open) }
                <Theme />
            </header>
            { broken_link(&session, &send) }
            <main class="page">
                <div class="plan-side">
                    <Script session={session.clone()} />
                    { questions(&session.answer, &send) }
                    <Settings answer={session.answer.clone()} changed={session.hand.is_changed()} alone={session.hand.is_settings_alone()} send={send.clone()} {onplace} />
                </div>
                <div class={classes!("answer-side", session.stale.then_some("is-stale"))} id="answer">
                    if session.stale {
                        <p class="stale" role="status">{ icon(Sign::Tight) }{ "The text as it is now makes no plan. This is the answer to the last one that did." }</p>
                    }
                    if let Some(shown) = &session.shown { { panels(&session, shown, send.clone(), explain) } }
                </div>
            </main>
            <footer class="foot">
                <p>{ "Everything is computed in this page. Nothing you paste is sent anywhere." }</p>
            </footer>
            { card(told.as_ref()) }
            { over(*sheet, &session, &send, &open) }
        </>
    }
}

/// The sheet that lies over the page.
fn over(
    sheet: Option<Sheet>,
    session: &Session,
    send: &Callback<Event>,
    open: &Callback<Option<Sheet>>,
) -> Html {
    let onclose = open.reform(|()| None);
    match sheet {
        None => Html::default(),
        Some(Sheet::Gallery) => html! { <Gallery send={send.clone()} {onclose} /> },
        Some(Sheet::Share) => html! { <Share session={session.clone()} {onclose} /> },
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
                if session.pinned.is_some() { <a href="#compare">{ "Comparison" }</a> }
                { for SECTIONS.iter().map(|(id, name)| html! { <a href={format!("#{id}")}>{ *name }</a> }) }
            </nav>
            if let Some(pinned) = &session.pinned {
                <Compare pinned={pinned.clone()} shown={shown.clone()} send={send.clone()} />
            }
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

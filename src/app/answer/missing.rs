//! Shown instead of the answer while the text does not form a plan: what is missing, to be answered in place.

use std::rc::Rc;

use shardscope::session::{EXAMPLE, Event, State, UserInput, model_alone};
use shardscope::source::{Code, Severity};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::input::{Published, Questions};
use crate::app::ui::InputTab;
use crate::app::words::{linked, sentence, unbroken_flags};

#[derive(Properties)]
pub(crate) struct Props {
    pub session: Rc<State>,
    pub reading: bool,
}

impl PartialEq for Props {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.session, &other.session) && self.reading == other.reading
    }
}

#[component(Missing)]
pub(crate) fn missing(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let session = &props.session;
    let resolution = &session.answer.resolution;
    // Otherwise old reasons would be shown for the new text.
    if props.reading || !session.is_settled() {
        return html! { <section class="missing"><p role="status">{ "Reading…" }</p></section> };
    }
    let sample = send(&dispatch, || Action::Begin(Box::new(UserInput::from_text(EXAMPLE))));
    let model = send(&dispatch, || Action::Input(InputTab::Model));
    // No input at all: show ways to begin instead of what is missing.
    if session.input == UserInput::from_text("") {
        return html! {
            <section class="missing" aria-labelledby="missing-title">
                <h2 id="missing-title">{ "Will it fit? How fast?" }</h2>
                <p role="status">
                    { "Paste a launch script, or drop it anywhere together with its configs. Everything is computed in your browser; nothing you paste is sent anywhere." }
                </p>
                <p class="ways">
                    <button type="button" class="button main" onclick={model}>{ "Start from a model and GPUs" }</button>
                    <button type="button" class="button" onclick={sample}>{ "Load the sample script" }</button>
                    <button type="button" class="button" onclick={send(&dispatch, || Action::Input(InputTab::Examples))}>{ "Browse published runs" }</button>
                </p>
                <h3>{ "Or open a published run" }</h3>
                <Published />
            </section>
        };
    }
    let questions = &resolution.questions;
    // What is not modelled is in the form below, with its way out, and is not repeated.
    let errors = resolution
        .diagnostics
        .iter()
        .filter(|one| one.severity == Severity::Error && one.code != Code::NotModelled);
    // Open questions first: answering them may be all that is needed, and says more than "not modelled".
    let title = match (resolution.not_modelled.is_empty(), questions.is_empty()) {
        (_, false) => "Missing information",
        (false, true) => "No verdict: part of this run is not modelled",
        (true, true) => "No estimate yet",
    };
    // A bare model starts the form.
    let alone = model_alone(&session.input);
    let begin = match alone {
        Some(name) if !name.starts_with('{') => format!("Choose GPUs for {name}"),
        Some(_) => "Choose GPUs for this model".to_owned(),
        None => "Start from a model and GPUs".to_owned(),
    };
    html! {
        <section class="missing" aria-labelledby="missing-title">
            <h2 id="missing-title">{ title }</h2>
            <div role="status">
                <ul class="reasons">
                    // The first few; the box on the left underlines all of them.
                    { for errors.take(4).map(|one| html! {
                        <li>
                            { unbroken_flags(&sentence(&one.message)) }{ "." }
                            { one.hint.as_ref().map(|hint| html! { <span class="soft">{ " " }{ linked(&sentence(hint)) }{ "." }</span> }) }
                        </li>
                    }) }
                </ul>
            </div>
            <Questions answer={session.answer.clone()} title={if questions.is_empty() { "Estimate the rest of the run" } else { "Fill in to get an estimate" }} about="Each is needed for an estimate." />
            <p class="ways">
                if session.steps.can_undo() {
                    <button type="button" class="button" onclick={send(&dispatch, || Event::Undo.into())}>
                        { "Undo the last change" }
                    </button>
                }
                <button type="button" class={classes!("button", alone.map(|_| "main"))} onclick={model}>{ begin }</button>
                <button type="button" class="button quiet" onclick={sample}>{ "Load the sample script" }</button>
            </p>
        </section>
    }
}

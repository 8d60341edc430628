//! What the text leaves open, as fields with a proposal, and what stops the verdict, with the way on.

use shardscope::launch::{NotModelled, Question};
use shardscope::plan::Field;
use shardscope::session::{Answer, Event, PtrEq};
use yew::prelude::*;

use crate::app::browser;
use crate::app::context::{send, use_dispatch};
use crate::app::words::sentence;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub answer: PtrEq<Answer>,
    pub title: &'static str,
    /// What answers to questions are good for.
    pub about: &'static str,
}

/// The questions of the answer, each a form of its own; nothing when there are none.
#[component(Questions)]
pub(crate) fn questions(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let resolution = &props.answer.resolution;
    let gone = resolution.setting(Field::Without).map(|setting| setting.value.written()).unwrap_or_default();
    let stops = |item: &&NotModelled| !gone.split(' ').any(|name| item.is_called(name));
    let stopping: Vec<&NotModelled> = resolution.not_modelled.iter().filter(stops).collect();
    let questions = &resolution.questions;
    if questions.is_empty() && stopping.is_empty() {
        return html!();
    }
    let go_on = |item: &NotModelled| {
        let name = item.name.clone();
        html! {
            <div key={item.name.clone()} class="question not-modelled">
                <span>{ sentence(&item.sentence()) }</span>
                <button
                    type="button"
                    class="button"
                    onclick={send(&dispatch, move || Event::Without(name.clone()).into())}
                >{ "Go on without it" }</button>
            </div>
        }
    };
    html! {
        <section class="questions" aria-labelledby="questions-title">
            <h3 id="questions-title">{ props.title }</h3>
            { for stopping.into_iter().map(go_on) }
            if !questions.is_empty() {
                <p class="soft small">{ props.about }{ " Your script is not changed." }</p>
            }
            { for questions.iter().map(|question| html! {
                <Ask key={question.name.clone()} question={question.clone()} />
            }) }
        </section>
    }
}

#[derive(Properties, PartialEq)]
struct AskProps {
    question: Question,
}

#[component(Ask)]
fn ask(props: &AskProps) -> Html {
    let dispatch = use_dispatch();
    let Question { name, prompt, choices, proposal } = &props.question;
    let id = format!("ask-{name}");
    let proposal = proposal.clone().unwrap_or_default();
    let onsubmit = {
        let (name, id) = (name.clone(), id.clone());
        move |event: SubmitEvent| {
            event.prevent_default();
            dispatch.emit(Event::Set { name: name.clone(), value: browser::value_in(&id) }.into());
        }
    };
    html! {
        <form class="question" {onsubmit}>
            <label for={id.clone()}>{ sentence(prompt) }{ " " }<code>{ name }</code></label>
            <div>
                if choices.is_empty() {
                    <input {id} class="field" value={proposal} autocomplete="off" />
                } else {
                    <select {id} class="field">
                        { for choices.iter().map(|choice| html! {
                            <option value={choice.clone()} selected={*choice == proposal}>{ choice }</option>
                        }) }
                    </select>
                }
                <button type="submit" class="button">{ "Use" }</button>
            </div>
        </form>
    }
}

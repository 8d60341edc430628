//! What the text leaves open, as fields with suggested answers, and what stops the verdict, with a way to continue.

use shardscope::launch::{Asked, NotModelled, Question};
use shardscope::plan::Field;
use shardscope::session::{Answer, Event, File, PtrEq};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{send, use_dispatch};
use crate::app::words::{linked, sentence, unbroken_flags};

/// Proposals beyond this have a box of several lines, so that all of them can be read. Unit: character.
const ONE_LINE: usize = 60;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub answer: PtrEq<Answer>,
    pub title: &'static str,
    /// What the answers are needed for.
    pub about: &'static str,
}

/// The questions of the answer in one form, so that proposals are taken with one press; empty if there are none.
#[component(Questions)]
pub(crate) fn questions(props: &Props) -> Html {
    let dispatch = use_dispatch();
    // The last submission was empty.
    let unsaid = use_state_eq(|| false);
    let resolution = &props.answer.resolution;
    // Items that the user chose to continue without stay in the resolution's list, since documents need them.
    let gone = resolution.setting(Field::Without).map(|setting| setting.value.written()).unwrap_or_default();
    let stops = |item: &&NotModelled| !gone.split(' ').any(|name| item.is_called(name));
    let stopping: Vec<&NotModelled> = resolution.not_modelled.iter().filter(stops).collect();
    let questions = &resolution.questions;
    if questions.is_empty() && stopping.is_empty() {
        return html!();
    }
    let onsubmit = {
        let names: Vec<String> = questions.iter().map(|question| question.name().to_owned()).collect();
        let (dispatch, unsaid) = (dispatch.clone(), unsaid.setter());
        move |event: SubmitEvent| {
            event.prevent_default();
            // Read on submit, so that typing needs no redraw at every keystroke.
            let filled = names.iter().map(|name| (name.clone(), browser::value_in(&field_id(name))));
            // An empty field is not an answer; with an empty value `Try` would unset what the text states.
            let filled: Vec<_> = filled.filter(|(_, value)| !value.trim().is_empty()).collect();
            unsaid.set(filled.is_empty());
            // The shape of a model may be pasted as its file, which is an additional file from then on.
            let is_file = |(name, value): &(String, String)| {
                name == Field::Model.name() && value.trim_start().starts_with('{')
            };
            let (shapes, values): (Vec<_>, Vec<_>) = filled.into_iter().partition(is_file);
            if !values.is_empty() {
                dispatch.emit(Event::Try(values).into());
            }
            for (_, text) in shapes {
                let file = File { name: "config.json".to_owned(), text: text.into() };
                dispatch.emit(Action::Files(vec![file]));
            }
        }
    };
    // A fork's own options are one question: a reader who knows the fork has one answer for all of them.
    let (unknown, known): (Vec<&NotModelled>, Vec<&NotModelled>) =
        stopping.iter().copied().partition(|item| !item.is_known && stopping.len() > 1);
    let go_on = |items: &[&NotModelled]| {
        let names = items.iter().map(|item| item.name.as_str()).collect::<Vec<_>>().join(" ");
        let (message, button) = match items {
            [item] => (item.sentence(), "Continue without it".to_owned()),
            items => {
                let stated: Vec<String> = items.iter().map(|item| item.stated()).collect();
                let count = items.len();
                let message = format!(
                    "not modelled: {count} unknown options that may change the model, the data, memory or sharding: {}",
                    stated.join(", ")
                );
                (message, format!("Continue without these {count}"))
            }
        };
        html! {
            <div key={names.clone()} class="question not-modelled">
                <span>{ unbroken_flags(&sentence(&message)) }</span>
                <button
                    type="button"
                    class="button"
                    onclick={send(&dispatch, move || Event::Without(names.clone()).into())}
                >{ button }</button>
            </div>
        }
    };
    html! {
        <section class="questions" aria-labelledby="questions-title">
            <h3 id="questions-title">{ props.title }</h3>
            if !stopping.is_empty() {
                <p class="soft small">
                    { "Each of these changes the result. An estimate without them leaves their effect out, and its verdict says so." }
                </p>
            }
            { for known.iter().map(|item| go_on(&[item])) }
            if !unknown.is_empty() {
                { go_on(&unknown) }
            }
            if !questions.is_empty() {
                <p class="soft small">{ props.about }{ " Your script is not changed." }</p>
                <form {onsubmit}>
                    { for questions.iter().map(ask) }
                    <button type="submit" class="button main">
                        { if questions.len() > 1 { "Use these" } else { "Use" } }
                    </button>
                    if *unsaid {
                        <p role="alert" class="small">{ "Nothing is filled in yet." }</p>
                    }
                </form>
            }
        </section>
    }
}

fn ask(question: &Question) -> Html {
    let Question { asks, prompt, choices, proposal } = question;
    let name = question.name();
    let id = field_id(name);
    let proposal = proposal.clone().unwrap_or_default();
    html! {
        <div key={name.to_owned()} class="question">
            <label for={id.clone()}>{ linked(&sentence(prompt)) }{ " " }<code>{ name }</code></label>
            if choices.is_empty() && (*asks == Asked::Setting(Field::Model) || proposal.len() > ONE_LINE) {
                <textarea {id} class="field" rows="4" value={proposal} autocomplete="off" spellcheck="false" />
            } else if choices.is_empty() {
                <input {id} class="field" value={proposal} autocomplete="off" />
            } else {
                <select {id} class="field">
                    { for choices.iter().map(|choice| html! {
                        <option value={choice.clone()} selected={*choice == proposal}>{ choice }</option>
                    }) }
                </select>
            }
        </div>
    }
}

fn field_id(name: &str) -> String {
    format!("ask-{name}")
}

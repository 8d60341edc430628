//! What the text leaves open, as fields with a proposal.

use shardscope::intake::Question;
use shardscope::session::{Answer, Event};
use web_sys::{Element, HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

/// The questions of `answer`; nothing when there are none.
pub(crate) fn questions(answer: &Answer, send: &Callback<Event>) -> Html {
    let questions = &answer.resolution.questions;
    if questions.is_empty() {
        return Html::default();
    }
    html! {
        <section class="panel questions" aria-labelledby="questions-title">
            <header>
                <h2 id="questions-title">{ "The text leaves open" }</h2>
                <p>{ "Answer, and the report follows. Answers are kept beside the text." }</p>
            </header>
            { for questions.iter().map(|question| ask(question, send)) }
        </section>
    }
}

fn ask(question: &Question, send: &Callback<Event>) -> Html {
    let Question { name, prompt, choices, proposal } = question;
    let id = format!("ask-{name}");
    let onsubmit = {
        let (name, send) = (name.clone(), send.clone());
        move |event: SubmitEvent| {
            event.prevent_default();
            let field = event
                .target_dyn_into::<Element>()
                .and_then(|form| form.query_selector(".field").ok().flatten());
            send.emit(Event::Set {
                name: name.clone(),
                value: field.map(|field| value_of(&field)).unwrap_or_default(),
            });
        }
    };
    html! {
        <form class="question" key={name.clone()} {onsubmit}>
            <label for={id.clone()}>{ prompt } <code>{ name }</code></label>
            <div>
                if choices.is_empty() {
                    <input {id} class="field" value={proposal.clone()} autocomplete="off" />
                } else {
                    <select {id} class="field">
                        { for choices.iter().map(|choice| html! { <option selected={proposal.as_ref() == Some(choice)}>{ choice }</option> }) }
                    </select>
                }
                <button type="submit" class="button">{ "Use" }</button>
            </div>
        </form>
    }
}

/// What a field or a choice holds.
pub(crate) fn value_of(field: &Element) -> String {
    use wasm_bindgen::JsCast;
    if let Some(input) = field.dyn_ref::<HtmlInputElement>() {
        return input.value();
    }
    field.dyn_ref::<HtmlSelectElement>().map(HtmlSelectElement::value).unwrap_or_default()
}

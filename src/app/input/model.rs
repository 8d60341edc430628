//! A model and GPUs, without a script: every change is answered at once, and the search finds the best layouts.

use gloo::timers::callback::Timeout;
use shardscope::catalog::{accelerator_names, find};
use shardscope::session::{Choice, Event, Objective, model_settings, start};
use shardscope::units::grouped;
use yew::prelude::*;

use super::best::best;
use super::combobox::ModelBox;
use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::widgets::Options;

/// GPU types offered as chips; the list has all of them.
const CHIPS: [&str; 5] = ["H100-SXM", "H200-SXM", "B200", "A100-SXM-80GB", "MI300X"];
/// Numbers of GPUs offered as chips.
const COUNTS: [u64; 7] = [1, 8, 16, 64, 128, 512, 2048];
/// Maximum number of GPUs for which a plan is made.
const MOST_GPUS: u64 = 131_072;
/// Longest sequence for which a plan is made. Unit: token.
const MOST_TOKENS: u64 = 16_777_216;
/// How long the user must pause before a typed value is applied. Unit: millisecond.
const PAUSE: u32 = 300;

#[component(Model)]
pub(crate) fn model() -> Html {
    let dispatch = use_dispatch();
    let pause = use_mut_ref(|| None::<Timeout>);
    let Some(app) = use_context::<AppContext>() else { return html!() };
    // From the state rather than the form: another tab, undo or a link may have changed it.
    let choice = app.ui.choice.clone();
    // Parsing a pasted config.json at every redraw would be noticeable while typing.
    let named = use_memo(choice.model.clone(), |model| model_settings(model).map(drop));
    // An invalid number is reported at its field; the answer is still that of the last valid one.
    let refused = use_state_eq(|| false);
    let no_length = use_state_eq(|| false);
    let take = {
        let (pause, refused, no_length) = (pause.clone(), refused.setter(), no_length.setter());
        use_callback(dispatch.clone(), move |choice: Choice, dispatch| {
            refused.set(false);
            no_length.set(false);
            // What was just typed is in the choice. Dropping the timer cancels it; the plan below is made from a
            // newer choice.
            *pause.borrow_mut() = None;
            let chosen = start(&choice);
            dispatch.emit(Action::Choose(choice));
            // No plan starts from an unknown model: the choice is kept, and the answer stays that of the last one.
            if let Some(input) = chosen {
                dispatch.emit(Event::Start(Box::new(input)).into());
            }
        })
    };
    // Typed values are applied when typing pauses.
    let typed = {
        let dispatch = dispatch.clone();
        move |choice: Choice| {
            let later = dispatch.clone();
            // The form follows at once, only the plan waits.
            dispatch.emit(Action::Choose(choice.clone()));
            *pause.borrow_mut() = Some(Timeout::new(PAUSE, move || {
                if let Some(input) = start(&choice) {
                    later.emit(Event::Start(Box::new(input)).into());
                }
            }));
        }
    };
    let number =
        |event: &web_sys::Event| browser::value_of(event).trim().parse::<u64>().ok().filter(|n| *n > 0);
    let on_model = {
        let (choice, typed) = (choice.clone(), typed.clone());
        move |model: String| typed(Choice { model, ..choice.clone() })
    };
    let on_gpus = {
        let (choice, typed, refused) = (choice.clone(), typed.clone(), refused.setter());
        move |event: InputEvent| {
            // A number above the limit would be refused by the engine with a message about its limits.
            let gpus = number(&event).filter(|gpus| *gpus <= MOST_GPUS);
            refused.set(gpus.is_none());
            if let Some(gpus) = gpus {
                typed(Choice { gpus, ..choice.clone() });
            }
        }
    };
    let on_sequence = {
        let (choice, typed, no_length) = (choice.clone(), typed.clone(), no_length.setter());
        move |event: InputEvent| {
            let sequence = number(&event).filter(|sequence| *sequence <= MOST_TOKENS);
            no_length.set(sequence.is_none());
            if let Some(sequence) = sequence {
                typed(Choice { sequence, ..choice.clone() });
            }
        }
    };
    let accelerator = {
        let (choice, take) = (choice.clone(), take.clone());
        move |accelerator: String| take.emit(Choice { accelerator, ..choice.clone() })
    };
    let use_it = {
        let (choice, take) = (choice.clone(), take.clone());
        move |event: SubmitEvent| {
            // Submitting the form would reload the page.
            event.prevent_default();
            take.emit(choice.clone());
        }
    };
    let chip = |name: String, chosen: bool, to: Choice| {
        let take = take.clone();
        html! {
            <button
                type="button"
                class="chip"
                aria-pressed={chosen.to_string()}
                onclick={move |_| take.emit(to.clone())}
            >{ name }</button>
        }
    };
    let unknown = named.as_ref().as_ref().err();
    html! {
        <form class="start" aria-labelledby="start-title" onsubmit={use_it}>
            <h2 id="start-title" class="hidden">{ "Model + GPUs" }</h2>
            <label for="start-model">{ "Model" }</label>
            <ModelBox
                value={choice.model.clone()} invalid={unknown.is_some()}
                onchange={Callback::from(on_model)}
            />
            // One place for both: the content below must not move under the user's pointer when a name becomes known.
            <div class="beneath">
                <p id="start-unknown" class="small" role="status">
                    { unknown.map(|lacking| refusal(&choice.model, lacking)).unwrap_or_default() }
                </p>
                if unknown.is_none() {
                    <p class="soft small">{ "Finds the fastest layout that fits." }</p>
                }
            </div>
            <span class="label" id="objective-label">{ "Objective" }</span>
            <div class="chips" role="group" aria-labelledby="objective-label">
                { for Objective::ALL.into_iter().map(|objective| {
                    chip(objective.name().to_owned(), choice.objective == objective, Choice { objective, ..choice.clone() })
                }) }
            </div>
            <span class="label" id="gpu-label">{ "GPU" }</span>
            <div class="chips" role="group" aria-labelledby="gpu-label">
                { for CHIPS.into_iter().map(|name| {
                    let to = Choice { accelerator: name.to_owned(), ..choice.clone() };
                    // Both suffixes: the memory size is part of one name only.
                    chip(name.trim_end_matches("-SXM").trim_end_matches("-SXM-80GB").to_owned(), choice.accelerator == name, to)
                }) }
                <Options
                    id="start-accelerator"
                    label="GPU type"
                    names={accelerator_names().map(AttrValue::Static).collect::<Vec<_>>()}
                    chosen={choice.accelerator.clone()}
                    onchange={accelerator}
                />
            </div>
            <label for="start-gpus">{ "Number of GPUs" }</label>
            <div class="chips">
                <input
                    id="start-gpus" class="field" type="number" min="1" max={MOST_GPUS.to_string()}
                    aria-invalid={refused.to_string()} aria-describedby="gpus-refused"
                    value={choice.gpus.to_string()} oninput={on_gpus}
                />
                { for COUNTS.into_iter().map(|gpus| {
                    // A refused number is in the field, and no chip represents it.
                    chip(grouped(gpus), choice.gpus == gpus && !*refused, Choice { gpus, ..choice.clone() })
                }) }
            </div>
            <p id="gpus-refused" class="small" role="status">
                if *refused {
                    { format!("From 1 to {} GPUs; the result shown is for the previous number.", grouped(MOST_GPUS)) }
                }
            </p>
            <label for="start-sequence">{ "Sequence length" }</label>
            <input
                id="start-sequence" class="field" type="number" min="1" max={MOST_TOKENS.to_string()}
                aria-invalid={no_length.to_string()} aria-describedby="sequence-refused"
                value={choice.sequence.to_string()} oninput={on_sequence}
            />
            <p id="sequence-refused" class="small" role="status">
                if *no_length {
                    { format!("From 1 to {} tokens; the result shown is for the previous length.", grouped(MOST_TOKENS)) }
                }
            </p>
            // The button only where it changes something: otherwise every change has already been applied.
            if unknown.is_none() && !app.is_of_model_and_gpus() {
                <p class="small">{ "The result shown is for your previous input." }</p>
                <button type="submit" class="button main">{ if app.session.input.text.trim().is_empty() { "Estimate this" } else { "Estimate this instead of the script" } }</button>
            }
            if app.is_of_model_and_gpus() {
                { app.ui.search.as_ref().map(best) }
            }
        </form>
    }
}

/// Why a model gives no plan, and what to do about it.
fn refusal(name: &str, lacking: &[String]) -> Html {
    if name.trim_start().starts_with('{') {
        return html! { <>{ format!("This config.json cannot be used: {}.", lacking.join(", ")) }</> };
    }
    if !lacking.is_empty() {
        return html! { <>{ format!("Parts of {name} are not modelled: {}.", lacking.join(", ")) }</> };
    }
    let config = match find(name).address() {
        Some(address) => html! { <a href={address} target="_blank" rel="noopener">{ "config.json" }</a> },
        None => html!("config.json"),
    };
    html! { <>{ "Not in the catalog; the result shown is for another model. Paste its " }{ config }{ " here, or drop it on the page." }</> }
}

//! A model and GPUs, without a script: every change is answered at once, and the search says which layouts are best.

use gloo::timers::callback::Timeout;
use shardscope::catalog::{accelerator_names, find, hub_names, model_names};
use shardscope::session::{Choice, Event, start};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::panels::{Front, Layouts};
use crate::app::ui::Found;
use crate::app::widgets::Options;

/// GPU types offered as chips; the list has all.
const CHIPS: [&str; 5] = ["H100-SXM", "H200-SXM", "B200", "A100-SXM-80GB", "MI300X"];
/// Numbers of GPUs offered as chips.
const COUNTS: [u64; 7] = [1, 8, 16, 64, 128, 512, 2048];
/// How long the reader must pause before a typed value is taken. Unit: millisecond.
const PAUSE: u32 = 300;
/// Layouts shown.
const SHOWN: usize = 5;

#[component(Model)]
pub(crate) fn model() -> Html {
    let dispatch = use_dispatch();
    let pause = use_mut_ref(|| None::<Timeout>);
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let choice = app.ui.choice.clone();
    let hand = use_memo(choice.clone(), start);
    // The search goes on by itself for a plan made here.
    let alone = app.ui.chosen && app.session.hand.is_settings_alone();
    let wants = alone && app.session.shown.is_some() && app.ui.found.is_none() && !app.ui.searching;
    {
        let dispatch = dispatch.clone();
        use_effect_with(wants, move |wants| {
            if *wants {
                dispatch.emit(Action::Search(true));
            }
        });
    }
    let take = use_callback(dispatch.clone(), |(choice, wait): (Choice, u32), dispatch| {
        let chosen = start(&choice);
        dispatch.emit(Action::Choose(choice));
        if let (Some(hand), 0) = (chosen, wait) {
            dispatch.emit(Event::Start(Box::new(hand)).into());
        }
    });
    // Typing is taken when it pauses.
    let typed = {
        let dispatch = dispatch.clone();
        move |choice: Choice| {
            let later = dispatch.clone();
            dispatch.emit(Action::Choose(choice.clone()));
            *pause.borrow_mut() = Some(Timeout::new(PAUSE, move || {
                if let Some(hand) = start(&choice) {
                    later.emit(Event::Start(Box::new(hand)).into());
                }
            }));
        }
    };
    let number =
        |event: &web_sys::Event| browser::value_of(event).trim().parse::<u64>().ok().filter(|n| *n > 0);
    let on_model = {
        let (choice, typed) = (choice.clone(), typed.clone());
        move |event: InputEvent| typed(Choice { model: browser::value_of(&event), ..choice.clone() })
    };
    let on_gpus = {
        let (choice, typed) = (choice.clone(), typed.clone());
        move |event: InputEvent| {
            if let Some(gpus) = number(&event) {
                typed(Choice { gpus, ..choice.clone() });
            }
        }
    };
    let on_sequence = {
        let (choice, typed) = (choice.clone(), typed.clone());
        move |event: InputEvent| {
            if let Some(sequence) = number(&event) {
                typed(Choice { sequence, ..choice.clone() });
            }
        }
    };
    let accelerator = {
        let (choice, take) = (choice.clone(), take.clone());
        move |accelerator: String| take.emit((Choice { accelerator, ..choice.clone() }, 0))
    };
    let use_it = {
        let (choice, take) = (choice.clone(), take.clone());
        move |event: SubmitEvent| {
            event.prevent_default();
            take.emit((choice.clone(), 0));
        }
    };
    let chip = |name: String, chosen: bool, to: Choice| {
        let take = take.clone();
        html! {
            <button
                type="button"
                class="chip"
                aria-pressed={chosen.to_string()}
                onclick={move |_| take.emit((to.clone(), 0))}
            >{ name }</button>
        }
    };
    let unknown = hand.is_none();
    html! {
        <form class="start" aria-labelledby="start-title" onsubmit={use_it}>
            <h2 id="start-title" class="hidden">{ "Model + GPUs" }</h2>
            <p class="soft small">
                { "Pick a model and GPUs: the fastest layouts that fit are searched for, and every setting stays editable." }
            </p>
            <label for="start-model">{ "Model" }</label>
            <input
                id="start-model"
                class="field"
                list="models"
                autocomplete="off"
                spellcheck="false"
                placeholder="Llama-3.1-70B, or a Hugging Face id"
                aria-invalid={unknown.to_string()}
                aria-describedby="start-unknown"
                value={choice.model.clone()}
                oninput={on_model}
            />
            <datalist id="models">
                { for offered(&choice.model).into_iter().map(|name| html! { <option value={name} /> }) }
            </datalist>
            <p id="start-unknown" class="small" role="status">
                if unknown {
                    { refusal(&choice.model) }
                }
            </p>
            <span class="label" id="gpu-label">{ "GPU" }</span>
            <div class="chips" role="group" aria-labelledby="gpu-label">
                { for CHIPS.into_iter().map(|name| {
                    let to = Choice { accelerator: name.to_owned(), ..choice.clone() };
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
                    id="start-gpus" class="field" type="number" min="1" max="131072"
                    value={choice.gpus.to_string()} oninput={on_gpus}
                />
                { for COUNTS.into_iter().map(|gpus| {
                    chip(gpus.to_string(), choice.gpus == gpus, Choice { gpus, ..choice.clone() })
                }) }
            </div>
            <label for="start-sequence">{ "Sequence length" }</label>
            <input
                id="start-sequence" class="field" type="number" min="1" max="16777216"
                value={choice.sequence.to_string()} oninput={on_sequence}
            />
            if !unknown && !alone {
                <button type="submit" class="button main">{ if app.session.hand.text.trim().is_empty() { "Estimate this" } else { "Estimate this instead of the script" } }</button>
            }
            if alone {
                <Best found={app.ui.found.clone()} searching={app.ui.searching} />
            }
        </form>
    }
}

/// Names offered at most.
const OFFERED: usize = 40;

/// Models whose names hold what was typed, those that everyone asks for first.
fn offered(typed: &str) -> Vec<&'static str> {
    let typed = typed.trim().to_lowercase();
    let all = model_names().chain(hub_names());
    all.filter(|name| name.to_lowercase().contains(&typed)).take(OFFERED).collect()
}

/// Why no plan starts from a model of that name, and the way on.
fn refusal(name: &str) -> Html {
    let named = find(name);
    let address = named.address();
    let lacking = named.model().map(|model| model.lacking()).unwrap_or_default();
    if !lacking.is_empty() {
        return html! { <>{ format!("Parts of {name} are not modelled: {}.", lacking.join(", ")) }</> };
    }
    let config = match address {
        Some(address) => html! { <a href={address} target="_blank" rel="noopener">{ "config.json" }</a> },
        None => html!("config.json"),
    };
    html! { <>{ "Not in the catalog. Drop its " }{ config }{ " on the page, or paste it as the script." }</> }
}

#[derive(Properties, PartialEq)]
struct BestProps {
    found: Option<std::rc::Rc<Found>>,
    searching: bool,
}

/// The best layouts, and the picture of all that are on the front.
#[component(Best)]
fn best(props: &BestProps) -> Html {
    let Some(found) = &props.found else { return html!() };
    html! {
        <section class="best" aria-labelledby="best-title">
            <h3 id="best-title">
                { if props.searching { "Fastest layouts so far" } else { "Fastest layouts that fit" } }
            </h3>
            if found.best.is_empty() && !props.searching {
                <p>{ "None of the layouts fits on these GPUs." }</p>
            } else {
                <Layouts outcomes={found.best.iter().take(SHOWN).cloned().collect::<Vec<_>>()} compact=true />
            }
            <Front outcomes={found.frontier.clone()} />
        </section>
    }
}

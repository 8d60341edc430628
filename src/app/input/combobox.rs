//! The field for a model: names are suggested while typing, and a pasted `config.json` is accepted directly.

use shardscope::catalog::{hub_names, model_names};
use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::app::browser;
use crate::soon::soon;

/// Maximum number of suggestions.
const OFFERED: usize = 8;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub value: String,
    /// Whether no plan starts from it.
    pub invalid: bool,
    pub onchange: Callback<String>,
}

/// Names that contain every typed word, in any order, the most popular first.
fn offered(typed: &str) -> Vec<&'static str> {
    let typed = typed.trim().to_lowercase();
    // Hyphens too: "llama 3 8b" should find Llama-3-8B.
    let words: Vec<&str> = typed.split(|sign: char| sign.is_whitespace() || sign == '-').collect();
    let holds = |name: &&str| {
        let name = name.to_lowercase();
        words.iter().all(|word| name.contains(word))
    };
    model_names().chain(hub_names()).filter(holds).take(OFFERED).collect()
}

#[component(ModelBox)]
pub(super) fn model_box(props: &Props) -> Html {
    let open = use_state_eq(|| false);
    let marked = use_state_eq(|| None::<usize>);
    // Only while open, so that a closed list costs nothing per keystroke elsewhere.
    let names = use_memo(
        (props.value.clone(), *open),
        |(value, open)| if *open { offered(value) } else { Vec::new() },
    );
    // A complete name needs no suggestions.
    let exact = names.iter().any(|one| one.eq_ignore_ascii_case(props.value.trim()));
    let shown = *open && !names.is_empty() && !exact;
    let close = {
        let (open, marked) = (open.setter(), marked.setter());
        move || {
            open.set(false);
            marked.set(None);
        }
    };
    let take = {
        let (onchange, close) = (props.onchange.clone(), close.clone());
        move |name: &'static str| {
            onchange.emit(name.to_owned());
            close();
        }
    };
    let oninput = {
        let (onchange, open, marked) = (props.onchange.clone(), open.setter(), marked.setter());
        move |event: InputEvent| {
            open.set(true);
            marked.set(None);
            onchange.emit(browser::value_of(&event));
        }
    };
    let onkeydown = {
        let (names, marked, take, close, open) =
            (names.clone(), marked.clone(), take.clone(), close.clone(), open.setter());
        move |event: KeyboardEvent| {
            let last = names.len().saturating_sub(1);
            match event.key().as_str() {
                // The first press opens, as in a native list.
                "ArrowDown" if !shown => open.set(true),
                "ArrowDown" => marked.set(Some(marked.map_or(0, |at| if at == last { 0 } else { at + 1 }))),
                "ArrowUp" if shown => {
                    marked.set(Some(marked.map_or(last, |at| at.checked_sub(1).unwrap_or(last))))
                }
                "Enter" if shown => match marked.and_then(|at| names.get(at)) {
                    // Without a marked option, Enter belongs to the form.
                    Some(name) => take(name),
                    None => return,
                },
                "Escape" if shown => close(),
                _ => return,
            }
            // Keys handled here must not move the cursor or submit the form.
            event.prevent_default();
        }
    };
    let option = |(place, name): (usize, &&'static str)| {
        let (take, name) = (take.clone(), *name);
        // The press would take the focus from the field, which would close the list before the click.
        let onmousedown = move |event: MouseEvent| {
            event.prevent_default();
            take(name);
        };
        html! {
            <li
                id={format!("model-{place}")}
                role="option"
                aria-selected={(*marked == Some(place)).to_string()}
                {onmousedown}
            >{ name }</li>
        }
    };
    // Focusing the field usually means naming another model, so select its text.
    let select = |event: FocusEvent| {
        if let Some(field) = event.target_dyn_into::<HtmlInputElement>() {
            // After the press, since its click would place the caret and undo the selection.
            soon(move || field.select());
        }
    };
    html! {
        <div class="combobox">
            <input
                id="start-model"
                class="field"
                role="combobox"
                aria-autocomplete="list"
                aria-expanded={shown.to_string()}
                aria-controls="models"
                aria-activedescendant={marked.filter(|_| shown).map(|place| format!("model-{place}"))}
                aria-invalid={props.invalid.to_string()}
                aria-describedby="start-unknown"
                autocomplete="off"
                spellcheck="false"
                placeholder="Llama-3.1-70B, a Hugging Face id, or a pasted config.json"
                value={props.value.clone()}
                {oninput}
                {onkeydown}
                onblur={move |_| close()}
                onfocus={select}
            />
            <ul id="models" role="listbox" aria-label="Models" hidden={!shown}>
                { for names.iter().enumerate().map(option) }
            </ul>
        </div>
    }
}

//! Every setting as it was understood: its value, where it comes from, and a control to try another.

use shardscope::intake::Origin;
use shardscope::session::{Answer, Chapter, Event, Held, Row, chapters};
use shardscope::text::Span;
use web_sys::Element;
use yew::prelude::*;

use super::questions::value_of;
use crate::app::dom;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub answer: Held<Answer>,
    pub changed: bool,
    /// Whether there is no text, so that these settings are all there is.
    pub alone: bool,
    pub send: Callback<Event>,
    pub onplace: Callback<Span>,
}

#[component]
pub(crate) fn Settings(props: &Props) -> Html {
    let all = use_state(|| false);
    let open = use_state(dom::is_wide);
    let chapters = use_memo(props.answer.clone(), |answer| chapters(&answer.resolution.settings));
    let rows = || chapters.iter().flat_map(|chapter| &chapter.rows);
    let (stated, total) = (rows().filter(|row| row.is_stated()).count(), rows().count());
    let toggle = {
        let all = all.clone();
        move |_| all.set(!*all)
    };
    let onreset = props.send.reform(|_| Event::UnsetAll);
    html! {
        <details class="panel settings" open={*open}>
            <summary><h2>{ "Settings" }</h2><span class="soft small">{ format!("{stated} stated, {} assumed", total - stated) }</span></summary>
            <p class="soft small">{ if props.alone { "These settings make the plan. Change any of them." } else { "Change a value to try it; the script stays as it is." } }
                if props.changed && !props.alone {
                    { " " }<button type="button" class="link" onclick={onreset}>{ "Back to the script alone" }</button>
                }
            </p>
            { for chapters.iter().map(|chapter| table(chapter, *all, props)) }
            <button type="button" class="button" aria-expanded={if *all { "true" } else { "false" }} onclick={toggle}>
                { if *all { "Only what matters most" } else { "Show every assumption" } }
            </button>
        </details>
    }
}

/// Settings shown without being stated: what everyone asks about first.
fn matters(row: &Row) -> bool {
    const FIRST: [&str; 16] = [
        "num_layers",
        "hidden_size",
        "ffn_hidden_size",
        "num_attention_heads",
        "num_query_groups",
        "seq_length",
        "padded_vocab_size",
        "accelerator",
        "world_size",
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "data_parallel_size",
        "micro_batch_size",
        "num_micro_batches",
        "software",
        "params_dtype",
    ];
    row.is_stated() || FIRST.contains(&row.setting.name)
}

fn table(chapter: &Chapter, all: bool, props: &Props) -> Html {
    let rows: Vec<&Row> = chapter.rows.iter().filter(|row| all || matters(row)).collect();
    if rows.is_empty() {
        return Html::default();
    }
    html! {
        <table class="settings-table">
            <caption>{ chapter.title }</caption>
            <colgroup><col class="name" /><col class="value" /><col class="from" /></colgroup>
            <thead class="hidden"><tr><th scope="col">{ "Setting" }</th><th scope="col">{ "Value" }</th><th scope="col">{ "From" }</th></tr></thead>
            <tbody>{ for rows.into_iter().map(|row| line(row, props)) }</tbody>
        </table>
    }
}

fn line(row: &Row, props: &Props) -> Html {
    let setting = &row.setting;
    let name = setting.name;
    let onchange = props.send.reform(move |event: yew::Event| {
        let value = event.target_dyn_into::<Element>().map(|field| value_of(&field)).unwrap_or_default();
        Event::Set { name: name.to_owned(), value }
    });
    let onkeydown = {
        let send = props.send.clone();
        move |event: KeyboardEvent| {
            if event.key() == "Enter"
                && let Some(field) = event.target_dyn_into::<Element>()
            {
                send.emit(Event::Set { name: name.to_owned(), value: value_of(&field) });
            }
        }
    };
    let written = setting.value.written();
    let choices = row.choices();
    let label = format!("{name}, {}", row.field.about());
    html! {
        <tr key={name} class={(!row.is_stated()).then_some("assumed")}>
            <th scope="row" title={row.field.about()}>{ breakable(name) }</th>
            <td>
                if choices.is_empty() {
                    <input class="field" value={written} aria-label={label} autocomplete="off" spellcheck="false" {onchange} {onkeydown} />
                } else {
                    <select class="field" aria-label={label} {onchange}>
                        { for choices.iter().map(|choice| html! { <option value={*choice} selected={**choice == *written}>{ shown(choice) }</option> }) }
                    </select>
                }
            </td>
            <td class="origin">{ origin(row, props) }</td>
        </tr>
    }
}

/// The name, which may be broken after each underscore.
fn breakable(name: &str) -> Html {
    name.split_inclusive('_').map(|word| html! { <>{ word.to_owned() }<wbr /></> }).collect()
}

fn shown(choice: &str) -> &str {
    match choice {
        "true" => "yes",
        "false" => "no",
        other => other,
    }
}

/// Where the value comes from: a place in the text to go to, or a word.
fn origin(row: &Row, props: &Props) -> Html {
    let setting = &row.setting;
    let note = setting.note.clone().or_else(|| setting.flag.clone());
    let word = match setting.origin {
        Origin::Script => "script",
        Origin::Environment => "answer",
        Origin::Catalog => "catalog",
        Origin::Default => "default",
        Origin::Derived => "derived",
        Origin::User if props.alone => "set",
        Origin::User => {
            let name = setting.name;
            let onclick = props.send.reform(move |_| Event::Unset(name.to_owned()));
            return html! {
                <button type="button" class="link" {onclick}>{ "yours, undo" }<span class="hidden">{ format!(" the change of {name}") }</span></button>
            };
        }
    };
    match setting.span {
        Some(span) => {
            let place = props.answer.source.position(span.start);
            let onclick = props.onplace.reform(move |_| span);
            html! {
                <button type="button" class="link" title={note} {onclick}>
                    { format!("line {}", place.line) }<span class="hidden">{ format!(" states {}", setting.name) }</span>
                </button>
            }
        }
        None => html! { <span title={note}>{ word }</span> },
    }
}

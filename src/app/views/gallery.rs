//! The sheet from which a plan starts: a model and a cluster, or a worked example.

use shardscope::catalog::{accelerator_names, model_names};
use shardscope::session::examples::{Example, ExampleChapter, gallery};
use shardscope::session::{Choice, Event, Hand, start};
use yew::prelude::*;

use super::value_of;
use crate::app::dom;
use crate::app::parts::Dialog;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub send: Callback<Event>,
    pub onclose: Callback<()>,
}

#[component]
pub(crate) fn Gallery(props: &Props) -> Html {
    let chapters = use_memo((), |()| gallery());
    let open = {
        let (send, onclose) = (props.send.clone(), props.onclose.clone());
        Callback::from(move |hand: Hand| {
            send.emit(Event::Open(Box::new(hand)));
            onclose.emit(());
        })
    };
    html! {
        <Dialog id="gallery" title="Start from" onclose={props.onclose.clone()}>
            { choice(&open) }
            { for chapters.iter().enumerate().map(|(index, one)| chapter(index, one, &open)) }
        </Dialog>
    }
}

/// What the form begins with.
const MODEL: &str = "Llama-3-70B";
const ACCELERATOR: &str = "H100-SXM";

fn choice(open: &Callback<Hand>) -> Html {
    let open = open.clone();
    let onsubmit = move |event: SubmitEvent| {
        event.prevent_default();
        let value = |id: &str| dom::element(id).map(|field| value_of(&field)).unwrap_or_default();
        let number = |id: &str| value(id).trim().parse::<u64>().unwrap_or(1).max(1);
        let choice = Choice {
            model: value("start-model"),
            accelerator: value("start-accelerator"),
            nodes: number("start-nodes"),
            sequence: number("start-sequence"),
        };
        if let Some(hand) = start(&choice) {
            open.emit(hand);
        }
    };
    let options = |names: &mut dyn Iterator<Item = &'static str>, chosen: &str| -> Html {
        names.map(|name| html! { <option value={name} selected={name == chosen}>{ name }</option> }).collect()
    };
    html! {
        <form class="start" {onsubmit} aria-labelledby="start-title">
            <h3 id="start-title">{ "A model and a cluster" }</h3>
            <p class="soft small">{ "Without a script: the least cut layout that fits, and every setting of it to change." }</p>
            <div class="start-fields">
                <label>{ "Model" }<select id="start-model" class="field">{ options(&mut model_names(), MODEL) }</select></label>
                <label>{ "Accelerator" }<select id="start-accelerator" class="field">{ options(&mut accelerator_names(), ACCELERATOR) }</select></label>
                <label>{ "Nodes" }<input id="start-nodes" class="field" type="number" min="1" max="100000" value="8" required=true /></label>
                <label>{ "Tokens of a sample" }<input id="start-sequence" class="field" type="number" min="1" max="16777216" value="8192" required=true /></label>
                <button type="submit" class="button main">{ "Start" }</button>
            </div>
        </form>
    }
}

fn chapter(index: usize, chapter: &ExampleChapter, open: &Callback<Hand>) -> Html {
    html! {
        <details class="chapter" open={index < 2}>
            <summary><h3>{ chapter.title }</h3><span class="soft small">{ format!("{} runs", chapter.examples.len()) }</span></summary>
            <ul class="examples">{ for chapter.examples.iter().map(|one| example(one, open)) }</ul>
            <p class="soft source">{ format!("Sources. {}", chapter.source) }</p>
        </details>
    }
}

fn example(example: &Example, open: &Callback<Hand>) -> Html {
    let hand = example.hand.clone();
    let onclick = open.reform(move |_| hand.clone());
    html! {
        <li>
            <button type="button" class="example" {onclick}>
                <strong>{ &example.name }</strong>
                <span class="soft small">{ &example.about }</span>
                if !example.published.is_empty() {
                    <span class="small published">{ format!("published: {}", example.published) }</span>
                }
            </button>
        </li>
    }
}

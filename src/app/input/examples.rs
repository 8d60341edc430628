//! Worked examples, each a published run or one that everyone asks about.

use shardscope::session::examples::{Example, ExampleChapter, gallery};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::context::{Dispatch, send, use_dispatch};

#[component(Examples)]
pub(crate) fn examples() -> Html {
    let dispatch = use_dispatch();
    let chapters = use_memo((), |()| gallery());
    html! {
        <section class="gallery" aria-labelledby="gallery-title">
            <h2 id="gallery-title" class="hidden">{ "Examples" }</h2>
            { for chapters.iter().enumerate().map(|(place, one)| chapter(&dispatch, one, place == 0)) }
        </section>
    }
}

fn chapter(dispatch: &Dispatch, chapter: &ExampleChapter, open: bool) -> Html {
    html! {
        <details class="chapter" {open}>
            <summary>
                <h3>{ chapter.title }</h3>
                <span class="soft small">{ format!("{} runs", chapter.examples.len()) }</span>
            </summary>
            <ul class="examples">
                { for chapter.examples.iter().map(|one| example(dispatch, one)) }
            </ul>
            <p class="soft source">{ format!("Sources. {}", chapter.source) }</p>
        </details>
    }
}

fn example(dispatch: &Dispatch, example: &Example) -> Html {
    let hand = example.hand.clone();
    let begin = send(dispatch, move || Action::Begin(Box::new(hand.clone())));
    html! {
        <li>
            <button type="button" class="example" onclick={begin}>
                <strong>{ &example.name }</strong>
                <span class="soft small">{ &example.about }</span>
                if !example.published.is_empty() {
                    <span class="small published">{ format!("published: {}", example.published) }</span>
                }
            </button>
        </li>
    }
}

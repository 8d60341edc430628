//! Worked examples, each a published run or one that everyone asks about.

use gloo::timers::callback::Timeout;
use shardscope::session::examples::{Estimated as Figure, Example, ExampleChapter, gallery};
use web_sys::Element;
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::context::{Dispatch, send, use_dispatch};

#[component(Examples)]
pub(crate) fn examples() -> Html {
    let chapters = use_memo((), |()| gallery());
    html! {
        <section class="gallery" aria-labelledby="gallery-title">
            <h2 id="gallery-title" class="hidden">{ "Examples" }</h2>
            { for chapters.iter().enumerate().map(|(place, one)| html! {
                <Chapter chapter={one.clone()} first={place == 0} />
            }) }
        </section>
    }
}

/// Cards of [`Published`]: two rows of three.
const FEW: usize = 6;

/// A few published runs to begin with, while there is no input yet.
#[component(Published)]
pub(crate) fn published() -> Html {
    let dispatch = use_dispatch();
    let chapters = use_memo((), |()| gallery());
    html! {
        <ul class="examples few" aria-label="Published runs">
            { for chapters.iter().take(1).flat_map(|chapter| chapter.examples.iter().take(FEW)).map(|one| {
                let input = one.input.clone();
                let begin = send(&dispatch, move || Action::Begin(Box::new(input.clone())));
                html! {
                    <li>
                        <button type="button" class="example" onclick={begin}>
                            <strong>{ &one.name }</strong>
                            <span class="soft small">{ &one.about }</span>
                        </button>
                    </li>
                }
            }) }
        </ul>
    }
}

#[derive(Properties, PartialEq)]
struct ChapterProps {
    chapter: ExampleChapter,
    /// Whether the chapter is open at first.
    first: bool,
}

/// A chapter; its estimates are computed once it is opened.
#[component(Chapter)]
fn chapter_of(ChapterProps { chapter, first }: &ChapterProps) -> Html {
    let dispatch = use_dispatch();
    let open = use_state_eq(|| *first);
    let ontoggle = {
        let open = open.setter();
        move |event: web_sys::Event| {
            // The attribute, since the event does not carry the new state.
            open.set(event.target_dyn_into::<Element>().is_some_and(|details| details.has_attribute("open")));
        }
    };
    html! {
        // Only the initial state; afterwards the browser owns it.
        <details class="chapter" open={*first} {ontoggle}>
            <summary>
                <h3>{ chapter.title }</h3>
                <span class="soft small">{ format!("{} runs", chapter.examples.len()) }</span>
            </summary>
            <ul class="examples">
                { for chapter.examples.iter().map(|one| example(&dispatch, one, *open)) }
            </ul>
            <p class="soft source">{ format!("Sources. {}", chapter.source) }</p>
        </details>
    }
}

fn example(dispatch: &Dispatch, example: &Example, open: bool) -> Html {
    let input = example.input.clone();
    let begin = send(dispatch, move || Action::Begin(Box::new(input.clone())));
    html! {
        <li>
            <button type="button" class="example" onclick={begin}>
                <strong>{ &example.name }</strong>
                <span class="soft small">{ &example.about }</span>
                if let Some(published) = &example.published {
                    <span class="small published">{ format!("published: {}", published.words()) }</span>
                    if open {
                        <Estimated example={example.clone()} />
                    }
                    if !published.reason.is_empty() {
                        <span class="small published">{ format!("why: {}", published.reason) }</span>
                    }
                }
            </button>
        </li>
    }
}

#[derive(Properties, PartialEq)]
struct EstimatedProps {
    example: Example,
}

/// The page's estimate of the published figure: nobody should have to open a card to learn that the two differ. Each
/// is computed in a separate task.
#[component(Estimated)]
fn estimated(props: &EstimatedProps) -> Html {
    let estimate = use_state_eq(|| None::<String>);
    {
        let estimate = estimate.setter();
        use_effect_with(props.example.clone(), move |example| {
            let example = example.clone();
            // After the list is painted, and one card at a time: the estimates of a chapter take a second or more.
            let timer = Timeout::new(0, move || estimate.set(example.estimated().map(words)));
            move || drop(timer)
        });
    }
    html! {
        <span class="small published">
            { "estimated: " }{ (*estimate).clone().unwrap_or_else(|| "…".to_owned()) }
        </span>
    }
}

/// The estimate with its distance from what was published.
fn words(Figure { words, beside, off }: Figure) -> String {
    // Differences within half a percent are not shown.
    let percent = (off * 100.0).round();
    match percent == 0.0 {
        true => words + &beside,
        false => format!("{words} ({}{:.0}%){beside}", if off > 0.0 { "+" } else { "−" }, percent.abs()),
    }
}

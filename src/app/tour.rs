//! The guided tour: a card that leads from part to part of the page and stays out of its way. Each panel has its own
//! step.

use shardscope::session::Shown;
use shardscope::units::{gib, seconds};
use yew::prelude::*;

use super::action::Action;
use super::browser;
use super::context::{AppContext, Dispatch, use_dispatch};
use super::panel_id::PanelId;
use super::panels;
use super::widgets::{Sign, icon};

/// One step.
struct Step {
    title: &'static str,
    text: fn(&Shown) -> String,
    /// The part of the page that it is about.
    place: &'static str,
    panel: Option<PanelId>,
}

const FIRST: Step = Step {
    title: "Does it fit, and how fast?",
    text: |shown| {
        let accelerator = &shown.plan.cluster().accelerator;
        let peak = shown.fullest().map(|fullest| gib(fullest.peak)).unwrap_or_default();
        format!(
            "The answer first: peak memory is {peak} of the {} that an {} has, and a step takes {}. Below it is the one change worth making next.",
            gib(accelerator.memory),
            accelerator.name,
            seconds(shown.report.time.step)
        )
    },
    place: ".answer-head",
    panel: Some(PanelId::Overview),
};

const KNOBS: Step = Step {
    title: "Turn a knob",
    text: |_| {
        "Change a size here and every number follows; the verdict shows the difference. Your script stays as it is. Undo takes the change back, and Pin keeps this plan to compare with the next.".to_owned()
    },
    place: ".plan-bar",
    panel: None,
};

const LAST: Step = Step {
    title: "Take it with you",
    text: |_| {
        "Share gives a link that holds the plan itself, copies for reports, and files; nothing goes to a server. Now paste your own script, or start from a model.".to_owned()
    },
    place: ".top .share",
    panel: None,
};

fn steps() -> Vec<Step> {
    let of_panels = panels::stories().map(|(panel, story)| Step {
        title: story.title,
        text: story.text,
        place: ".answer-body",
        panel: Some(panel),
    });
    [FIRST, KNOBS].into_iter().chain(of_panels).chain([LAST]).collect()
}

/// Goes to a step, and to the panel that it is about.
fn go(dispatch: &Dispatch, step: Option<usize>) {
    if let Some(panel) = step.and_then(|at| steps().get(at)?.panel) {
        // The panel first, so that its place exists when the step leads to it.
        dispatch.emit(Action::Panel(panel));
    }
    dispatch.emit(Action::Tour(step));
}

#[derive(Properties, PartialEq)]
pub(crate) struct ButtonProps {
    pub class: &'static str,
    pub label: &'static str,
}

/// The button that begins it; empty while there is nothing to show.
#[component(TourButton)]
pub(crate) fn tour_button(props: &ButtonProps) -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    if app.session.shown.is_none() {
        return html!();
    }
    html! {
        <button type="button" class={props.class} onclick={move |_| go(&dispatch, Some(0))}>
            { props.label }
        </button>
    }
}

/// The card of the step it is at.
#[component(Tour)]
pub(crate) fn tour() -> Html {
    let dispatch = use_dispatch();
    let app = use_context::<AppContext>();
    let at = app.as_ref().and_then(|app| app.ui.tour);
    use_effect_with(at, |at| lead(*at));
    let (Some(at), Some(app)) = (at, app) else { return html!() };
    let Some(shown) = &app.session.shown else { return html!() };
    let steps = steps();
    let Some(step) = steps.get(at) else { return html!() };
    let last = steps.len() - 1;
    let onkeydown = {
        let dispatch = dispatch.clone();
        move |event: KeyboardEvent| {
            let to = match event.key().as_str() {
                "Escape" => None,
                "ArrowLeft" => Some(at.saturating_sub(1)),
                "ArrowRight" => Some((at + 1).min(last)),
                _ => return,
            };
            event.prevent_default();
            go(&dispatch, to);
        }
    };
    let to = |step: Option<usize>| {
        let dispatch = dispatch.clone();
        move |_: MouseEvent| go(&dispatch, step)
    };
    html! {
        <div id="tour" class="tour" role="dialog" tabindex="-1" aria-labelledby="tour-title" {onkeydown}>
            <button
                type="button"
                class="button quiet"
                aria-label="Close"
                onclick={to(None)}
            >
                { icon(Sign::Close) }
            </button>
            <div aria-live="polite">
                <h2 id="tour-title">{ step.title }</h2>
                <p>{ (step.text)(shown) }</p>
            </div>
            <div class="turns">
                <span class="soft small">{ format!("{} of {}", at + 1, steps.len()) }</span>
                <button
                    type="button"
                    class="button"
                    aria-disabled={(at == 0).to_string()}
                    onclick={to(Some(at.saturating_sub(1)))}
                >{ "Back" }</button>
                <button
                    type="button"
                    class="button main"
                    onclick={to((at < last).then_some(at + 1))}
                >{ if at == last { "Done" } else { "Next" } }</button>
            </div>
        </div>
    }
}

/// Shows the part that step `at` is about; the last one takes the focus when the tour is over.
fn lead(at: Option<usize>) {
    const MARK: &str = "data-toured";
    // Marked in the page itself: the element belongs to another component.
    let last = browser::query("[data-toured]");
    if let Some(last) = &last {
        let _ = last.remove_attribute(MARK);
    }
    let place = at.and_then(|at| steps().get(at).and_then(|step| browser::query(step.place)));
    match (place, last) {
        (Some(place), _) => {
            let _ = place.set_attribute(MARK, "");
            browser::bring(&place);
            // Once inside the card the focus stays on the button pressed.
            if browser::query("#tour:focus-within").is_none() {
                browser::element("tour").iter().for_each(browser::focus);
            }
        }
        (None, Some(last)) => browser::focus(&last),
        _ => {}
    }
}

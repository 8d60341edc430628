//! Advice: each change is already estimated and can be applied with one click.

use shardscope::launch::Resolution;
use shardscope::plan::Field;
use shardscope::report::Finding;
use shardscope::session::{Event, change_line};
use shardscope::units::{Bytes, Seconds, gib, seconds};
use yew::prelude::*;

use super::panel::{Panel, PlanProps};
use crate::app::best_change::best;
use crate::app::context::{AppContext, send, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::widgets::section;
use crate::app::words::sentence;

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Advice,
    tab: Some("Suggestions"),
    view: |shown| html! { <Advice {shown} /> },
    story: None,
};

#[component(Advice)]
fn advice(PlanProps { shown }: &PlanProps) -> Html {
    let app = use_context::<AppContext>();
    // The change that the head of the answer names comes first. Compared by the change: the search may have found
    // what a rule proposes as well.
    let first = best(shown, app.as_ref().and_then(|app| app.ui.search.as_ref()));
    let is_first = |finding: &&Finding| first.as_ref().is_some_and(|first| first.change == finding.change);
    let searched = first.as_ref().filter(|first| first.is_searched);
    let (ahead, behind): (Vec<&Finding>, Vec<&Finding>) = shown.report.advice.iter().partition(is_first);
    let findings = [ahead, behind].concat();
    let resolution = &shown.answer.resolution;
    let lacking = shown.is_out_of_memory();
    section(
        "suggestions",
        "",
        if lacking { "How to make it fit" } else { "Suggestions" },
        html!("Every suggestion was re-estimated; the numbers show the result of applying it."),
        html! { <>if findings.is_empty() && searched.is_none() {
            <p>{ if lacking {
                "No single change makes this plan fit; Search tries whole layouts."
            } else {
                "Nothing to suggest: no single change makes this plan faster."
            } }</p>
        }
        <ul class="findings">
            { searched.map(|best| item(resolution, &best.title, "Every layout of the same model on the same GPUs was tried or ruled out; the Search tab lists the next best.", &best.change, (best.step, best.peak))) }
            { for findings.into_iter().map(|one| item(resolution, &sentence(&one.message), &one.why, &one.change, (one.expected.step, one.expected.peak_reserved))) }
        </ul></> },
    )
}

fn item(
    resolution: &Resolution,
    message: &str,
    why: &str,
    change: &[(Field, String)],
    (step, peak): (Option<Seconds>, Option<Bytes>),
) -> Html {
    let line = change_line(resolution, change);
    // As named in the head of the answer, unless the message begins with the same words: repeating them would read
    // like two changes.
    let rest = message.strip_prefix(&line).filter(|_| !line.is_empty());
    html! {
        <li>
            <div>
                if let Some(rest) = rest {
                    <p><b>{ line }</b>{ rest }</p>
                } else {
                    if !line.is_empty() {
                        <p><b>{ sentence(&line) }</b></p>
                    }
                    <p>{ message }</p>
                }
                <details class="reasons">
                    <summary>{ "why" }</summary>
                    <p>{ why }</p>
                </details>
            </div>
            <p class="expected">
                { step.map(|step| html! { <span>{ format!("{} per step", seconds(step)) }</span> }) }
                { peak.map(|peak| html! { <span>{ format!("peak {}", gib(peak)) }</span> }) }
            </p>
            <Apply change={change.to_vec()} />
        </li>
    }
}

#[derive(Properties, PartialEq)]
pub(super) struct ApplyProps {
    pub change: Vec<(Field, String)>,
}

/// A button that applies a change; empty if there is none.
#[component(Apply)]
pub(super) fn apply(props: &ApplyProps) -> Html {
    let dispatch = use_dispatch();
    if props.change.is_empty() {
        return html!();
    }
    let values: Vec<_> =
        props.change.iter().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
    html! {
        <button
            type="button"
            class="button"
            title={written(&props.change)}
            onclick={send(&dispatch, move || Event::Try(values.clone()).into())}
        >{ "Apply" }</button>
    }
}

/// `name = value, …`
pub(super) fn written(change: &[(Field, String)]) -> String {
    let one = |(field, value): &(Field, String)| match value.as_str() {
        "" => format!("without {}", field.name()),
        value => format!("{} = {value}", field.name()),
    };
    change.iter().map(one).collect::<Vec<_>>().join(", ")
}

//! What could be better, each change already estimated, one press away.

use shardscope::plan::Field;
use shardscope::report::Finding;
use shardscope::session::{Event, PtrEq, Shown};
use shardscope::units::{gib, seconds};
use yew::prelude::*;

use super::panel::Panel;
use crate::app::context::{send, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::widgets::section;
use crate::app::words::sentence;

pub(super) const PANEL: Panel =
    Panel { id: PanelId::Advice, tab: Some("Suggestions"), view: |shown| advice(&shown), story: None };

fn advice(shown: &PtrEq<Shown>) -> Html {
    let findings = &shown.report.advice;
    let lacking = shown.is_out_of_memory();
    section(
        "suggestions",
        "",
        if lacking { "How to make it fit" } else { "Suggestions" },
        html!("Every suggestion was re-estimated; the numbers show the result of applying it."),
        html! { <>if findings.is_empty() {
            <p>{ if lacking {
                "No single change makes this plan fit; Search tries whole layouts."
            } else {
                "Nothing to suggest: no single change makes this plan faster."
            } }</p>
        }
        <ul class="findings">{ for findings.iter().map(item) }</ul></> },
    )
}

fn item(finding: &Finding) -> Html {
    let expected = &finding.expected;
    html! {
        <li>
            <div>
                <p>{ sentence(&finding.message) }</p>
                <details class="reasons">
                    <summary>{ "why" }</summary>
                    <p>{ &finding.why }</p>
                </details>
            </div>
            <p class="expected">
                { expected.step.map(|step| html! { <span>{ format!("{} per step", seconds(step)) }</span> }) }
                { expected.peak_reserved.map(|peak| html! { <span>{ format!("peak {}", gib(peak)) }</span> }) }
            </p>
            <Apply change={finding.change.clone()} />
        </li>
    }
}

#[derive(Properties, PartialEq)]
pub(super) struct ApplyProps {
    pub change: Vec<(Field, String)>,
}

/// A button that applies a change; nothing when there is none.
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

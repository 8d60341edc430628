//! What could be better, each change already tried, one press away.

use shardscope::plan::Field;
use shardscope::quantity::{gib, seconds};
use shardscope::report::Finding;
use shardscope::session::{Event, Fit};
use yew::prelude::*;

use super::diagnostics::sentence;
use crate::app::desk::Desk;

pub(crate) fn advice(desk: &Desk) -> Html {
    let findings = &desk.shown.report.advice;
    if findings.is_empty() {
        return Html::default();
    }
    let lacking = desk.shown.worst().is_some_and(|worst| worst.fit == Fit::DoesNotFit);
    html! {
        <section class="panel" id="advice" aria-labelledby="advice-title">
            <header>
                <h2 id="advice-title">{ if lacking { "Ways to make it fit, and what else could be better" } else { "What could be better" } }</h2>
                <p>{ "Each change was tried; the figures beside it are the changed plan's." }</p>
            </header>
            <ul class="findings">{ for findings.iter().map(|finding| item(desk, finding)) }</ul>
        </section>
    }
}

fn item(desk: &Desk, finding: &Finding) -> Html {
    let expected = [
        finding.expected.peak_reserved.map(|peak| format!("fullest GPU {}", gib(peak))),
        finding.expected.step.map(|step| format!("step {}", seconds(step))),
    ];
    html! {
        <li>
            <div>
                <p>{ sentence(&finding.message) }</p>
                <details class="reasons"><summary>{ "why" }</summary><p>{ &finding.why }</p></details>
            </div>
            <p class="expected">{ for expected.into_iter().flatten().map(|words| html! { <span>{ words }</span> }) }</p>
            { try_it(desk, &finding.change) }
        </li>
    }
}

/// A button that tries a change; nothing when there is none.
pub(crate) fn try_it(desk: &Desk, change: &[(Field, String)]) -> Html {
    if change.is_empty() {
        return Html::default();
    }
    let values: Vec<(String, String)> =
        change.iter().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
    let onclick = desk.send.reform(move |_: MouseEvent| Event::Try(values.clone()));
    html! { <button type="button" class="button" {onclick} title={written(change)}>{ "Try it" }</button> }
}

/// `name = value, …`
pub(crate) fn written(change: &[(Field, String)]) -> String {
    let one = |(field, value): &(Field, String)| {
        if value.is_empty() {
            format!("without {}", field.name())
        } else {
            format!("{} = {value}", field.name())
        }
    };
    change.iter().map(one).collect::<Vec<_>>().join(", ")
}

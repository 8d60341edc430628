//! What there is to say about the text, each line leading to its place.

use shardscope::session::{Answer, Held};
use shardscope::text::{Diagnostic, Severity, Span};
use yew::prelude::*;

use crate::app::parts::{Sign, icon};

/// The lines below the box.
pub(crate) fn diagnostics(answer: &Held<Answer>, onplace: &Callback<Span>) -> Html {
    let found = &answer.resolution.diagnostics;
    let (notes, grave): (Vec<_>, Vec<_>) = found.iter().partition(|one| one.severity == Severity::Note);
    let line = |one: &&Diagnostic| line(one, answer, onplace);
    let count = notes.len();
    html! {
        <div class="diagnostics" id="diagnostics">
            <div role="status">
                if grave.is_empty() && answer.source.text().trim().is_empty() {
                    <p class="clean">{ "No script is needed: the settings below make the plan." }</p>
                } else if grave.is_empty() {
                    <p class="clean">{ "Everything in the text was understood." }</p>
                } else {
                    <ul>{ for grave.iter().map(line) }</ul>
                }
            </div>
            if count > 0 {
                <details>
                    <summary>{ if count == 1 { "1 note".to_owned() } else { format!("{count} notes") } }</summary>
                    <ul>{ for notes.iter().map(line) }</ul>
                </details>
            }
        </div>
    }
}

fn line(found: &Diagnostic, answer: &Held<Answer>, onplace: &Callback<Span>) -> Html {
    let (class, sign, spoken) = match found.severity {
        Severity::Error => ("error", Sign::Bad, "Error: "),
        Severity::Warning => ("warning", Sign::Tight, "Warning: "),
        Severity::Note => ("note", Sign::Note, "Note: "),
    };
    let words = html! {
        <>
            <span class="sign">{ icon(sign) }</span>
            <span class="text"><span class="hidden">{ spoken }</span>{ sentence(&found.message) }
                if let Some(hint) = &found.hint { <span class="hint">{ sentence(hint) }</span> }
            </span>
        </>
    };
    let class = classes!("diagnostic", class);
    match found.span {
        Some(span) => {
            let place = answer.source.position(span.start);
            let onclick = onplace.reform(move |_| span);
            html! {
                <li><button type="button" {class} {onclick}>{ words }
                    <span class="place"><span class="hidden">{ "at line and column " }</span>{ format!("{}:{}", place.line, place.column) }</span>
                </button></li>
            }
        }
        None => html! { <li><div {class}>{ words }</div></li> },
    }
}

/// The message with a capital at its head, unless it begins with a name.
pub(crate) fn sentence(message: &str) -> String {
    let mut text = message.to_owned();
    let first = message.split(' ').next().unwrap_or_default();
    if first.bytes().all(|byte| byte.is_ascii_lowercase())
        && let Some(head) = text.get_mut(..1)
    {
        head.make_ascii_uppercase();
    }
    text
}

//! Diagnostics about the text, each line linking to its place.

use shardscope::session::{Answer, PtrEq};
use shardscope::source::{Diagnostic, Severity};
use yew::prelude::*;

use crate::app::place::{is_in_box, show};
use crate::app::widgets::{CopyButton, Sign, icon};
use crate::app::words::{plural, sentence, unbroken_flags};

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub answer: PtrEq<Answer>,
    pub reading: bool,
    pub empty: bool,
    pub settings_alone: bool,
}

/// The lines below the box.
#[component(Diagnostics)]
pub(crate) fn diagnostics(props: &Props) -> Html {
    let answer = &props.answer;
    let all = &answer.resolution.diagnostics;
    // Notes are numerous and mostly harmless, so they are collapsed.
    let (notes, grave): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        all.iter().partition(|one| one.severity == Severity::Note);
    let clean = |words: &'static str| html! { <p class="clean">{ words }</p> };
    // In this order: a text being read has no verdict yet, and settings alone have no text to comment on.
    let status = if props.reading {
        clean("Reading a long text…")
    } else if props.settings_alone && grave.is_empty() {
        clean("No script needed: this plan is made of settings.")
    } else if props.empty {
        clean("Nothing here yet: paste or drop a script, or load the sample.")
    } else if grave.is_empty() && answer.undecided() > 0 {
        clean("Understood, except for conditions that depend on the run; the notes say how each was read.")
    } else if grave.is_empty() {
        clean("Everything in the text was understood.")
    } else {
        list(answer, &grave)
    };
    let count = notes.len();
    let further = {
        let answer = answer.clone();
        Callback::from(move |()| answer.further())
    };
    html! {
        <div id="diagnostics" class="diagnostics">
            <div role="status">{ status }</div>
            if count > 0 {
                <details>
                    <summary>{ format!("{count} {}", plural(count as u64, "note", "notes")) }</summary>
                    { list(answer, &notes) }
                </details>
            }
            if !answer.resolution.further.is_empty() {
                <CopyButton label="Copy the messages that are not listed" text={further} />
            }
        </div>
    }
}

/// A list, which scrolls when it is long and is then reachable by keyboard.
fn list(answer: &PtrEq<Answer>, found: &[&Diagnostic]) -> Html {
    html! { <ul tabindex="0">{ for found.iter().map(|one| line(answer, one)) }</ul> }
}

/// One line; a button if it links to a place.
fn line(answer: &PtrEq<Answer>, found: &Diagnostic) -> Html {
    let (class, sign, spoken) = match found.severity {
        Severity::Error => ("error", Sign::Bad, "Error: "),
        Severity::Warning => ("warning", Sign::Tight, "Warning: "),
        Severity::Note => ("note", Sign::Note, "Note: "),
    };
    let class = classes!("diagnostic", class);
    let said = html! {
        <>
            <span class="sign">{ icon(sign) }</span>
            <span class="text">
                <span class="hidden">{ spoken }</span>
                { unbroken_flags(&sentence(&found.message)) }
                { found.hint.as_ref().map(|hint| html! { <span class="hint">{ unbroken_flags(&sentence(hint)) }</span> }) }
            </span>
        </>
    };
    let Some(span) = found.span else { return html! { <li><div {class}>{ said }</div></li> } };
    let place = answer.source.position(span.start);
    let at = html! {
        <span class="place">
            <span class="hidden">{ "at line and column " }</span>
            { format!("{}:{}", place.line, place.column) }
        </span>
    };
    if !is_in_box(answer, span) {
        // There is no text box to link into.
        let name = answer.source.parts().get(place.part).map(|part| part.name.clone());
        return html! { <li><div {class}>{ said }{ name }{ " " }{ at }</div></li> };
    }
    let answer = answer.clone();
    html! {
        <li>
            <button type="button" {class} onclick={move |_| show(&answer, span)}>
                { said }
                { at }
            </button>
        </li>
    }
}

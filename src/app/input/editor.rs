//! The script box: a textarea over a layer with its underlines, next to a gutter of line numbers.

use std::rc::Rc;

use shardscope::session::{Answer, Event, Piece, PtrEq, pieces};
use shardscope::source::Severity;
use web_sys::HtmlTextAreaElement;
use yew::prelude::*;

use crate::app::browser;
use crate::app::context::use_dispatch;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub text: Rc<str>,
    pub answer: PtrEq<Answer>,
}

/// What can be pasted, as listed in the empty box.
const ACCEPTED: [&str; 12] = [
    "Megatron-LM",
    "NeMo",
    "DeepSpeed",
    "torchtitan",
    "HF Trainer",
    "TRL",
    "axolotl",
    "unsloth",
    "verl",
    "accelerate",
    "Slurm / torchrun",
    "config.json",
];

#[component(Editor)]
pub(crate) fn editor(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let text = &*props.text;
    // Underlines belong to the text that was answered; while the user types ahead of the answer there are none. The
    // first part is the box; others are additional files.
    let answered = props.answer.source.part_text(0) == text;
    let found = if answered { props.answer.resolution.diagnostics.as_slice() } else { &[] };
    let bad = found.iter().any(|one| one.severity == Severity::Error);
    let (gutter, marks) = (use_node_ref(), use_node_ref());
    let oninput = move |event: InputEvent| {
        if let Some(area) = event.target_dyn_into::<HtmlTextAreaElement>() {
            dispatch.emit(Event::Edit(area.value()).into());
        }
    };
    // Underlines and line numbers scroll with the box.
    let beside = [gutter.clone(), marks.clone()];
    let onscroll = {
        let beside = beside.clone();
        move |_: web_sys::Event| follow(&beside)
    };
    // Redrawn content has a different length, so it may have been scrolled elsewhere meanwhile.
    use_effect_with((props.text.clone(), props.answer.clone()), move |_| follow(&beside));
    html! {
        <div class="editor">
            <pre ref={gutter} class="gutter" aria-hidden="true">{ line_numbers(text) }</pre>
            <div class="sheet">
                <pre ref={marks} class="marks" aria-hidden="true">
                    { for pieces(text, found).iter().map(|piece| mark(text, piece)) }
                    // A text that ends in a line break needs one more line, otherwise the layer would be shorter than
                    // the box.
                    { "\n" }
                </pre>
                <textarea
                    id="script"
                    aria-label="Launch script"
                    aria-describedby="diagnostics"
                    aria-invalid={bad.to_string()}
                    wrap="off"
                    spellcheck="false"
                    autocapitalize="off"
                    autocomplete="off"
                    placeholder="Paste a launch script, or drop files anywhere"
                    value={text.to_owned()}
                    {oninput}
                    {onscroll}
                />
                if text.is_empty() {
                    <ul class="accepted" aria-label="What can be pasted">
                        { for ACCEPTED.iter().map(|name| html! { <li>{ *name }</li> }) }
                    </ul>
                }
            </div>
        </div>
    }
}

/// Scrolls gutter and underlines along with the box.
fn follow(beside: &[NodeRef]) {
    let Some(area) = browser::script_box() else { return };
    for one in beside.iter().filter_map(NodeRef::cast::<web_sys::Element>) {
        one.set_scroll_top(area.scroll_top());
        one.set_scroll_left(area.scroll_left());
    }
}

fn mark(text: &str, piece: &Piece) -> Html {
    let words = text.get(piece.bytes.clone()).unwrap_or_default();
    match piece.severity {
        Some(severity) => html! { <mark class={severity.name()}>{ words }</mark> },
        None => html!(words),
    }
}

/// `1` to the number of lines of `text`, one per line.
fn line_numbers(text: &str) -> String {
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let mut numbers = String::with_capacity(lines * 4);
    for line in 1..=lines {
        numbers.push_str(&line.to_string());
        numbers.push('\n');
    }
    numbers
}

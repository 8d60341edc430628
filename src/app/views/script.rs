//! The script box: a textarea over a sheet with its underlines, and what there is to say below.

use shardscope::session::{EXAMPLE, Event, File, Hand, Piece, pieces, utf16_offset};
use shardscope::text::{Severity, Span};
use web_sys::{Element, HtmlInputElement, HtmlTextAreaElement};
use yew::prelude::*;

use super::diagnostics::diagnostics;
use crate::app::dom;
use crate::app::parts::{Sign, icon};
use crate::app::store::Session;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub session: Session,
}

#[component]
pub(crate) fn Script(props: &Props) -> Html {
    let session = &props.session;
    let text = &session.hand.text;
    let (sheet, gutter) = (use_node_ref(), use_node_ref());
    let onscroll = {
        let (sheet, gutter) = (sheet.clone(), gutter.clone());
        move |event: web_sys::Event| {
            let Some(area) = event.target_dyn_into::<HtmlTextAreaElement>() else { return };
            if let Some(sheet) = sheet.cast::<Element>() {
                sheet.set_scroll_top(area.scroll_top());
                sheet.set_scroll_left(area.scroll_left());
            }
            if let Some(gutter) = gutter.cast::<Element>() {
                gutter.set_scroll_top(area.scroll_top());
            }
        }
    };
    let oninput = {
        let session = session.clone();
        move |event: InputEvent| {
            if let Some(area) = event.target_dyn_into::<HtmlTextAreaElement>() {
                session.dispatch(Event::Edit(area.value()));
            }
        }
    };
    let numbers =
        use_memo(text.bytes().filter(|byte| *byte == b'\n').count(), |breaks| line_numbers(*breaks + 1));
    // Underlines belong to the text that was answered; while the reader types ahead of it there are none.
    let answered = session.answer.source.part_text(0) == &**text;
    let found = if answered { session.answer.resolution.diagnostics.as_slice() } else { &[] };
    let bad = found.iter().any(|one| one.severity == Severity::Error);
    let onplace = {
        let session = session.clone();
        Callback::from(move |span: Span| show_place(&session, span))
    };
    let take = {
        let session = session.clone();
        move |files| {
            let session = session.clone();
            dom::read_files(files, move |files| {
                session.dispatch(Event::Open(Box::new(with_files(&session, files))))
            });
        }
    };
    let onfile = {
        let take = take.clone();
        move |event: web_sys::Event| {
            take(event.target_dyn_into::<HtmlInputElement>().and_then(|input| input.files()));
        }
    };
    let dropping = use_state(|| false);
    let ondragover = {
        let dropping = dropping.clone();
        move |event: DragEvent| {
            event.prevent_default();
            if !*dropping {
                dropping.set(true);
            }
        }
    };
    let ondragleave = {
        let dropping = dropping.clone();
        move |_| dropping.set(false)
    };
    let ondrop = {
        let dropping = dropping.clone();
        move |event: DragEvent| {
            dropping.set(false);
            let files = event.data_transfer().and_then(|data| data.files());
            // Dropped text is the textarea's own affair.
            if files.as_ref().is_some_and(|files| files.length() > 0) {
                event.prevent_default();
                take(files);
            }
        }
    };
    let load = |text: &'static str| {
        let session = session.clone();
        move |_| session.dispatch(Event::Open(Box::new(Hand::of(text))))
    };
    html! {
        <section class="panel script" aria-labelledby="script-title">
            <header>
                <h2 id="script-title">{ "Launch script" }</h2>
                <div class="tools">
                    <label class="button quiet file">{ icon(Sign::Open) }{ "Open" }
                        <input type="file" class="hidden" multiple=true onchange={onfile} />
                    </label>
                    if &**text != EXAMPLE {
                        <button type="button" class="button quiet" onclick={load(EXAMPLE)}>{ "Example" }</button>
                    }
                    if !text.is_empty() {
                        <button type="button" class="button quiet" onclick={load("")}>{ "Clear" }</button>
                    }
                </div>
            </header>
            <div class={classes!("editor", dropping.then_some("dropping"))} {ondragover} {ondragleave} {ondrop}>
                <pre class="gutter" ref={gutter} aria-hidden="true">{ &*numbers }</pre>
                <div class="sheet">
                    <pre class="marks" ref={sheet} aria-hidden="true">{ for pieces(text, found).iter().map(|piece| mark(text, piece)) }{ "\n" }</pre>
                    <textarea id="script" aria-labelledby="script-title" aria-describedby="diagnostics"
                        aria-invalid={if bad { "true" } else { "false" }} wrap="off" spellcheck="false"
                        autocapitalize="off" autocomplete="off" value={text.to_string()} {oninput} {onscroll}
                        placeholder="Paste the script that launches the training run" />
                </div>
            </div>
            { beside(session) }
            { diagnostics(&session.answer, &onplace) }
        </section>
    }
}

fn with_files(session: &Session, files: Vec<(String, String)>) -> Hand {
    let file = |(name, text): (String, String)| File { name, text: text.into() };
    session.hand.with_files(files.into_iter().map(file).collect())
}

/// The files that lie beside the script.
fn beside(session: &Session) -> Html {
    if session.hand.beside.is_empty() {
        return Html::default();
    }
    let file = |file: &File| {
        let (session, name) = (session.clone(), file.name.clone());
        let onclick = move |_| session.dispatch(Event::Open(Box::new(session.hand.without_file(&name))));
        html! {
            <li>{ &file.name }
                <button type="button" class="button quiet" aria-label={format!("Take {} away", file.name)} {onclick}>{ icon(Sign::Close) }</button>
            </li>
        }
    };
    html! { <ul class="beside" aria-label="Files beside the script">{ for session.hand.beside.iter().map(file) }</ul> }
}

/// Selects the place of `span` in the box and brings it into view.
pub(crate) fn show_place(session: &Session, span: Span) {
    let Some(area) = dom::script_box() else { return };
    let text = session.answer.source.text();
    let line = session.answer.source.position(span.start).line;
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    dom::select(
        &area,
        utf16_offset(text, span.start),
        utf16_offset(text, span.end),
        line,
        u32::try_from(lines).unwrap_or(u32::MAX),
    );
}

fn mark(text: &str, piece: &Piece) -> Html {
    let words = text.get(piece.bytes.clone()).unwrap_or_default().to_owned();
    match piece.severity {
        Some(severity) => html! { <mark class={severity.name()}>{ words }</mark> },
        None => html! { { words } },
    }
}

/// `1` to the number of lines, one a line.
fn line_numbers(lines: usize) -> String {
    let mut numbers = String::with_capacity(lines * 4);
    for line in 1..=lines {
        numbers.push_str(&line.to_string());
        numbers.push('\n');
    }
    numbers
}

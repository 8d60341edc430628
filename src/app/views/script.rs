//! The script box.

use web_sys::HtmlTextAreaElement;
use yew::prelude::*;

use crate::app::store::Session;
use shardscope::session::Event;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub session: Session,
}

#[component]
pub(crate) fn Script(props: &Props) -> Html {
    let session = &props.session;
    let sheet = use_node_ref();
    let gutter = use_node_ref();
    let onscroll = {
        let (sheet, gutter) = (sheet.clone(), gutter.clone());
        move |event: web_sys::Event| {
            let Some(area) = event.target_dyn_into::<HtmlTextAreaElement>() else { return };
            if let Some(sheet) = sheet.cast::<web_sys::Element>() {
                sheet.set_scroll_top(area.scroll_top());
                sheet.set_scroll_left(area.scroll_left());
            }
            if let Some(gutter) = gutter.cast::<web_sys::Element>() {
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
    html! {
        <section class="panel script" aria-labelledby="script-title">
            <header><h2 id="script-title">{ "Launch script" }</h2></header>
            <div class="editor">
                <pre class="gutter" ref={gutter} aria-hidden="true">{ line_numbers(&session.text) }</pre>
                <div class="sheet">
                    <pre class="marks" ref={sheet} aria-hidden="true">{ session.text.to_string() }</pre>
                    <textarea id="script" aria-labelledby="script-title" wrap="off" spellcheck="false" autocapitalize="off"
                        autocomplete="off" value={session.text.to_string()} {oninput} {onscroll}
                        placeholder="Paste the script that launches the training run" />
                </div>
            </div>
        </section>
    }
}

/// `1` to the number of lines, one a line.
fn line_numbers(text: &str) -> String {
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let mut numbers = String::with_capacity(lines * 4);
    for line in 1..=lines {
        numbers.push_str(&line.to_string());
        numbers.push('\n');
    }
    numbers
}

//! The user's own script with the changes written into it.

use shardscope::session::reader::{ReadReply, ReadTask};
use shardscope::session::{ChangedLine, UserInput};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{send, use_dispatch};
use crate::app::hooks::use_reply;
use crate::app::widgets::{CopyButton, Sign, icon};
use crate::app::words::{names, plural};

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub input: UserInput,
}

/// The changed lines, and the ways to apply them; empty while nothing is changed.
#[component(RewrittenScript)]
pub(super) fn rewritten_script(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let is_changed = !props.input.settings.is_empty() && !props.input.text.trim().is_empty();
    // Settings alone have no script, and an unchanged one no patch: the reader is not needed for either.
    let reply = use_reply(is_changed.then(|| ReadTask::rewritten(&props.input)));
    let Some(ReadReply::Rewritten(Some(changed))) = reply else { return html!() };
    let count = changed.lines.len();
    let text = changed.input.text.to_string();
    // Pasted texts have no name.
    let name = if changed.input.name.is_empty() { "train.sh".to_owned() } else { changed.input.name.clone() };
    let take = {
        let input = changed.input.clone();
        send(&dispatch, move || Action::Begin(Box::new(input.clone())))
    };
    let copied = {
        let text = text.clone();
        Callback::from(move |()| text.clone())
    };
    html! {
        <details class="reasons" open=true>
            <summary>{ format!("{count} {} to your script", plural(count as u64, "change", "changes")) }</summary>
            <ol class="rewritten mono">{ for changed.lines.iter().map(line) }</ol>
            if !changed.unplaced.is_empty() {
                <p class="soft small">
                    { format!("The script has no place for {}: kept as set here.", names(&changed.unplaced)) }
                </p>
            }
            // It may be that none of the changes found a place.
            if count > 0 {
                <div class="files">
                    <button type="button" class="button" onclick={take}>{ "Apply to script" }</button>
                    <CopyButton class="button" label="Copy patched script" text={copied} />
                    <button
                        type="button"
                        class="button"
                        onclick={move |_| browser::download(&name, "text/x-shellscript", &text)}
                    >
                        { icon(Sign::Download) }
                        { "Download" }
                    </button>
                </div>
            }
        </details>
    }
}

fn line(line: &ChangedLine) -> Html {
    let [before, changed, behind] = &line.parts;
    let place = match line.file.as_str() {
        "" => line.number.to_string(),
        file => format!("{file}:{}", line.number),
    };
    html! {
        <li>
            <span class="soft">{ place }</span>
            <code>{ before }<mark>{ changed }</mark>{ behind }</code>
        </li>
    }
}

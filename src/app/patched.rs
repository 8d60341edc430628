//! The user's script with changes written into it, to copy.

use shardscope::plan::Field;
use shardscope::session::UserInput;
use shardscope::session::reader::{ReadReply, ReadTask};
use yew::prelude::*;

use super::hooks::use_reply;
use super::widgets::CopyButton;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub input: UserInput,
    pub change: Vec<(Field, String)>,
}

/// The script with the change in it, to copy, if it has places for all of it.
#[component(PatchedScript)]
pub(crate) fn patched_script(Props { input, change }: &Props) -> Html {
    let has_script = !input.text.trim().is_empty();
    // Settings alone have no text to patch, so the reader is not needed.
    let reply = use_reply(has_script.then(|| ReadTask::patched(input, change)));
    // A script without a place for one of the changes is not offered at all.
    let Some(ReadReply::Patched(Some(text))) = reply else { return html!() };
    html! {
        <CopyButton class="button" label="Copy patched script" text={Callback::from(move |()| text.clone())} />
    }
}

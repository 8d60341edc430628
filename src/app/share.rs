//! The sheet for sharing a plan: links, copies, frames, files.

use shardscope::export::Exported;
use shardscope::link::MAX_LINK;
use shardscope::session::reader::{ReadReply, ReadTask};
use shardscope::session::{
    LONG_LINK, PtrEq, Shown, State, UserInput, frame, script_link, settings_link, title, verdict_markdown,
};
use shardscope::units::grouped;
use yew::prelude::*;

use super::action::Action;
use super::beside::LOST;
use super::context::{AppContext, use_dispatch};
use super::files::{FILES, Offered};
use super::hooks::use_reply;
use super::panel_id::PanelId;
use super::widgets::{Copyable, Dialog, Options, Sign, icon};
use super::words::names;
use super::{address, panels};

/// The view that is embedded unless another is chosen.
const VERDICT: &str = "verdict";
/// The colours of the user's system.
const SYSTEM: &str = "system";

#[component(Share)]
pub(crate) fn share() -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let is_lost = use_state_eq(|| false);
    let written = {
        let is_lost = is_lost.setter();
        Callback::from(move |given: bool| is_lost.set(!given))
    };
    let closed = move |()| dispatch.emit(Action::Share(false));
    let inside = match &app.session.shown {
        Some(shown) => ways(&app.session, shown, &written, *is_lost),
        None => html! { <p>{ "There is no plan to share yet." }</p> },
    };
    html! { <Dialog id="share" title="Share this plan" {closed}>{ inside }</Dialog> }
}

fn ways(state: &State, shown: &PtrEq<Shown>, written: &Callback<bool>, is_lost: bool) -> Html {
    let base = address::base();
    let fragment = settings_link(state);
    let by_settings = fragment.as_ref().map(|fragment| format!("{base}#{fragment}"));
    let by_script = format!("{base}#{}", script_link(state));
    // The shorter link, which carries less of the user's own text, if it can express the plan.
    let markdown = verdict_markdown(shown, by_settings.as_ref().unwrap_or(&by_script));
    let give = |file: &'static Offered| {
        let (shown, input, written) = (shown.clone(), state.input.clone(), written.clone());
        html! {
            <button type="button" class="button" onclick={move |_| file.give(&shown, &input, written.clone())}>
                { icon(Sign::Download) }
                { file.label }
            </button>
        }
    };
    html! {
        <>
            if state.pinned.is_some() {
                <p class="soft small">{ "Both links include the pinned plan." }</p>
            }
            { settings_part(by_settings) }
            // A link with the script only exists if there is a script.
            if !state.input.text.trim().is_empty() {
                { script_part(by_script, !state.input.own.files.is_empty()) }
            }
            <section aria-labelledby="share-copies">
                <h3 id="share-copies">{ "For another page" }</h3>
                <Copyable id="markdown" label="Copy Markdown" text={markdown} lines=4 />
                <Frame
                    {base}
                    fragment={fragment.unwrap_or_default()}
                    name={title(shown)}
                    pinned={state.pinned.is_some()}
                    of_map={address::of_map(state)}
                />
            </section>
            <section aria-labelledby="share-commands">
                <h3 id="share-commands">{ "The same plan as a command" }</h3>
                <Commands input={state.input.clone()} />
            </section>
            <section aria-labelledby="share-files">
                <h3 id="share-files">{ "Files" }</h3>
                <div class="files">{ for FILES.iter().map(give) }</div>
                if is_lost {
                    <p role="alert">{ LOST }</p>
                }
            </section>
        </>
    }
}

#[derive(Properties, PartialEq)]
struct FrameProps {
    base: String,
    fragment: String,
    name: String,
    pinned: bool,
    /// The query for the current view of the map.
    of_map: String,
}

/// A frame for another page, with the chosen view.
#[component(Frame)]
fn frame_of_view(props: &FrameProps) -> Html {
    let view = use_state_eq(|| VERDICT.to_owned());
    let theme = use_state_eq(|| SYSTEM.to_owned());
    let mut names = vec![AttrValue::Static(VERDICT)];
    // The same panels as on the page: a comparison needs a pinned plan.
    names.extend(panels::ids(props.pinned).map(|id| AttrValue::Static(id.name())));
    let mut address = format!("{}?embed={}", props.base, *view);
    if *theme != SYSTEM {
        address += &format!("&theme={}", *theme);
    }
    // Only the map has a view that an address can express.
    if *view == PanelId::Map.name() {
        address += &props.of_map;
    }
    address += &format!("#{}", props.fragment);
    let choice = |label: &'static str, names: Vec<AttrValue>, chosen: &UseStateHandle<String>| {
        let set = chosen.setter();
        html! {
            <label>
                { label }{ " " }
                <Options {names} chosen={(**chosen).clone()} onchange={move |name: String| set.set(name)} />
            </label>
        }
    };
    html! {
        <>
            <div class="view">
                { choice("View", names, &view) }
                { choice("Colors", [SYSTEM, "light", "dark"].map(AttrValue::Static).to_vec(), &theme) }
            </div>
            <Copyable id="frame" label="Copy frame" text={frame(&address, &props.name)} lines=3 />
            <p class="soft small">
                if *view == PanelId::Map.name() {
                    { "The map opens with the GPU and the colors that you have chosen on it. " }
                }
                { "The frame works on any page. The element shard-scope (embed.js) also fits its own height; the host of embed.js must send Access-Control-Allow-Origin, and GitHub Pages does." }
            </p>
        </>
    }
}

#[derive(Properties, PartialEq)]
struct CommandsProps {
    input: UserInput,
}

/// The plan written out for other software.
#[component(Commands)]
fn commands(props: &CommandsProps) -> Html {
    let reply = use_reply(Some(ReadTask::commands(&props.input)));
    let Some(ReadReply::Commands(written)) = reply else {
        return html! { <p class="soft small" role="status">{ "Writing…" }</p> };
    };
    let [megatron, bridge, deepspeed] = *written;
    html! {
        <>
            { exported("megatron", "Copy Megatron-LM command", megatron) }
            { exported("bridge", "Copy NeMo and Megatron-Bridge overrides", bridge) }
            { exported("deepspeed", "Copy DeepSpeed JSON", deepspeed) }
        </>
    }
}

/// A plan as written for other software, and what that cannot express.
fn exported(id: &'static str, label: &'static str, written: Exported) -> Html {
    html! {
        <>
            // Shown before the button, so that nobody unknowingly copies a different plan.
            if !written.unsaid.is_empty() {
                <p class="small" role="note">
                    { format!("Part of the plan only. Not expressible there: {}.", names(&written.unsaid)) }
                </p>
            }
            <Copyable {id} {label} text={written.text} lines=3 />
        </>
    }
}

fn length(link: &str) -> Html {
    let characters = link.chars().count();
    html! {
        <>
            { format!("{} characters.", grouped(characters as u64)) }
            if characters > LONG_LINK {
                <strong class="long">
                    { format!(" Longer than {}: some chat tools and trackers cut it.", grouped(LONG_LINK as u64)) }
                </strong>
            }
        </>
    }
}

fn settings_part(link: Option<String>) -> Html {
    let inside = match link {
        None => html! {
            <p class="soft small">
                { "This plan cannot be expressed by settings alone; the link with the script carries it." }
            </p>
        },
        Some(link) => {
            // A pinned plan follows the `!`; its settings are not counted.
            let own = link.split('!').next().unwrap_or_default();
            // Flags have no value.
            let count = own.split_once('?').map_or(0, |(_, settings)| settings.split('&').count());
            html! {
                <>
                    <p class="soft small">
                        { format!("Carries {count} settings and nothing else: no script, no paths, no names. Readable and editable by hand. ") }
                        { length(&link) }
                    </p>
                    <Copyable id="link" label="Copy link" text={link} lines=3 />
                </>
            }
        }
    };
    html! {
        <section aria-labelledby="share-settings">
            <h3 id="share-settings">{ "Link to the plan" }</h3>
            { inside }
        </section>
    }
}

fn script_part(link: String, has_files: bool) -> Html {
    html! {
        <section aria-labelledby="share-script">
            <h3 id="share-script">{ "Link with the script" }</h3>
            <p class="soft small">
                { "Carries everything in the box word for word, with any paths, host names and keys in it, to whoever has the link. No server sees it. " }
                { length(&link) }
                if has_files {
                    { " Files that your run's tools wrote, and their figures, are not in it." }
                }
            </p>
            // A longer one would be refused when opened.
            if link.len() > MAX_LINK {
                <p class="small">{ "The text is too long for a link." }</p>
            } else {
                <Copyable id="script-link" label="Copy link with the script" text={link} />
            }
        </section>
    }
}

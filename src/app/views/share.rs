//! The sheet from which a plan goes elsewhere: links, copies, files.

use shardscope::report::{communication_csv, memory_csv, settings_csv, text};
use shardscope::session::{
    Held, LONG_LINK, Shown, bars_svg, frame, map_svg, script_link, settings_link, title, verdict_markdown,
};
use shardscope::share::MAX_LINK;
use yew::prelude::*;

use crate::app::parts::{Copyable, Dialog, Sign, icon};
use crate::app::store::Session;
use crate::app::{address, dom};

/// What a file holds and how it is made.
type Make = fn(&Shown) -> String;

const FILES: [(&str, &str, &str, Make); 7] = [
    ("Report, JSON", "report.json", "application/json", Shown::json),
    ("Report, text", "report.txt", "text/plain", |shown| text::text(&shown.plan, &shown.report)),
    ("Report, Markdown", "report.md", "text/markdown", |shown| text::markdown(&shown.plan, &shown.report)),
    ("Memory, CSV", "memory.csv", "text/csv", |shown| memory_csv(&shown.report)),
    ("Communication, CSV", "communication.csv", "text/csv", |shown| communication_csv(&shown.report)),
    ("Settings, CSV", "settings.csv", "text/csv", |shown| settings_csv(&shown.answer.resolution.settings)),
    ("Memory bars, SVG", "memory.svg", "image/svg+xml", bars_svg),
];

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub session: Session,
    pub onclose: Callback<()>,
}

#[component]
pub(crate) fn Share(props: &Props) -> Html {
    let session = &props.session;
    let Some(shown) = &session.shown else {
        return html! {
            <Dialog id="share" title="Share this plan" onclose={props.onclose.clone()}>
                <p>{ "There is no plan to share yet." }</p>
            </Dialog>
        };
    };
    // Worked out once, when the sheet opens.
    let links = use_memo(session.revision, |_| Links::of(session));
    html! {
        <Dialog id="share" title="Share this plan" onclose={props.onclose.clone()}>
            if session.stale {
                <p class="stale">{ icon(Sign::Tight) }{ "The text as it is now makes no plan. The link and the files are of the last one that did." }</p>
            }
            if session.pinned.is_some() {
                <p class="soft small">{ "The pinned plan goes along in both links." }</p>
            }
            { settings(&links) }
            if !session.hand.text.trim().is_empty() { { script(&links) } }
            { copies(shown, &links) }
            { files(shown) }
        </Dialog>
    }
}

struct Links {
    settings: Option<String>,
    count: usize,
    script: String,
    embedded: String,
}

impl Links {
    fn of(session: &Session) -> Self {
        let base = address::base();
        let fragment = settings_link(session);
        let settings = fragment.as_ref().map(|fragment| format!("{base}#{fragment}"));
        Self {
            count: fragment
                .iter()
                .flat_map(|link| link.split('!').take(1))
                .map(|link| link.matches('=').count())
                .sum(),
            embedded: format!("{base}?embed=verdict#{}", fragment.unwrap_or_default()),
            script: format!("{base}#{}", script_link(session)),
            settings,
        }
    }
}

fn length(link: &str) -> Html {
    let characters = link.chars().count();
    html! {
        <>
            { format!("{characters} characters.") }
            if characters > LONG_LINK {
                <strong class="long">{ format!(" Longer than {LONG_LINK}: some chat tools and trackers cut it.") }</strong>
            }
        </>
    }
}

fn settings(links: &Links) -> Html {
    html! {
        <section aria-labelledby="share-settings">
            <h3 id="share-settings">{ "Link to the plan" }</h3>
            if let Some(link) = &links.settings {
                <p class="soft small">
                    { format!("Carries {} settings and nothing else: no script, no paths, no names. It can be read and edited by hand. ", links.count) }
                    { length(link) }
                </p>
                <Copyable id="link" label="Copy link" text={link.clone()} lines={3} />
            } else {
                <p class="soft small">{ "This plan cannot be said by settings alone; the link with the script carries it." }</p>
            }
        </section>
    }
}

fn script(links: &Links) -> Html {
    html! {
        <section aria-labelledby="share-script">
            <h3 id="share-script">{ "Link with the script" }</h3>
            <p class="soft small">
                { "Carries everything in the box word for word, with any paths, host names and keys in it, to whoever has the link. No server sees it. " }
                { length(&links.script) }
            </p>
            if links.script.len() > MAX_LINK {
                <p class="small">{ "The text is too long for a link." }</p>
            } else {
                <Copyable id="script-link" label="Copy link with the script" text={links.script.clone()} />
            }
        </section>
    }
}

fn copies(shown: &Shown, links: &Links) -> Html {
    let link = links.settings.as_ref().unwrap_or(&links.script);
    html! {
        <section aria-labelledby="share-copies">
            <h3 id="share-copies">{ "For another page" }</h3>
            <Copyable id="markdown" label="Copy Markdown" text={verdict_markdown(shown, link)} lines={4} />
            <Copyable id="frame" label="Copy frame" text={frame(&links.embedded, &title(shown))} lines={3} />
        </section>
    }
}

fn files(shown: &Held<Shown>) -> Html {
    let file = |&(label, name, kind, make): &(&'static str, &'static str, &'static str, Make)| {
        let shown = shown.clone();
        let onclick = move |_| dom::download(&format!("shardscope-{name}"), kind, &make(&shown));
        html! { <button type="button" class="button" {onclick}>{ icon(Sign::Download) }{ label }</button> }
    };
    let drawn = |label: &'static str, name: &'static str, make: Make| {
        let shown = shown.clone();
        let onclick = move |_| dom::download_png(&format!("shardscope-{name}"), &make(&shown));
        html! { <button type="button" class="button" {onclick}>{ icon(Sign::Download) }{ label }</button> }
    };
    let map = {
        let shown = shown.clone();
        move |_| dom::download("shardscope-map.svg", "image/svg+xml", &map_svg(&shown))
    };
    html! {
        <section aria-labelledby="share-files">
            <h3 id="share-files">{ "Files" }</h3>
            <div class="files">
                { for FILES.iter().map(file) }
                { drawn("Memory bars, PNG", "memory.png", bars_svg) }
                <button type="button" class="button" onclick={map}>{ icon(Sign::Download) }{ "Group map, SVG" }</button>
                { drawn("Group map, PNG", "map.png", map_svg) }
            </div>
        </section>
    }
}

//! The sheet from which a plan goes elsewhere: links, copies, files.

use shardscope::intake::export::{Exported, bridge_command, deepspeed_json, megatron_command};
use shardscope::session::{LONG_LINK, Shown, frame, script_link, settings_link, title, verdict_markdown};
use shardscope::share::MAX_LINK;

use super::sheet::dialog;
use crate::app::address;
use crate::app::desk::Desk;
use crate::app::files::FILES;
use crate::app::parts::{Sign, Tag, copyable, group, headed, tag};
use crate::app::words::{fill, numbered, share as words};

pub(crate) fn share(desk: &Desk) -> Tag {
    let inside = match &desk.state.shown {
        Some(shown) => ways(desk, shown),
        None => tag("p").text(words::NOTHING),
    };
    dialog(desk, "share", ("share-title", words::TITLE), inside)
}

fn ways(desk: &Desk, shown: &Shown) -> Tag {
    let state = &desk.state;
    let base = address::base();
    let fragment = settings_link(state);
    let settings = fragment.as_ref().map(|fragment| [&base, "#", fragment].concat());
    let script = [&base, "#", &script_link(state)].concat();
    let stale = state.stale.then(|| tag("p.stale").child(Sign::Tight.icon()).text(words::STALE));
    let pinned = state.pinned.is_some();
    let pinned = pinned.then(|| tag("p.soft small").text(words::PINNED));
    let has_script = !state.hand.text.trim().is_empty();
    let ways = group()
        .maybe(stale)
        .maybe(pinned)
        .child(by_settings(desk, settings.clone()))
        .maybe(has_script.then(|| by_script(desk, script.clone())));
    let markdown = verdict_markdown(shown, settings.as_ref().unwrap_or(&script));
    let embedded = [&base, "?embed=verdict#", &fragment.unwrap_or_default()].concat();
    let frame = frame(&embedded, &title(shown));
    let copies = part("share-copies", words::COPIES)
        .child(copyable(desk, "markdown", words::MARKDOWN, (markdown, 4)))
        .child(copyable(desk, "frame", words::FRAME, (frame, 3)));
    let resolution = &desk.state.answer.resolution;
    let commands = part("share-commands", words::COMMANDS)
        .child(exported(desk, "megatron", words::MEGATRON, megatron_command(resolution)))
        .child(exported(desk, "bridge", words::BRIDGE, bridge_command(resolution)))
        .child(exported(desk, "deepspeed", words::DEEPSPEED, deepspeed_json(resolution)));
    let mut files = tag("div.files");
    for (file, name) in FILES.iter().zip(words::FILE_NAMES) {
        files = files.child(file.button(desk, name));
    }
    ways.child(copies).child(commands).child(part("share-files", words::FILES).child(files))
}

/// A plan written out, and what that cannot say.
fn exported(desk: &Desk, id: &'static str, label: &'static str, written: Exported) -> Tag {
    let unsaid: Vec<&str> = written.unsaid.iter().map(|field| field.name()).collect();
    let lost =
        (!unsaid.is_empty()).then(|| tag("p.soft small").say(fill(words::UNSAID, [unsaid.join(", ")])));
    group().child(copyable(desk, id, label, (written.text, 3))).maybe(lost)
}

fn part(title_id: &'static str, title: &'static str) -> Tag {
    headed("section", title_id).child(tag("h3").set("id", title_id).text(title))
}

fn with_length(about: Tag, link: &str) -> Tag {
    let characters = link.chars().count();
    let about = about.say(numbered(words::LENGTH, &[characters as u64]));
    if characters > LONG_LINK {
        let long = numbered(words::LONG, &[LONG_LINK as u64]);
        return about.saying("strong.long", long);
    }
    about
}

fn by_settings(desk: &Desk, link: Option<String>) -> Tag {
    let part = part("share-settings", words::BY_SETTINGS);
    let Some(link) = link else {
        return part.with("p.soft small", words::NOT_BY_SETTINGS);
    };
    let own = link.split('!').next().unwrap_or_default();
    let count = own.matches('=').count();
    let about = numbered(words::ABOUT_SETTINGS, &[count as u64]);
    part.child(with_length(tag("p.soft small").say(about), &link)).child(copyable(
        desk,
        "link",
        words::COPY_LINK,
        (link, 3),
    ))
}

fn by_script(desk: &Desk, link: String) -> Tag {
    let about = tag("p.soft small").text(words::ABOUT_SCRIPT);
    let part = part("share-script", words::BY_SCRIPT).child(with_length(about, &link));
    if link.len() > MAX_LINK {
        return part.with("p.small", words::TOO_LONG);
    }
    part.child(copyable(desk, "script-link", words::COPY_SCRIPT_LINK, (link, 1)))
}

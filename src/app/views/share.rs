//! The sheet from which a plan goes elsewhere: links, copies, files.

use shardscope::intake::export::{Exported, bridge_command, deepspeed_json, megatron_command};
use shardscope::session::{LONG_LINK, Shown, frame, script_link, settings_link, title, verdict_markdown};
use shardscope::share::MAX_LINK;

use super::sheet::dialog;
use crate::app::address;
use crate::app::desk::Desk;
use crate::app::files::FILES;
use crate::app::parts::{Sign, Tag, copyable, group, headed, tag};

pub(crate) fn share(desk: &Desk) -> Tag {
    let inside = match &desk.state.shown {
        Some(shown) => ways(desk, shown),
        None => tag("p").text("There is no plan to share yet."),
    };
    dialog(desk, "share", ("share-title", "Share this plan"), inside)
}

fn ways(desk: &Desk, shown: &Shown) -> Tag {
    let state = &desk.state;
    let base = address::base();
    let fragment = settings_link(state);
    let settings = fragment.as_ref().map(|fragment| format!("{base}#{fragment}"));
    let script = format!("{base}#{}", script_link(state));
    let stale = state.stale.then(|| {
        tag("p.stale")
            .child(Sign::Tight.icon())
            .text("The text as it is now makes no plan. The link and the files are of the last one that did.")
    });
    let pinned = state.pinned.is_some();
    let pinned = pinned.then(|| tag("p.soft small").text("The pinned plan goes along in both links."));
    let has_script = !state.hand.text.trim().is_empty();
    let ways = group()
        .maybe(stale)
        .maybe(pinned)
        .child(by_settings(desk, settings.clone()))
        .maybe(has_script.then(|| by_script(desk, script.clone())));
    let markdown = verdict_markdown(shown, settings.as_ref().unwrap_or(&script));
    let embedded = format!("{base}?embed=verdict#{}", fragment.unwrap_or_default());
    let frame = frame(&embedded, &title(shown));
    let copies = part("share-copies", "For another page")
        .child(copyable(desk, "markdown", "Copy Markdown", (markdown, 4)))
        .child(copyable(desk, "frame", "Copy frame", (frame, 3)));
    let resolution = &desk.state.answer.resolution;
    let commands = part("share-commands", "The same plan as a command")
        .child(exported(desk, "megatron", "Copy Megatron-LM command", megatron_command(resolution)))
        .child(exported(
            desk,
            "bridge",
            "Copy NeMo and Megatron-Bridge overrides",
            bridge_command(resolution),
        ))
        .child(exported(desk, "deepspeed", "Copy DeepSpeed JSON", deepspeed_json(resolution)));
    let mut files = tag("div.files");
    for file in &FILES {
        files = files.child(file.button(desk));
    }
    ways.child(copies).child(commands).child(part("share-files", "Files").child(files))
}

/// A plan written out, and what that cannot say.
fn exported(desk: &Desk, id: &'static str, label: &'static str, written: Exported) -> Tag {
    let unsaid: Vec<&str> = written.unsaid.iter().map(|field| field.name()).collect();
    let lost = (!unsaid.is_empty())
        .then(|| tag("p.soft small").say(format!("It cannot say {}.", unsaid.join(", "))));
    group().child(copyable(desk, id, label, (written.text, 3))).maybe(lost)
}

fn part(title_id: &'static str, title: &'static str) -> Tag {
    headed("section", title_id).child(tag("h3").set("id", title_id).text(title))
}

fn with_length(about: Tag, link: &str) -> Tag {
    let characters = link.chars().count();
    let about = about.say(format!("{characters} characters."));
    if characters > LONG_LINK {
        let long = format!(" Longer than {LONG_LINK}: some chat tools and trackers cut it.");
        return about.saying("strong.long", long);
    }
    about
}

fn by_settings(desk: &Desk, link: Option<String>) -> Tag {
    let part = part("share-settings", "Link to the plan");
    let Some(link) = link else {
        return part.with(
            "p.soft small",
            "This plan cannot be said by settings alone; the link with the script carries it.",
        );
    };
    let own = link.split('!').next().unwrap_or_default();
    let count = own.matches('=').count();
    let about = format!(
        "Carries {count} settings and nothing else: no script, no paths, no names. It can be read and edited by hand. "
    );
    part.child(with_length(tag("p.soft small").say(about), &link)).child(copyable(
        desk,
        "link",
        "Copy link",
        (link, 3),
    ))
}

fn by_script(desk: &Desk, link: String) -> Tag {
    let about = tag("p.soft small").text("Carries everything in the box word for word, with any paths, host names and keys in it, to whoever has the link. No server sees it. ");
    let part = part("share-script", "Link with the script").child(with_length(about, &link));
    if link.len() > MAX_LINK {
        return part.with("p.small", "The text is too long for a link.");
    }
    part.child(copyable(desk, "script-link", "Copy link with the script", (link, 1)))
}

//! The script box: a textarea over a sheet with its underlines, and what there is to say below.

use shardscope::session::{EXAMPLE, Event, File, Hand, Piece, pieces};
use shardscope::text::Severity;

use super::diagnostics::diagnostics;
use super::take_tour;
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Sign, Tag, button, group, headed, tag};
use crate::app::words::{fill, script as words};

pub(crate) fn script(desk: &Desk) -> Tag {
    headed("section.panel script", "script-title")
        .child(tag("header").with("h2#script-title", words::TITLE).child(tools(desk)))
        .child(editor(desk))
        .child(beside(desk))
        .child(diagnostics(desk))
}

fn tools(desk: &Desk) -> Tag {
    let script = &*desk.state.hand.text;
    let load = |there: bool, script: &str, label: &'static str| {
        let open = Act::Do(Event::Open(Box::new(Hand::of(script))));
        if there { button(desk, "button.button quiet", open).text(label) } else { group() }
    };
    let field =
        tag("input.hidden").set("type", "file").flag("multiple", true).on(desk, "change", Act::Pickup);
    tag("div.tools")
        .child(tag("label.button quiet file").child(Sign::Open.icon()).text(words::OPEN).child(field))
        .child(if script == EXAMPLE { take_tour(desk, "button.button quiet", words::TOUR) } else { group() })
        .child(load(script != EXAMPLE, EXAMPLE, words::EXAMPLE))
        .child(load(!script.is_empty(), "", words::CLEAR))
}

fn editor(desk: &Desk) -> Tag {
    let state = &desk.state;
    let script = &*state.hand.text;
    // Underlines belong to the text that was answered; while the reader types ahead of it there are none.
    let answered = state.answer.source.part_text(0) == script;
    let found = if answered { state.answer.resolution.diagnostics.as_slice() } else { &[] };
    let bad = found.iter().any(|one| one.severity == Severity::Error);
    let gutter = tag("pre.gutter").set("aria-hidden", "true").say(line_numbers(script));
    let marks = tag("pre.marks")
        .set("aria-hidden", "true")
        .each(&pieces(script, found), |piece| mark(script, piece))
        .text("\n");
    let area = tag("textarea#script")
        .set("aria-labelledby", "script-title")
        .set("aria-describedby", "diagnostics")
        .says("aria-invalid", bad)
        .set("wrap", "off")
        .set("spellcheck", "false")
        .set("autocapitalize", "off")
        .set("autocomplete", "off")
        .attr("value", script.to_owned())
        .set("placeholder", words::EMPTY)
        .on(desk, "input", Act::Type)
        .on(desk, "scroll", Act::Scroll);
    tag(if desk.look.hovered { "div.editor dropping" } else { "div.editor" })
        .on(desk, "dragover", Act::Hover(true))
        .on(desk, "dragleave", Act::Hover(false))
        .on(desk, "drop", Act::Hover(false))
        .child(gutter)
        .child(tag("div.sheet").child(marks).child(area))
}

/// The files that lie beside the script.
fn beside(desk: &Desk) -> Tag {
    let hand = &desk.state.hand;
    if hand.beside.is_empty() {
        return group();
    }
    let file = |file: &File| {
        let without = Event::Open(Box::new(hand.without_file(&file.name)));
        let away = button(desk, "button.button quiet", Act::Do(without))
            .attr("aria-label", fill(words::TAKE_AWAY, [file.name.to_string()]))
            .child(Sign::Close.icon());
        tag("li").say(file.name.clone()).child(away)
    };
    tag("ul.beside").set("aria-label", words::BESIDE).each(&hand.beside, file)
}

fn mark(script: &str, piece: &Piece) -> Tag {
    let text = script.get(piece.bytes.clone()).unwrap_or_default().to_owned();
    match piece.severity {
        Some(severity) => tag("mark").set("class", severity.name()).say(text),
        None => group().say(text),
    }
}

/// `1` to the number of lines of `script`, one a line.
fn line_numbers(script: &str) -> String {
    let lines = script.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let mut numbers = String::with_capacity(lines * 4);
    for line in 1..=lines {
        numbers.push_str(&line.to_string());
        numbers.push('\n');
    }
    numbers
}

//! What there is to say about the text, each line leading to its place.

use shardscope::session::{Answer, Hand};
use shardscope::text::{Diagnostic, Severity};

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Sign, Tag, button, details, tag};
use crate::app::words::{diagnostics as words, numbered};

/// The lines below the box.
pub(crate) fn diagnostics(desk: &Desk) -> Tag {
    let answer = &*desk.state.answer;
    let (mut grave, mut notes, mut count) = (list(), list(), 0_u64);
    for found in &answer.resolution.diagnostics {
        let line = line(desk, answer, found);
        if found.severity == Severity::Note {
            notes = notes.child(line);
            count += 1;
        } else {
            grave = grave.child(line);
        }
    }
    let status = tag("div").set("role", "status");
    let status = if desk.look.reading {
        status.with("p.clean", words::READING)
    } else if desk.state.hand == Hand::of("") {
        status.with("p.clean", words::EMPTY)
    } else if !grave.is_empty() {
        status.child(grave)
    } else if answer.source.text().trim().is_empty() {
        status.with("p.clean", words::NONE_NEEDED)
    } else {
        status.with("p.clean", words::CLEAN)
    };
    let notes = (count > 0).then(|| {
        let summary = tag("summary").say(numbered(words::notes(count), &[count]));
        details("details", false, summary).child(notes)
    });
    tag("div.diagnostics#diagnostics").child(status).maybe(notes)
}

/// A list, which scrolls when it is long and is then reachable by keyboard.
fn list() -> Tag {
    tag("ul").set("tabindex", "0")
}

fn line(desk: &Desk, answer: &Answer, found: &Diagnostic) -> Tag {
    let (class, sign, spoken) = match found.severity {
        Severity::Error => ("diagnostic error", Sign::Bad, words::SPOKEN[0]),
        Severity::Warning => ("diagnostic warning", Sign::Tight, words::SPOKEN[1]),
        Severity::Note => ("diagnostic note", Sign::Note, words::SPOKEN[2]),
    };
    let mut said = tag("span.text").with("span.hidden", spoken).say(sentence(&found.message));
    if let Some(hint) = &found.hint {
        said = said.saying("span.hint", sentence(hint));
    }
    let line = match found.span {
        Some(span) => button(desk, "button", Act::Show(span)),
        None => tag("div"),
    };
    let mut line = line.set("class", class).child(tag("span.sign").child(sign.icon())).child(said);
    if let Some(span) = found.span {
        let place = answer.source.position(span.start);
        let place = numbered("{0}:{1}", &[place.line.into(), place.column.into()]);
        line = line.child(tag("span.place").with("span.hidden", words::AT).say(place));
    }
    tag("li").child(line)
}

/// The message with a capital at its head, unless it begins with a name.
pub(crate) fn sentence(message: &str) -> String {
    let mut text = message.to_owned();
    let first = message.split(' ').next().unwrap_or_default();
    if first.bytes().all(|byte| byte.is_ascii_lowercase())
        && let Some(head) = text.get_mut(..1)
    {
        head.make_ascii_uppercase();
    }
    text
}

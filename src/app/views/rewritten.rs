//! The reader's own script with the changes written into it.

use shardscope::session::{Line, Rewritten, rewritten};

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, button, details, group, tag};
use crate::app::words::{fill, numbered, rewritten as words};

/// The changed lines, and the way to take them over; nothing while nothing is changed.
pub(crate) fn rewritten_script(desk: &Desk) -> Option<Tag> {
    let changed = rewritten(&desk.state.hand)?;
    let count = changed.lines.len() as u64;
    let summary = tag("summary").say(numbered(words::title(count), &[count]));
    let lines = tag("ol.rewritten mono").each(&changed.lines, line);
    let take = (count > 0).then(|| {
        let hand = Box::new(changed.hand.clone());
        button(desk, "button.button", Act::Begin(hand)).text(words::TAKE)
    });
    Some(details("details.reasons", true, summary).child(lines).child(unplaced(&changed)).maybe(take))
}

fn line(line: &Line) -> Tag {
    let [before, changed, behind] = &line.parts;
    let place = match line.file.as_str() {
        "" => line.number.to_string(),
        file => [file, ":", &line.number.to_string()].concat(),
    };
    tag("li")
        .saying("span.soft", place)
        .child(tag("code").say(before.clone()).saying("mark", changed.clone()).say(behind.clone()))
}

fn unplaced(changed: &Rewritten) -> Tag {
    if changed.unplaced.is_empty() {
        return group();
    }
    let names = changed.unplaced.join(", ");
    tag("p.soft small").say(fill(words::UNPLACED, [names]))
}

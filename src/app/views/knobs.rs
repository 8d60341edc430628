//! The settings that are tried most, one step up or down.

use shardscope::plan::{Field, Plan};
use shardscope::session::Event;
use shardscope::session::knobs::{Knob, RECOMPUTE, knobs, recompute_of};

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, choose, named, options, tag};
use crate::app::words::{fill, knobs as words};

/// The row of knobs.
pub(crate) fn knob_row(desk: &Desk, plan: &Plan) -> Tag {
    let list = choose().set("aria-label", words::RECOMPUTE).on(desk, "change", Act::Recompute);
    let recompute = tag("span.knob").child(named(desk, words::RECOMPUTE)).child(options(
        list,
        &mut RECOMPUTE.into_iter(),
        recompute_of(plan),
    ));
    tag("div.knobs")
        .set("role", "group")
        .set("aria-label", words::NAME)
        .each(&knobs(plan), |one| knob(desk, one))
        .child(recompute)
}

fn knob(desk: &Desk, knob: &Knob) -> Tag {
    let turns = tag("span.turn")
        .child(turn(desk, knob.field, knob.less, ("−", words::LESS)))
        .saying("output", knob.value.to_string())
        .child(turn(desk, knob.field, knob.more, ("+", words::MORE)));
    tag("span.knob").child(named(desk, knob.short)).child(turns)
}

fn turn(desk: &Desk, field: Field, to: Option<u64>, (sign, word): (&'static str, &'static str)) -> Tag {
    let button = tag("button")
        .set("type", "button")
        .flag("disabled", to.is_none())
        .attr("aria-label", fill(word, [field.about().to_owned()]))
        .text(sign);
    match to {
        Some(to) => {
            let set = Event::Set { name: field.name().to_owned(), value: to.to_string() };
            button.press(desk, Act::Do(set))
        }
        None => button,
    }
}

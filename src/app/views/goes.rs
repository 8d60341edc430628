//! Where a step goes: its parts, the longest first, as one bar.

use shardscope::estimate::time::Time;
use shardscope::quantity::{decimal, percent};
use shardscope::session::{StepPart, step_parts};

use crate::app::desk::Desk;
use crate::app::parts::{Tag, named, swatch, tag, text};
use crate::app::words::verdict as words;

pub(crate) fn goes(desk: &Desk, time: &Time) -> Tag {
    let parts = step_parts(time);
    let piece = |part: &StepPart| {
        let at = |share: f64| decimal(share * 100.0, 3) + "%";
        tag("rect").attr("x", at(part.from)).attr("width", at(part.share)).set("height", "100%")
    };
    let bar = tag("svg.bar").set("aria-hidden", "true").each(&parts, piece);
    let entry = |part: &StepPart| {
        let sample = tag("rect").set("width", "14").set("height", "14").set("rx", "3");
        let name = match part.label.as_str() {
            // Not what the optimizer keeps, which the term tells of.
            "optimizer" => text(part.label.clone()),
            label => named(desk, label),
        };
        let told = tag("span").child(name).text(" ").say(percent(part.share));
        tag("li").child(swatch().child(sample)).child(told)
    };
    tag("figure.goes")
        .child(tag("figcaption").told(desk, words::GOES))
        .child(bar)
        .child(tag("ul.legend").each(&parts, entry))
}

//! Where a step goes: its parts, the longest first, as one bar.

use shardscope::estimate::time::Time;
use shardscope::explain::Breakdown;
use shardscope::quantity::{Quantity, Seconds, decimal, percent};

use crate::app::desk::Desk;
use crate::app::parts::{Tag, named, swatch, tag, text};
use crate::app::words::verdict as words;

/// Parts below this share of the step are left to the tree of the time panel.
const LEAST_SHARE: f64 = 0.0005;

pub(crate) fn goes(desk: &Desk, time: &Time) -> Tag {
    let whole = time.step.number().max(f64::MIN_POSITIVE);
    let share = |part: &&Breakdown<Seconds>| part.value().number() / whole;
    let mut parts: Vec<&Breakdown<Seconds>> = Vec::new();
    for part in time.breakdown.children() {
        if share(&part) >= LEAST_SHARE {
            let shorter = parts.iter().position(|other| share(other) < share(&part));
            parts.insert(shorter.unwrap_or(parts.len()), part);
        }
    }
    let mut from = 0.0;
    let piece = |part: &&Breakdown<Seconds>| {
        let (x, width) = (from, share(part));
        from += width;
        let at = |share: f64| decimal(share * 100.0, 3) + "%";
        tag("rect").attr("x", at(x)).attr("width", at(width)).set("height", "100%")
    };
    let bar = tag("svg.bar").set("aria-hidden", "true").each(&parts, piece);
    let entry = |part: &&Breakdown<Seconds>| {
        let sample = tag("rect").set("width", "14").set("height", "14").set("rx", "3");
        let name = match part.label() {
            // Not what the optimizer keeps, which the term tells of.
            label @ "optimizer" => text(label.to_owned()),
            label => named(desk, label),
        };
        let told = tag("span").child(name).text(" ").say(percent(share(part)));
        tag("li").child(swatch().child(sample)).child(told)
    };
    tag("figure.goes")
        .child(tag("figcaption").told(desk, words::GOES))
        .child(bar)
        .child(tag("ul.legend").each(&parts, entry))
}

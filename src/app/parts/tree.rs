//! A breakdown that opens: each number shows its formula, the symbols with their values, and its source.

use shardscope::quantity::decimal;
use shardscope::session::{Branch, Reason};

use super::{Tag, details, tag};
use crate::app::words::{self, numbered};

/// The tree of `root` with its first `open` levels open.
pub(crate) fn tree(root: &Branch, open: u32) -> Tag {
    tag("div.tree").child(node(root, open))
}

fn node(branch: &Branch, open: u32) -> Tag {
    let many = branch.times > 1;
    let bare = branch.parts.is_empty() && branch.reason.is_none();
    let times = many.then(|| tag("span.times").say(numbered(words::tree::TIMES, &[branch.times])));
    let label = tag("span.tree-label").say(branch.label.clone()).maybe(times);
    let share = decimal(branch.share * 100.0, 2) + "%";
    let head = tag(if bare { "div.tree-node bare" } else { "summary" })
        .child(label)
        .child(
            tag("svg.tree-share")
                .set("aria-hidden", "true")
                .set("preserveAspectRatio", "none")
                .child(tag("rect").attr("width", share).set("height", "100%")),
        )
        .saying("span.tree-value", branch.value.clone());
    if bare {
        return head;
    }
    let equal = many && !branch.parts.is_empty();
    let equal = equal.then(|| numbered(words::tree::EQUAL, &[branch.times]));
    let greatest = branch.greatest.then(|| tag("p.soft small").text(words::tree::GREATEST));
    let inside = tag("div.tree-inside")
        .maybe(branch.reason.as_ref().map(explain))
        .maybe(equal.map(|equal| tag("p.soft small").say(equal)))
        .maybe(greatest)
        .each(&branch.parts, |part| node(part, open.saturating_sub(1)));
    details("details.tree-node", open > 0, head).child(inside)
}

/// A formula with its symbols and source.
fn explain(reason: &Reason) -> Tag {
    let told = tag("div.reason").with("p.formula mono", reason.expression).with("p", reason.meaning);
    let symbol =
        |(name, value): &(&'static str, String)| tag("div").with("dt.mono", name).saying("dd", value.clone());
    let symbols = (!reason.symbols.is_empty()).then(|| tag("dl.symbols").each(&reason.symbols, symbol));
    told.maybe(symbols).with("p.source", reason.source)
}

//! The layers of the whole model beside what one GPU holds of each.

use shardscope::session::{LayerFigures, LayerLine, Shown, layer_line};

use crate::app::desk::Desk;
use crate::app::parts::{Tag, details, group, section, tag, wide};
use crate::app::words::{digits, fill, layers as words};

/// Names by how deep they stand; the style sheet knows no deeper ones.
const DEPTHS: [&str; 5] = [
    "span.layer-name depth-0",
    "span.layer-name depth-1",
    "span.layer-name depth-2",
    "span.layer-name depth-3",
    "span.layer-name depth-4",
];

pub(crate) fn layers(desk: &Desk, shown: &Shown) -> Tag {
    let root = layer_line(&shown.report.memory.layers);
    let above = tag("div.layer head")
        .set("aria-hidden", "true")
        .child(tag("span"))
        .with("span.span", words::WHOLE)
        .with("span.span", words::ONE_GPU);
    let heads = tag("div.layer head")
        .with("span", words::PART)
        .each(&words::FIGURES, |name| tag("span.number").text(name));
    let tree = tag("div.layers").child(above).child(heads).child(line(&root, 0));
    section(desk, "section.panel#layers", "layers-title", &words::PANEL).child(wide(words::TABLE, tree))
}

fn line(of: &LayerLine, depth: usize) -> Tag {
    let name = if of.times > 1 {
        fill(words::TIMES, [of.name.to_owned(), digits(of.times)])
    } else {
        of.name.to_owned()
    };
    let class = DEPTHS[depth.min(DEPTHS.len() - 1)];
    let whole = of.parts.is_empty();
    let row = tag(if whole { "div.layer" } else { "summary.layer" })
        .saying(class, name)
        .child(figures(&of.whole))
        .child(figures(&of.sharded));
    if whole {
        return row;
    }
    details("details", depth < 1, row).each(&of.parts, |part| line(part, depth + 1))
}

fn figures(of: &LayerFigures) -> Tag {
    let weights = tag("span.number")
        .attr("title", fill(words::PARAMETERS, [of.parameters.clone()]))
        .say(of.weights.clone());
    group()
        .saying("span.number mono shape", of.shape.clone())
        .child(weights)
        .saying("span.number", of.kept.clone())
}

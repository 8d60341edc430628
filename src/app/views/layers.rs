//! The layers of the whole model beside what one GPU holds of each.

use shardscope::session::{LayerFigures, LayerLine, Shown, layer_line};

use crate::app::desk::Desk;
use crate::app::parts::{Tag, details, group, section, tag, wide};

/// Above the figures of the whole model, and again above those of one GPU.
const FIGURES: [&str; 6] = ["shape", "weights", "kept", "shape", "weights", "kept"];
/// Names by how deep they stand; the style sheet knows no deeper ones.
const DEPTHS: [&str; 5] = [
    "span.layer-name depth-0",
    "span.layer-name depth-1",
    "span.layer-name depth-2",
    "span.layer-name depth-3",
    "span.layer-name depth-4",
];

pub(crate) fn layers(_: &Desk, shown: &Shown) -> Tag {
    let root = layer_line(&shown.report.memory.layers);
    let above = tag("div.layer head")
        .set("aria-hidden", "true")
        .child(tag("span"))
        .with("span.span", "whole model")
        .with("span.span", "one GPU");
    let heads =
        tag("div.layer head").with("span", "Part").each(&FIGURES, |name| tag("span.number").text(name));
    let tree = tag("div.layers").child(above).child(heads).child(line(&root, 0));
    let about = "The whole model beside one GPU that holds the part: weights, and what is kept of one micro-batch for the backward pass.";
    section("section.panel#layers", "layers-title", "Layers", about)
        .child(wide("Table of the layers".to_owned(), tree))
}

fn line(of: &LayerLine, depth: usize) -> Tag {
    let name = if of.times > 1 { format!("{} × {}", of.name, of.times) } else { of.name.to_owned() };
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
    let weights =
        tag("span.number").attr("title", format!("{} parameters", of.parameters)).say(of.weights.clone());
    group()
        .saying("span.number mono shape", of.shape.clone())
        .child(weights)
        .saying("span.number", of.kept.clone())
}

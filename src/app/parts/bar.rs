//! A stacked bar. Its pieces are named in the table beside it; colour and pattern tell them apart.

use super::{Tag, tag};
use shardscope::session::Use;

/// One piece.
pub(crate) struct Piece {
    pub kind: Use,
    /// Share of the whole width of the bar, 0 to 1.
    pub share: f64,
    /// What a pointer resting on it is told.
    pub title: String,
}

/// The bar; `limit` is where the limit lies, as a share of the width.
pub(crate) fn bar(pieces: &[Piece], limit: f64) -> Tag {
    let mut from = 0.0;
    let piece = |piece: &Piece| {
        let (x, width) = (percent(from), percent(piece.share));
        from += piece.share;
        let place = |rect: Tag| rect.attr("x", x.clone()).attr("width", width.clone()).set("height", "100%");
        let drawn = tag("g")
            .child(tag("title").say(piece.title.clone()))
            .child(place(tag("rect").set("class", piece.kind.name())));
        match pattern(piece.kind) {
            Some(pattern) => drawn.child(place(tag("rect").set("fill", pattern))),
            None => drawn,
        }
    };
    let limit = percent(limit);
    let line = tag("line.limit").attr("x1", limit.clone()).attr("x2", limit).set("y1", "0").set("y2", "100%");
    tag("svg.bar").set("aria-hidden", "true").each(pieces, piece).child(line)
}

fn percent(share: f64) -> String {
    shardscope::quantity::decimal(share * 100.0, 3) + "%"
}

/// Its pattern, drawn by `index.html`.
const fn pattern(kind: Use) -> Option<&'static str> {
    match kind {
        Use::Parameters | Use::Activations => None,
        Use::Gradients => Some("url(#falling)"),
        Use::Optimizer => Some("url(#dots)"),
        Use::Temporaries => Some("url(#rising)"),
        Use::Framework => Some("url(#crossed)"),
    }
}

/// A sample of a kind's colour and pattern, with its name.
pub(crate) fn key(kind: Use) -> Tag {
    let sample = |rect: Tag| rect.set("width", "14").set("height", "14").set("rx", "3");
    let drawn = swatch().child(sample(tag("rect").set("class", kind.name())));
    match pattern(kind) {
        Some(pattern) => drawn.child(sample(tag("rect").set("fill", pattern))),
        None => drawn,
    }
}

/// Room for a sample in a legend.
pub(crate) fn swatch() -> Tag {
    tag("svg.key").set("width", "14").set("height", "14").set("aria-hidden", "true")
}

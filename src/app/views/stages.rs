//! A stacked bar for each stage against what the accelerator holds.

use shardscope::quantity::{Bytes, Quantity, gib};
use shardscope::session::{StageMemory, Use};

use crate::app::desk::Desk;
use crate::app::parts::{Piece, Tag, bar, group, key, named, swatch, tag};
use crate::app::words::{fill, numbered, verdict as words};

/// Most stages that get a bar of their own; the table has all.
const MOST_BARS: usize = 16;

/// The bars of `stages` with their legend.
pub(crate) fn stage_bars(desk: &Desk, stages: &[StageMemory], capacity: Bytes) -> Tag {
    let most = stages.iter().map(|stage| stage.reserved).max().unwrap_or_default().max(capacity);
    let whole = most.number().max(1.0);
    let limit = capacity.number() / whole;
    let shown = stages.get(..MOST_BARS).unwrap_or(stages);
    let sample = tag("line.limit").counts(&["x1", "x2", "y1", "y2"], &[7, 7, 0, 14]);
    let on_device = tag("li").child(swatch().child(sample)).say(fill(words::CAPACITY, [gib(capacity)]));
    let legend = tag("ul.legend")
        .each(&Use::ALL, |kind| tag("li").child(key(*kind)).child(named(desk, kind.name())))
        .child(on_device);
    let more = (shown.len() < stages.len()).then(|| {
        tag("p.soft small").say(numbered(words::FIRST_STAGES, &[MOST_BARS as u64, stages.len() as u64]))
    });
    tag("figure.stage-bars")
        .child(legend)
        .child(tag("div.stage-rows").each(shown, |stage| row(stage, whole, limit)))
        .maybe(more)
}

fn row(stage: &StageMemory, whole: f64, limit: f64) -> Tag {
    let mut pieces = Vec::new();
    for (kind, bytes) in Use::ALL.into_iter().zip(stage.uses) {
        let title = fill(words::PIECE, [kind.name().to_owned(), gib(bytes)]);
        pieces.push(Piece { kind, share: bytes.number() / whole, title });
    }
    group()
        .saying("span.stage-name", numbered(words::STAGE, &[stage.stage]))
        .child(bar(&pieces, limit))
        .child(
            tag("span")
                .attr("class", fill("stage-value {0}", [stage.fit.class().to_owned()]))
                .say(gib(stage.reserved)),
        )
}

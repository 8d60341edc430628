//! A stacked bar for each stage against what the accelerator holds.

use shardscope::quantity::{Bytes, Quantity, gib};
use shardscope::session::{StageMemory, Use};
use yew::prelude::*;

use crate::app::parts::{Piece, bar, key};

/// Most stages that get a bar of their own; the table has all.
const MOST_BARS: usize = 16;

/// The bars of `stages` with their legend.
pub(crate) fn stage_bars(stages: &[StageMemory], capacity: Bytes) -> Html {
    let most = stages.iter().map(|stage| stage.reserved).max().unwrap_or_default().max(capacity);
    let whole = most.number().max(1.0);
    let limit = capacity.number() / whole;
    let shown = stages.len().min(MOST_BARS);
    html! {
        <figure class="stage-bars">
            <ul class="legend">
                { for Use::ALL.iter().map(|kind| html! { <li>{ key(*kind) }{ kind.name() }</li> }) }
                <li><svg class="key" width="14" height="14" aria-hidden="true"><line class="limit" x1="7" x2="7" y1="0" y2="14" /></svg>
                    { format!("{} on the device", gib(capacity)) }</li>
            </ul>
            <div class="stage-rows">{ for stages.iter().take(shown).map(|stage| row(stage, whole, limit)) }</div>
            if shown < stages.len() {
                <p class="soft small">{ format!("The first {shown} of {} stages; the table below has all of them.", stages.len()) }</p>
            }
        </figure>
    }
}

fn row(stage: &StageMemory, whole: f64, limit: f64) -> Html {
    let piece = |(kind, bytes): (&Use, &Bytes)| Piece {
        kind: *kind,
        share: bytes.number() / whole,
        title: format!("{}: {}", kind.name(), gib(*bytes)),
    };
    let pieces: Vec<Piece> = Use::ALL.iter().zip(&stage.uses).map(piece).collect();
    html! {
        <>
            <span class="stage-name">{ format!("Stage {}", stage.stage) }</span>
            { bar(&pieces, limit) }
            <span class={classes!("stage-value", stage.fit.class())}>{ gib(stage.reserved) }</span>
        </>
    }
}

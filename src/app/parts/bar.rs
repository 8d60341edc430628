//! A stacked bar. Its pieces are named in the table beside it; colour and pattern tell them apart.

use shardscope::session::Use;
use yew::prelude::*;

/// One piece.
pub(crate) struct Piece {
    pub kind: Use,
    /// Share of the whole width of the bar, 0 to 1.
    pub share: f64,
    /// What a pointer resting on it is told.
    pub title: String,
}

/// The bar; `limit` is where the limit lies, as a share of the width.
pub(crate) fn bar(pieces: &[Piece], limit: f64) -> Html {
    let mut from = 0.0;
    let piece = |piece: &Piece| {
        let (x, width) = (percent(from), percent(piece.share));
        from += piece.share;
        html! {
            <g>
                <title>{ &piece.title }</title>
                <rect class={piece.kind.name()} x={x.clone()} width={width.clone()} height="100%" />
                if let Some(pattern) = pattern(piece.kind) {
                    <rect {x} {width} height="100%" fill={pattern} />
                }
            </g>
        }
    };
    html! {
        <svg class="bar" aria-hidden="true">
            { for pieces.iter().map(piece) }
            <line class="limit" x1={percent(limit)} x2={percent(limit)} y1="0" y2="100%" />
        </svg>
    }
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
pub(crate) fn key(kind: Use) -> Html {
    html! {
        <svg class="key" width="14" height="14" aria-hidden="true">
            <rect class={kind.name()} width="14" height="14" rx="3" />
            if let Some(pattern) = pattern(kind) { <rect width="14" height="14" rx="3" fill={pattern} /> }
        </svg>
    }
}

//! A stacked bar. Its pieces are named in the table beside it; colour and pattern tell them apart.

use shardscope::session::Use;
use yew::prelude::*;

/// One piece.
#[derive(Clone, PartialEq)]
pub(crate) struct Piece {
    pub kind: Use,
    /// Share of the whole width of the bar, 0 to 1.
    pub share: f64,
    /// What a pointer resting on it is told.
    pub title: AttrValue,
}

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub pieces: Vec<Piece>,
    /// Where the limit lies, as a share of the width.
    #[prop_or_default]
    pub limit: Option<f64>,
}

#[component]
pub(crate) fn Bar(props: &Props) -> Html {
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
            { for props.pieces.iter().map(piece) }
            if let Some(limit) = props.limit {
                <line class="limit" x1={percent(limit)} x2={percent(limit)} y1="0" y2="100%" />
            }
        </svg>
    }
}

fn percent(share: f64) -> String {
    format!("{:.3}%", share * 100.0)
}

const fn pattern(kind: Use) -> Option<&'static str> {
    match kind {
        Use::Parameters | Use::Activations => None,
        Use::Gradients => Some("url(#falling)"),
        Use::Optimizer => Some("url(#dots)"),
        Use::Temporaries => Some("url(#rising)"),
        Use::Framework => Some("url(#crossed)"),
    }
}

/// The patterns that bars refer to; once on the page.
#[component]
pub(crate) fn Patterns() -> Html {
    html! {
        <svg width="0" height="0" class="hidden" aria-hidden="true">
            <defs>
                <pattern id="falling" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0v7" class="ink-line" /></pattern>
                <pattern id="rising" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><path d="M0 0v7" class="ink-line" /></pattern>
                <pattern id="dots" width="7" height="7" patternUnits="userSpaceOnUse"><circle cx="2" cy="2" r="1" class="ink-dot" /></pattern>
                <pattern id="crossed" width="7" height="7" patternUnits="userSpaceOnUse"><path d="M0 0l7 7M7 0l-7 7" class="ink-line" /></pattern>
            </defs>
        </svg>
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

//! A stage's memory as a stacked bar. Its pieces are named in the legend; colour and pattern distinguish them.

use shardscope::session::Use;
use shardscope::units::{Bytes, Quantity, decimal, gib};
use yew::prelude::*;

/// The bar: the bytes of each use in the order of [`Use::ALL`], what its width represents, and the accelerator's
/// capacity.
pub(crate) fn memory_bar(uses: [Bytes; 6], whole: Bytes, capacity: Bytes) -> Html {
    let whole = whole.number().max(1.0);
    let at = |bytes: f64| decimal(bytes / whole * 100.0, 3) + "%";
    let mut from = 0.0;
    let pieces = Use::ALL.into_iter().zip(uses).map(|(kind, bytes)| {
        let (x, width) = (at(from), at(bytes.number()));
        from += bytes.number();
        let place = |class: Option<&'static str>, fill: Option<&'static str>| {
            html! { <rect x={x.clone()} width={width.clone()} height="100%" {class} {fill} /> }
        };
        html! {
            // The pattern lies over the colour, so both are drawn.
            <g>
                <title>{ format!("{}: {}", kind.name(), gib(bytes)) }</title>
                { place(Some(kind.name()), None) }
                { pattern(kind).map(|pattern| place(None, Some(pattern))) }
            </g>
        }
    });
    let limit = at(capacity.number());
    html! {
        <svg class="bar" aria-hidden="true">
            { for pieces }
            <line class="limit" x1={limit.clone()} x2={limit} y1="0" y2="100%" />
        </svg>
    }
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

/// A sample of a use of memory in a legend, with its pattern.
pub(crate) fn swatch_of(kind: Use) -> Html {
    sample(classes!(kind.name()), pattern(kind))
}

/// A sample of the colour of a class in a legend.
pub(crate) fn swatch(class: impl Into<Classes>) -> Html {
    sample(class.into(), None)
}

fn sample(class: Classes, pattern: Option<&'static str>) -> Html {
    let square = |class: Classes, fill: Option<&'static str>| {
        html! { <rect {class} width="12" height="12" rx="3" {fill} /> }
    };
    html! {
        <svg class="key" width="12" height="12" aria-hidden="true">
            { square(class, None) }
            { pattern.map(|pattern| square(Classes::new(), Some(pattern))) }
        </svg>
    }
}

//! A stage's memory as a stacked bar. Its pieces are named in the legend; colour and pattern tell them apart.

use shardscope::session::Use;
use shardscope::units::{Bytes, Quantity, decimal, gib};
use yew::prelude::*;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    /// The bytes of each use, in the order of [`Use::ALL`].
    pub uses: [Bytes; 6],
    /// What the width of the bar stands for.
    pub whole: Bytes,
    /// What the accelerator holds.
    pub capacity: Bytes,
}

/// The bar.
#[component(MemoryBar)]
pub(crate) fn memory_bar(props: &Props) -> Html {
    let whole = props.whole.number().max(1.0);
    let at = |bytes: f64| decimal(bytes / whole * 100.0, 3) + "%";
    let mut from = 0.0;
    let pieces = Use::ALL.into_iter().zip(props.uses).map(|(kind, bytes)| {
        let (x, width) = (at(from), at(bytes.number()));
        from += bytes.number();
        let place = |class: Option<&'static str>, fill: Option<&'static str>| {
            html! { <rect x={x.clone()} width={width.clone()} height="100%" {class} {fill} /> }
        };
        html! {
            <g>
                <title>{ format!("{}: {}", kind.name(), gib(bytes)) }</title>
                { place(Some(kind.name()), None) }
                { pattern(kind).map(|pattern| place(None, Some(pattern))) }
            </g>
        }
    });
    let limit = at(props.capacity.number());
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

#[derive(Properties, PartialEq)]
pub(crate) struct SwatchProps {
    #[prop_or_default]
    pub kind: Option<Use>,
    #[prop_or_default]
    pub class: Classes,
}

/// A sample of a colour in a legend: of a use of memory with its pattern, or of a class.
#[component(Swatch)]
pub(crate) fn swatch(props: &SwatchProps) -> Html {
    let sample = |class: Classes, fill: Option<&'static str>| {
        html! { <rect {class} width="12" height="12" rx="3" {fill} /> }
    };
    let class = props.kind.map_or_else(|| props.class.clone(), |kind| classes!(kind.name()));
    html! {
        <svg class="key" width="12" height="12" aria-hidden="true">
            { sample(class, None) }
            { props.kind.and_then(pattern).map(|pattern| sample(Classes::new(), Some(pattern))) }
        </svg>
    }
}

//! A breakdown that opens: each number shows its formula, the symbols with their values, and its source.

use shardscope::session::{Branch, Reason};
use yew::prelude::*;

/// The tree of `root` with its first `open` levels open.
pub(crate) fn tree(root: &Branch, open: u32) -> Html {
    html! { <div class="tree">{ node(root, open) }</div> }
}

fn node(branch: &Branch, open: u32) -> Html {
    let head = html! {
        <>
            <span class="tree-label">{ &branch.label }
                if branch.times > 1 { <span class="times">{ format!(" × {}", branch.times) }</span> }
            </span>
            <svg class="tree-share" aria-hidden="true" preserveAspectRatio="none">
                <rect width={shardscope::quantity::decimal(branch.share * 100.0, 2) + "%"} height="100%" />
            </svg>
            <span class="tree-value">{ &branch.value }</span>
        </>
    };
    if branch.parts.is_empty() && branch.reason.is_none() {
        return html! { <div class="tree-node bare">{ head }</div> };
    }
    html! {
        <details class="tree-node" open={open > 0}>
            <summary>{ head }</summary>
            <div class="tree-inside">
                if let Some(reason) = &branch.reason { { explain(reason) } }
                if branch.times > 1 && !branch.parts.is_empty() {
                    <p class="soft small">{ format!("{} equal ones; one of them:", branch.times) }</p>
                }
                if branch.greatest { <p class="soft small">{ "The greatest of these counts:" }</p> }
                { for branch.parts.iter().map(|part| node(part, open.saturating_sub(1))) }
            </div>
        </details>
    }
}

/// A formula with its symbols and source.
fn explain(reason: &Reason) -> Html {
    html! {
        <div class="reason">
            <p class="formula mono">{ reason.expression }</p>
            <p>{ reason.meaning }</p>
            if !reason.symbols.is_empty() {
                <dl class="symbols">
                    { for reason.symbols.iter().map(|(name, value)| html! {
                        <div><dt class="mono">{ *name }</dt><dd>{ value }</dd></div>
                    }) }
                </dl>
            }
            <p class="source">{ reason.source }</p>
        </div>
    }
}

//! A breakdown that opens: each number shows its formula, the symbols with their values, and its source.

use shardscope::session::{Branch, Reason};
use shardscope::units::decimal;
use yew::prelude::*;

/// The tree, with this many levels open initially.
pub(crate) fn tree(root: &Branch, open: u32) -> Html {
    html! { <div class="tree">{ node(root, open) }</div> }
}

fn node(branch: &Branch, open: u32) -> Html {
    let many = branch.times > 1;
    let bare = branch.parts.is_empty() && branch.reason.is_none();
    let width = decimal(branch.share * 100.0, 2) + "%";
    let head = html! {
        <>
            <span class="tree-label">
                { &branch.label }
                if many {
                    <span class="times">{ format!(" × {}", branch.times) }</span>
                }
            </span>
            <svg class="tree-share" aria-hidden="true" preserveAspectRatio="none">
                <rect {width} height="100%" />
            </svg>
            <span class="tree-value">{ &branch.value }</span>
        </>
    };
    if bare {
        return html! { <div class="tree-node bare">{ head }</div> };
    }
    html! {
        // A node without parts only contains its formula, so it stays closed.
        <details class="tree-node" open={open > 0 && !branch.parts.is_empty()}>
            <summary>{ head }</summary>
            <div class="tree-inside">
                { branch.reason.as_ref().map(reason) }
                if many && !branch.parts.is_empty() {
                    <p class="soft small">{ format!("{} identical; one of them:", branch.times) }</p>
                }
                if branch.greatest {
                    <p class="soft small">{ "The largest of these counts:" }</p>
                }
                { for branch.parts.iter().map(|part| node(part, open.saturating_sub(1))) }
            </div>
        </details>
    }
}

/// A formula with its symbols and source.
fn reason(reason: &Reason) -> Html {
    html! {
        <div class="reason">
            <p class="formula mono">{ reason.expression }</p>
            <p>{ reason.meaning }</p>
            if !reason.symbols.is_empty() {
                <dl class="symbols">
                    { for reason.symbols.iter().map(|symbol| html! {
                        <div>
                            <dt class="mono">{ symbol.name }</dt>
                            <dd>{ &symbol.value }</dd>
                            <dd class="soft small">{ symbol.meaning }</dd>
                        </div>
                    }) }
                </dl>
            }
            <p class="source">{ reason.source }</p>
        </div>
    }
}

//! One plan in full: the memory of its fullest GPU and the time of its step, down to the formulas.

use maud::{Markup, html};
use shardscope::estimate::memory;
use shardscope::estimate::time::time;
use shardscope::session::{Branch, Reason};
use shardscope::units::{percent, size};

use super::letters;
use super::plans::plans;
use super::write::{Chapter, joined};

/// The chapter on the first of the plans.
pub(super) fn chapter() -> Chapter {
    let named = &plans()[0];
    let memory = memory(&named.plan);
    let worst = memory.ranks.iter().max_by_key(|rank| rank.totals.peak_reserved);
    let lead = html! {
        p {
            (named.name) ": " (named.about) ". "
            a href={ "./#" (named.link) } { "Open it on the page" }
            ", where every number opens as it does here. The formulas below are worked out with its numbers, where they \
         apply."
        }
    };
    let fullest = html! {
        @if let Some(rank) = worst {
            p { "A GPU of stage " (rank.pipeline_rank) ", at its peak: " (rank.at) "." }
            ul.worked { (branch(&Branch::from_breakdown(&rank.breakdown, size), 0)) }
        }
    };
    let step = html! { ul.worked { (branch(&Branch::of_time(&time(&named.plan).breakdown), 0)) } };
    Chapter::new("worked", "One plan, worked through", lead)
        .part("Memory of its peak rank", fullest)
        .part("Time of its step", step)
}

/// Depth to which the tree is initially open.
const OPEN: usize = 2;

fn branch(of: &Branch, depth: usize) -> Markup {
    let head = html! {
        span.label { (of.label) @if of.times > 1 { " × " (of.times) } }
        " " span.value { (of.value) } " " span.share { (percent(of.share)) }
    };
    let reason = of.reason.as_ref().map(why);
    if of.parts.is_empty() {
        return html! { li { p.line { (head) } @if let Some(reason) = reason { (reason) } } };
    }
    html! {
        li {
            details open[depth < OPEN] {
                summary { (head) }
                @if let Some(reason) = reason { (reason) }
                ul {
                    // Consecutive equal parts, such as layers of one kind, are shown once.
                    @for alike in of.parts.chunk_by(|one, next| one == next) {
                        @if alike.len() > 1 { li.again { (alike.len()) " times:" } }
                        (branch(&alike[0], depth + 1))
                    }
                }
            }
        }
    }
}

fn why(of: &Reason) -> Markup {
    let symbols: Vec<Markup> =
        of.symbols.iter().map(|one| html! { (letters::expression(one.name)) " = " (one.value) }).collect();
    html! {
        p.why-line {
            (letters::expression(of.expression))
            @if !symbols.is_empty() { " with " (joined(&symbols, ", ")) }
            ": " (of.meaning) " " span.source { (of.source) }
        }
    }
}

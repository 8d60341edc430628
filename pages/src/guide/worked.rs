//! One plan all the way: memory of its fullest GPU and the time of its step, down to the formula.

use shardscope::estimate::memory;
use shardscope::estimate::time::time;
use shardscope::quantity::{percent, size};
use shardscope::session::{Branch, Reason};

use super::letters;
use super::plans::plans;
use super::write::Chapter;
use crate::html::escape;

/// The first of the plans.
pub(super) fn chapter() -> Chapter {
    let named = &plans()[0];
    let memory = memory(&named.plan);
    let worst = memory.ranks.iter().max_by_key(|rank| rank.totals.peak_reserved);
    let tree = worst.map_or(String::new(), |rank| branch(&Branch::of(&rank.breakdown, size), 0));
    let stage = worst.map_or(0, |rank| rank.pipeline_rank);
    let at = worst.map_or("", |rank| rank.at);
    let lead = format!(
        "<p>{}: {}. <a href=\"./#{}\">Open it on the page</a>, where every figure opens as it does here. All formulas below have \
         its numbers put in, where they apply to it.</p>\n",
        escape(&named.name),
        escape(&named.about),
        escape(&named.link)
    );
    Chapter::new("worked", "One plan all the way", lead)
        .part(
            "Memory of its fullest GPU",
            &format!(
                "<p>A GPU of stage {stage}, at its fullest: {}.</p>\n<ul class=\"worked\">{tree}</ul>\n",
                escape(at)
            ),
        )
        .part(
            "Time of its step",
            &format!(
                "<ul class=\"worked\">{}</ul>\n",
                branch(&Branch::of_time(&time(&named.plan).breakdown), 0)
            ),
        )
}

/// Depth to which the tree is open.
const OPEN: usize = 2;

fn branch(of: &Branch, depth: usize) -> String {
    let times = if of.times > 1 { format!(" × {}", of.times) } else { String::new() };
    let head = format!(
        "<span class=\"label\">{}{times}</span> <span class=\"value\">{}</span> <span class=\"share\">{}</span>",
        escape(&of.label),
        escape(&of.value),
        percent(of.share)
    );
    let reason = of.reason.as_ref().map_or(String::new(), why);
    if of.parts.is_empty() {
        return format!("<li><p class=\"line\">{head}</p>{reason}</li>\n");
    }
    let open = if depth < OPEN { " open" } else { "" };
    let mut parts = String::new();
    let mut rest = of.parts.as_slice();
    while let Some(first) = rest.first() {
        let equal = rest.iter().take_while(|part| *part == first).count();
        let again =
            if equal > 1 { format!("<li class=\"again\">{equal} times:</li>\n") } else { String::new() };
        parts += &(again + &branch(first, depth + 1));
        rest = rest.get(equal..).unwrap_or_default();
    }
    format!("<li><details{open}><summary>{head}</summary>{reason}<ul>{parts}</ul></details></li>\n")
}

fn why(of: &Reason) -> String {
    let symbols: Vec<String> = of
        .symbols
        .iter()
        .map(|(name, value)| format!("{} = {}", letters::expression(name), escape(value)))
        .collect();
    let symbols = if symbols.is_empty() { String::new() } else { format!(" with {}", symbols.join(", ")) };
    format!(
        "<p class=\"why-line\">{}{symbols}: {} <span class=\"source\">{}</span></p>",
        letters::expression(of.expression),
        escape(of.meaning),
        escape(of.source)
    )
}

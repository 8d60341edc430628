//! How layouts are searched, and what the results were compared with.

use maud::{Markup, html};

use super::write::{Chapter, Row, plain, prose, table};

/// Search results next to what trying every layout finds, and next to layouts that were run; written by
/// `cargo run --release -p shardscope-search --example whole -- --record`.
const LAYOUTS: &str = include_str!("layouts.tsv");

/// The chapter.
pub(super) fn chapter() -> Chapter {
    let lead = prose(
        "A search looks at every layout that the software could run: sizes of all kinds of parallelism, stages of uneven size, \
         model chunks, schedules, recomputation, sharding, overlap and the order of ranks, each fixed, ranged or open. Most are \
         ruled out without a full estimate: a lower bound of their step time is no better than the best found so far, or a lower \
         bound of their memory does not fit. Bounds follow from the estimates and are tested against plans of every kind of \
         software, so the result is that of an exhaustive search.",
    );
    let found = prose(
        "Published: the layout that was run, or the nearest that its source states, as estimated here. Searched: the fastest \
         that leaves the headroom free, starting from the run's own settings. Exhaustive: the same space with every layout \
         estimated and none pruned; empty where that has not been run.",
    );
    Chapter::new("search", "Searching layouts", lead)
        .part("Against every layout, and against those that were run", html! { (found) (layouts()) })
}

fn rows(text: &str) -> Vec<Row> {
    text.lines().map(|line| Row::new(line.split('\t').map(plain))).collect()
}

fn layouts() -> Markup {
    let headings = [
        "model, cluster",
        "published",
        ">its step, s",
        ">searched, s",
        ">exhaustive, s",
        ">layouts estimated",
        ">of them fit",
        "changes",
    ];
    table("Steps of published layouts, of those found, and of the best of all", &headings, &rows(LAYOUTS))
}

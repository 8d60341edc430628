//! How layouts are searched, and what that was held against.

use maud::{Markup, html};

use super::write::{Chapter, Row, plain, prose, table};

/// What was found beside what trying every layout finds, and beside the layouts that were run:
/// `cargo run --release -p shardscope-search --example whole -- --record` writes it.
const LAYOUTS: &str = include_str!("layouts.tsv");

/// The chapter.
pub(super) fn chapter() -> Chapter {
    let lead = prose(
        "A search looks at every layout that the software could run: sizes of all kinds of parallelism, stages of uneven size, \
         model chunks, schedules, recomputation, sharding, overlap and the order of ranks, each fixed, ranged or open. Most are \
         decided without being worked out: a bound of their step is no lower than what was found already, or what they must \
         hold does not fit. No bound is a guess: each is a fact of the estimates that tests hold against plans of every \
         kind of software, so that the result is the one that trying everything finds.",
    );
    let found = prose(
        "Published: the layout that was run, or the nearest that its source states, as estimated here. Searched: the fastest \
         of all that leaves the headroom free, the search beginning from the run's own settings. Tried: the same over the same \
         space, every layout worked out and none left out by a bound; empty where that was not done yet.",
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
        ">tried, s",
        ">layouts tried",
        ">of them fit",
        "changes",
    ];
    table("Steps of published layouts, of those found, and of the best of all", &headings, &rows(LAYOUTS))
}

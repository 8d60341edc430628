//! How much is read, estimated, drawn and listed. The numbers are the engine's own.

use shardscope::bash::limits as shell;
use shardscope::config_tree::{MAX_DEPTH, MAX_NODES};
use shardscope::launch::MAX_DIAGNOSTICS;
use shardscope::link::{MAX_LINK, MAX_SETTINGS, MAX_TEXT, MAX_TEXTS};
use shardscope::plan::limits::{MAX_BATCH, MAX_PIPELINE_PARTS, MAX_WORLD};
use shardscope::report::document::LISTED;
use shardscope::schedule::EXACT_EVENTS;
use shardscope::session::map::MOST_DRAWN;
use shardscope::units::grouped;

use super::write::{Chapter, Row, inline, plain, prose, table};

/// A size of text in the unit that people state it in.
fn bytes(count: usize) -> String {
    match count {
        count if count.is_multiple_of(1 << 20) => format!("{} MiB", count >> 20),
        count => format!("{} KiB", count >> 10),
    }
}

/// What is bounded, by how much, and what happens beyond.
fn rows() -> Vec<Row> {
    let count = |count: usize| grouped(count as u64);
    let read = [
        ("a link, what follows its `#`", bytes(MAX_LINK), "the link is refused and says so"),
        ("what a link unfolds to", bytes(MAX_TEXT), "the same"),
        ("files of a link", count(MAX_TEXTS), "the same"),
        ("settings, and answers, of a link", count(MAX_SETTINGS), "the same"),
        ("files read together", count(MAX_TEXTS), "the rest is counted and not read"),
        ("a shell script", bytes(shell::TEXT_BYTES), "it is not read, and says so"),
        ("steps of a shell script", grouped(u64::from(shell::STEPS)), "reading stops there, and says where"),
        (
            "turns of one loop",
            grouped(u64::from(shell::LOOP_TURNS)),
            "the loop is left there: an error at its place",
        ),
        (
            "nesting of commands and calls",
            grouped(u64::from(shell::DEPTH)),
            "reading stops there, and says where",
        ),
        ("one value, in a shell", bytes(shell::VALUE_BYTES), "it is cut off: an error at its place"),
        ("words of one command", count(shell::WORDS), "the rest is left out: an error at its place"),
        ("nesting of a settings file", count(MAX_DEPTH), "the rest is not read, and says where"),
        ("values of a settings file", count(MAX_NODES), "the same"),
    ];
    let estimated = [
        ("GPUs of a run", grouped(MAX_WORLD), "refused"),
        ("sequences of a step", grouped(MAX_BATCH), "refused"),
        ("pipeline stages times chunks", grouped(MAX_PIPELINE_PARTS), "refused (`pipeline-parts`)"),
        (
            "passes of a pipeline that are each timed",
            grouped(EXACT_EVENTS),
            "a part of the step is timed, and goes on at the pace that it has found: at most 1 % off, and the time says so",
        ),
    ];
    let listed = [
        (
            "messages about a text",
            count(MAX_DIAGNOSTICS),
            "the rest is counted; the page copies it, and `report --full-lists` writes it",
        ),
        (
            "questions asked at once",
            count(MAX_DIAGNOSTICS),
            "the rest is counted, and asked once others are answered",
        ),
        (
            "ranks whose groups a document lists",
            grouped(LISTED),
            "groups are given by rule, with the first of them; `report --full-lists` lists all",
        ),
        ("GPUs of the map", grouped(MOST_DRAWN), "nothing is drawn; a GPU is found by its label"),
    ];
    let all = read.into_iter().chain(estimated).chain(listed);
    all.map(|(what, most, beyond)| Row::new([inline(what), plain(most), inline(beyond)])).collect()
}

/// The chapter.
pub(super) fn chapter() -> Chapter {
    let lead = prose(
        "Texts, links and sizes may come from anybody, so each of them is bounded. What is within the bounds is answered within two \
         seconds of processor time and 256 MB of memory; what is beyond them is refused by name, or counted and there for whoever asks. \
         The [reference|reference.html] has the bounds of every setting.",
    );
    let table = table("What is bounded", &["what", ">at most", "beyond"], &rows());
    Chapter::new("bounds", "How much is read and shown", maud::html! { (lead) (table) })
}

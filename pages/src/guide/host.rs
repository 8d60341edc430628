//! Time spent on the host, and the rows that determine each constant.

use maud::{Markup, html};

use shardscope::catalog::{accelerator, accelerator_names};
use shardscope::estimate::compute::{ISSUES, PROCESSORS};
use shardscope::units::Seconds;

use super::write::{Row, code, plain, prose, table};

/// Written by `cargo run --example fit -- --sensitivity`.
const SENSITIVITY: &str = include_str!("../../../tests/data/measured/sensitivity.tsv");

/// How waiting for the host is computed, with its constants.
pub(super) fn host() -> Markup {
    let about = prose(
        "A pass cannot be faster than the host can issue it. The host spends time on the Python around each operator, on \
         dispatching and launching each kernel, and on each message: the call, and the wait for the slowest host in the \
         group; checkpoints that call hooks in Python take time for each tensor that a recomputed layer saves. As long as the device is busy the host runs ahead, layer by layer, and its time is hidden. It cannot run \
         ahead of experts, because it reads back how many tokens each one got, or of messages between stages. \
         Full-iteration CUDA graphs remove host time altogether; per-layer graphs remove that of the modules they capture, by default all but experts and what is around them.",
    );
    let micro = |time: Seconds| plain(((time.get() * 1e7).round() / 10.0).to_string());
    let issues: Vec<_> = ISSUES
        .iter()
        .map(|of| {
            let source = html! { span.source { (of.source) } };
            Row::new([
                plain(of.name),
                micro(of.forward),
                micro(of.backward),
                micro(of.kernel),
                micro(of.message),
                micro(of.saved),
                source,
            ])
        })
        .collect();
    let headings = [
        "Software",
        ">operator forward, µs",
        ">backward, µs",
        ">kernel, µs",
        ">message, µs",
        ">kernel whose layer is recomputed, µs more",
        "Where that is from",
    ];
    let processors: Vec<_> = PROCESSORS
        .iter()
        .map(|of| {
            let source = html! { span.source { (of.source) } };
            let beside: Vec<_> = accelerator_names()
                .filter(|name| accelerator(name).is_some_and(|known| known.processor == of.processor))
                .collect();
            Row::new([source, plain(beside.join(", ")), plain(of.share.to_string())])
        })
        .collect();
    html! {
        (about)
        (table("Host time by software", &headings, &issues))
        (table("Host time by processor", &["Processors and source", "Accelerators of the usual node", ">share"], &processors))
    }
}

/// By generation, software and processor: how many rows are sensitive to each constant.
pub(super) fn felt() -> Markup {
    let about = prose(
        "For each constant of a generation, of a software's host and of a processor: how many fitted runs of it are sensitive to it \
         (10% less of it moves their step time by more than 0.5%), how many sources they come from, and the median change. Runs on one \
         silicon tell together what its generations have in common. A constant that no run tells is assumed, unless it was measured \
         by itself: the table above marks it, and the plans in which it counts say so.",
    );
    let rows: Vec<_> = SENSITIVITY
        .lines()
        .skip(1)
        .filter_map(|line| {
            let [generation, constant, rows, sources, of, moves] = line.split('\t').collect::<Vec<_>>()[..]
            else {
                return None;
            };
            let found = match rows.parse::<u64>().ok()? {
                0 => "none".to_owned(),
                few if few < FEW => format!("{rows} of {of}: few"),
                _ => format!("{rows} of {of}"),
            };
            let moves = moves.parse::<f64>().ok().filter(|moves| *moves > 0.0);
            let moves = moves.map_or(String::new(), |moves| format!("{:.1}%", 100.0 * moves));
            Some(Row::new([code(generation), code(constant), plain(found), plain(sources), plain(moves)]))
        })
        .collect();
    let headings = ["Set", "Constant", ">rows that feel it", ">sources", ">moves"];
    html! { (about) (table("Constants and their rows", &headings, &rows)) }
}

/// Fewer rows than these do not determine a constant well.
const FEW: u64 = 6;

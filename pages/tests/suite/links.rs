//! Every row opens on the main page as the exact plan that its figure was predicted from.

use std::collections::BTreeMap;

use pages::evidence::{Compared, PEERS, Run, compared, link, memories, runs, step_times};
use shardscope::estimate::Memory;
use shardscope::launch::Resolution;
use shardscope::session::{Event, PtrEq, Shown, State, apply};

use crate::page_of;

/// What the page shows after following a link.
#[track_caller]
fn followed(resolution: &Resolution) -> PtrEq<Shown> {
    let fragment = link(resolution).expect("a link");
    let state = apply(State::default(), Event::Follow(format!("#{fragment}")));
    assert_eq!(state.broken_link, None, "{fragment}");
    assert!(state.refused.is_none() && state.answer.resolution.questions.is_empty(), "{fragment}");
    let shown = state.shown.expect("a plan");
    assert_eq!(Some(&shown.plan), resolution.plan.as_ref(), "{fragment}");
    shown
}

fn opens_at_its_step_time(one: &Compared) {
    let (id, shown) = (one.row.text("id"), followed(&one.resolution));
    let step = shown.report.time.step.get();
    assert!((step / one.predicted - 1.0).abs() < 1e-9, "{id}: {step} and {}", one.predicted);
}

fn opens_at_its_memory(run: &Run) {
    let Some(memory) = &run.memory else { return };
    let shown = followed(&run.resolution);
    let totals = |memory: &Memory| memory.ranks.iter().map(|rank| rank.totals).collect::<Vec<_>>();
    assert_eq!(totals(&shown.report.memory), totals(memory), "{}", run.id);
    assert_eq!(shown.report.memory.worst, memory.worst, "{}", run.id);
}

/// Checks all of `items`, on every processor.
fn each<T: Sync>(items: &[T], check: fn(&T)) {
    let share = items.len().div_ceil(std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    std::thread::scope(|scope| {
        for part in items.chunks(share) {
            scope.spawn(move || part.iter().for_each(check));
        }
    });
}

/// The texts between `start` and the next `end`, and how often each occurs.
fn pieces<'t>(text: &'t str, start: &str, end: &str) -> BTreeMap<&'t str, usize> {
    let mut found = BTreeMap::new();
    for piece in text.split(start).skip(1).filter_map(|rest| rest.split(end).next()) {
        *found.entry(piece).or_insert(0) += 1;
    }
    found
}

#[test]
fn every_step_time_opens_as_its_plan() {
    assert_eq!(compared().len(), 751);
    each(compared(), opens_at_its_step_time);
}

#[test]
fn every_memory_opens_as_its_plan() {
    assert_eq!(runs().iter().filter(|run| run.memory.is_some()).count(), 483);
    each(runs(), opens_at_its_memory);
}

#[test]
fn the_page_has_every_row_with_its_link() {
    let (times, memory) = (step_times(), memories());
    let html = page_of(pages::evidence::page().file);
    assert_eq!(times.len(), compared().len());
    assert_eq!(memory.len(), runs().iter().map(|run| run.figures().len()).sum::<usize>());
    // The page is megabytes long and has a thousand rows, so it is scanned once, not for every row.
    let (rows, links) = (pieces(html, "<tr id=\"", "\""), pieces(html, "<a href=\"./#", "</a>"));
    for entry in times.iter().chain(&memory) {
        assert_eq!(rows.get(entry.anchor.as_str()), Some(&1), "{}", entry.anchor);
        let link = format!("{}\">{}", entry.link.replace('&', "&amp;"), entry.id);
        assert!(links.contains_key(link.as_str()), "{}", entry.id);
    }
    let points = html.matches("<use ").count();
    assert_eq!(points, 2 * (times.len() + memory.len()), "by figure and by error");
    for band in ["band five", "band ten", "diagonal"] {
        assert_eq!(html.matches(&format!("class=\"{band}\"")).count(), 4, "{band}");
    }
}

/// The accuracy of other tools is shown next to ours, and every source has its link.
#[test]
fn peers_and_sources_are_named() {
    let html = page_of(pages::evidence::page().file);
    for peer in &PEERS {
        let row =
            format!("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>", peer.name, peer.rows, peer.error);
        assert!(html.contains(&row), "{} on {}", peer.name, peer.rows);
    }
    for entry in step_times().iter().chain(&memories()) {
        assert!(entry.source.link.starts_with("https://"), "{}", entry.id);
    }
}

/// Rows that are far off state the reason on the page.
#[test]
fn what_is_far_off_has_a_cause() {
    for entry in step_times() {
        assert!(entry.error().abs() <= 0.15 || entry.cause.is_some(), "{}", entry.id);
    }
}

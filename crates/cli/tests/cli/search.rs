//! `search`: what is varied, why a layout is not the answer, and what a few changes bring.

use serde_json::Value;

use super::{SCRIPT, call, printed};

/// What is held, so that a search takes a moment.
const HELD: [&str; 8] = ["--fix", "cp", "--fix", "split", "--fix", "rank-order", "--range", "mbs=4"];

fn document(more: &[&str]) -> Value {
    let words = [&["search", "-", "--format", "json"], &HELD[..], more].concat();
    serde_json::from_str(&printed(&words, SCRIPT, 0)).expect("a document")
}

#[test]
fn dimensions_are_held_as_the_caller_says() {
    let found = document(&["--fix", "recompute", "--range", "pp=1..2"]);
    let layouts = found["layouts"].as_array().expect("layouts");
    assert!(layouts.len() > 1, "{found}");
    for layout in layouts {
        let names: Vec<&str> =
            layout["change"].as_array().expect("changes").iter().filter_map(|one| one[0].as_str()).collect();
        for held in ["micro_batch_size", "context_parallel_size", "recompute_granularity"] {
            assert!(!names.contains(&held), "{layout}");
        }
    }
    for (range, said) in [
        ("recompute=1..2", "recompute has no sizes"),
        ("tp=4..2", "no size of tp lies between 4 and 2"),
        ("dp=2", "one of tp, pp"),
    ] {
        let told = call(&["search", "-", "--range", range], SCRIPT);
        let text = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(!told.status.success() && text.contains(said), "{range}: {text}");
    }
}

#[test]
fn a_layout_that_is_asked_about_says_why_it_is_not_the_answer() {
    let found = document(&["--why-not", "TP 3", "--why-not", "tp1 pp1 mbs16", "--why-not", "TP 8 PP 2"]);
    let whys: Vec<&str> =
        found["why_not"].as_array().expect("whys").iter().filter_map(|one| one["why"].as_str()).collect();
    assert!(whys[0].starts_with("refused: ") && whys[0].contains("TP 3"), "{whys:?}");
    assert!(whys[1].starts_with("out of memory by "), "{whys:?}");
    assert!(whys[2].contains("longer: ") && whys[2].contains("exposed TP communication"), "{whys:?}");
    let told = |more: &[&str]| {
        let told = call(&[&["search", "-"], more].concat(), SCRIPT);
        assert_eq!(told.status.code(), Some(2));
        String::from_utf8_lossy(&told.stderr).into_owned()
    };
    assert!(told(&["--why-not", "eight"]).contains("eight is not understood"));
    assert!(told(&["--why-not", "TP 8", "--question", "scaling"]).contains("leave --question out"));
}

#[test]
fn the_best_changes_are_told_with_what_they_bring_and_cost() {
    let found = document(&[]);
    let changes = found["changes"].as_array().expect("changes");
    assert!(changes.len() > 1, "{found}");
    let own: Value =
        serde_json::from_str(&printed(&["check", "--format", "json", "-"], SCRIPT, 0)).expect("a document");
    let step = |of: &Value| of["step_seconds"].as_f64().expect("a time");
    for one in changes {
        let count = one["words"].as_array().map(Vec::len).expect("words");
        assert!((1..=3).contains(&count), "{one}");
        assert!(step(&one["layout"]) < step(&own), "{one}");
        assert!(one["effect"].as_str().is_some_and(|effect| effect.starts_with("brings ")), "{one}");
    }
    let text = printed(&[&["search", "-"], &HELD[..]].concat(), SCRIPT, 0);
    assert!(text.contains("\nBest single change: ") && text.contains("Best 2 changes: "), "{text}");
}

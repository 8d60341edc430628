//! `search`: its questions and what each takes, what is varied, why a layout is not the answer, and what a few changes save.

use std::process::Output;

use serde_json::Value;

use crate::{SCRIPT, call, printed};

/// Kinds of accelerators and models of the catalog are compared; what is asked without what it takes is refused.
#[test]
fn questions_that_compare_have_an_answer() {
    let small = SCRIPT.replace("--nnodes 2 --nproc_per_node 8", "--nnodes 1 --nproc_per_node 4");
    let asked = |more: &[&str]| {
        let all = ["search", "-", "--accelerator", "A100-SXM-40GB", "--format", "json"];
        call(&[&all[..], more].concat(), &small)
    };
    let document = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    // 5.2e9 parameters at 18 bytes are 94 GB: more of 40 GB than of 141 GB.
    let fixed = ["--fix", "vpp", "--fix", "split", "--fix", "cp", "--range", "mbs=1..2"];
    let kinds = ["--question", "which-gpu", "--kinds", "A100-SXM-40GB,H200-SXM"];
    let output = asked(&[&kinds[..], &fixed].concat());
    let said = document(&output);
    assert!(output.status.success(), "{said}");
    let gpus = |place: usize| said["compared"][place]["gpus"].as_u64().expect("it fits somewhere");
    assert!(gpus(0) > gpus(1), "{said}");
    assert!(said["answer"].as_str().is_some_and(|answer| answer.contains("H200-SXM are enough")), "{said}");
    let output = asked(&["--question", "which-gpu"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--kinds"));
    // All that are larger do not fit.
    let largest = |train: &str| document(&asked(&["--question", "largest-model", "--train", train]));
    let said = largest("lora");
    let compared = said["compared"].as_array().expect("models");
    let fits = |place: usize| compared[place]["fits"].as_bool();
    assert_eq!((said["answered"].as_bool(), fits(compared.len() - 1)), (Some(true), Some(true)), "{said}");
    assert!((0..compared.len() - 1).all(|place| fits(place) == Some(false)), "{said}");
}

/// Every question about sizes has one, with its own answer in one sentence and the layout that gives it.
#[test]
fn questions_about_sizes_have_an_answer() {
    let held =
        ["vpp", "split", "schedule", "cp", "rank-order", "overlap", "recompute"].map(|name| ["--fix", name]);
    for (question, more, said) in [
        ("fewest-gpus", &[][..], " the run, "),
        ("fewest-gpus", &["--train", "lora"], " the run, "),
        (
            "cheapest",
            &["--tokens", "1e9", "--price", "2", "--days", "365", "--most-nodes", "2"],
            "cost least",
        ),
        ("scaling", &["--most-nodes", "4"], ""),
        ("one-more-node", &[], ""),
        ("longest-sequence", &[], ""),
        ("largest-micro-batch", &[], ""),
    ] {
        let fixed = if question == "largest-micro-batch" { &[][..] } else { &["--fix", "mbs"] };
        let words =
            [&["search", "-", "--format", "json", "--question", question], held.as_flattened(), fixed, more]
                .concat();
        let found: Value = serde_json::from_str(&printed(&words, SCRIPT, 0)).expect("a document");
        assert_eq!(found["answered"], true, "{words:?}: {found}");
        let answer = found["answer"].as_str().unwrap_or_default();
        assert!(answer.len() > 10 && answer.contains(said), "{words:?}: {answer}");
    }
    // Whose adapters the answer has is said.
    let words =
        [&["search", "-", "--question", "fewest-gpus", "--train", "lora"][..], held.as_flattened()].concat();
    let asked = call(&words, SCRIPT);
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(said.contains("the answer is for Megatron-Bridge's"), "{said}");
    // Megatron-Bridge has no adapters over weights of 4 bits.
    let words = ["search", "-", "--question", "fewest-gpus", "--train", "qlora"];
    let refused = call(&words, SCRIPT);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && told.contains("not modelled"), "{told}");
}

/// Refused before anything is read, with exit code 2 and a sentence that says what to change.
#[test]
fn what_a_question_does_not_take_is_refused() {
    for (words, said) in [
        (
            &["--question", "fewest-gpus", "--tokens", "1e9"][..],
            "--question fewest-gpus takes no --tokens; cheapest, which-gpu do",
        ),
        (&["--price", "2"], "--question fastest takes no --price"),
        (&["--days", "3"], "--question fastest takes no --days"),
        (
            &["--question", "one-more-node", "--most-nodes", "4"],
            "takes no --most-nodes; cheapest, scaling, which-gpu do",
        ),
        (&["--question", "scaling", "--kinds", "H100-SXM"], "takes no --kinds; which-gpu does"),
        (&["--question", "scaling", "--most-nodes", "0"], "0 is not in 1..=4096"),
        (&["--question", "cheapest", "--days", "nan"], "it is not a positive number"),
        (&["--question", "cheapest", "--price=-1"], "it is not a positive number"),
        (&["--question", "cheapest", "--tokens", "1e30"], "it is not a number of tokens"),
        (&["--question", "which-gpu", "--kinds", "H100-SXM=0"], "the price: it is not a positive number"),
        (&["--range", "tp=8..4"], "no size of tp lies between 8 and 4"),
        (&["--range", "mbs=0"], "no size of mbs lies between 0 and 0"),
        (&["--range", "schedule=1..2"], "schedule has no sizes: it is fixed or open"),
    ] {
        let output = call(&[&["search", "no-such-file.sh"], words].concat(), "");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr.contains(said) && output.stdout.is_empty(), "{words:?}: {stderr}");
    }
}

/// What is held, so that a search takes a moment.
const HELD: [&str; 8] = ["--fix", "cp", "--fix", "split", "--fix", "rank-order", "--range", "mbs=4"];

fn found(more: &[&str]) -> Value {
    let words = [&["search", "-", "--format", "json"], &HELD[..], more].concat();
    serde_json::from_str(&printed(&words, SCRIPT, 0)).expect("a document")
}

#[test]
fn dimensions_are_held_as_the_caller_says() {
    let found = found(&["--fix", "recompute", "--range", "pp=1..2"]);
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
        let output = call(&["search", "-", "--range", range], SCRIPT);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "{range}: {text}");
    }
}

#[test]
fn a_layout_that_is_asked_about_says_why_it_is_not_the_answer() {
    let found = found(&["--why-not", "TP 3", "--why-not", "tp1 pp1 mbs16", "--why-not", "TP 8 PP 2"]);
    let whys: Vec<&str> =
        found["why_not"].as_array().expect("whys").iter().filter_map(|one| one["why"].as_str()).collect();
    assert!(whys[0].starts_with("refused: ") && whys[0].contains("TP 3"), "{whys:?}");
    assert!(whys[1].starts_with("out of memory by "), "{whys:?}");
    assert!(whys[2].contains("slower: ") && whys[2].contains("exposed TP communication"), "{whys:?}");
    let refusal = |more: &[&str]| {
        let output = call(&[&["search", "-"], more].concat(), SCRIPT);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refusal(&["--why-not", "eight"]).contains("eight is not understood"));
    assert!(refusal(&["--why-not", "TP 8", "--question", "scaling"]).contains("leave --question out"));
}

#[test]
fn the_best_changes_are_reported_with_what_they_save_and_cost() {
    let found = found(&[]);
    let changes = found["changes"].as_array().expect("changes");
    assert!(changes.len() > 1, "{found}");
    let own: Value =
        serde_json::from_str(&printed(&["check", "--format", "json", "-"], SCRIPT, 0)).expect("a document");
    let step = |of: &Value| of["step_seconds"].as_f64().expect("a time");
    for one in changes {
        let count = one["words"].as_array().map(Vec::len).expect("words");
        assert!((1..=3).contains(&count), "{one}");
        assert!(step(&one["layout"]) < step(&own), "{one}");
        assert!(one["effect"].as_str().is_some_and(|effect| effect.starts_with("saves ")), "{one}");
    }
    let text = printed(&[&["search", "-"], &HELD[..]].concat(), SCRIPT, 0);
    assert!(text.contains("\nBest single change: ") && text.contains("Best 2 changes: "), "{text}");
}

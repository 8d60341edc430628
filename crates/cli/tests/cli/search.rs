//! `search`: its questions, and what each takes.

use std::process::Output;

use crate::{SCRIPT, call};

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
        serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
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
        (&["--range", "tp=8..4"], "there is no size from 8 to 4"),
        (&["--range", "mbs=0"], "there is no size from 0 to 0"),
        (
            &["--range", "schedule=1..2"],
            "schedule has no sizes; tp, pp, vpp, cp, ep, etp, mbs, instances have",
        ),
    ] {
        let output = call(&[&["search", "no-such-file.sh"], words].concat(), "");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(told.contains(said) && output.stdout.is_empty(), "{words:?}: {told}");
    }
}

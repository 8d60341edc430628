//! `compare`: two runs side by side.

use crate::{Folder, SCRIPT, json, printed};

#[test]
fn a_run_beside_itself_with_a_setting_changed() {
    let with = ["compare", "-", "--with", "tensor_model_parallel_size=4"];
    let text = printed(&with, SCRIPT, 0);
    assert!(
        text.starts_with("Settings\n  tensor_model_parallel_size  2 → 4\n\nMemory of the peak rank\n"),
        "{text}"
    );
    for title in ["Step time", "Communication of a step", "Why the memory differs", "Why the time differs"] {
        assert!(text.contains(&format!("\n{title}\n")), "{title}: {text}");
    }
    // Columns stand under each other.
    let memory = text.split("\n\n").nth(1).expect("a section");
    let arrows: Vec<usize> =
        memory.lines().skip(1).filter_map(|line| line.chars().position(|c| c == '→')).collect();
    assert!(arrows.len() > 5 && arrows.iter().all(|at| *at == arrows[0]), "{memory}");
    let markdown = printed(&[&with[..], &["--format", "markdown"]].concat(), SCRIPT, 0);
    assert!(
        markdown.starts_with("### Settings\n\n| | before | after | change |\n|---|---:|---:|---:|\n"),
        "{markdown}"
    );
    let document = json(&printed(&[&with[..], &["--format", "json"]].concat(), SCRIPT, 0));
    assert_eq!(document["settings"][0]["name"], "tensor_model_parallel_size");
    let of = |set: &str| json(&printed(&["report", "--format", "json", "--set", set, "-"], SCRIPT, 0));
    for (side, set) in [("before", "tensor_model_parallel_size=2"), ("after", "tensor_model_parallel_size=4")]
    {
        let report = &of(set)["report"];
        assert_eq!(document[side]["peak_reserved"], report["memory"]["worst"]["peak_reserved"], "{side}");
        assert_eq!(document[side]["step_seconds"], report["time"]["step_seconds"], "{side}");
        assert_eq!(document["sections"][1]["lines"][0][side], report["time"]["step_seconds"], "{side}");
    }
    assert_eq!(document["sections"][1]["lines"][0]["unit"], "second");
}

#[test]
fn two_files_and_a_link_are_compared() {
    let folder = Folder::new("compare");
    let before = folder.file("a.sh", SCRIPT);
    let after = folder.file("b.sh", &SCRIPT.replace("--bf16", "--bf16 --sequence-parallel"));
    let text = printed(&["compare", &before, &after], "", 0);
    assert!(text.contains("sequence_parallel  false → true\n"), "{text}");
    let link = printed(&["link", &before], "", 0);
    assert_eq!(printed(&["compare", &before, link.trim_end()], "", 0), "the two are the same\n");
    // A change of both is no difference.
    assert_eq!(
        printed(&["compare", &before, &before, "--set", "micro_batch_size=1"], "", 0),
        "the two are the same\n"
    );
    let none = folder.file("none.sh", "echo nothing\n");
    printed(&["compare", &before, &none], "", 2);
    printed(&["compare", &before], "", 2);
}

/// Memory that PyTorch would cache on a larger device is not in the figures: for a run that fits they never exceed the capacity.
#[test]
fn what_is_on_the_device_is_what_the_verdict_tells() {
    let with = ["--with", "seq_length=3456", "--with", "max_position_embeddings=3456"];
    let run = [&["compare", "--accelerator", "H100-SXM", "--set", "micro_batch_size=8"], &with[..], &["-"]]
        .concat();
    let text = printed(&run, SCRIPT, 0);
    assert!(text.contains("76.32 GiB") && !text.contains("80.30 GiB"), "{text}");
}

#[test]
fn a_search_of_everything_answers_one_question() {
    let search = |more: &[&str], code| {
        let fixed = [
            "search",
            "--exhaustive",
            "--fix",
            "pp",
            "--fix",
            "vpp",
            "--fix",
            "recompute",
            "--fix",
            "sharding",
        ];
        printed(&[&fixed[..], more, &["--accelerator", "H100-SXM", "-"]].concat(), SCRIPT, code)
    };
    assert!(!search(&[], 0).is_empty());
    assert_eq!(search(&["--question", "fewest-gpus"], 2), "");
    assert_eq!(search(&["--format", "json"], 2), "");
    // If no layout fits, there is no list.
    search(
        &[
            "--fix",
            "tp",
            "--fix",
            "mbs",
            "--fix",
            "cp",
            "--set",
            "micro_batch_size=512",
            "--set",
            "global_batch_size=16384",
        ],
        1,
    );
}

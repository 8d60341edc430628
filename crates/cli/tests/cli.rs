//! The program as it is called: what it prints, where, and with which exit code.
#![allow(clippy::expect_used)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

const SCRIPT: &str = "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 4096 \
--num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 \
--global-batch-size 512 --vocab-size 50257 --bf16 --tensor-model-parallel-size 2 \
--pipeline-model-parallel-size 2 --use-distributed-optimizer\n";

/// Calls the program with `input` on its standard input.
fn call(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_shardscope"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    // A call that is refused ends without reading.
    let _ = child.stdin.take().expect("its input").write_all(input.as_bytes());
    child.wait_with_output().expect("its end")
}

#[track_caller]
fn printed(arguments: &[&str], input: &str, code: i32) -> String {
    let output = call(arguments, input);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_report_has_three_forms_of_one_plan() {
    let document =
        json(&printed(&["report", "--format", "json", "--accelerator", "A100-SXM-80GB", "-"], SCRIPT, 0));
    assert!(document["schema"].as_str().is_some_and(|schema| schema.starts_with("shardscope/report/")));
    assert_eq!(document["settings"]["accelerator"]["value"], "A100-SXM-80GB");
    assert_eq!(document["settings"]["accelerator"]["origin"], "user");
    assert_eq!(document["report"]["topology"]["world_size"], 16);
    let text = printed(&["report", "-"], SCRIPT, 0);
    let markdown = printed(&["report", "--format", "markdown", "-"], SCRIPT, 0);
    assert!(text.contains("GiB") && markdown.contains("| "), "{text}\n{markdown}");
    assert_ne!(text, markdown);
}

#[test]
fn settings_variables_and_words_change_the_plan() {
    let script = SCRIPT.replace("--num-layers 24", "--num-layers $LAYERS").replace("4096", "$1");
    let given = ["--set", "micro_batch_size=2", "--env", "LAYERS=12", "--args", "2048 x"];
    let call = [&["report", "--format", "json"], &given[..], &["-"]].concat();
    let settings = &json(&printed(&call, &script, 0))["settings"];
    for (name, value) in [("num_layers", 12), ("hidden_size", 2048), ("micro_batch_size", 2)] {
        assert_eq!(settings[name]["value"], value, "{name}");
    }
}

#[test]
fn what_makes_no_plan_is_told_and_ends_with_2() {
    let output = call(&["report", "--format", "json", "-"], "echo nothing to train\n");
    assert_eq!(output.status.code(), Some(2));
    let document = json(&String::from_utf8_lossy(&output.stdout));
    assert!(document["report"].is_null() && document.get("settings").is_some());
    for arguments in
        [&["report", "no-such-file.sh"][..], &["report"], &["report", "--set", "tp", "-"], &["rebort"]]
    {
        let output = call(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn files_are_read_together() {
    let folder = std::env::temp_dir().join(format!("shardscope-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let [script, answers] = ["train.sh", "more.sh"].map(|name| folder.join(name).display().to_string());
    std::fs::write(&script, "source more.sh\n".to_owned() + &SCRIPT.replace("4096", "$HIDDEN"))
        .expect("a file");
    std::fs::write(&answers, "HIDDEN=1024\n").expect("a file");
    let found = json(&printed(&["report", "--format", "json", &script, &answers], "", 0));
    assert_eq!(found["settings"]["hidden_size"]["value"], 1024);
    std::fs::remove_dir_all(&folder).expect("the folder");
}

#[test]
fn a_check_ends_with_its_verdict() {
    let verdict = |options: &[&str], code| printed(&[&["check"], options, &["-"]].concat(), SCRIPT, code);
    let fits = verdict(&["--accelerator", "H100-SXM"], 0);
    assert!(fits.starts_with("fits") && fits.lines().count() == 1, "{fits}");
    let large = ["--accelerator", "V100-SXM2-32GB", "--set", "micro_batch_size=32"];
    assert!(verdict(&large, 1).starts_with("does not fit"));
    // All memory but what is used is more than nothing, and less than all of it.
    assert!(verdict(&["--accelerator", "H100-SXM", "--headroom", "99"], 0).starts_with("fits tightly"));
    verdict(&["--accelerator", "H100-SXM", "--headroom", "99", "--fail-on", "tight"], 1);
    assert_eq!(printed(&["check", "-"], "", 2), "no plan\n");
}

#[test]
fn a_link_carries_what_it_was_made_of() {
    let made = ["link", "--page", "https://example.org/", "--set", "tensor_model_parallel_size=4", "-"];
    let link = printed(&made, SCRIPT, 0);
    let link = link.trim_end();
    assert!(link.starts_with("https://example.org/#z1:"), "{link}");
    let opened = printed(&["link", "--open", link], "", 0);
    assert!(
        opened.starts_with("--set tensor_model_parallel_size=4\n") && opened.contains(SCRIPT),
        "{opened}"
    );
    let of_link = json(&printed(&["report", "--format", "json", link], "", 0));
    assert_eq!(of_link["settings"]["tensor_model_parallel_size"]["value"], 4);
    printed(&["report", "#z1:AAAA"], "", 2);
}

#[test]
fn the_catalog_is_listed() {
    let known = printed(&["accelerators"], "", 0);
    assert!(known.lines().any(|line| line.starts_with("H100-SXM ")), "{known}");
    let rows = json(&printed(&["accelerators", "--format", "json", "h100-sxm"], "", 0));
    assert!(rows[0]["memory"].as_u64().is_some_and(|memory| memory > 1 << 36), "{rows}");
    let rows = json(&printed(&["models", "--format", "json"], "", 0));
    assert!(rows.as_array().is_some_and(|rows| rows.len() > 20));
    assert!(
        rows.as_array().is_some_and(|rows| rows.iter().all(|row| row["settings"]["num_layers"].is_string()))
    );
}

#[test]
fn shells_and_man_know_the_commands() {
    assert!(printed(&["completions", "bash"], "", 0).contains("accelerators"));
    assert!(printed(&["man"], "", 0).contains("shardscope"));
    assert!(printed(&["--help"], "", 0).contains("check"));
}

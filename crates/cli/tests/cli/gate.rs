//! `check`: verdicts, exit codes, and what a run is checked against.

use crate::{Folder, SCRIPT, call, json, printed};

/// The line that a check of `options` prints, from the document of the same run.
fn line(options: &[&str]) -> String {
    let document = json(&printed(&[&["report", "--format", "json"], options, &["-"]].concat(), SCRIPT, 0));
    let (memory, time) = (&document["report"]["memory"], &document["report"]["time"]);
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let gib = |value: &serde_json::Value| number(value) / f64::from(1 << 30);
    format!(
        ": {:.2} GiB of {:.2} GiB on pipeline rank {} ({}); {:.2} s a step, {:.1}% MFU",
        gib(&memory["worst"]["peak_reserved"]),
        gib(&memory["capacity"]),
        memory["worst"]["pipeline_rank"],
        memory["worst"]["at"].as_str().expect("a phase"),
        number(&time["step_seconds"]),
        100.0 * number(&time["mfu"]),
    )
}

#[test]
fn a_check_ends_with_its_verdict() {
    let verdict = |options: &[&str], code| printed(&[&["check"], options, &["-"]].concat(), SCRIPT, code);
    let options = ["--accelerator", "H100-SXM"];
    assert_eq!(verdict(&options, 0), format!("fits{}\n", line(&options)));
    let large = ["--accelerator", "V100-SXM2-32GB", "--set", "micro_batch_size=32"];
    assert_eq!(verdict(&large, 1), format!("does not fit{}\n", line(&large)));
    // No published run is on a TPU: its step time and MFU are never shown without saying so.
    let tpu = ["--accelerator", "TPU-v5p", "--set", "micro_batch_size=8"];
    assert_eq!(verdict(&tpu, 0), format!("fits{}, not calibrated\n", line(&tpu)));
    // Two thirds of the memory leave a third free.
    let full = ["--accelerator", "H100-SXM", "--set", "micro_batch_size=8"];
    assert!(verdict(&full, 0).starts_with("fits: "));
    let tight = [&full[..], &["--headroom", "50"]].concat();
    assert!(verdict(&tight, 0).starts_with("fits tightly: "));
    verdict(&[&tight[..], &["--fail-on", "tight"]].concat(), 1);
    // What exceeds the card's memory, but can be released by PyTorch, is not part of the figure next to the card's.
    let caching = ["seq_length=3456", "max_position_embeddings=3456"];
    let caching = [&full[..], &["--set", caching[0], "--set", caching[1]]].concat();
    let said = verdict(&caching, 0);
    let figures = "fits tightly: 76.32 GiB of 79.65 GiB on pipeline rank 0 (";
    assert!(said.starts_with(figures), "{said}");
    assert!(said.contains("), once PyTorch releases 3.98 GiB of cached blocks; "), "{said}");
    let strict = [&["check", "--format", "json", "--fail-on", "tight"], &caching[..], &["-"]].concat();
    let failures = &json(&printed(&strict, SCRIPT, 1))["failures"];
    assert_eq!(failures[0], "it fits only once PyTorch releases 3.98 GiB of cached blocks");
    verdict(&["--headroom", "51"], 2);
    // Told and let pass, for whoever wants the answer alone.
    assert_eq!(verdict(&[&large[..], &["--fail-on", "none"]].concat(), 0), verdict(&large, 1));
    assert_eq!(printed(&["check", "-"], "", 2), "no plan\n");
}

#[test]
fn a_check_is_held_against_another_run() {
    let folder = Folder::new("against");
    let before = folder.file("before.sh", SCRIPT);
    let slow = SCRIPT.replace("tensor-model-parallel-size 2", "tensor-model-parallel-size 8");
    let step = |script: &str| {
        json(&printed(&["report", "--format", "json", "-"], script, 0))["report"]["time"]["step_seconds"]
            .as_f64()
            .expect("seconds")
    };
    let slower = 100.0 * (step(&slow) / step(SCRIPT) - 1.0);
    assert!(slower > 1.0, "the slower run is {slower} % slower");
    let check = |limit: f64, script: &str, code| {
        let fail_on = format!("slower:{limit}%");
        printed(&["check", "--fail-on", &fail_on, "--against", &before, "-"], script, code)
    };
    let line = check(slower + 0.5, &slow, 0);
    let end = format!(", +{slower:.1}% against {:.2} s\n", step(SCRIPT));
    assert!(line.ends_with(&end), "{line} {end}");
    check((slower - 0.5).min(99.0), &slow, 1);
    // The line says that it fits: why it fails stands beside it.
    let fail_on = ["check", "--accelerator", "H100-SXM", "--fail-on", "slower", "--against", &before, "-"];
    let told = String::from_utf8_lossy(&call(&fail_on, &slow).stderr).into_owned();
    assert_eq!(told, format!("fails: a step takes {slower:.1}% longer, more than 0.0%\n"));
    assert!(check(0.0, SCRIPT, 0).contains(", +0.0% against "));
    // What does not fit fails whatever else is asked.
    let large = ["--accelerator", "V100-SXM2-32GB", "--set", "micro_batch_size=32"];
    printed(
        &[&["check", "--fail-on", "slower:5%", "--against", &before], &large[..], &["-"]].concat(),
        SCRIPT,
        1,
    );
    // Without something to be slower than, or with something that does not form a plan, there is no answer.
    printed(&["check", "--fail-on", "slower:5%", "-"], SCRIPT, 2);
    let none = folder.file("none.sh", "echo nothing\n");
    printed(&["check", "--against", &none, "-"], SCRIPT, 2);
    printed(&["check", "--fail-on", "often", "-"], SCRIPT, 2);
}

#[test]
fn a_check_as_an_object_says_what_failed() {
    let large =
        ["check", "--format", "json", "--accelerator", "V100-SXM2-32GB", "--set", "micro_batch_size=32", "-"];
    let checked = json(&printed(&large, SCRIPT, 1));
    assert_eq!(checked["passes"], false);
    assert_eq!(checked["verdict"], "out_of_memory");
    assert_eq!(checked["failures"], serde_json::json!(["it does not fit"]));
    assert_eq!(checked["gpus"], 16);
    let [gpus, rate] = ["gpu_hours_per_billion_tokens", "tokens_per_second"].map(|key| checked[key].as_f64());
    let (hours, rate) = (gpus.expect("hours"), rate.expect("a rate"));
    assert!((hours * rate / (16.0 * 1e9 / 3600.0) - 1.0).abs() < 1e-12, "{checked}");
    let open = json(&printed(&["check", "--format", "json", "-"], "echo\n", 2));
    assert!(open["verdict"].is_null() && open["open"].is_string(), "{open}");
    let entry = printed(&["check", "--format", "markdown", "-"], SCRIPT, 0);
    assert!(entry.starts_with("- fits"), "{entry}");
}

#[test]
fn every_file_is_a_run_of_its_own_where_asked() {
    let folder = Folder::new("each");
    let fits = folder.file("fits.sh", SCRIPT);
    let other = folder.file("other.sh", "cp a b\n");
    let open = folder.file("open.sh", &SCRIPT.replace("--num-layers 24", "--num-layers $LAYERS"));
    let large = folder.file("large.sh", &SCRIPT.replace("micro-batch-size 4", "micro-batch-size 128"));
    let lines = printed(&["check", "--each", &fits, &other, &large], "", 1);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with(&format!("{fits}: fits: ")), "{lines:?}");
    assert!(lines[1].starts_with(&format!("{large}: does not fit: ")), "{lines:?}");
    assert_eq!(printed(&["check", "--each", &other], "", 0), "");
    let line = printed(&["check", "--each", &fits, &open], "", 2);
    assert!(line.contains(&format!("{open}: no plan: ")), "{line}");
    let output = call(&["check", "--each", "--pass-open", &fits, &open], "");
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("{open}: no plan: ")));
    printed(&["check", "--pass-open", &fits], "", 2);
}

//! `measured`: what tools around a run say, beside the prediction.

use std::path::Path;

use crate::{Folder, SCRIPT, call, json, printed};

fn recorded(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/run_tools").join(name).display().to_string()
}

#[test]
fn every_tool_s_figure_stands_beside_its_prediction() {
    let folder = Folder::new("measured");
    let script = folder.file("train.sh", SCRIPT);
    let log = folder.file(
        "megatron.log",
        " iteration 1/ 9 | elapsed time per iteration (ms): 9000.0 | throughput per GPU (TFLOP/s/GPU): 250.0 |\n \
         iteration 2/ 9 | elapsed time per iteration (ms): 5000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 |\n",
    );
    let smi = folder.file("smi.csv", "index, memory.used [MiB]\n0, 40000 MiB\n1, 39000 MiB\n");
    let options = ["--accelerator", "H100-SXM", "--format", "json"];
    let (snapshot, summary) = (recorded("snapshot.pickle"), recorded("memory_summary.txt"));
    let files = [script.as_str(), &log, &smi, &snapshot, &summary];
    let lines = json(&printed(&[&["measured"], &options[..], &files].concat(), "", 0));
    let document =
        json(&printed(&["report", "--accelerator", "H100-SXM", "--format", "json", &script], "", 0));
    let report = &document["report"];
    let largest = |name: &str| {
        let ranks = report["memory"]["ranks"].as_array().expect("ranks").iter();
        ranks.filter_map(|rank| rank[name].as_f64()).fold(0.0, f64::max)
    };
    let figures: Vec<(&str, &str, f64, f64)> = lines
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| {
            let number = |name: &str| line[name].as_f64().expect("a number");
            assert!((number("off") - (number("predicted") / number("measured") - 1.0)).abs() < 1e-12);
            (
                line["figure"].as_str().expect("a name"),
                line["file"].as_str().expect("a file"),
                number("predicted"),
                number("measured"),
            )
        })
        .collect();
    let step = report["time"]["step_seconds"].as_f64().expect("a time");
    let mib = f64::from(1 << 20);
    assert_eq!(figures[0], ("step time", "megatron.log", step, 5.0));
    let tokens = report["time"]["tokens_per_second"].as_f64().expect("a rate");
    assert_eq!((figures[1].0, figures[1].2), ("tokens per second", tokens));
    assert!((figures[1].3 / (tokens * step / 5.0) - 1.0).abs() < 1e-12);
    assert_eq!((figures[2].0, Some(figures[2].2)), ("MFU", report["time"]["mfu"].as_f64()));
    assert_eq!((figures[3].0, figures[3].3), ("per GPU, as Megatron-LM counts", 400e12));
    assert_eq!(figures[4], ("in use on the device", "smi.csv", largest("peak_reserved"), 40_000.0 * mib));
    assert_eq!((figures[5].0, figures[5].1), ("peak allocated", "snapshot.pickle"));
    assert_eq!((figures[5].2, figures[5].3), (largest("peak_allocated"), 1_142_784.0));
    assert_eq!((figures[7].0, figures[7].3), ("peak allocated", f64::from(58_397) * mib));
    assert_eq!(figures.len(), 9);
    // In words, and as a table; the log may come by standard input.
    let text = printed(&["measured", &script, "-"], &std::fs::read_to_string(&log).expect("the log"), 0);
    assert!(
        text.starts_with("step time: predicted 4.81 s, measured 5.00 s (−3.8%) by Megatron log in -\n"),
        "{text}"
    );
    let table = printed(&["measured", "--format", "markdown", &script, &smi], "", 0);
    assert!(table.contains("| in use on the device | 34.69 GiB | 39.06 GiB | "), "{table}");
}

#[test]
fn what_is_no_measurement_is_reported() {
    let folder = Folder::new("unmeasured");
    let script = folder.file("train.sh", SCRIPT);
    let answer = |files: &[&str]| {
        let output = call(&[&["measured"], files].concat(), "");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(answer(&[&script]).contains("no file has a measurement"));
    assert!(answer(&[&recorded("snapshot.pickle")]).contains("no run is given"));
    let hostile = folder.0.join("evil.pickle");
    std::fs::write(&hostile, b"\x80\x02cposix\nsystem\nq\x00X\x04\x00\x00\x00echoq\x01\x85q\x02Rq\x03.")
        .expect("a file");
    let said = answer(&[&script, &hostile.display().to_string()]);
    assert!(said.contains("GLOBAL would run arbitrary code"), "{said}");
}

#[test]
fn a_trainer_s_run_is_contributed_too() {
    let folder = Folder::new("contribute-trainer");
    let script = folder.file("train.sh", SCRIPT);
    let files =
        [script.as_str(), &recorded("trainer.log"), &recorded("memory_stats.txt"), &recorded("profiler.txt")];
    let said = [
        "--source",
        "https://example.org/log",
        "--date",
        "2026-11",
        "--versions",
        "transformers 5.23",
        "--accelerator",
        "H100-SXM",
    ];
    let row = json(&printed(&[&["contribute"], &said[..], &files].concat(), "", 0));
    assert_eq!(row["steps"], 24);
    assert_eq!(
        (&row["max_allocated"], &row["max_reserved"]),
        (&61_234_567_890_u64.into(), &70_345_678_901_u64.into())
    );
    let of_log = json(&printed(&["measured", "--format", "json", &script, &recorded("trainer.log")], "", 0));
    assert_eq!(row["step_seconds"], of_log[0]["measured"]);
}

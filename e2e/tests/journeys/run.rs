//! The run itself: its schedule, its script with changes, its log, what the reader measured.
use std::fs;
use std::path::PathBuf;

use e2e::{Key, Page, Scratch, root};
use serde_json::json;

use super::steps::panel;

#[test]
fn the_schedule_is_looked_at_closely() {
    let page = Page::open("");
    panel(&page, "schedule");
    let whole = page.text(".pans [role=status]");
    for _ in 0..3 {
        page.click(".pans [aria-label=closer]");
    }
    let near = page.until("a part of the step", || {
        let text = page.text(".pans [role=status]");
        (text != whole).then_some(text)
    });
    page.click(".lanes");
    page.press(Key::Right);
    page.until("a later part", || (page.text(".pans [role=status]") != near).then_some(()));
    page.press("0");
    page.until("the whole step", || (page.text(".pans [role=status]") == whole).then_some(()));
    let peak = page.attribute(".curve-area", "d");
    page.choose(".curve select", "1");
    page.until("another stage's memory", || (page.attribute(".curve-area", "d") != peak).then_some(()));
    page.click(".others summary");
    page.wait_text(".others", "1F1B (this plan)");
    assert!(page.count(".others tbody tr") > 5);
    // The plan's step and another one's stand over each other, on one scale of time: the longer one fills the width.
    assert_eq!(page.count(".others .step-of"), 2);
    let other = || page.texts(".others figcaption").pop().unwrap_or_default();
    page.click_text(".others th button", "V-Min, VPP 2");
    page.until("V-Min below it", || other().starts_with("V-Min").then_some(()));
    let widths = page.js(
        "return [...document.querySelectorAll('.others .lane-boxes')].map(e => e.getBoundingClientRect().width)",
        &[],
    );
    let width = |at: usize| widths[at].as_f64().expect("a width");
    assert!(width(0) > 0.5 * width(1) && width(0) < width(1), "V-Min takes longer: {widths}");
    assert_eq!(page.axe(), []);
    page.screenshot_whole("schedules");
    page.click_text(".others button", "Apply");
    page.wait_text("#schedule header", "Interleaved 1F1B");
    page.assert_quiet();
}

#[test]
fn a_change_is_written_into_the_script() {
    let page = Page::open("");
    page.click("[aria-label='More: nodes']");
    panel(&page, "settings");
    page.wait_text(".rewritten mark", "4");
    assert!(page.text(".rewritten").contains("NNODES="));
    assert_eq!(page.axe(), []);
    page.click_text(".settings button", "Apply to script");
    page.until("the script with it", || page.value("#script").contains("NNODES=4").then_some(()));
    page.wait_gone(".rewritten");
    page.wait_text(".plan-name", "DP 8");
    page.press(Key::Control + "z");
    page.assert_quiet();
}

/// A model with experts, whose step takes seconds.
const EXPERTS: &str = "torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 \
    --num-attention-heads 16 --num-experts 8 --expert-model-parallel-size 8 --moe-router-topk 2 --seq-length 4096 \
    --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 2048 --vocab-size 32000 --swiglu --bf16 \
    --use-distributed-optimizer\n";

#[test]
fn a_log_stands_beside_the_prediction() {
    let page = Page::open("");
    panel(&page, "time");
    page.click("#own-run summary");
    page.type_into(
        "#own-run textarea",
        " iteration 2/ 10 | elapsed time per iteration (ms): 33000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 |",
    );
    page.press(Key::Tab);
    page.wait_text("#time", "33.00 s");
    page.wait_text("#time", "per GPU, as Megatron-LM counts");
    assert_eq!(page.axe(), []);
    // Published dense runs say that one layout's error tells nothing of the next: there is nothing to calibrate.
    page.wait_text("#time", "estimates of other layouts stay as they are");
    // Of models with experts they say that it does.
    page.fill("#script", EXPERTS);
    page.wait_text(".plan-name", "32 × H100");
    // "5.03 s per step · 5.04B · …"
    let predicted = page.text(".plan-name");
    let seconds: f64 = predicted.split(' ').next().and_then(|number| number.parse().ok()).expect("seconds");
    page.click_text("#time button", "Calibrate other layouts with this step");
    // The figure stands among the reader's own, which open with it: what was measured over what is predicted.
    let stated = page
        .until("the figure stated", || page.value("#time .own label:nth-child(4) input").parse::<f64>().ok());
    assert!((stated * seconds / 33.0 - 1.0).abs() < 0.01, "{stated} of {predicted}");
}

/// Pastes into the box for the run's own output: typed line breaks would be keys.
fn paste_log(page: &Page, log: &str) {
    page.js(
        "const box = document.querySelector('#own-run textarea'); box.value = arguments[0];
         for (const kind of ['input', 'change']) box.dispatchEvent(new Event(kind, { bubbles: true }))",
        &[json!(log)],
    );
}

fn recorded(name: &str) -> PathBuf {
    root().join("tests/data/run_tools").join(name)
}

#[test]
fn output_of_every_tool_stands_beside_the_prediction() {
    let page = Page::open("");
    panel(&page, "time");
    page.click("#own-run summary");
    let log = fs::read_to_string(recorded("trainer.log")).expect("a log");
    paste_log(&page, &log);
    page.wait_text("#own-run", "Trainer log, in the box");
    page.wait_text(
        "#own-run",
        "It does not tell memory allocated, memory reserved or memory in use on the device.",
    );
    // It is of a model a thousand times smaller than the example.
    page.wait_text("#own-run .remark", "Shorter than the GPUs' peak allows");
    let figures = || page.texts("#own-run .figures tbody th[scope=row]");
    assert_eq!(figures(), ["step time", "tokens per second", "MFU"]);
    // A snapshot is dropped on the script, and does not become one.
    let script = page.value("#script");
    page.drop_file("#script", &recorded("snapshot.pickle"));
    page.wait_text("#own-run", "PyTorch memory snapshot, snapshot.pickle");
    page.wait_text("#own-run", "peak reserved by PyTorch");
    assert_eq!(page.value("#script"), script);
    assert_eq!(figures().len(), 5);
    // A profile and nvidia-smi's lines by the button; a script among them is none.
    let folder = Scratch::new();
    let smi = folder.path().join("smi.csv");
    fs::write(&smi, "index, memory.used [MiB]\n0, 40000 MiB\n1, 39000 MiB\n").expect("a file");
    let other = folder.path().join("letter.txt");
    fs::write(&other, "a letter").expect("a file");
    page.choose_file("#own-run input[type=file]", &recorded("profiler.txt"));
    page.wait_text("#own-run", "PyTorch profiler, profiler.txt");
    page.choose_file("#own-run input[type=file]", &smi);
    page.wait_text("#own-run", "39.06 GiB");
    page.choose_file("#own-run input[type=file]", &other);
    page.wait_text(
        "#own-run [role=alert]",
        "letter.txt is not read: it has no output of a tool that is read here.",
    );
    // What would run code is refused by name, and nothing in it is run.
    let hostile = folder.path().join("hostile.pickle");
    fs::write(&hostile, b"\x80\x02cposix\nsystem\nq\x00X\x04\x00\x00\x00echoq\x01\x85q\x02Rq\x03.")
        .expect("a file");
    page.drop_file("#script", &hostile);
    page.wait_text("#own-run [role=alert]", "GLOBAL would run arbitrary code");
    page.click_text("#own-run [role=alert] button", "Dismiss");
    page.wait_gone("#own-run [role=alert]");
    assert_eq!(page.axe(), []);
    page.screenshot("own-run");
    page.phone();
    assert_eq!(page.overflow(), 0);
    page.screenshot_whole("own-run-phone");
    page.prefer_dark(true);
    page.screenshot_whole("own-run-dark");
    page.set_window(1280, 900);
    page.prefer_dark(false);
    // All of it is there after a reload, and goes as it came.
    page.until("the address written", || page.url().contains('#').then_some(()));
    page.reload();
    panel(&page, "time");
    page.wait_text("#own-run", "Trainer log, in the box");
    page.wait_text("#own-run", "PyTorch memory snapshot, snapshot.pickle");
    page.click("#own-run [aria-label='Remove snapshot.pickle']");
    page.until("the snapshot gone", || {
        (!page.text("#own-run").contains("memory snapshot, snap")).then_some(())
    });
    // A Trainer's log and a profile make a row; the profile's slower steps are not its pace.
    page.click_text("#contribute button", "Contribute this run");
    page.wait_text("#contribute", "source: an https address");
    let row: serde_json::Value = serde_json::from_str(&page.value("#evidence-row")).expect("a line of JSON");
    assert_eq!(row["steps"], 24);
    page.assert_quiet();
}

/// A snapshot as JSON of some 130 MB, which takes seconds to read.
const ENTRIES: usize = 2_500_000;

#[test]
fn a_large_snapshot_is_read_beside_the_page_and_can_be_stopped() {
    let folder = Scratch::new();
    let file = folder.path().join("large.json");
    let entry = r#"{"action": "alloc", "size": 1024, "stream": 0},"#;
    let snapshot = format!(
        r#"{{"segments": [{{"device": 0, "total_size": 8589934592, "allocated_size": 4294967296}}], "device_traces": [[{}{{"action": "alloc", "size": 512}}]]}}"#,
        entry.repeat(ENTRIES)
    );
    fs::write(&file, snapshot).expect("a file");
    let page = Page::open("");
    panel(&page, "time");
    page.js(
        "window.longest = 0; new PerformanceObserver(list => { for (const one of list.getEntries()) longest = Math.max(longest, one.duration) }).observe({ type: 'longtask' })",
        &[],
    );
    page.drop_file("#script", &file);
    page.wait_text("#own-run .own-files [role=status]", "Reading large.json (");
    page.click_text("#own-run .own-files button", "Stop");
    page.until("nothing read", || page.text("#own-run .own-files").is_empty().then_some(()));
    assert_eq!(page.count("#own-run .figures"), 0);
    page.drop_file("#script", &file);
    page.wait_text("#own-run", "PyTorch memory snapshot, large.json");
    page.wait_text("#own-run", "8.00 GiB");
    let longest = page.js("return window.longest", &[]).as_f64().expect("a time");
    println!("the longest task of the page: {longest} ms");
    // Reading it there would take seconds; drawing its figures on a machine that is busy may take more than usual.
    assert!(longest < 1_000.0, "{longest} ms");
    page.assert_quiet();
}

#[test]
fn a_log_among_the_launch_texts_is_none() {
    let page = Page::open("");
    // Alone in the box for scripts it is told where it belongs.
    page.fill(
        "#script",
        "  3%|3         | 30/1000 [02:30<1:20:50,  5.00s/it]\n{'loss': 2.5, 'epoch': 0.1}\n",
    );
    page.wait_text("#diagnostics", "This is the output of Hugging Face's Trainer");
    page.press(Key::Control + "z");
    // Dropped together, the script becomes the run and the log is compared with it.
    let folder = Scratch::new();
    let (script, log) = (folder.path().join("train.sh"), folder.path().join("slurm-17.out"));
    fs::write(&script, EXPERTS).expect("a file");
    fs::write(&log, "  3%|3         | 30/1000 [02:30<1:20:50,  5.00s/it]\r  3%|3         | 31/1000 [02:35<1:20:45,  5.00s/it]\r").expect("a file");
    page.drop_files("#script", &[log.as_path(), script.as_path()]);
    page.wait_text(".plan-name", "32 × H100");
    page.wait_text(".beside", "slurm-17.out");
    assert_eq!(page.value("#script"), EXPERTS);
    panel(&page, "time");
    page.wait_text("#own-run", "Trainer log, slurm-17.out");
    page.wait_text("#own-run", "5.00 s");
    page.assert_quiet();
}

#[test]
fn a_run_that_was_measured_becomes_a_row_of_evidence() {
    let page = Page::open("");
    panel(&page, "time");
    page.click("#own-run summary");
    let log: String = (1..=12)
        .map(|step| {
            format!(" iteration {step}/ 12 | elapsed time per iteration (ms): {}.0 |\n", 5_000 + step)
        })
        .collect();
    paste_log(&page, &log);
    page.click_text("#contribute button", "Contribute this run");
    page.wait_text("#contribute", "source: an https address");
    page.click_text("#contribute button", "It ran on H100-SXM");
    for (place, words) in [(1, "https://example.org/log"), (2, "2026-03"), (3, "core 0.14, torch 2.9")] {
        page.type_into(&format!("#contribute label:nth-child({place}) input"), words);
        page.press(Key::Tab);
    }
    page.wait_text("#contribute [role=status]", "The row is complete.");
    let row = page.value("#evidence-row");
    let read: serde_json::Value = serde_json::from_str(&row).expect("a line of JSON");
    assert_eq!((&read["steps"], &read["step_seconds"]), (&12.into(), &5.007.into()));
    assert_eq!(read["settings"]["num_layers"], "24");
    // Nothing of the script: not a word of its comments.
    assert!(!row.contains("Edit anything"), "{row}");
    assert_eq!(page.axe(), []);
    page.screenshot("contribute");
    page.assert_quiet();
}

#[test]
fn what_was_measured_takes_the_place_of_the_data_sheet() {
    let page = Page::open("");
    panel(&page, "time");
    let before = page.text("#time strong");
    page.click("#time details:nth-of-type(1) summary");
    page.type_into("#time .own label:first-child input", "200");
    page.press(Key::Tab);
    page.until("another step time", || (page.text("#time strong") != before).then_some(()));
    page.type_into("#time .own label:nth-child(6) input", "2");
    page.press(Key::Tab);
    page.wait_text("#time .training", "and cost");
    page.assert_quiet();
}

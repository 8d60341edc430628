//! The run itself: its schedule, its script with changes, its log, what the reader measured.
use e2e::{Key, Page};

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
    page.click("#time details:nth-of-type(2) summary");
    page.type_into(
        "#time textarea",
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

#[test]
fn a_run_that_was_measured_becomes_a_row_of_evidence() {
    let page = Page::open("");
    panel(&page, "time");
    page.click("#time details:nth-of-type(2) summary");
    let log: String = (1..=12)
        .map(|step| {
            format!(" iteration {step}/ 12 | elapsed time per iteration (ms): {}.0 |\\n", 5_000 + step)
        })
        .collect();
    // Pasted at once: typed line breaks would be keys.
    page.js(&format!("document.querySelector('#time textarea').value = \"{log}\";"), &[]);
    page.js(
        "document.querySelector('#time textarea').dispatchEvent(new Event('change', { bubbles: true }))",
        &[],
    );
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

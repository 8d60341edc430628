//! What the reader does with the answer: asks a number why, takes a suggestion, searches, looks beside the tool of 2023.
use e2e::{Key, Page};
use serde_json::json;

use super::steps::{panel, turn, without_workers};

#[test]
fn the_first_screen_holds_the_answer_and_the_page_does_not_scroll() {
    let page = Page::open("");
    page.set_window(1280, 800);
    let inside = |css: &str| {
        let bottom = page.js(
            "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return box.height && box.bottom",
            &[serde_json::json!(css)],
        );
        let bottom = bottom.as_f64().expect("a length");
        assert!(bottom > 0.0 && bottom <= 800.0, "{css} ends at {bottom}");
    };
    for css in [
        ".verdict .big",
        ".act",
        "#memory-tab",
        ".stats",
        ".card-memory .stage-rows",
        ".mini-map svg",
        ".card-schedule .lanes",
        ".card-time .bar",
        "#script",
        ".knobs",
    ] {
        page.wait_for(css);
        inside(css);
    }
    let scrolls = page.js("return document.documentElement.scrollHeight - innerHeight", &[]);
    assert_eq!(scrolls, 0, "the page itself does not scroll");
    page.screenshot("first-screen");
    page.prefer_dark(true);
    page.screenshot("first-screen-dark");
    assert_eq!(page.axe(), []);
    page.assert_quiet();
}

#[test]
fn a_number_says_why() {
    let page = Page::open("");
    panel(&page, "memory");
    page.click("#memory .number-button");
    page.wait_text("#why", "arameters: ");
    page.click("#why .tree-inside summary");
    page.wait_text("#why .reason", "Every parameter of the rank");
    assert_eq!(page.axe(), []);
    page.screenshot("why");
    page.press(Key::Escape);
    page.until("the card closed", || {
        (page.js("return document.querySelector('#why').matches(':popover-open')", &[]) == false)
            .then_some(())
    });
    page.assert_quiet();
}

#[test]
fn the_best_change_is_applied_its_difference_shown_and_taken_back() {
    let page = Page::open("");
    let before = page.wait_text(".verdict .big", "Fits");
    let step = page.text(".stats dd");
    page.click_text(".act button", "Apply");
    page.wait_text(".changes", "step −");
    page.until("another step time", || (page.text(".stats dd") != step).then_some(()));
    page.click("button[aria-label=Undo]");
    page.until("the old verdict", || {
        (page.text(".verdict .big") == before && page.text(".stats dd") == step).then_some(())
    });
    page.assert_quiet();
}

#[test]
fn suggestions_are_applied_and_discarded() {
    let page = Page::open("");
    let before = page.wait_text(".verdict .plan-name", "TP 2");
    let step = page.text(".stats dd");
    panel(&page, "suggestions");
    page.click_text("#suggestions button", "Apply");
    page.wait_for(".changes");
    panel(&page, "settings");
    page.click_text("#settings button", "Discard changes");
    panel(&page, "overview");
    page.until("the old numbers", || (page.text(".stats dd") == step).then_some(()));
    assert_eq!(page.text(".verdict .plan-name"), before);
}

#[test]
fn what_does_not_fit_says_by_how_much_and_is_mended_in_two_clicks() {
    let page = Page::open("");
    page.wait_text(".verdict .big", "Fits");
    page.choose(".accelerator select", "A100-SXM-40GB");
    turn(&page, "More: micro-batch size, in sequences");
    turn(&page, "More: micro-batch size, in sequences");
    let said = page.wait_text(".verdict .big", "Out of memory");
    assert!(said.contains("GiB over"), "{said}");
    assert_eq!(page.axe(), []);
    page.screenshot("out-of-memory");
    page.wait_text(".act", "Makes it fit");
    page.click_text(".act button", "Apply");
    page.until("a plan that fits", || (!page.text(".verdict .big").contains("Out")).then_some(()));
    page.wait_text(".changes", "was: out of memory");
    page.screenshot("mended");
}

#[test]
fn however_many_workers_search_they_find_the_same() {
    let rows = |workers: u64| {
        let page = Page::blank();
        page.devtools("Page.enable", json!({}));
        page.devtools(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({ "source": format!("
                Object.defineProperty(navigator, 'hardwareConcurrency', {{ value: {workers} }});
                window.hired = 0;
                window.Worker = class extends Worker {{
                    constructor(...of) {{ super(...of); if (of[0] === 'worker.js') hired++ }}
                }};") }),
        );
        page.goto("");
        panel(&page, "search");
        page.wait_for("#search .layout-table tbody tr");
        page.wait_gone("#search progress");
        assert_eq!(page.js("return hired", &[]), workers);
        page.texts("#search .layout-table tbody tr")
    };
    let alone = rows(1);
    assert!(alone.len() > 5, "{alone:?}");
    assert_eq!(rows(3), alone);
}

#[test]
fn other_layouts_are_searched() {
    let page = Page::open("");
    let before = page.text(".stats dd");
    panel(&page, "search");
    page.wait_gone("#search progress");
    page.wait_for("#search .layout-table tbody tr");
    assert!(page.count("#search .front circle") > 1);
    assert_eq!(page.axe(), []);
    page.screenshot("search");
    // The list stays while the reader looks at other panels.
    panel(&page, "memory");
    panel(&page, "search");
    page.click_text("#search button", "Apply");
    page.wait_for(".changes");
    panel(&page, "overview");
    page.until("another step time", || (page.text(".stats dd") != before).then_some(()));
    page.assert_quiet();
}

#[test]
fn a_question_is_answered_and_its_answer_opens_as_a_plan() {
    let page = Page::open("");
    panel(&page, "search");
    page.choose("#questions label:first-child select", "Fewest GPUs that this run fits on");
    page.click_text("#questions button", "Answer");
    let answer = page.wait_text("#questions [role=status] strong", "hold the run");
    assert_eq!(page.axe(), []);
    page.screenshot("question");
    // The answer is the line in bold, and its button takes it.
    let gpus = page.text("#questions tbody th.strong").replace(", the answer", "").trim().to_owned();
    assert!(answer.starts_with(&gpus), "{answer:?} is not of {gpus:?}");
    page.click_text("#questions tr:has(th.strong) button", "Apply");
    page.wait_text("#questions tr.chosen", "shown");
    page.wait_text(".plan-name", &format!("{gpus} "));
    // The list stays, and another line can be taken from it.
    assert!(page.count("#questions tbody tr") > 1);
    page.assert_quiet();
}

/// Each question of the form, one after the other in one page: a sentence, and lines of which one is the answer.
#[test]
fn every_question_of_the_form_is_answered() {
    let page = Page::open("");
    panel(&page, "search");
    let form = "#questions label:first-child select";
    let names = page.texts(&format!("{form} option"));
    assert_eq!(names.len(), 8, "{names:?}");
    for name in &names {
        page.choose(form, name);
        for (field, value) in [("15e12", "1e9"), ("2.50", "2"), ("8", "2")] {
            let field = format!("#questions input[placeholder='{field}']");
            if page.count(&field) > 0 {
                page.fill(&field, value);
            }
        }
        page.click_text("#questions button", "Answer");
        let said = page.until(name, || {
            let ended = page.texts("#questions button[type=submit]") == ["Answer"];
            let said = page.texts("#questions [role=status] strong");
            said.into_iter().next().filter(|said| ended && !said.is_empty())
        });
        println!("{name}: {said}");
        assert_eq!(page.count("#questions tbody th.strong"), 1, "{name}: {said}");
    }
    // The same, with adapters alone trained, of which Megatron's legacy models have none.
    let script = super::script::replaced(&page, "NNODES=2", "NNODES=4").replace("--use-flash-attn", "");
    page.fill("#script", &script);
    page.wait_text(".plan-name", "32 × H100");
    page.choose(form, "Fewest GPUs that this run fits on");
    page.choose("#questions label:nth-child(2) select", "LoRA");
    // The new plan's own search puts rows above the form as long as it goes on.
    page.wait_for("#search .layout-table tbody tr");
    page.wait_gone("#search progress");
    page.click_text("#questions button", "Answer");
    page.wait_text("#questions [role=status] strong", " the run, the fewest");
    page.assert_quiet();
}

#[test]
fn a_question_says_what_is_missing_and_asks_without_workers_too() {
    let page = Page::blank();
    without_workers(&page);
    page.goto("");
    panel(&page, "search");
    page.choose("#questions label:first-child select", "Cheapest number of nodes");
    page.click_text("#questions button", "Answer");
    page.wait_text("#questions [role=status]", "How many tokens is it trained on?");
    page.fill("#questions input[placeholder='15e12']", "1e9");
    page.fill("#questions input[placeholder='2.50']", "2");
    page.fill("#questions input[placeholder='8']", "2");
    page.click_text("#questions button", "Answer");
    page.wait_text("#questions [role=status] strong", "cost least");
    assert_eq!(page.count("#questions tbody tr"), 2);
    page.assert_quiet();
}

#[test]
fn where_the_module_of_searches_does_not_arrive_the_page_says_so_and_goes_on() {
    let page = Page::blank();
    // What a worker asks for is beyond the reach of the page's own network settings.
    without_workers(&page);
    page.devtools("Network.enable", json!({}));
    page.devtools("Network.setBlockedURLs", json!({ "urls": ["*shardscope-worker_bg.wasm"] }));
    page.goto("");
    panel(&page, "search");
    page.wait_text("#search [role=alert]", "could not be loaded");
    page.click_text("#questions button", "Answer");
    page.wait_text("#questions [role=status]", "could not be loaded");
    turn(&page, "More: tensor parallel size");
    page.wait_text(".plan-name", "TP 4, PP 2, DP 2");
}

#[test]
fn the_tool_of_2023_stands_beside() {
    let page = Page::open("");
    panel(&page, "time");
    page.click_text("#time button", "Comparison with the 2023 Megatron analysis tool");
    let text = page.wait_text("#analysis-tool", "DP 8 × PP 1 × TP 1");
    for part in ["4.0 times ours", "69.1", "Pipeline parallel communication"] {
        assert!(text.contains(part), "{part} is missing");
    }
    assert_eq!(page.axe(), []);
}

#[test]
fn a_knob_is_turned_by_keyboard_and_the_answer_follows() {
    let page = Page::open("");
    page.wait_text(".plan-name", "TP 2, PP 2, DP 4");
    turn(&page, "More: tensor parallel size");
    page.wait_text(".plan-name", "TP 4, PP 2, DP 2");
    // The button keeps the focus, so that it can be pressed again.
    page.press(Key::Enter);
    page.wait_text(".plan-name", "TP 8, PP 2");
    page.choose(".knobs select", "full");
    panel(&page, "time");
    page.until("recomputation in the time", || page.text("#time").contains("recomputation").then_some(()));
    page.assert_quiet();
}

#[test]
fn a_refused_knob_says_why_and_leaves_the_plan() {
    let page = Page::open("");
    let plan = page.wait_text(".plan-name", "TP 2, PP 2, DP 4");
    let numbers = page.texts(".verdict .big, .stats dd");
    for _ in 0..3 {
        turn(&page, "More: tensor parallel size");
    }
    let said = page.wait_text(".refusal", "TP 16 × PP 2 needs 32 GPUs; you have 16.");
    assert!(said.ends_with("TP stays 8."), "{said}");
    page.wait_text(".plan-name", "TP 8, PP 2");
    assert_eq!(page.text(".knob:nth-child(2) output"), "8", "the knob shows what holds");
    assert_eq!(page.axe(), []);
    page.screenshot("refused");
    page.click("button[aria-label=Undo]");
    page.click("button[aria-label=Undo]");
    page.until("the first plan", || (page.text(".plan-name") == plan).then_some(()));
    assert_eq!(page.count(".refusal"), 0);
    assert_eq!(page.texts(".verdict .big, .stats dd"), numbers);
}

/// Reinforcement learning whose rollouts share the GPUs of the training.
pub(super) const ROLLOUTS: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
    data.train_batch_size=1024 data.max_prompt_length=512 data.max_response_length=1024 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct actor_rollout_ref.model.enable_gradient_checkpointing=True \\
    actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \\
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 actor_rollout_ref.rollout.n=5 \\
    trainer.n_gpus_per_node=8 trainer.nnodes=1
";

#[test]
fn reinforcement_learning_has_a_bar_for_each_phase() {
    let page = Page::open("");
    page.fill("#script", ROLLOUTS);
    page.wait_text(".plan-name", "8 × H100");
    page.wait_text("#overview .phase-bars", "take turns on the same GPUs");
    for phase in ["training", "weight update", "rollout"] {
        page.wait_text("#overview .phase-bars", phase);
    }
    assert_eq!(page.count("#overview .phase-bars .bar"), 3);
    page.wait_text(".verdict .big", "in the rollout phase");
    page.wait_text("#overview", "generating rollouts is not included");
    page.click("#overview .phase-bars .number-button");
    page.wait_text("#why", "training phase");
    page.press(Key::Escape);
    page.screenshot("phases");
    assert_eq!(page.axe(), []);
    page.assert_quiet();
}

#[test]
fn a_verdict_that_leaves_something_unread_says_so_beside_the_text_too() {
    let page = Page::open("");
    let script = page.value("#script").replace("--bf16", "--bf16 --mfu-of-my-own 3");
    page.fill("#script", &script);
    page.wait_text(".mark-without", "--mfu-of-my-own");
    page.wait_text("#diagnostics", "--mfu-of-my-own is unknown to Megatron-LM");
    assert!(!page.text("#diagnostics").contains("Everything in the text was understood"));
    page.wait_text(".found", "1 warning");
}

#[test]
fn another_script_pasted_over_the_first_is_no_change_of_it() {
    let page = Page::open("");
    let script = super::script::replaced(&page, "NNODES=2", "NNODES=4");
    page.fill("#script", &script);
    page.wait_text(".changes", "Last change");
    page.fill("#script", ROLLOUTS);
    page.wait_text(".plan-name", "8 × H100");
    assert_eq!(page.count(".changes"), 0, "the two have nothing to do with each other");
}

#[test]
fn two_schedules_share_one_cursor() {
    let page = Page::open("");
    page.click_text(".toolbar button", "Pin");
    turn(&page, "More: tensor parallel size");
    page.wait_text(".plan-name", "TP 4, PP 2, DP 2");
    panel(&page, "comparison");
    let names = page.texts("#comparison .step-of figcaption");
    assert!(names[0].starts_with("Pinned: 16 × H100-SXM, TP 2, PP 2, DP 4"), "{names:?}");
    assert!(names[1].starts_with("Now: 16 × H100-SXM, TP 4, PP 2, DP 2"), "{names:?}");
    page.js(
        "const lanes = document.querySelectorAll('#comparison .lanes')[1], box = lanes.getBoundingClientRect();
         lanes.querySelector('svg').dispatchEvent(new PointerEvent('pointermove',
             { bubbles: true, clientX: box.x + box.width / 4, clientY: box.y + 4 }))",
        &[],
    );
    page.wait_text("#comparison .lane-told", "at ");
    let cursors = page.js(
        "return [...document.querySelectorAll('#comparison .lanes')]
             .map(lanes => parseFloat(getComputedStyle(lanes, '::after').left) / lanes.getBoundingClientRect().width)",
        &[],
    );
    for cursor in cursors.as_array().expect("two") {
        assert!((cursor.as_f64().expect("a share") - 0.25).abs() < 0.01, "{cursors}");
    }
    page.screenshot("comparison-cursor");
    page.assert_quiet();
}

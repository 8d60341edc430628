//! What somebody meets who has never seen the page: each place in which an earlier edition let them believe something else.
use e2e::{Key, Page};
use serde_json::json;

use super::steps::{input, panel};

/// The time of a step on the first screen.
fn step(page: &Page) -> String {
    let figure = page.text(".stats dd");
    figure.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_model_and_gpus_are_answered_by_the_first_of_the_layouts_found() {
    let page = Page::open("");
    // Nothing of the reader's own is there, so that the tab answers its own question and no sample's.
    input(&page, "model-input");
    page.wait_text(".plan-name", "64 × H100-SXM");
    page.wait_text(".act", "Searching");
    page.wait_text("#best-title", "Fastest layouts that fit");
    let first = page.wait_text(".best li:first-child .layout[aria-pressed=true]", "TP");
    let shown = step(&page);
    assert!(first.contains(&shown), "{shown:?} is shown, and the list begins with {first:?}");
    assert_eq!(page.count(".changes"), 0, "the reader has changed nothing");
    page.screenshot("model-and-gpus");
    assert_eq!(page.axe(), []);
    // What the reader changes stays, whatever the next search finds.
    page.click("[aria-label='More: micro-batch size, in sequences']");
    page.wait_for(".changes");
    page.wait_text("#best-title", "Fastest layouts that fit");
    assert_eq!(page.count(".changes"), 1);
    page.assert_quiet();
}

#[test]
fn a_script_of_one_s_own_stays_until_something_else_is_asked_for() {
    let page = Page::open("");
    let script = super::script::replaced(&page, "NNODES=2", "NNODES=4");
    page.fill("#script", &script);
    page.wait_text(".plan-name", "32 × H100-SXM");
    input(&page, "model-input");
    page.wait_text(".start", "The result shown is for your previous input.");
    assert!(page.text(".plan-name").contains("32 × H100-SXM"));
    page.click_text(".start button", "Estimate this instead of the script");
    page.wait_text(".plan-name", "64 × H100-SXM");
}

#[test]
fn the_head_of_the_answer_and_the_suggestions_name_the_same_change_first() {
    let page = Page::open("");
    panel(&page, "search");
    page.wait_for("#search .layout-table tbody tr");
    page.wait_gone("#search progress");
    // The list can be taken along.
    page.click_text("#search button", "Copy as table");
    page.wait_text("#search", "Copied");
    let table = page.clipboard();
    assert!(
        table.starts_with("| TP | PP | VPP | CP | EP | MBS | recompute | step | peak | changes |"),
        "{table}"
    );
    assert_eq!(table.lines().count() as u64, page.count("#search .layout-table tbody tr") + 2);
    panel(&page, "overview");
    let said = page.text(".act-said span");
    panel(&page, "suggestions");
    let first = page.text("#suggestions .findings li:first-child b");
    assert!(said.contains(&first), "{said:?} and {first:?}");
    assert!(!said.contains('_'), "{said:?} names flags");
}

#[test]
fn the_name_of_a_model_is_answered_with_one_press() {
    let page = Page::open("");
    page.fill("#script", "meta-llama/Llama-3.1-8B");
    page.wait_text(".missing", "Missing information");
    page.click_text(".missing form button", "Use these");
    page.wait_for(".verdict");
}

#[test]
fn what_an_address_asks_for_and_is_not_there_is_reported() {
    let page = Page::open("?view=bogus");
    let said = page.wait_text(".broken-link", "There is no view “bogus”");
    assert!(said.contains("memory"), "{said}");
    page.click(".broken-link button");
    page.wait_gone(".broken-link");
    page.goto("?view=map&gpu=n9_g9");
    page.wait_text(".broken-link", "This plan has no GPU “n9_g9”");
    let page = Page::open("#/9?tp=2");
    let said = page.wait_text(".broken-link", "newer version");
    assert!(said.contains("The answer shown is the sample's."), "{said}");
    assert_eq!(page.axe(), []);
}

#[test]
fn the_axis_of_the_schedule_ends_with_the_step() {
    let page = Page::open("");
    let last = page.text(".card-schedule .time-axis li:last-child");
    assert_eq!(last, step(&page));
    page.wait_text(".card-schedule .work-legend", "end of step");
    panel(&page, "schedule");
    assert_eq!(page.text("#schedule .time-axis li:last-child"), last);
}

#[test]
fn the_small_map_tells_of_what_its_chip_says() {
    let page = Page::open("");
    page.wait_text(".mini-map .group-caption", "n0_g0: stage 0 of 2: 8 GPUs hold");
    page.click_text(".mini-map .chip", "TP");
    page.wait_text(".mini-map .group-caption", "n0_g0: tensor parallel group 0: 2 GPUs");
    page.click_text(".mini-map .chip", "Stage");
    // Every GPU of the first stage is lit, and none of the second.
    page.js(
        "const svg = document.querySelector('.mini-map svg'), box = svg.getBoundingClientRect();
         svg.dispatchEvent(new MouseEvent('mousemove',
             { bubbles: true, clientX: box.x + box.width * 0.3, clientY: box.y + 3 }))",
        &[],
    );
    page.wait_for(".mini-map .member");
    let lit = page.attribute(".mini-map .member", "d").unwrap_or_default();
    assert_eq!(lit.matches('M').count(), 8, "{lit}");
}

#[test]
fn sixteen_stages_have_sixteen_colors_and_no_line_runs_through_thousands_of_cells() {
    let page = Page::open("");
    input(&page, "examples");
    page.js(
        "[...document.querySelectorAll('.example strong')].find(e => e.innerText === 'Llama 3 405B').click()",
        &[],
    );
    page.wait_text(".plan-name", "16,384 × H100");
    panel(&page, "map");
    page.wait_text("#map .legend", "stage 15");
    let colors = page.js(
        "return new Set([...document.querySelectorAll('#map .legend .key rect')].map(e => getComputedStyle(e).fill)).size",
        &[],
    );
    assert_eq!(colors, 16);
    page.fill("#map input", "n3_g5");
    page.press(Key::Enter);
    page.wait_text(".about-gpu", "n3_g5");
    page.wait_for("#map .captions text");
    for _ in 0..2 {
        page.click("#map [aria-label=further]");
    }
    page.until("dots", || (page.count("#map .captions text") == 0).then_some(()));
    assert_eq!(page.count("#map .wire"), 0);
    assert!(page.count("#map .partner") > 0);
    page.screenshot("map-405b");
    // One peak, whoever tells it: the head of the answer, the bars, the GPU.
    panel(&page, "memory");
    let said = page.text(".verdict .big b");
    let bars = page.texts("#memory .figures strong");
    assert!(bars.iter().any(|bar| bar.starts_with(&said)), "{said} is none of {bars:?}");
}

#[test]
fn a_tab_that_is_chosen_moves_no_other() {
    let page = Page::open("");
    // The typeface comes after the first answer, and is wider or narrower than what stood in for it.
    page.until("the typeface", || {
        let is_here = "return [...document.fonts].some(face => face.family.includes('Inter') && face.status === 'loaded')";
        (page.js(is_here, &[]) == true).then_some(())
    });
    let places = || {
        page.js(
            "return [...document.querySelectorAll('.answer-head [role=tab]')].map(e => e.offsetLeft)",
            &[],
        )
    };
    let before = places();
    panel(&page, "communication");
    assert_eq!(places(), before);
}

#[test]
fn a_frame_is_set_up_by_its_choices() {
    let page = Page::open("");
    panel(&page, "map");
    page.click_text("#map .chip", "DP");
    page.fill("#map input", "n0_g3");
    page.press(Key::Enter);
    page.wait_text(".about-gpu", "n0_g3");
    page.click_text("button", "Share");
    page.choose("#share .view label:first-child select", "map");
    page.choose("#share .view label:last-child select", "dark");
    let frame = page.until("the frame", || {
        let frame = page.value("#frame");
        frame.contains("theme=dark").then_some(frame)
    });
    assert!(frame.contains("?embed=map&amp;theme=dark&amp;gpu=n0_g3&amp;color=data#"), "{frame}");
    assert_eq!(page.axe(), []);
}

#[test]
fn a_model_s_name_alone_becomes_the_model_of_the_form() {
    let page = Page::open("");
    page.fill("#script", "Qwen/Qwen3-8B");
    page.wait_text("#missing-title", "Missing information");
    page.click_text(".missing .ways button", "Choose GPUs for Qwen/Qwen3-8B");
    page.wait_text(".plan-name", "8.19B");
    assert!(page.text(".plan-name").contains("64 × H100-SXM"));
    assert_eq!(page.value("#start-model"), "Qwen/Qwen3-8B");
    page.assert_quiet();
}

/// An 8B on eight GPUs whose smallest way to fit fills the card.
const NARROW: &str = "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --tensor-model-parallel-size 1 --num-layers 32 \
                      --hidden-size 4096 --num-attention-heads 32 --seq-length 8192 --max-position-embeddings 8192 \
                      --micro-batch-size 4 --global-batch-size 64 --bf16 --vocab-size 128256 --swiglu\n";

#[test]
fn without_a_pipeline_each_gpu_is_out_of_memory_and_a_tight_way_out_says_so() {
    let page = Page::blank();
    page.devtools("Page.enable", json!({}));
    // A search would find a roomier layout: here nobody answers.
    let source = "window.Worker = class extends Worker {
        postMessage(task) { if (!String(task).includes('Layouts')) super.postMessage(task) }
    };";
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source }));
    page.goto("");
    page.wait_for(".plan-bar");
    page.fill("#script", NARROW);
    page.wait_text(".verdict .big", "each GPU needs 303.3 of 79.6 GiB: 223.6 GiB over");
    page.wait_text(".act", "peak 79.64 GiB (tight)");
}

#[test]
fn figures_that_read_alike_are_no_difference() {
    let page = Page::open(
        "#/1?model=Llama-3.1-70B&accelerator=H100-SXM&nodes=16&gpus_per_node=8&gbs=128&mbs=1&seq=8192&tp=8&pp=4&\
         sequence_parallel&bf16&use_distributed_optimizer",
    );
    page.wait_for(".plan-bar");
    page.click_text(".plan-bar button", "Pin");
    // Optimizer states are sharded over TP × DP: as many bytes but for the norms.
    page.click("[aria-label='More: tensor parallel size']");
    panel(&page, "comparison");
    let rows = page.texts("#comparison .figures tbody tr");
    assert!(rows.len() > 10, "{rows:?}");
    assert!(!rows.iter().any(|row| row.contains("+0.00 GiB")), "{rows:?}");
}

#[test]
fn a_search_tells_its_first_layouts_long_before_its_slice_is_over() {
    let page = Page::blank();
    page.devtools("Page.enable", json!({}));
    let source = "window.Worker = class extends Worker {
        postMessage(task) { if (task.includes('Layouts')) window.task ??= task; super.postMessage(task) }
    };";
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source }));
    page.goto("");
    panel(&page, "search");
    page.until("a search", || (page.js("return window.task ?? null", &[]) != json!(null)).then_some(()));
    // In a slice without an end all would be told at once.
    let events = "const [done] = arguments, told = [];
        const tell = text => { told.push(JSON.parse(text).Found); return told.length < 2 };
        loadSearch().then(search => search.begin(window.task, 1e9, tell))
            .then(() => setTimeout(() => done(told.map(one => one.tried < one.all)), 3000))";
    assert_eq!(page.js_async(events, &[])[0], json!(true));
}

#[test]
fn without_a_style_sheet_signs_are_no_larger_than_letters() {
    let page = Page::blank();
    page.devtools("Network.enable", json!({}));
    page.devtools("Network.setBlockedURLs", json!({ "urls": ["*.css"] }));
    page.goto("");
    page.wait_for(".plan-bar");
    let highest = "return Math.max(...[...document.querySelectorAll('svg.mark, svg.icon')]
        .map(sign => sign.getBoundingClientRect().height))";
    assert!(page.js(highest, &[]).as_f64().is_some_and(|high| high > 0.0 && high <= 20.0));
}

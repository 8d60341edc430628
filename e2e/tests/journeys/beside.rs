//! What stands beside the layouts of a search: why another is not the answer, what moves the plan, what others ran.
use e2e::Page;

use super::steps::panel;

/// Llama 3 70B on 128 GPUs, of which layouts were published.
const PUBLISHED: &str = "#/1?model=Llama-3.1-70B&accelerator=H100-SXM&nodes=16&gpus_per_node=8&gbs=128&mbs=1&seq=8192&tp=8&\
                         pp=4&sequence_parallel&bf16&use_distributed_optimizer";

/// The page with its search done.
fn searched(path: &str) -> Page {
    let page = Page::open(path);
    panel(&page, "search");
    page.wait_for("#search .layout-table tbody tr");
    page.wait_gone("#search progress");
    page.wait_for(".around");
    page
}

/// What the page says to a typed layout.
fn asked(page: &Page, text: &str, part: &str) -> String {
    page.fill("#why-not", text);
    page.click_text(".why-not button", "Ask");
    page.wait_text("#why-not-said", part)
}

#[test]
fn any_layout_that_is_typed_says_why_it_is_not_the_answer() {
    let page = searched(PUBLISHED);
    let slower = asked(&page, "TP 8 PP 8", "slower");
    assert!(slower.contains("more pipeline bubble") || slower.contains("more exposed"), "{slower}");
    asked(&page, "TP 3", "Refused: 128 GPUs cannot be divided into groups of TP 3 × PP 4");
    assert_eq!(page.count("#why-not-said button"), 0, "what does not start cannot be tried on");
    asked(&page, "TP 1 PP 1", "Out of memory by");
    asked(&page, "eight", "“eight” is not understood");
    assert_eq!(page.axe(), []);
    // It opens as the plan that was judged, and the list stays.
    asked(&page, "tp8 pp8", "slower");
    page.click_text("#why-not-said button", "Preview");
    page.wait_text(".plan-name", "PP 8");
    assert!(page.count("#search .layout-table tbody tr") > 1);
    page.assert_quiet();
}

#[test]
fn a_layout_that_is_tried_on_says_what_it_takes_longer_for() {
    let page = searched("");
    page.click_text(".layout-table tr:nth-child(3) button", "Apply");
    page.wait_text(".front figcaption", "slower");
    // Of two that were looked at each can be held against the other: two clicks.
    page.click_text(".layout-table tr:nth-child(4) button", "Apply");
    page.click_text(".chosen-layout button", "Compare with the previous layout");
    page.wait_text("#comparison", "Largest changes in step time");
    page.assert_quiet();
}

#[test]
fn each_knob_says_what_it_moves_and_published_layouts_stand_in_the_picture() {
    let page = searched(PUBLISHED);
    let moves = page.texts(".around table:first-of-type tbody th");
    assert!(moves.iter().any(|one| one.starts_with("TP 8 → 4")), "{moves:?}");
    assert!(moves.iter().any(|one| one.starts_with("full recomputation")), "{moves:?}");
    let published = page.texts(".around tbody th");
    assert!(published.iter().any(|one| one == "Megatron-Bridge 26.04, 64 H100"), "{published:?}");
    assert!(page.count(".front .point.published") > 0);
    assert_eq!(page.count(".front .point.base"), 1, "the plan searched has its place, fast or slow");
    page.screenshot("around");
    page.prefer_dark(true);
    page.screenshot("around-dark");
    assert_eq!(page.axe(), []);
    let step = page.text(".plan-line, .verdict");
    page.click_text(".around tr:first-child button", "Preview");
    page.wait_for(".around tr.chosen");
    page.until("another plan", || (page.text(".plan-line, .verdict") != step).then_some(()));
    page.assert_quiet();
}

#[test]
fn who_follows_a_link_sees_the_verdict_and_then_all_of_the_page() {
    let page = Page::blank();
    page.goto_shell(PUBLISHED);
    page.wait_text(".verdict .big", "Fits");
    page.wait_for("main:not([aria-busy])");
    page.wait_text(".act", "faster");
    page.wait_for(".knobs");
    page.wait_for(".mini-map svg");
    page.assert_quiet();
}

#[test]
fn dimensions_are_varied_as_the_reader_says() {
    let page = searched(PUBLISHED);
    let invalid = page.text("#search .reasons summary");
    assert_eq!(invalid, "Invalid by reason");
    page.click("#search .reasons summary");
    page.wait_text(".refusals", "micro-batches");
    page.click(".vary summary");
    page.wait_for(".dimensions .varied");
    page.choose("select[aria-label='Tensor parallel (TP)']", "as in the plan");
    page.choose("select[aria-label='Pipeline parallel (PP)']", "between");
    page.wait_for("input[aria-label='Pipeline parallel (PP), most']");
    // Typed, so that leaving the field is a change of it.
    page.click("input[aria-label='Pipeline parallel (PP), most']");
    page.press(e2e::Key::Control + "a");
    page.press("4");
    page.press(e2e::Key::Tab);
    page.wait_text(".vary summary", "(2 set by you)");
    page.screenshot("vary");
    assert_eq!(page.overflow(), 0);
    assert_eq!(page.axe(), []);
    page.click_text("#search > .button, #search button", "Search again");
    let sizes = |column: usize| page.texts(&format!(".layout-table tbody td:nth-child({column})"));
    // The layouts of the search before stand there until the first of this one are found.
    page.until("layouts of at most 4 stages", || {
        let (tensor, pipeline) = (sizes(1), sizes(2));
        let held = tensor.iter().all(|size| size == "8")
            && pipeline.iter().all(|size| ["1", "2", "4"].contains(&size.as_str()));
        (!tensor.is_empty() && held).then_some(())
    });
    page.wait_gone("#search progress");
    page.wait_for(".around");
    page.click_text(".vary button", "Reset");
    page.wait_gone(".vary button");
    page.assert_quiet();
}

#[test]
fn the_best_changes_and_a_link_to_the_fastest_stand_beside_a_search() {
    let page = searched(PUBLISHED);
    let changes = page.texts(".around .remark");
    assert!(changes.iter().any(|one| one.starts_with("Saves ") || one.contains("; saves ")), "{changes:?}");
    // Reasons have a row of their own: beside bars and figures a phone left them a column of one word.
    page.phone();
    let narrow =
        "return Math.min(...[...document.querySelectorAll('.around .remark span')].map(e => e.clientWidth))";
    assert!(page.js(narrow, &[]).as_f64().is_some_and(|width| width > 250.0), "{:?}", page.js(narrow, &[]));
    panel(&page, "time");
    assert!(page.count(".conventions .remark") > 3);
    assert_eq!(page.overflow(), 0);
    panel(&page, "search");
    let cells = page.texts(".layout-table tbody tr:first-child td");
    let step = cells.iter().find(|cell| cell.ends_with(" s") || cell.ends_with(" ms")).expect("a step time");
    page.click_text(".taken button", "Copy link to the fastest");
    page.wait_text(".taken", "Copied");
    let link = page.clipboard();
    page.goto(&link[link.find('#').expect("a fragment")..]);
    page.wait_text("main", step);
    page.assert_quiet();
}

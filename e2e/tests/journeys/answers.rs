//! What the reader does with the answer: asks a number why, tries advice, searches, looks beside the tool of 2023.
use e2e::{Key, Page};

#[test]
fn a_number_says_why() {
    let page = Page::open("");
    page.click("#memory .number-button");
    page.wait_text("#why", "Parameters: ");
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
fn advice_is_tried_and_taken_back() {
    let page = Page::open("");
    let before = page.wait_text(".verdict .big", "Fits");
    page.click_text("#advice button", "Try it");
    page.until("another verdict", || (page.text(".verdict .big") != before).then_some(()));
    page.click_text(".settings button", "Back to the script alone");
    page.until("the old verdict", || (page.text(".verdict .big") == before).then_some(()));
}

#[test]
fn what_does_not_fit_is_said_and_mended() {
    let page = Page::open("");
    page.wait_text(".verdict .big", "Fits");
    page.choose(".accelerator select", "V100-SXM2-16GB");
    page.wait_text(".verdict .big", "Does not fit");
    page.wait_text("#advice h2", "Ways to make it fit");
    assert_eq!(page.axe(), []);
    page.screenshot_whole("does-not-fit");
}

#[test]
fn other_layouts_are_searched() {
    let page = Page::open("");
    page.click_text("#search button", "Search");
    page.wait_gone("#search progress");
    let before = page.text(".verdict .stats");
    page.click_text("#search button", "Try it");
    page.until("another step time", || (page.text(".verdict .stats") != before).then_some(()));
    page.assert_quiet();
}

#[test]
fn the_tool_of_2023_stands_beside() {
    let page = Page::open("");
    page.click("#analysis-tool summary");
    let text = page.wait_text("#analysis-tool", "DP 8 × PP 1 × TP 1");
    for part in ["4.0 times ours", "69.1", "Pipeline parallel communication"] {
        assert!(text.contains(part), "{part} is missing");
    }
    assert_eq!(page.axe(), []);
    page.screenshot_whole("everything");
}

#[test]
fn a_knob_is_turned_by_keyboard_and_the_answer_follows() {
    let page = Page::open("");
    page.wait_text(".verdict .stats", "TP 2 × PP 2 × DP 4");
    page.click("[aria-label='More: tensor parallel size']");
    page.wait_text(".verdict .stats", "TP 4 × PP 2 × DP 2");
    // The button keeps the focus, so that it can be pressed again.
    page.press(Key::Enter);
    page.wait_text(".verdict .stats", "TP 8 × PP 2 × DP 1");
    page.choose(".knobs select", "full");
    page.until("recomputation in the time", || page.text("#time").contains("recomputation").then_some(()));
    page.assert_quiet();
}

//! What readers come for, in Firefox: the page must not be one of Chromium alone.
use e2e::{Key, Kind, Page};

use super::embedding::PLAN;
use super::map::drawn;
use super::readers::TOO_LARGE;
use super::steps::{panel, turn};

#[test]
fn in_firefox_a_script_that_runs_out_of_memory_is_made_to_fit() {
    let page = Page::open_in(Kind::Firefox, "");
    page.wait_text(".verdict .big", "Fits");
    page.fill("#script", TOO_LARGE);
    page.wait_text(".verdict .big", "Out of memory");
    page.wait_text(".act", "Makes it fit");
    page.click_text(".act button", "Apply");
    page.until("a plan that fits", || (!page.text(".verdict .big").contains("Out of memory")).then_some(()));
    page.screenshot("firefox-applied");
    page.press(Key::Control + "z");
    page.wait_text(".verdict .big", "Out of memory");
    page.fill("#script", "not a script, just prose");
    page.wait_for(".missing");
    assert_eq!(page.count(".verdict"), 0, "no verdict of another text");
    page.assert_quiet();
}

#[test]
fn in_firefox_a_model_and_gpus_are_searched_beside_the_page() {
    let page = Page::open_in(Kind::Firefox, "");
    page.click_text("[role=tab]", "Model + GPUs");
    page.fill("#start-model", "Llama-3-70B");
    page.click_text(".start .chip", "128");
    page.wait_text(".plan-name", "128 × H100");
    page.wait_text("#best-title", "Fastest layouts that fit");
    page.until("five layouts", || (page.count(".best .layout") >= 5).then_some(()));
    page.screenshot("firefox-model");
    page.assert_quiet();
}

#[test]
fn in_firefox_every_panel_opens_without_an_error_and_the_map_is_read() {
    let page = Page::open_in(Kind::Firefox, "");
    turn(&page, "More: tensor parallel size");
    page.wait_text(".plan-name", "TP 4");
    for name in [
        "overview",
        "suggestions",
        "memory",
        "time",
        "schedule",
        "communication",
        "layers",
        "gemms",
        "search",
        "settings",
        "map",
    ] {
        panel(&page, name);
        page.screenshot(&format!("firefox-{name}"));
    }
    page.until("the cells", || drawn(&page, "n0_g1").then_some(()));
    page.fill("#find-gpu", "n1_g3");
    page.press(Key::Enter);
    page.wait_text(".about-gpu", "rank 11");
    page.until("the picked GPU in the address", || page.url().contains("gpu=n1_g3").then_some(()));
    for (width, height) in [(1280, 800), (500, 800)] {
        page.set_window(width, height);
        page.until("no sideways scroll", || (page.overflow() == 0).then_some(()));
    }
    page.assert_quiet();
}

#[test]
fn in_firefox_a_link_opens_and_is_shared_again() {
    let page = Page::open_in(Kind::Firefox, PLAN);
    page.wait_text(".verdict .big", "Fits");
    page.click_text("button", "Share");
    page.until("the link", || page.value("#link").contains("#/1?").then_some(()));
    page.press(Key::Escape);
    page.wait_gone("#share");
    page.reload();
    page.wait_text(".verdict .big", "Fits");
    page.assert_quiet();
}

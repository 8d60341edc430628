//! The page on a phone, in the dark, wide and narrow, without anything to scroll sideways.
use e2e::Page;

use super::steps::{input, panel, turn};

#[test]
fn nothing_overflows_at_any_width() {
    let page = Page::open("");
    page.wait_for(".verdict");
    for width in [320, 360, 768, 1024, 1280, 1920] {
        page.set_window(width, 900);
        page.until(&format!("no sideways scroll at {width}"), || (page.overflow() == 0).then_some(()));
        page.screenshot_whole(&format!("page-{width}"));
    }
}

#[test]
fn the_dark_phone_breaks_no_accessibility_rule() {
    let page = Page::open("");
    page.wait_for(".verdict");
    page.phone();
    page.prefer_dark(true);
    assert_eq!(page.axe(), []);
    page.screenshot_whole("phone-dark");
    assert_eq!(page.overflow(), 0);
}

#[test]
fn a_picked_gpu_and_an_open_error_break_no_accessibility_rule() {
    let page = Page::open("");
    panel(&page, "map");
    page.fill("#map input", "n1_g3");
    page.click_text("#map button", "Show");
    page.wait_for(".about-gpu");
    assert_eq!(page.axe(), []);
    let script = super::script::replaced(&page, "--num-layers 24", "--num-layers -24");
    page.fill("#script", &script);
    page.wait_for(".missing");
    assert_eq!(page.axe(), []);
}

#[test]
fn every_panel_opened_breaks_no_accessibility_rule() {
    let page = Page::open("");
    page.click_text(".toolbar button", "Pin");
    turn(&page, "More: tensor parallel size");
    page.wait_text(".plan-name", "TP 4, PP 2, DP 2");
    for name in [
        "overview",
        "suggestions",
        "memory",
        "time",
        "schedule",
        "communication",
        "map",
        "layers",
        "gemms",
        "search",
        "settings",
        "comparison",
    ] {
        panel(&page, name);
        // Some of what opens holds more that does.
        page.until("everything open", || {
            let closed = "const all = [...document.querySelectorAll('.answer-body details:not([open])')];
                          all.forEach(one => one.open = true); return all.length";
            (page.js(closed, &[]) == 0).then_some(())
        });
        for dark in [false, true] {
            page.prefer_dark(dark);
            assert_eq!(page.axe(), [], "{name}, dark: {dark}");
        }
        page.screenshot(&format!("panel-{name}-dark"));
        page.set_window(360, 740);
        page.until(&format!("{name} without sideways scroll"), || (page.overflow() == 0).then_some(()));
        page.set_window(1280, 900);
    }
    page.phone();
    for name in ["model-input", "examples"] {
        input(&page, name);
        assert_eq!(page.axe(), [], "{name}");
        assert_eq!(page.overflow(), 0, "{name}");
        page.screenshot(&format!("phone-{name}"));
    }
}

#[test]
fn a_shared_link_says_its_verdict_at_once_on_a_phone() {
    let page = Page::blank();
    page.phone();
    page.goto(super::embedding::PLAN);
    page.wait_text(".verdict .big", "Fits");
    let bottom =
        page.js("return document.querySelector('.verdict .big').getBoundingClientRect().bottom", &[]);
    assert!(bottom.as_f64().is_some_and(|bottom| bottom < 300.0), "the verdict ends at {bottom}");
    page.screenshot("phone-shared");
    assert_eq!(page.overflow(), 0);
}

#[test]
fn few_stops_lead_through_the_page_by_keyboard() {
    let page = Page::open("");
    page.wait_for(".verdict");
    let stops = page.js(
        "return [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
            .filter(e => e.tabIndex >= 0 && !e.disabled && e.checkVisibility()).length",
        &[],
    );
    assert!(stops.as_u64().is_some_and(|stops| stops < 90), "{stops} tab stops");
}

#[test]
fn four_times_as_large_and_with_larger_letters_everything_has_room() {
    let page = Page::open("");
    page.wait_for(".verdict");
    // 1280 x 1024 at 400 %.
    page.set_window(320, 256);
    page.until("no sideways scroll at 400 %", || (page.overflow() == 0).then_some(()));
    page.screenshot("zoom-400");
    page.set_window(1280, 900);
    // Text alone at 200 %, as a browser's setting does it.
    page.js("document.documentElement.style.fontSize = '200%'", &[]);
    page.until("no sideways scroll with large letters", || (page.overflow() == 0).then_some(()));
    page.screenshot("text-200");
    assert_eq!(page.axe(), []);
}

//! The page on a phone, in the dark, wide and narrow, without anything to scroll sideways.
use e2e::Page;

#[test]
fn nothing_overflows_at_any_width() {
    let page = Page::open("");
    page.wait_text("#map", "n0_g1");
    for width in [320, 360, 768, 1024, 1280, 1920] {
        page.set_window(width, 900);
        page.until(&format!("no sideways scroll at {width}"), || (page.overflow() == 0).then_some(()));
        page.screenshot_whole(&format!("page-{width}"));
    }
}

#[test]
fn the_dark_phone_breaks_no_accessibility_rule() {
    let page = Page::open("");
    page.wait_text("#map", "n0_g1");
    page.phone();
    page.prefer_dark(true);
    assert_eq!(page.axe(), []);
    page.screenshot_whole("phone-dark");
    assert_eq!(page.overflow(), 0);
}

#[test]
fn a_picked_gpu_and_an_open_error_break_no_accessibility_rule() {
    let page = Page::open("");
    page.fill("#map input", "n1_g3");
    page.click_text("#map button", "Show");
    page.wait_for(".about-gpu");
    let script = super::script::replaced(&page, "--num-layers 24", "--num-layers -24");
    page.fill("#script", &script);
    page.wait_for(".stale");
    assert_eq!(page.axe(), []);
}

#[test]
fn everything_opened_at_once_breaks_no_accessibility_rule() {
    let page = Page::open("");
    page.wait_text("#map", "n0_g1");
    page.click_text(".toolbar button", "Pin");
    page.click("[aria-label='More: tensor parallel size']");
    page.wait_text(".verdict .stats", "TP 4 × PP 2 × DP 2");
    page.wait_text("#compare", "Where the step's time changed most");
    page.click_text("#compare button", "Equal numbers too");
    page.click_text(".settings button", "Show every assumption");
    // Some of what opens holds more that does.
    page.until("everything open", || {
        let closed = "const all = [...document.querySelectorAll('details:not([open])')];
                      all.forEach(one => one.open = true); return all.length";
        (page.js(closed, &[]) == 0).then_some(())
    });
    page.wait_text("#analysis-tool", "DP 8 × PP 1 × TP 1");
    for dark in [false, true] {
        page.prefer_dark(dark);
        assert_eq!(page.axe(), [], "dark: {dark}");
    }
    page.screenshot_whole("everything-open");
    page.phone();
    assert_eq!(page.overflow(), 0);
    page.click_text(".toolbar button", "Start from…");
    page.wait_for("#gallery");
    assert_eq!(page.axe(), []);
    page.screenshot("gallery-phone");
}

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

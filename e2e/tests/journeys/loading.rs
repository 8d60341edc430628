//! The page arrives: complete, silent, from one place, and accessible.
use e2e::Page;

#[test]
fn the_page_loads_in_silence_from_its_own_folder() {
    let page = Page::open("");
    assert_eq!(page.text("h1"), "Shardscope");
    // the static shell says that it waits for the engine; the engine takes its place
    page.wait_gone("#app > [role=status]:only-of-type:last-child");
    page.assert_quiet();
    let requests = page.requests();
    assert!(requests.iter().any(|url| url.ends_with(".wasm")), "no engine among {requests:?}");
    page.screenshot("loading");
}

#[test]
fn the_page_breaks_no_accessibility_rule() {
    let page = Page::open("");
    page.wait_gone("#app > [role=status]:only-of-type:last-child");
    assert_eq!(page.axe(), []);
}

#[test]
fn light_and_dark_follow_the_system_unless_the_reader_chose() {
    let page = Page::open("");
    let background = || page.js("return getComputedStyle(document.body).backgroundColor", &[]);
    page.prefer_dark(false);
    let light = background();
    page.prefer_dark(true);
    let dark = background();
    assert_ne!(light, dark);
    page.js("localStorage.setItem('shardscope.theme', 'light')", &[]);
    page.reload();
    assert_eq!(background(), light);
}

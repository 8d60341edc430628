//! The page on paper.
use e2e::Page;
use serde_json::json;

#[test]
fn the_answer_comes_first_on_paper_and_nothing_to_press() {
    let page = Page::open("");
    page.prefer_dark(true);
    page.devtools("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    // What a browser says before it prints.
    page.js("dispatchEvent(new Event('beforeprint'))", &[]);
    page.set_window(794, 1123);
    let top = |css: &str| {
        let top =
            page.js("return document.querySelector(arguments[0]).getBoundingClientRect().top", &[json!(css)]);
        top.as_f64().expect("a length")
    };
    assert!(top(".verdict") < 120.0, "the verdict begins at {}", top(".verdict"));
    page.wait_for("#memory");
    page.wait_for("#communication");
    assert!(top("#settings") < top("#script"), "the script comes after the answer");
    let pressed = page.js(
        "return [...document.querySelectorAll('button, nav')].filter(e => e.offsetParent && !e.matches('.number-button, .term, .diagnostic')
            && getComputedStyle(e).display !== 'none').map(e => e.outerHTML.slice(0, 80))",
        &[],
    );
    assert_eq!(pressed, json!([]));
    assert_eq!(page.js("return getComputedStyle(document.body).backgroundColor", &[]), "rgb(255, 255, 255)");
    page.screenshot_whole("paper");
    let paper = page.devtools("Page.printToPDF", json!({ "printBackground": false }));
    let data = paper["data"].as_str().expect("a PDF");
    assert!(data.starts_with("JVBERi"), "it begins as a PDF does");
}

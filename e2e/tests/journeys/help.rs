//! Help where it is wanted: the guided tour, and terms explained where they stand.
use e2e::{Key, Page};

use super::steps::{panel, turn};

#[test]
fn the_tour_leads_through_the_page_by_mouse_and_by_keyboard() {
    let page = Page::open("");
    page.wait_for(".verdict");
    let address = page.url();
    page.click_text(".top .site button", "Tour");
    page.wait_text("#tour", "1 of 8");
    assert_eq!(page.attribute("[data-toured]", "class").as_deref(), Some("answer-head"));
    let needs = page.text("#tour p");
    assert!(needs.contains("GiB") && !needs.contains('{'), "{needs}");
    assert_eq!(page.axe(), []);
    // The card has the focus; arrows lead on and back, and never past the first step.
    for (key, step) in
        [(Key::Left, "1 of 8"), (Key::Right, "2 of 8"), (Key::Right, "3 of 8"), (Key::Left, "2 of 8")]
    {
        page.press(key);
        page.wait_text("#tour", step);
    }
    // The page beneath stays at hand, and the tour tells of the plan that is shown now.
    turn(&page, "More: tensor parallel size");
    page.wait_text(".plan-name", "TP 4, PP 2, DP 2");
    for step in 3..=8 {
        page.click_text("#tour button", "Next");
        page.wait_text("#tour", &format!("{step} of 8"));
        assert_eq!(page.count("[data-toured]"), 1, "step {step}");
        let text = page.text("#tour p");
        assert!(!text.contains('{') && !text.contains("  "), "{text}");
    }
    page.screenshot("tour");
    page.click_text("#tour button", "Done");
    page.wait_gone("#tour");
    assert_eq!(page.count("[data-toured]"), 0);
    assert_eq!(page.focused(), "button \"Share\"", "what was shown last has the focus");
    assert!(!page.url().contains("tour") && page.url().starts_with(address.split('#').next().unwrap_or("")));
    page.assert_quiet();
}

#[test]
fn the_tour_ends_by_escape_on_a_phone_in_the_dark() {
    let page = Page::open("");
    page.phone();
    page.prefer_dark(true);
    page.js("document.querySelector('.site .link').click()", &[]);
    page.wait_text("#tour", "1 of 8");
    page.until("the verdict in view", || {
        let top = page.js("return document.querySelector('.verdict').getBoundingClientRect().top", &[]);
        (top.as_f64()? < 200.0).then_some(())
    });
    assert_eq!(page.axe(), []);
    assert_eq!(page.overflow(), 0);
    page.screenshot("tour-phone-dark");
    page.press(Key::Escape);
    page.wait_gone("#tour");
    // A frame of another page has no tour, but says what its words mean.
    let plan = "accelerator=H100-SXM&bf16&gbs=64&gpus_per_node=8&heads=16&hidden=1024&layers=8&mbs=1&nodes=2&seq=1024&vocab_size=50257";
    // Behind a frame lies the page around it; axe takes that to be white.
    page.prefer_dark(false);
    page.goto(&format!("?embed=memory#/1?{plan}"));
    page.click_text(".embedded .term", "GiB");
    page.wait_text("#why", "2^30 bytes");
    assert_eq!(page.axe(), []);
    assert!(!page.text("body").contains("tour"));
}

/// Whether the card that explains is open.
fn card_is_open(page: &Page) -> bool {
    page.js("return document.querySelector('#why').matches(':popover-open')", &[]) == true
}

#[test]
fn a_term_is_explained_where_it_stands() {
    let page = Page::open("");
    panel(&page, "time");
    page.click_text("#time .term", "bubble");
    page.wait_text("#why", "a pipeline stage is idle");
    assert_eq!(page.text("#why h2").to_ascii_lowercase(), "bubble");
    assert_eq!(page.attribute("#why a", "href").as_deref(), Some("guide.html#term-bubble"));
    assert_eq!(page.axe(), []);
    page.screenshot("term");
    page.press(Key::Escape);
    page.until("the card closed", || (!card_is_open(&page)).then_some(()));
    // By keyboard alone: the term has kept the focus, opens and closes by Enter, and leads into the card by Tab.
    assert_eq!(page.focused(), "button \"bubble\"");
    page.press(Key::Enter);
    page.until("the card open", || card_is_open(&page).then_some(()));
    page.press(Key::Tab);
    assert_eq!(page.focused(), "button \"Close\"");
    page.press(Key::Enter);
    page.until("the card closed again", || (!card_is_open(&page)).then_some(()));
    // Every term of the page says what it means.
    let mut terms = 0;
    for name in
        ["overview", "memory", "time", "schedule", "communication", "map", "layers", "gemms", "search"]
    {
        panel(&page, name);
        let mute = page.js(
            "return [...document.querySelectorAll('.term')].filter(t => t.title.length < 20 || !t.textContent).length",
            &[],
        );
        assert_eq!(mute, 0, "{name}");
        terms += page.count(".answer-body .term");
    }
    assert!(terms > 30, "{terms}");
    page.assert_quiet();
}

#[test]
fn terms_are_within_reach_on_a_phone_and_gone_on_paper() {
    let page = Page::open("");
    page.phone();
    page.click_text("#overview .term", "MFU");
    page.wait_text("#why", "dense peak");
    assert_eq!(page.axe(), []);
    assert_eq!(page.overflow(), 0);
    page.screenshot("term-phone");
    page.devtools("Emulation.setEmulatedMedia", serde_json::json!({ "media": "print" }));
    let shown = "const s = e => getComputedStyle(document.querySelector(e));
                 return [s('#why').display, s('.term').textDecorationLine]";
    assert_eq!(page.js(shown, &[]), serde_json::json!(["none", "none"]));
}

#[test]
fn the_guide_has_what_a_term_leads_to() {
    let page = Page::open("");
    for (section, term) in [("time", "bubble"), ("map", "by node"), ("gemms", "FLOP/byte")] {
        page.goto("");
        panel(&page, section);
        page.click_text(&format!("#{section} .term"), term);
        page.wait_for("#why a");
        let link = page.attribute("#why a", "href").unwrap_or_default();
        page.goto_shell(&link);
        let (_, place) = link.split_once('#').expect("a place in the guide");
        page.wait_for(&format!("[id='{place}']"));
    }
    page.assert_quiet();
}

//! The guide: from the main page to a term, a formula, a setting, and back to a plan.
use e2e::Page;

const PAGES: [(&str, &str); 4] = [
    ("guide.html", "Guide"),
    ("tutorials.html", "Tutorials"),
    ("formulas.html", "Formulas"),
    ("reference.html", "Reference"),
];

fn opened(path: &str) -> Page {
    let page = Page::blank();
    page.goto_shell(path);
    page.wait_for(".chapter h2");
    page
}

/// Whether the place that the address names is in sight.
fn is_in_sight(page: &Page) -> bool {
    let top = "const place = document.getElementById(location.hash.slice(1)); if (!place) return false; \
               const { top } = place.getBoundingClientRect(); return top >= -1 && top < innerHeight";
    page.js(top, &[]).as_bool() == Some(true)
}

#[test]
fn the_guide_is_one_link_away() {
    let page = Page::open("");
    page.click_text(".site a", "Guide");
    page.wait_text("h1", "Guide");
    page.click_text(".contents:not(.folded) a", "Pipeline schedules");
    page.until("the chapter in sight", || is_in_sight(&page).then_some(()));
    page.click_text("header a", "Formulas");
    page.wait_text("h1", "Formulas");
    page.assert_quiet();
}

#[test]
fn terms_lead_to_each_other_and_to_settings() {
    let page = opened("guide.html#term-data-parallel-group");
    page.until("the term in sight", || is_in_sight(&page).then_some(()));
    page.click("#term-data-parallel-group .see a[href$='term-all-reduce']");
    page.until("the other term in sight", || is_in_sight(&page).then_some(()));
    page.goto_shell("guide.html#term-data-parallel-group");
    page.click("#term-data-parallel-group .see a[href*='setting-']");
    page.wait_text("h1", "Reference");
    page.until("the setting in sight", || is_in_sight(&page).then_some(()));
    assert!(page.url().ends_with("#setting-data_parallel_size"), "{}", page.url());
}

#[test]
fn a_formula_has_an_address_and_the_worked_plan_opens() {
    let page = opened("formulas.html");
    let link = page.attribute(".formula h4 a", "href").expect("an address of its own");
    page.click(".formula h4 a");
    page.until("the formula in sight", || is_in_sight(&page).then_some(()));
    assert!(page.url().ends_with(&link), "{}", page.url());
    // What the page shows of the same plan is what is said here.
    let said = page.text(".worked .value");
    page.click_text("section p a", "Open it on the page");
    page.wait_text("#answer", &said);
}

#[test]
fn a_model_of_the_catalog_opens() {
    let page = opened("reference.html");
    page.click("#model-llama-3-8b a");
    page.wait_text("#answer", "8.03B");
}

#[test]
fn it_is_accessible_and_fits_a_telephone_in_every_light() {
    for (path, name) in PAGES {
        let page = opened(path);
        page.wait_text("h1", name);
        assert_eq!(page.axe(), Vec::new(), "{path}");
        page.screenshot(&format!("beside-{}", path.trim_end_matches(".html")));
        page.prefer_dark(true);
        assert_eq!(page.axe(), Vec::new(), "{path}, dark");
        page.set_window(360, 800);
        page.until("no sideways scroll", || (page.overflow() == 0).then_some(()));
        page.click(".contents.folded summary");
        assert_eq!(page.axe(), Vec::new(), "{path} on a telephone");
        page.screenshot(&format!("beside-{}-phone", path.trim_end_matches(".html")));
        page.assert_quiet();
    }
}

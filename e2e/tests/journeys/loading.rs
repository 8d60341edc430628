//! The page arrives: complete, silent, from one place, and accessible.
use e2e::Page;
use serde_json::json;

#[test]
fn the_page_loads_in_silence_from_its_own_folder() {
    let page = Page::open("");
    assert_eq!(page.text("h1"), "Shardscope");
    page.assert_quiet();
    let requests = page.requests();
    assert!(requests.iter().any(|url| url.ends_with(".wasm")), "no engine among {requests:?}");
    page.screenshot("loading");
}

#[test]
fn the_page_breaks_no_accessibility_rule() {
    let page = Page::open("");
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
    assert_eq!(page.attribute("html", "data-theme").as_deref(), Some("light"));
    assert_eq!(background(), light);
}

#[test]
fn without_its_engine_the_page_has_its_heading_and_says_what_is_wrong() {
    let page = Page::blank();
    page.devtools("Network.enable", json!({}));
    page.devtools("Network.setBlockedURLs", json!({ "urls": ["*.wasm"] }));
    page.goto_shell("");
    assert_eq!(page.text("h1"), "Shardscope");
    page.wait_text("#loading", "could not be loaded");
}

#[test]
fn without_the_engine_s_tables_there_is_no_answer_and_the_page_says_so() {
    let page = Page::blank();
    page.devtools("Network.enable", json!({}));
    page.devtools("Network.setBlockedURLs", json!({ "urls": ["*tables.txt"] }));
    page.goto_shell("");
    page.wait_text("#loading", "could not be loaded");
}

/// Ends the engine as one at fault ends: by a module with one function, which is `unreachable`.
fn stop_engine(page: &Page) {
    page.js(
        "const code = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 5, 1, 3, 0, 0, 11];
         const module = new WebAssembly.Module(new Uint8Array(code));
         setTimeout(() => new WebAssembly.Instance(module).exports.f())",
        &[],
    );
    page.wait_text("#broken", "a restart keeps it");
}

#[test]
fn an_engine_that_stops_says_so_and_a_restart_keeps_the_text() {
    let page = Page::open("");
    let example = page.value("#script");
    let is_broken = || page.js("return document.getElementById('broken').checkVisibility()", &[]);
    page.fill("#script", "--num-layers 7");
    assert_eq!(is_broken(), false);
    // What the page's policy stopped before the fault is told with it.
    page.js("try { document.body.insertAdjacentHTML('beforeend', '<i>') } catch (_) {}", &[]);
    stop_engine(&page);
    assert_eq!(page.value("#script"), "--num-layers 7");
    assert_eq!(page.axe(), []);
    page.click("#copy-fault");
    page.until("the details", || {
        let copied = page.clipboard();
        let stopped = copied.contains("Stopped by the page's policy:\nrequire-trusted-types-for ");
        (stopped && copied.contains("unreachable") && copied.ends_with("\n\n--num-layers 7")).then_some(())
    });
    page.click("#restart");
    page.until("the page again", || (page.count("#app") == 1 && is_broken() == false).then_some(()));
    page.until("the text again", || (page.value("#script") == "--num-layers 7").then_some(()));
    page.wait_text("#answer", "Missing information");
    // The same text at the next fault: the page starts without it.
    stop_engine(&page);
    page.click("#restart");
    page.until("the example", || (is_broken() == false && page.value("#script") == example).then_some(()));
    page.wait_for(".verdict");
}

#[test]
fn what_the_build_wrote_into_the_page_is_what_the_engine_then_draws() {
    let page = Page::open("");
    let text = "const read = root => [...root.querySelectorAll('h1, .verdict, textarea, figure.stage-bars, figure.step-bar')].map(part => part.value ?? part.textContent);
                const asked = new XMLHttpRequest();
                asked.open('GET', './');
                asked.responseType = 'document';
                await new Promise((done) => { asked.onload = done; asked.send(); });
                const built = asked.response;
                const place = built.getElementById('first-answer');
                return [read(place), read(document.getElementById('app')), place.hasAttribute('inert')]";
    let compared = page.js(&format!("return (async () => {{ {text} }})()"), &[]);
    assert!(compared[0].as_array().is_some_and(|parts| parts.len() == 5), "{compared}");
    assert_eq!(compared[0], compared[1]);
    assert_eq!(compared[2], true);
}

#[test]
fn whoever_brings_a_plan_is_not_shown_the_example_meanwhile() {
    let own = "return document.documentElement.classList.contains('has-own')";
    let page = Page::open("");
    assert_eq!(page.js(own, &[]), false);
    page.fill("textarea", "--num-layers 7");
    page.wait_text("#answer", "Missing information");
    page.reload();
    assert_eq!(page.js(own, &[]), true, "what was given last is the plan");
    let linked = Page::open("?embed=verdict#/1?num_layers=2");
    assert_eq!(linked.js(own, &[]), true);
}

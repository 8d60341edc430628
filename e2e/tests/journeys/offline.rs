//! The page without a network, and with one that brings a newer page.
use std::fs;
use std::path::Path;

use e2e::{Page, Scratch, dist};
use serde_json::json;
use xtask::hooks::list_files;

use super::embedding::PLAN;

/// Copies the built page into `folder`.
pub(crate) fn copy_to(folder: &Path) {
    for entry in fs::read_dir(dist()).expect("dist/ can be read") {
        let file = entry.expect("a file").path();
        fs::copy(&file, folder.join(file.file_name().expect("a name"))).expect("a copy");
    }
}

/// Publishes another edition into `folder`: another heading, another sheet under another name.
pub(crate) fn publish(folder: &Path, edition: &str) {
    let page = folder.join("index.html");
    let html = fs::read_to_string(&page).expect("the page");
    let sheet = html.split("href=./").find(|part| part.starts_with("page-")).expect("a sheet");
    let (sheet, _) = sheet.split_once(".css").expect("a sheet");
    let was = folder.join(format!("{sheet}.css"));
    let css = fs::read_to_string(&was).expect("the sheet");
    fs::remove_file(was).expect("the sheet goes");
    let sheet = format!("page-{edition}");
    fs::write(folder.join(format!("{sheet}.css")), format!("{css}\n:root {{ --edition: {edition} }}"))
        .expect("a sheet");
    let (before, rest) = html.split_once("page-").expect("a sheet");
    let (_, after) = rest.split_once(".css").expect("a sheet");
    let (head, _) = before.split_once("<title>").expect("a title");
    let (_, tail) = before.split_once("</title>").expect("a title");
    fs::write(page, format!("{head}<title>{edition}</title>{tail}{sheet}.css{after}")).expect("a page");
    // what the build does last
    list_files(folder).expect("a worker and its list");
}

/// The edition of page and sheet; the names of the stores.
pub(crate) fn editions(page: &Page) -> (String, String) {
    let seen = page.js(
        "return [document.querySelector('link[rel=stylesheet]').href.replace(/.*page-|.css/g, ''),
                 getComputedStyle(document.documentElement).getPropertyValue('--edition').trim()]",
        &[],
    );
    let text = |i: usize| seen[i].as_str().unwrap_or_default().to_owned();
    (text(0), text(1))
}

/// Waits until one version is stored whole, which is another than `before`, and gives its name.
pub(crate) fn stored(page: &Page, before: &str) -> String {
    page.until("a version stored", || {
        let names = page.js_async(
            "const done = arguments[0];
             (async () => {
                 const worker = (await navigator.serviceWorker.getRegistration())?.active;
                 return worker?.state === 'activated' ? await caches.keys() : [];
             })().then(done, e => done([String(e)]))",
            &[],
        );
        match names.as_array()?.as_slice() {
            [name] if name != before => name.as_str().map(str::to_owned),
            _ => None,
        }
    })
}

#[test]
fn without_a_network_the_page_works_on() {
    let page = Page::open("");
    stored(&page, "");
    page.goto_shell("evidence.html");
    page.goto("");
    let script = super::script::replaced(&page, "NNODES=2", "NNODES=4");
    page.fill("#script", &script);
    page.until("the plan in the address", || page.url().contains("nodes=4").then_some(()));
    let numbers = page.texts(".verdict .big, .stats dd");
    page.cut_off();
    page.reload();
    assert_eq!(page.value("#script"), script);
    assert_eq!(page.texts(".verdict .big, .stats dd"), numbers);
    page.screenshot("offline");
    let script = super::script::replaced(&page, "NNODES=4", "NNODES=1");
    page.fill("#script", &script);
    page.until("another answer", || (page.texts(".verdict .big, .stats dd") != numbers).then_some(()));
    page.goto(&format!("index.html?embed=memory{PLAN}"));
    page.wait_for("#memory");
    page.goto_shell("evidence.html");
    page.wait_text("h1", "");
    assert_eq!(page.foreign_requests(), [""; 0]);
}

#[test]
fn the_next_load_shows_the_next_edition_and_never_a_mixture() {
    let site = Scratch::new();
    copy_to(site.path());
    let page = Page::blank_of(site.path());
    page.goto("");
    let first = stored(&page, "");

    publish(site.path(), "second");
    page.reload();
    assert_eq!(editions(&page), ("second".to_owned(), "second".to_owned()));
    let second = stored(&page, &first);

    // Half of a third edition: the page is there, its files and the worker's list are not in step with it. The second stays.
    publish(site.path(), "third");
    fs::remove_file(site.path().join("page-third.css")).expect("a file goes");
    page.reload();
    assert_eq!(editions(&page), ("second".to_owned(), "second".to_owned()));
    // a worker that cannot fetch all of it is thrown away
    let state = page.js_async(
        "const done = arguments[0];
         (async () => {
             const here = await navigator.serviceWorker.getRegistration();
             await here.update();
             const next = here.installing;
             if (!next) return 'none';
             while (next.state === 'installing') await new Promise(r => next.onstatechange = r);
             return next.state;
         })().then(done, e => done(String(e)))",
        &[],
    );
    assert_eq!(state, "redundant");
    let stores = page.js_async("caches.keys().then(arguments[0])", &[]);
    assert!(stores.as_array().is_some_and(|names| names.contains(&json!(second))), "{stores}");
    page.cut_off();
    page.reload();
    assert_eq!(editions(&page), ("second".to_owned(), "second".to_owned()));
    page.wait_for(".verdict");
}

#[test]
fn a_frame_registers_no_worker() {
    let site = Scratch::new();
    copy_to(site.path());
    fs::write(
        site.path().join("host.html"),
        format!("<!doctype html><title>Host</title><iframe src='./?embed=verdict{PLAN}'></iframe>"),
    )
    .expect("a page");
    let page = Page::blank_of(site.path());
    page.goto_shell("host.html");
    page.until("the panel in the frame", || {
        let there = page
            .js("return !!document.querySelector('iframe').contentDocument.querySelector('.verdict')", &[]);
        (there == true).then_some(())
    });
    let registered = page
        .js_async("navigator.serviceWorker.getRegistrations().then(all => arguments[0](all.length))", &[]);
    assert_eq!(registered, 0);
    assert!(!page.served().iter().any(|path| path.ends_with("sw.js")), "{:?}", page.served());
}

/// The paths without what Chromium fetches for itself, outside the page and its service worker, at times long after the
/// load: the icon of the tab.
fn without_the_tabs_icon(paths: &[String]) -> Vec<String> {
    paths
        .iter()
        .filter(|path| !path.starts_with("/repo/sub/icon-") || !path.ends_with(".svg"))
        .cloned()
        .collect()
}

/// The paths without the worker's own script too, which Chromium fetches again at a time of its choosing after the load,
/// to see whether there is a new one ("soft update" in the specification of service workers).
fn without_what_the_browser_looks_after(paths: &[String]) -> Vec<String> {
    let mut paths = without_the_tabs_icon(paths);
    paths.retain(|path| path != "/repo/sub/sw.js");
    paths
}

fn asked_by_the_page(page: &Page) -> Vec<String> {
    without_the_tabs_icon(&page.served())
}

#[test]
fn nothing_is_asked_of_anyone_after_the_load() {
    let page = Page::open("");
    stored(&page, "");
    // The readers come after the first answer, whenever the machine finds time: once a text is read they are here.
    let script = super::script::replaced(&page, "NNODES=2", "NNODES=8");
    page.fill("#script", &script);
    page.until("the plan in the address", || page.url().contains("nodes=8").then_some(()));
    let loaded = page.served();
    for path in &loaded {
        assert!(path.starts_with("/repo/sub/") || path == "/favicon.ico", "{path}");
    }
    let script = super::script::replaced(&page, "NNODES=8", "NNODES=4");
    page.fill("#script", &script);
    page.until("the plan in the address", || page.url().contains("nodes=4").then_some(()));
    page.click_text("button", "Pin");
    super::steps::panel(&page, "comparison");
    page.wait_text("#comparison", "Both plans are the same");
    page.click_text("button", "Share");
    // The commands push the files down once they are here.
    page.wait_text("#share", "Copy Megatron-LM command");
    page.click_text("#share button", "Report, JSON");
    page.downloaded("5.04b-on-32-h100-sxm-tp-2-pp-2-dp-8-report.json");
    page.press(e2e::Key::Escape);
    page.wait_gone("#share");
    super::steps::panel(&page, "search");
    page.wait_gone("#search progress");
    page.click_text("button", "Share");
    // The commands push the files down once they are here.
    page.wait_text("#share", "Copy Megatron-LM command");
    page.click_text("#share button", "Cluster map, PNG");
    page.downloaded("5.04b-on-32-h100-sxm-tp-2-pp-2-dp-8-map.png");
    assert_eq!(
        without_what_the_browser_looks_after(&page.served()),
        without_what_the_browser_looks_after(&loaded)
    );
    page.assert_quiet();

    // Loaded again: the page is asked for, and the browser looks whether manifest and worker are the same. The rest is there.
    let before = asked_by_the_page(&page).len();
    page.reload();
    page.wait_for(".verdict");
    let again: Vec<String> = asked_by_the_page(&page).split_off(before);
    let few = ["/repo/sub/", "/repo/sub/manifest.webmanifest", "/repo/sub/sw.js"];
    assert!(again.iter().all(|path| few.contains(&path.as_str())), "{again:?}");
}

#[test]
fn where_there_is_no_worker_and_no_storage_the_page_is_as_good() {
    let page = Page::blank();
    page.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": "for (const [on, name] of [[navigator, 'serviceWorker'], [window, 'caches'], [window, 'localStorage']])
            Object.defineProperty(on, name, { get() { throw new DOMException('none here', 'SecurityError') } })" }),
    );
    page.goto("");
    page.wait_for(".verdict");
    page.assert_quiet();
}

#[test]
fn the_page_can_be_installed() {
    let page = Page::open("");
    let manifest = page.devtools("Page.getAppManifest", json!({}));
    assert_eq!(manifest["errors"], json!([]), "{manifest}");
    assert!(manifest["url"].as_str().is_some_and(|url| url.ends_with("manifest.webmanifest")), "{manifest}");
    let errors = page.devtools("Page.getInstallabilityErrors", json!({}));
    assert_eq!(errors["installabilityErrors"], json!([]), "{errors}");
}

//! What many journeys do.
use e2e::Page;
use serde_json::json;

/// Opens a detail of the answer by its tab.
#[track_caller]
pub(crate) fn panel(page: &Page, name: &str) {
    page.click(&format!("#{name}-tab"));
    page.wait_for(&format!("#{name}"));
}

/// Opens a way to say what runs: `script-input`, `model-input`, `examples`.
#[track_caller]
pub(crate) fn input(page: &Page, name: &str) {
    page.click(&format!("#{name}-tab"));
    page.wait_for(&format!("#{name}"));
}

/// Clicks a knob's step: `More: tensor parallel size`.
#[track_caller]
pub(crate) fn turn(page: &Page, label: &str) {
    page.click(&format!("[aria-label='{label}']"));
}

/// In what the page opens from now on there are none.
pub(crate) fn without_workers(page: &Page) {
    before_every_document(page, "window.Worker = class { constructor() { throw new Error('none here') } };");
}

/// What the page opens from now on registers none.
pub(crate) fn without_a_service_worker(page: &Page) {
    before_every_document(
        page,
        "navigator.serviceWorker.register = () => Promise.reject(new Error('none here'));",
    );
}

fn before_every_document(page: &Page, script: &str) {
    page.devtools("Page.enable", json!({}));
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script }));
}

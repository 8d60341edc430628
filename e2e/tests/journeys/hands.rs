//! What hands do: drop, open, drag, paste, copy, tab; and what was copied, in the page of somebody else.
use std::fs;

use e2e::{Key, Page, Scratch};
use serde_json::json;
use xtask::site::{Server, Site};

use super::steps::{panel, turn};

const SCRIPT: &str = "torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 2048 \
    --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 \
    --vocab-size 50257 --bf16\n";

/// The text on the clipboard, once it holds `part`.
fn copied(page: &Page, part: &str) -> String {
    page.until(&format!("{part} on the clipboard"), || {
        Some(page.clipboard()).filter(|text| text.contains(part))
    })
}

#[test]
fn a_script_is_dropped_on_the_box_or_opened_from_a_file() {
    let folder = Scratch::new();
    let (first, second) = (folder.path().join("train.sh"), folder.path().join("other.sh"));
    fs::write(&first, SCRIPT).expect("a file");
    fs::write(&second, SCRIPT.replace("--nnodes 4", "--nnodes 1")).expect("a file");
    let page = Page::open("");
    page.drop_file("#script", &first);
    page.wait_text(".plan-name", "32 × H100");
    assert_eq!(page.value("#script"), SCRIPT);
    page.choose_file("input[type=file]", &second);
    page.wait_text(".plan-name", "DP 8");
    assert!(page.value("#script").contains("--nnodes 1"));
    // Anywhere else on the page is as good as the box, and nothing is navigated away from.
    page.drop_file(".answer-body", &first);
    page.wait_text(".plan-name", "32 × H100");
    assert_eq!(page.value("#script"), SCRIPT);
    page.assert_quiet();
}

#[test]
fn a_script_is_pasted_over_the_example() {
    let page = Page::open("");
    page.devtools(
        "Browser.grantPermissions",
        json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] }),
    );
    page.js_async(
        "navigator.clipboard.writeText(arguments[0]).then(arguments[1], arguments[1])",
        &[json!(SCRIPT)],
    );
    page.click("#script");
    page.press(Key::Control + "a");
    page.press(Key::Control + "v");
    page.until("the script in the box", || (page.value("#script") == SCRIPT).then_some(()));
    page.wait_text(".plan-name", "32 × H100");
    page.press(Key::Control + "z");
    page.until("the example again", || (page.value("#script") != SCRIPT).then_some(()));
}

/// What a keyboard sends with CapsLock on: a capital with Ctrl alone, a small letter where Shift is held too.
fn with_caps_lock(page: &Page, key: &str, shift: bool) {
    page.js(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', \
         { key: arguments[0], shiftKey: arguments[1], ctrlKey: true, bubbles: true, cancelable: true }))",
        &[json!(key), json!(shift)],
    );
}

#[test]
fn caps_lock_does_not_turn_undo_into_redo() {
    let page = Page::open("");
    page.wait_text(".plan-name", "TP 2");
    turn(&page, "More: tensor parallel size");
    page.wait_text(".plan-name", "TP 4");
    page.click("#overview-tab");
    with_caps_lock(&page, "Z", false);
    page.wait_text(".plan-name", "TP 2");
    with_caps_lock(&page, "z", true);
    page.wait_text(".plan-name", "TP 4");
    page.assert_quiet();
}

#[test]
fn the_schedule_is_dragged() {
    let page = Page::open("");
    panel(&page, "schedule");
    for _ in 0..3 {
        page.click(".pans [aria-label=closer]");
    }
    let before = page.text(".pans [role=status]");
    page.drag(".lanes", -200.0);
    page.until("another part of the step", || (page.text(".pans [role=status]") != before).then_some(()));
    page.assert_quiet();
}

#[test]
fn the_keyboard_alone_shares_a_plan() {
    let page = Page::open("");
    page.press(Key::Tab);
    assert!(page.focused().starts_with("a \"Skip to the result"), "{}", page.focused());
    let until = |name: &str| {
        for _ in 0..20 {
            page.press(Key::Tab);
            if page.focused().starts_with(&format!("button \"{name}")) {
                return;
            }
        }
        panic!("no tab leads to {name}");
    };
    until("Share");
    page.press(Key::Enter);
    page.wait_text("#share", "Carries");
    until("Copy link");
    page.press(Key::Enter);
    copied(&page, "#/1?");
    page.press(Key::Escape);
    page.wait_gone("#share");
    page.until("the focus back on its button", || page.focused().contains("Share").then_some(()));
}

#[test]
fn what_was_copied_stands_in_the_page_of_somebody_else() {
    let page = Page::open("");
    let verdict = page.text(".verdict .big strong");
    page.click_text("button", "Share");
    page.click_text("#share button", "Copy Markdown");
    let markdown = copied(&page, "](");
    assert!(markdown.contains("| ") && markdown.contains("#/1?"), "{markdown}");
    page.click_text("#share button", "Copy frame");
    let frame = copied(&page, "<iframe");
    let folder = Scratch::new();
    let host = format!("<!doctype html><html lang=en><title>Notes</title><h1>Our run</h1>{frame}");
    fs::write(folder.path().join("index.html"), host).expect("a page");
    let site = Site { folder: folder.path().to_owned(), path: "/".to_owned(), cross_origin: false };
    let host = Server::bind(site, 0, 1).and_then(Server::start).expect("a free port");
    let other = Page::blank();
    other.visit(host.url());
    let inside = other.inside("iframe", ".verdict .big strong");
    assert_eq!(inside, verdict);
    other.screenshot("frame-of-another-origin");
}

//! A plan goes elsewhere and comes back: links, history, undo, examples, two plans side by side, files.
use e2e::{Key, Page};
use serde_json::json;

use super::steps::{input, panel};

/// What everyone looks at first: the verdict and the figures below it.
fn numbers(page: &Page) -> Vec<String> {
    page.wait_gone("[aria-busy=true]");
    if page.count("#overview") == 0 {
        panel(page, "overview");
    }
    page.texts(".big, .stats dd")
}

/// Waits until the address carries a plan that `holds`, and gives the part after `#`.
fn address(page: &Page, holds: &str) -> String {
    page.until(&format!("{holds} in the address"), || {
        let url = page.url();
        let fragment = url.split_once('#').map(|(_, fragment)| fragment.to_owned()).unwrap_or_default();
        fragment.contains(holds).then_some(fragment)
    })
}

/// Changes a setting in its table.
fn set(page: &Page, name: &str, value: &str) {
    panel(page, "settings");
    let field = format!("input[aria-label^='{name},']");
    page.wait_for(&field);
    page.js(
        "const e = document.querySelector(arguments[0]);
         e.focus();
         e.value = arguments[1];
         for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, { bubbles: true }))",
        &[json!(field), json!(value)],
    );
}

/// Takes the example of that name from the gallery.
fn take(page: &Page, name: &str) {
    input(page, "examples");
    page.wait_text(".gallery", name);
    page.js(
        "[...document.querySelectorAll('.example')].find(e => e.innerText.startsWith(arguments[0])).click()",
        &[json!(name)],
    );
}

#[test]
fn a_copied_link_shows_the_same_numbers_to_someone_else() {
    let page = Page::open("");
    let script = page.value("#script").replace("--micro-batch-size 4", "--micro-batch-size 2");
    page.fill("#script", &script);
    address(&page, "mbs=2");
    let before = numbers(&page);
    page.click_text("button", "Share");
    page.wait_text("#share", "Carries");
    assert_eq!(page.axe(), []);
    page.screenshot("share");
    page.click_text("#share button", "Copy link");
    let link =
        page.until("a link on the clipboard", || Some(page.clipboard()).filter(|text| text.contains("#/1?")));
    assert!(!link.contains("pretrain_gpt"), "the script is not in {link}");
    let (_, fragment) = link.split_once('#').expect("a fragment");
    page.assert_quiet();

    let other = Page::open(&format!("#{fragment}"));
    assert_eq!(numbers(&other), before);
    assert_eq!(other.value("#script"), "");
    other.wait_text("#diagnostics", "No script needed");
    other.screenshot("opened-link");
    assert_eq!(other.axe(), []);
    other.assert_quiet();
}

#[test]
fn a_link_with_the_script_carries_every_word() {
    let page = Page::open("");
    page.fill("#script", &format!("# für Jürgen\n{}", page.value("#script")));
    page.click_text("button", "Share");
    page.click_text("#share button", "Copy link with the script");
    let link =
        page.until("a link on the clipboard", || Some(page.clipboard()).filter(|text| text.contains("#z1:")));
    let (_, fragment) = link.split_once('#').expect("a fragment");
    let other = Page::open(&format!("#{fragment}"));
    assert_eq!(other.value("#script"), page.value("#script"));
    assert_eq!(numbers(&other), numbers(&page));
}

#[test]
fn reload_and_back_lose_nothing() {
    let page = Page::open("");
    set(&page, "num_nodes", "4");
    address(&page, "nodes=4");
    let script = page.value("#script");
    let four = numbers(&page);
    page.reload();
    assert_eq!((numbers(&page), page.value("#script")), (four.clone(), script.clone()));

    take(&page, "BLOOM 176B");
    address(&page, "layers=70");
    input(&page, "script-input");
    assert_ne!(numbers(&page), four);
    page.js("history.back()", &[]);
    address(&page, "nodes=4");
    page.until("the plan before", || {
        (numbers(&page) == four && page.value("#script") == script).then_some(())
    });
    page.js("history.forward()", &[]);
    address(&page, "layers=70");
    page.assert_quiet();
}

#[test]
fn a_place_in_the_page_leaves_the_address_to_the_plan() {
    let page = Page::open("");
    set(&page, "num_nodes", "4");
    let plan = address(&page, "nodes=4");
    panel(&page, "map");
    page.until("the map in view", || {
        let top = page.js("return document.getElementById('map').getBoundingClientRect().top", &[]);
        top.as_f64().is_some_and(|top| top < 300.0).then_some(())
    });
    page.until("the view in the address", || page.url().contains("view=map").then_some(()));
    assert_eq!(address(&page, "nodes=4"), plan);
}

#[test]
fn a_broken_link_says_so_and_keeps_the_text() {
    let page = Page::open("");
    page.fill("#script", &page.value("#script").replace("NNODES=2", "NNODES=4"));
    address(&page, "nodes=4");
    let script = page.value("#script");
    page.js("location.hash = '#z1:broken'", &[]);
    let said = page.wait_text(".broken-link", "could not be opened");
    assert!(said.contains("damaged"), "{said}");
    assert_eq!(page.value("#script"), script);
    page.screenshot("broken-link");
    page.click(".broken-link button");
    page.wait_gone(".broken-link");
    page.js("location.hash = '#/9?from=the-future'", &[]);
    page.wait_text(".broken-link", "newer version");
}

#[test]
fn every_change_is_undone_by_keys_and_by_buttons() {
    let page = Page::open("");
    let first = numbers(&page);
    let script = page.value("#script");
    assert!(page.attribute("button[aria-label=Undo]", "disabled").is_some());
    set(&page, "num_nodes", "4");
    page.until("other numbers", || (numbers(&page) != first).then_some(()));
    let four = numbers(&page);
    page.click("#script");
    page.press(Key::Control + Key::End);
    page.type_into("#script", "# one\n# two");
    page.press(Key::Control + "z");
    page.until("the second line gone", || page.value("#script").ends_with("# one\n").then_some(()));
    page.press(Key::Control + "z");
    page.until("the text as it was", || (page.value("#script") == script).then_some(()));
    page.click("button[aria-label=Undo]");
    page.until("the first numbers", || (numbers(&page) == first).then_some(()));
    page.click("button[aria-label=Redo]");
    page.until("four nodes again", || (numbers(&page) == four).then_some(()));
}

/// What the files of the example are called.
const NAMED: &str = "5.04b-on-16-h100-sxm-tp-2-pp-2-dp-4";

#[test]
fn a_plan_starts_from_a_model_and_gpus_and_follows_every_change() {
    let page = Page::open("");
    let script = page.value("#script");
    input(&page, "model-input");
    assert_eq!(page.axe(), []);
    page.fill("#start-model", "meta-llama/Llama-3.1-70B-Instruct");
    page.wait_text(".plan-name", "64 × H100");
    page.fill("#start-gpus", "32");
    page.wait_text(".plan-name", "32 × H100");
    page.click_text(".start .chip", "H200");
    page.wait_text(".plan-name", "32 × H200");
    page.fill("#start-model", "nobody-knows-7B");
    page.wait_text("#start-unknown", "Not in the catalog");
    page.wait_text(".plan-name", "32 × H200");
    page.fill("#start-model", "Mixtral-8x7B");
    // The best layouts are searched for by themselves.
    page.wait_for(".best .layout");
    page.screenshot("model-and-gpus");
    assert_eq!(page.axe(), []);
    address(&page, "H200-SXM");
    set(&page, "micro_batch_size", "2");
    address(&page, "mbs=2");
    // The script is one step of the history back, not lost.
    page.js("history.back()", &[]);
    input(&page, "script-input");
    page.until("the script again", || (page.value("#script") == script).then_some(()));
    page.assert_quiet();
}

#[test]
fn a_pinned_plan_stands_beside_the_next() {
    let page = Page::open("");
    page.click_text("button", "Pin");
    panel(&page, "comparison");
    page.wait_text("#comparison", "Both plans are the same");
    set(&page, "micro_batch_size", "2");
    panel(&page, "comparison");
    page.wait_text("#comparison", "Settings that differ");
    let text = page.text("#comparison");
    for part in ["micro_batch_size", "activations", "step", "Largest changes in peak memory", "GiB", "%"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(page.axe(), []);
    page.js("document.getElementById('comparison').scrollIntoView({ behavior: 'instant' })", &[]);
    page.screenshot("compare");
    let fragment = address(&page, "!/1?");
    let now = page.texts("#comparison .sides dd");
    let other = Page::open(&format!("#{fragment}"));
    panel(&other, "comparison");
    other.wait_text("#comparison", "Settings that differ");
    assert_eq!(other.texts("#comparison .sides dd"), now);
    assert_eq!(numbers(&other), numbers(&page));

    let mine = numbers(&page);
    panel(&page, "comparison");
    page.click_text("#comparison button", "Swap");
    page.until("the pinned plan in hand", || (numbers(&page) != mine).then_some(()));
    panel(&page, "comparison");
    page.click_text("#comparison button", "Unpin");
    page.wait_gone("#comparison");
    page.wait_for("#overview");
}

#[test]
fn files_hold_what_their_names_say() {
    let page = Page::open("");
    page.click_text("button", "Share");
    // The commands come from a worker and push the files down: a click before that would miss its button.
    page.wait_text("#share", "Copy Megatron-LM command");
    let get = |label: &str, name: &str| {
        page.click_text("#share button", label);
        // Files are named after the plan.
        page.downloaded(&format!("{NAMED}-{name}"))
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let report: serde_json::Value =
        serde_json::from_slice(&get("Report, JSON", "report.json")).expect("JSON");
    assert_eq!(report["schema"], "shardscope/report/2");
    assert_eq!(report["report"]["topology"]["world_size"], 16);
    assert!(text(get("Memory, CSV", "memory.csv")).starts_with("pipeline_rank,parameters"));
    assert!(text(get("Communication, CSV", "communication.csv")).contains("all_reduce"));
    assert!(text(get("Settings, CSV", "settings.csv")).contains("num_layers,24,script"));
    assert!(text(get("Report, text", "report.txt")).contains("Verdict"));
    assert!(text(get("Memory bars, SVG", "memory.svg")).starts_with("<svg"));
    assert!(text(get("Cluster map, SVG", "map.svg")).starts_with("<svg"));
    for (label, name) in [("Memory bars, PNG", "memory.png"), ("Cluster map, PNG", "map.png")] {
        let picture = get(label, name);
        assert_eq!(picture.get(..8), Some(&b"\x89PNG\r\n\x1a\n"[..]), "{name}");
        assert!(picture.len() > 4_000, "{name} has {} bytes", picture.len());
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/screenshots");
        drop(std::fs::write(folder.join(name), picture));
    }
    page.assert_quiet();
}

#[test]
fn without_a_clipboard_the_link_is_selected() {
    let page = Page::blank();
    page.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": "Object.defineProperty(navigator, 'clipboard', { value: undefined })" }),
    );
    page.goto("");
    page.click_text("button", "Share");
    page.click_text("#share button", "Copy link");
    page.wait_text("#share .said", "Clipboard blocked, press Ctrl+C");
    let selected = page
        .js("const f = document.activeElement; return f.value.slice(f.selectionStart, f.selectionEnd)", &[]);
    assert!(selected.as_str().is_some_and(|text| text.contains("#/1?")), "{selected}");
}

#[test]
fn on_a_phone_everything_has_room() {
    let page = Page::open("");
    page.set_window(360, 740);
    assert_eq!(page.overflow(), 0);
    page.screenshot("phone");
    page.click_text("button", "Pin");
    set(&page, "micro_batch_size", "2");
    panel(&page, "comparison");
    page.wait_text("#comparison", "Settings that differ");
    assert_eq!(page.overflow(), 0);
    page.js("document.getElementById('comparison').scrollIntoView({ behavior: 'instant' })", &[]);
    page.screenshot("phone-compare");
    page.click_text("button", "Share");
    page.wait_text("#share", "Files");
    assert_eq!(page.overflow(), 0);
    page.screenshot("phone-share");
    page.press(Key::Escape);
    page.wait_gone("#share");
    page.prefer_dark(true);
    input(&page, "examples");
    page.wait_text(".gallery", "Popular models");
    page.screenshot("phone-gallery-dark");
    assert_eq!(page.axe(), []);
}

//! The reader edits the script: the answer follows, and bad input gets a sentence in place of the answer.
use e2e::{Key, Page};

use super::steps::panel;

/// The script of the box with `from` replaced.
pub(crate) fn replaced(page: &Page, from: &str, to: &str) -> String {
    let script = page.value("#script");
    assert!(script.contains(from), "the box has no {from:?}");
    script.replace(from, to)
}

#[test]
fn the_answer_follows_the_text() {
    let page = Page::open("");
    page.wait_text(".plan-name", "16 × H100");
    let script = replaced(&page, "NNODES=2", "NNODES=4");
    page.fill("#script", &script);
    page.wait_text(".plan-name", "32 × H100");
    panel(&page, "map");
    page.wait_text("#map", "n3_g7");
    page.assert_quiet();
}

#[test]
fn bad_input_gets_a_sentence_and_no_verdict_of_another_text() {
    let page = Page::open("");
    page.wait_text(".verdict .big", "Fits");
    let example = page.value("#script");
    let changed = |from: &str, to: &str| {
        assert!(example.contains(from), "the example has no {from:?}");
        example.replace(from, to)
    };
    let heads = changed("--num-attention-heads 32", "--num-attention-heads 29")
        .replace("--tensor-model-parallel-size 2", "--tensor-model-parallel-size 4");
    let cases = [
        ("Dear reader, does it fit?".to_owned(), "training options"),
        (heads, "29"),
        (changed("--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size 3"), "16"),
        (changed("    --hidden-size 4096 \\\n", ""), "hidden_size"),
        (changed("--num-layers 24", "--num-layers -24"), "-24"),
        (changed("--hidden-size 4096", "--hidden-size 99999999999999999999999999"), "hidden_size"),
    ];
    for (text, sentence) in cases {
        page.fill("#script", &text);
        page.wait_text("#diagnostics [role=status]", sentence);
        page.wait_text(".missing .reasons", sentence);
        assert_eq!(page.count(".verdict, .stats, .act"), 0, "no answer to another text");
        page.fill("#script", &example);
        page.wait_gone(".missing");
        page.wait_for(".verdict");
    }
    page.fill("#script", "");
    page.wait_text(".missing", "Paste a launch script");
    assert_eq!(page.axe(), []);
    page.screenshot("empty");
    page.assert_quiet();
}

#[test]
fn what_is_missing_is_answered_where_the_answer_will_stand() {
    let page = Page::open("");
    let script = replaced(&page, "    --hidden-size 4096 \\\n", "");
    page.fill("#script", &script);
    page.wait_text(".missing", "Missing information");
    assert_eq!(page.count(".verdict"), 0);
    assert_eq!(page.axe(), []);
    page.screenshot("missing");
    page.fill("#ask-hidden_size", "4096");
    page.click_text(".missing form button", "Use");
    page.wait_text(".verdict .big", "Fits");
    assert_eq!(page.value("#script"), script, "the script is not changed");
}

#[test]
fn noise_is_survived() {
    let page = Page::open("");
    page.wait_for(".verdict");
    page.js(
        "window.said = [];
         new MutationObserver(() => said.push(document.querySelector('#diagnostics').innerText))
             .observe(document.querySelector('#app'), { childList: true, subtree: true, characterData: true });
         const e = document.querySelector('#script'); let s = '';
         for (let i = 0, x = 1; i < 1e6; i++) { x = (x * 48271) % 2147483647; s += String.fromCharCode(32 + x % 95) }
         e.value = s; e.dispatchEvent(new InputEvent('input', { bubbles: true }))",
        &[],
    );
    page.wait_text(".missing", "No command with training options");
    let said = page.js("return said.some(text => text.startsWith('Reading a long text'))", &[]);
    assert_eq!(said, true, "what takes a while is said before it is done");
    page.fill("#script", "prose");
    page.wait_text("#diagnostics", "training options");
    page.assert_quiet();
}

#[test]
fn every_key_is_heard_while_the_answer_follows_on_a_slow_processor() {
    let page = Page::open("");
    let remarks: String =
        (0..300).map(|i| format!("# remark {i} of a script as long as published ones\n")).collect();
    page.fill("#script", &[remarks, page.value("#script")].concat());
    page.devtools("Emulation.setCPUThrottlingRate", serde_json::json!({ "rate": 4 }));
    page.click("#script");
    page.press(Key::Control + Key::Home);
    // Slow enough that an answer is begun between keys, quick enough that keys come while it is drawn.
    let typed = "NNODES=8 # all of them";
    for key in typed.chars() {
        page.press(key.to_string().as_str());
        std::thread::sleep(std::time::Duration::from_millis(120));
    }
    page.press(Key::Enter);
    page.until("every key in its place", || {
        page.value("#script").starts_with(&format!("{typed}\n# remark 0")).then_some(())
    });
    page.wait_gone("[aria-busy=true]");
    page.fill("#script", &replaced(&page, "NNODES=2", "NNODES=${NNODES:-2}"));
    page.wait_text(".plan-name", "64 × H100");
}

/// What is selected in the field that has the focus; it gets there with the next frame.
fn chosen(page: &Page) -> serde_json::Value {
    page.js("const e = document.activeElement; return e.value?.slice(e.selectionStart, e.selectionEnd)", &[])
}

#[test]
fn a_diagnostic_leads_to_its_place() {
    let page = Page::open("");
    let script = replaced(&page, "--num-layers 24", "--num-layers -24");
    page.fill("#script", &script);
    page.wait_text("#diagnostics", "-24");
    page.wait_for("mark.error");
    page.click("button.diagnostic.error");
    page.until("its value is selected", || (chosen(&page) == "-24").then_some(()));
}

#[test]
fn a_setting_leads_to_its_place_and_can_be_changed() {
    let page = Page::open("");
    panel(&page, "settings");
    page.click("tr:has([aria-label^='seq_length,']) .link");
    page.until("its value is selected", || (chosen(&page) == "2048").then_some(()));
    page.fill("[aria-label^='num_nodes,']", "1");
    page.press(Key::Enter);
    page.wait_text("tr:has([aria-label^='num_nodes,']) .link", "edited");
    page.wait_text(".plan-name", "8 × H100");
    page.click("tr:has([aria-label^='num_nodes,']) .link");
    page.wait_text(".plan-name", "16 × H100");
}

#[test]
fn a_reload_keeps_the_text() {
    let page = Page::open("");
    page.wait_text(".plan-name", "16 × H100");
    let script = replaced(&page, "NNODES=2", "NNODES=1 # mine");
    page.fill("#script", &script);
    page.wait_text(".plan-name", "8 × H100");
    page.reload();
    page.wait_text(".plan-name", "8 × H100");
    assert_eq!(page.value("#script"), script);
}

#[test]
fn before_there_is_a_plan_the_page_says_what_is_lacking_and_shows_no_other_answer() {
    // A link to half a plan, opened by somebody who was never here.
    let page = Page::open("#/1?layers=4&tp=3");
    let said = page.wait_text(".missing .reasons", "hidden_size");
    assert!(!said.is_empty());
    assert_eq!(page.count(".verdict"), 0, "nobody else's answer");
    page.wait_for(".missing .questions");
    assert_eq!(page.axe(), []);
    page.screenshot("no-plan");
    page.phone();
    assert_eq!(page.overflow(), 0);
    page.screenshot("no-plan-phone");
    // A link that cannot be read at all leaves the example.
    let page = Page::open("#z1:AAAA");
    page.wait_for(".broken-link");
    page.wait_text(".verdict .big", "Fits");
    assert_eq!(page.axe(), []);
    page.screenshot("broken-link");
}

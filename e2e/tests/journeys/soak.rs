//! Thousands of edits, turned knobs and undos in one page: nothing it holds grows, and it says nothing to the console.
//!
//! 400 of them in a normal run; `SHARDSCOPE_SOAK=10000` asks for more.
use std::env;

use e2e::Page;
use serde_json::{Value, json};

use super::steps::{input, panel};

/// Changes of a normal run.
const CHANGES: u64 = 400;
/// Changes made between two looks.
const BATCH: u64 = 50;
/// How often all of them are made. WebAssembly's memory never shrinks: it is what the most demanding of all plans took that were met, and
/// what the last round adds, which meets those that the rounds before met, was left behind. By then undo, drafts and compiled code have
/// filled too. A round is not quite the one before it: texts are read beside the page, and what was typed counts as one change or several.
const ROUNDS: u64 = 4;
/// How much more may be held at the end. The undo list holds texts of different lengths, and V8 compiles what runs often.
const SLACK: f64 = 1.15;
/// The same without regard to size. Unit: byte, and element of the page.
const FEW: [f64; 3] = [2e6, 2e6, 600.0];

/// The example in hand, whatever was in hand before.
fn example(page: &Page) {
    input(page, "examples");
    page.wait_for(".example");
    page.js("document.querySelector('.example').click()", &[]);
    input(page, "script-input");
}

/// The engine's memory, the page's objects, both in bytes, and the elements that are alive, with an example in hand and one panel
/// open, after a collection of garbage.
fn held(page: &Page) -> [f64; 3] {
    example(page);
    panel(page, "memory");
    page.until("the answer", || (page.count("#memory table") > 0).then_some(()));
    page.devtools("HeapProfiler.collectGarbage", json!({}));
    let metrics = page.devtools("Performance.getMetrics", json!({}));
    let of = |name: &str| {
        let all = metrics["metrics"].as_array().into_iter().flatten();
        all.filter(|one| one["name"] == name).find_map(|one| one["value"].as_f64()).expect("a metric")
    };
    [engine(page) as f64, of("JSHeapUsedSize"), of("Nodes")]
}

/// The engine's memory. Unit: byte.
fn engine(page: &Page) -> u64 {
    page.js("return window.engine.memory.buffer.byteLength", &[]).as_u64().expect("the engine's memory")
}

/// Makes changes drawn from `seed`, each of which the page has drawn when the next is made. A reader pauses now and then, so that
/// their text is read and the address written. No more is undone than was changed, so that each batch is a walk from the example.
const CHANGE: &str = r"
    const [seed, count, done] = arguments;
    let state = seed;
    const below = (n) => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 10) % n;
    const wait = (ms) => new Promise((go) => setTimeout(go, ms));
    const one = (all) => all[below(all.length)];
    // By the keyboard, which works where there is no plan and so no button.
    let [behind, ahead] = [0, 0];
    const changed = (kind) => {
        made[kind]++;
        [behind, ahead] = [behind + 1, 0];
    };
    const undo = (shiftKey) => {
        if (shiftKey ? !ahead : !behind) return;
        behind += shiftKey ? 1 : -1;
        ahead += shiftKey ? -1 : 1;
        const keys = { key: 'z', ctrlKey: true, shiftKey, bubbles: true, cancelable: true };
        document.body.dispatchEvent(new KeyboardEvent('keydown', keys));
        made.undos++;
    };
    const made = { knobs: 0, edits: 0, undos: 0, panels: 0, machines: 0 };
    const machines = () => Number(document.querySelector('.plan-name')?.innerText.match(/([\d,]+) ×/)?.[1].replaceAll(',', '') ?? 0);
    (async () => {
        for (let change = 0; change < count; change++) {
            const kind = below(10);
            const box = document.querySelector('#script');
            if (!document.querySelector('.knobs')) {
                undo(false);
            } else if (kind < 4) {
                const knob = one([...document.querySelectorAll('.knobs [aria-label^=More]:enabled, .knobs [aria-label^=Less]:enabled')]);
                if (knob) { knob.click(); changed('knobs'); }
            } else if (kind < 6 && box) {
                const at = one([...box.value.matchAll(/\b\d+\b/g)]) ?? { index: 0, 0: '' };
                const value = String(Math.max(1, below(2) ? at[0] * 2 : at[0] >> 1));
                box.value = box.value.slice(0, at.index) + value + box.value.slice(at.index + at[0].length);
                box.dispatchEvent(new Event('input', { bubbles: true }));
                changed('edits');
            } else if (kind < 9) {
                undo(below(4) === 0);
            } else {
                const tab = one([...document.querySelectorAll('#answer [role=tab]')]);
                if (tab) { tab.click(); made.panels++; }
            }
            await wait(below(12) ? 0 : 220);
            made.machines = Math.max(made.machines, machines());
        }
        await wait(700);
        return made;
    })().then(done, (error) => done(String(error)));
";

#[test]
fn thousands_of_changes_leave_nothing_behind() {
    let wanted = env::var("SHARDSCOPE_SOAK").ok().and_then(|count| count.parse().ok()).unwrap_or(CHANGES);
    let page = Page::blank();
    page.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": "addEventListener('TrunkApplicationStarted', (event) => { window.engine = event.detail.wasm; })" }),
    );
    page.devtools("Performance.enable", json!({}));
    page.goto("");
    let (mut made, mut warm) = ([0; 4], held(&page));
    let batches = wanted.div_ceil(ROUNDS * BATCH);
    for round in 1..=ROUNDS {
        for batch in 1..=batches {
            example(&page);
            let said = page.js_async(CHANGE, &[json!(batch), json!(BATCH)]);
            let kinds = ["knobs", "edits", "undos", "panels"];
            for (count, kind) in made.iter_mut().zip(kinds) {
                *count += said[kind].as_u64().unwrap_or_else(|| panic!("batch {batch}: {said}"));
            }
            // Told with a failure: the changes of a batch follow from its number.
            println!(
                "round {round}, batch {batch}: engine {} bytes, up to {} accelerators",
                engine(&page),
                said["machines"]
            );
            page.assert_quiet();
        }
        if round + 1 == ROUNDS {
            warm = held(&page);
        }
    }
    let end = held(&page);
    println!("knobs, edits, undos, panels: {made:?}; held {warm:?}, at the end {end:?}");
    assert!(made.iter().all(|count| count * 40 > wanted), "{made:?}");
    for ((before, after), few) in warm.into_iter().zip(end).zip(FEW) {
        assert!(after <= (before * SLACK).max(before + few), "{warm:?} became {end:?}");
    }
    // And it still answers.
    page.fill("#script", "--num-layers 7");
    page.wait_text("#answer", "Missing information");
    assert_ne!(page.js("return document.querySelector('#broken').hidden", &[]), Value::Bool(false));
}

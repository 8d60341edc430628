//! The engine for JavaScript: JSON strings in, JSON strings out. `index.js` beside it turns them into objects;
//! `index.d.ts` types them. Nothing here panics on any input.

mod input;

use input::Input;
use serde_json::{Value, json};
use shardscope::advice::advised;
use shardscope::estimate::compute::Measured;
use shardscope::report;
use shardscope::share::{self, Shared};
use wasm_bindgen::prelude::wasm_bindgen;

/// `{settings, questions, diagnostics}` of an input, with `schema`; `report` is null.
#[wasm_bindgen]
pub fn read(input: &str) -> String {
    Input::parse(input).map_or_else(refusal, |input| {
        let source = input.source();
        report::document(&source, &input.resolve(&source), None).to_string()
    })
}

/// The whole document, `shardscope/report/1`.
#[wasm_bindgen]
pub fn estimate(input: &str) -> String {
    Input::parse(input).map_or_else(refusal, |input| {
        let source = input.source();
        let resolution = input.resolve(&source);
        let found = resolution.plan.as_ref().map(|plan| advised(plan, &Measured::default()));
        report::document(&source, &resolution, found.as_ref()).to_string()
    })
}

/// The report as `text` or `markdown`; empty when the input makes no plan.
#[wasm_bindgen(js_name = reportText)]
pub fn report_text(input: &str, markdown: bool) -> String {
    let Ok(input) = Input::parse(input) else { return String::new() };
    let source = input.source();
    let Some(plan) = input.resolve(&source).plan else { return String::new() };
    let found = advised(&plan, &Measured::default());
    if markdown { report::text::markdown(&plan, &found) } else { report::text::text(&plan, &found) }
}

/// The fragment of a link that carries the input: by name when it is settings alone, else with its texts.
#[wasm_bindgen]
pub fn share(input: &str) -> String {
    Input::parse(input).map_or_else(|_| String::new(), |input| share::encode(&input.shared()))
}

/// The input that a link's fragment carries, or `{"error": …}`.
#[wasm_bindgen]
pub fn open(fragment: &str) -> String {
    match share::decode(fragment) {
        Ok(Some(Shared::Settings(settings))) => Input::of_settings(settings).to_json().to_string(),
        Ok(Some(Shared::Pasted(pasted))) => Input::of_pasted(pasted).to_json().to_string(),
        Ok(None) => json!({ "error": "the link carries nothing" }).to_string(),
        Err(error) => json!({ "error": error.0 }).to_string(),
    }
}

/// The version of the document's form.
#[wasm_bindgen]
pub fn schema() -> String {
    report::SCHEMA.to_owned()
}

/// A document that says only what is wrong with the call.
fn refusal(problem: String) -> String {
    json!({
        "schema": report::SCHEMA,
        "settings": {},
        "questions": [],
        "diagnostics": [{ "severity": "error", "code": "bad-input", "message": problem }],
        "report": Value::Null,
    })
    .to_string()
}

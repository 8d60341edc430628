//! The engine for JavaScript: JSON strings in, JSON strings out. `index.js` converts them to objects; `index.d.ts`
//! types them. Nothing here panics on any input.

mod input;

use input::Input;
use serde::Serialize;
use shardscope::link::{self, Shared};
use shardscope::plan::Variant;
use shardscope::report;
use shardscope::report::document::{Document, Object};
use shardscope::search::{self as engine, Outcome, Walk, typed};
use shardscope::session::{Asked, AskedLine, Asking, Varied, estimated};
use shardscope::units::{Bytes, Seconds};
use wasm_bindgen::prelude::wasm_bindgen;

/// `{settings, questions, diagnostics}` of an input, with `schema`; `report` is null.
#[wasm_bindgen]
pub fn read(input: &str) -> String {
    Input::parse(input).map_or_else(refusal, |input| {
        let source = input.source();
        report::document(&source, &input.resolve(&source), None, false)
    })
}

/// The whole document, `shardscope/report/2`.
#[wasm_bindgen]
pub fn estimate(input: &str) -> String {
    Input::parse(input).map_or_else(refusal, |input| {
        let source = input.source();
        let mut resolution = input.resolve(&source);
        let found = estimated(&mut resolution).map(|(_, report)| report);
        report::document(&source, &resolution, found.as_ref(), false)
    })
}

/// The report as `text` or `markdown`; empty if the input does not form a plan.
#[wasm_bindgen(js_name = reportText)]
pub fn report_text(input: &str, markdown: bool) -> String {
    let Ok(input) = Input::parse(input) else { return String::new() };
    let source = input.source();
    let Some((plan, found)) = estimated(&mut input.resolve(&source)) else { return String::new() };
    if markdown { report::text::markdown(&plan, &found) } else { report::text::text(&plan, &found) }
}

/// The layouts that a search finds: `{tried, of, refused, refused_by_reason, too_large, best: […], frontier: […]}`, at most `limit`
/// of each; `tries` bounds the work (0: the whole space), `vary` says how far dimensions are varied (a [`Varied`] as JSON). An
/// error is `{"error": …}`.
#[wasm_bindgen]
pub fn search(input: &str, limit: u32, tries: u32, vary: &str) -> String {
    let input = match Input::parse(input) {
        Ok(input) => input,
        Err(problem) => return error(&problem),
    };
    let source = input.source();
    let Some(plan) = input.resolve(&source).plan else {
        return error("the input makes no plan; `read` says why");
    };
    let vary: Varied = match serde_json::from_str(vary) {
        Ok(vary) => vary,
        Err(problem) => return error(&format!("`vary` cannot be read: {problem}")),
    };
    let mut walk = Walk::with(&plan, vary.choices());
    let tries = if tries == 0 { u64::MAX } else { u64::from(tries) };
    walk.step(tries);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (tried, of) = walk.progress();
    let found = Found {
        tried,
        of,
        refused: walk.refused(),
        refused_by_reason: Object(
            walk.tally().refused.iter().map(|(code, count)| (code.name(), *count)).collect(),
        ),
        too_large: walk.too_large(),
        best: walk.ranked().take(limit).map(Layout::new).collect(),
        frontier: walk.frontier().iter().take(limit).map(Layout::new).collect(),
    };
    json(&found)
}

/// Why a layout is not the answer, with `text` as people write layouts (`TP 4 PP 8 recompute full`), against the
/// fastest that a whole search finds: `{why, starts, change, best}`. An error is `{"error": …}`.
#[wasm_bindgen(js_name = whyNot)]
pub fn why_not(input: &str, text: &str) -> String {
    let input = match Input::parse(input) {
        Ok(input) => input,
        Err(problem) => return error(&problem),
    };
    let source = input.source();
    let Some(plan) = input.resolve(&source).plan else {
        return error("the input makes no plan; `read` says why");
    };
    let layout = match typed(&plan, text) {
        Ok(layout) => layout,
        Err(word) => return error(&format!("{} is not understood", word.trim())),
    };
    let mut walk = Walk::new(&plan);
    while walk.step(u64::MAX) {}
    let best = walk.ranked().next();
    let fastest = best.and_then(|best| best.variant.apply(&plan));
    let checked = layout.checked(&plan);
    let change = layout.changes_from(&Variant::from_plan(&plan));
    json(&Why {
        // If nothing fits there is no answer to compare with.
        why: engine::why_not(&checked, fastest.as_ref().unwrap_or(&plan)).sentence(),
        starts: checked.is_ok(),
        change: Object(change.iter().map(|(field, value)| (field.name(), value.as_str())).collect()),
        best: best.map(Layout::new),
    })
}

/// Why a layout is not the answer.
#[derive(Serialize)]
struct Why<'w> {
    /// In one sentence.
    why: String,
    /// Whether the software would start it.
    starts: bool,
    /// What it changes of the input's plan.
    change: Object<&'static str, &'w str>,
    /// What it is compared with; `None` if nothing fits.
    best: Option<Layout<'w>>,
}

/// The answer to a question about the input, `{question, train?, tokens?, days?, price?, most_nodes?, prices?, vary?}` with the terminal's words:
/// `{answer, answered, lines: […]}`. An error is `{"error": …}`.
#[wasm_bindgen]
pub fn ask(input: &str, asked: &str) -> String {
    let input = match Input::parse(input) {
        Ok(input) => input,
        Err(problem) => return error(&problem),
    };
    let asked: Asked = match serde_json::from_str(asked) {
        Ok(asked) => asked,
        Err(problem) => return error(&format!("the question cannot be read: {problem}")),
    };
    if let Err(problem) = asked.checked() {
        return error(&problem.to_string());
    }
    let mut asking = match Asking::new(&input.given(), &asked) {
        Ok(asking) => asking,
        Err(problem) => return error(&problem.to_string()),
    };
    while asking.step(u64::MAX) {}
    let lines = asking.lines();
    json(&Answered {
        answer: asking.answer(),
        answered: lines.iter().any(|line| line.chosen),
        lines: lines.iter().map(Line::new).collect(),
    })
}

/// The answer to a question.
#[derive(Serialize)]
struct Answered<'w> {
    /// In one sentence.
    answer: String,
    /// Whether there is one.
    answered: bool,
    /// Every size, kind or model that was evaluated, in order.
    lines: Vec<Line<'w>>,
}

/// What was found at one of them.
#[derive(Serialize)]
struct Line<'w> {
    name: &'w str,
    /// Whether it is the answer.
    chosen: bool,
    /// `None` if nothing fits.
    layout: Option<Layout<'w>>,
    gpus: Option<u64>,
    tokens_per_second: Option<f64>,
    days: Option<f64>,
    cost: Option<f64>,
}

impl<'w> Line<'w> {
    fn new(line: &'w AskedLine) -> Self {
        let reached = line.reached.as_ref();
        Self {
            name: &line.name,
            chosen: line.chosen,
            layout: reached.and_then(|reached| reached.outcome.as_ref()).map(Layout::new),
            gpus: reached.map(|reached| reached.gpus),
            tokens_per_second: reached.map(|reached| reached.tokens_per_second),
            days: reached.and_then(|reached| reached.days),
            cost: reached.and_then(|reached| reached.cost),
        }
    }
}

/// What a search found.
#[derive(Serialize)]
struct Found<'w> {
    /// Parts of the space that were evaluated, and their total.
    tried: u64,
    of: u64,
    /// Those that the framework refuses, and those that do not fit.
    refused: u64,
    /// The former by the code of the reason.
    refused_by_reason: Object<&'static str, u64>,
    too_large: u64,
    /// The fastest that fit, and those that none beats in both time and memory.
    best: Vec<Layout<'w>>,
    frontier: Vec<Layout<'w>>,
}

/// A layout, by what it changes.
#[derive(Serialize)]
struct Layout<'w> {
    /// New values by the settings' names.
    change: Object<&'static str, &'w str>,
    /// On the fullest device. Unit: byte.
    peak_reserved: Bytes,
    /// Whether it leaves less than the headroom.
    tight: bool,
    /// Time of a step.
    step_seconds: Seconds,
}

impl<'w> Layout<'w> {
    fn new(outcome: &'w Outcome) -> Self {
        Self {
            change: Object(
                outcome.changes.iter().map(|(field, value)| (field.name(), value.as_str())).collect(),
            ),
            peak_reserved: outcome.peak,
            tight: outcome.tight,
            step_seconds: outcome.step,
        }
    }
}

/// `value` as JSON in one line; writing to memory cannot fail, and all keys are text.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// `{"error": …}`.
fn error(problem: &str) -> String {
    json(&Object(vec![("error", problem)]))
}

/// The fragment of a link that carries the input: as settings if there are only settings, otherwise with its texts.
#[wasm_bindgen]
pub fn share(input: &str) -> String {
    Input::parse(input).map_or_else(|_| String::new(), |input| link::encode(&input.shared()))
}

/// The input that a link's fragment carries, or `{"error": …}`.
#[wasm_bindgen]
pub fn open(fragment: &str) -> String {
    match link::decode(fragment) {
        Ok(Some(Shared::Settings(settings))) => Input::of_settings(settings).to_json(),
        Ok(Some(Shared::Pasted(pasted))) => Input::of_pasted(pasted).to_json(),
        Ok(None) => error("the link carries nothing"),
        Err(problem) => error(&problem.to_string()),
    }
}

/// The version of the document's form.
#[wasm_bindgen]
pub fn schema() -> String {
    report::SCHEMA.to_owned()
}

/// A document that only says what is wrong with the call.
fn refusal(problem: String) -> String {
    Document::refusal(&problem).to_json(false)
}

//! `cold [RUNS [SLOWDOWN]]`: how long the first answer of `dist/` takes in a browser that never saw it, on a processor that
//! is so many times slower. Not a gate: times depend on the machine, which should have nothing else to do.
//!
//! Each run has a browser and a profile of its own. The files come from this machine, compressed by brotli at its best.
use std::env;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use e2e::{Page, Scratch, dist, weight};
use serde_json::{Value, json};

const RUNS: usize = 7;
const SLOWDOWN: u64 = 4;
/// A browser that has only just been started has much of its own to do; a reader's has not.
const SETTLED: Duration = Duration::from_secs(3);

/// Set before the page loads: when the answer is in the document, and when it is on the screen.
const WATCH: &str = "
    const seen = window.seen = {};
    new MutationObserver((_, observer) => {
        if (!document.querySelector('.verdict .big')) return;
        observer.disconnect();
        seen.answer = performance.now();
        requestAnimationFrame(() => setTimeout(() => { seen.painted = performance.now() }));
    }).observe(document, { childList: true, subtree: true });
    addEventListener('TrunkApplicationStarted', () => { seen.started = performance.now() });
";

/// What a run took. Unit: millisecond from the start of the navigation.
const READ: &str = "
    const shell = performance.getEntriesByName('first-contentful-paint')[0];
    const engine = performance.getEntriesByType('resource').find(e => e.name.endsWith('.wasm'));
    if (!seen.painted || !shell || !seen.started) return null;
    return [shell.startTime, engine.responseEnd, seen.answer, seen.started, seen.painted]
";
const COLUMNS: [&str; 5] =
    ["shell painted", "engine arrived", "answer there", "engine started", "answer painted"];

fn main() {
    let mut arguments = env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let runs = arguments.next().map_or(RUNS, |runs| usize::try_from(runs).expect("few runs"));
    let slowdown = arguments.next().unwrap_or(SLOWDOWN);
    let folder = compressed();
    println!("milliseconds, processor {slowdown} times slower\n  run  {}", COLUMNS.join("  "));
    let rows: Vec<Vec<f64>> = (1..=runs).map(|run| once(run, slowdown, &folder)).collect();
    let medians: Vec<f64> = (0..COLUMNS.len()).map(|column| median(&rows, column)).collect();
    println!("  median of {runs}:");
    print(0, &medians);
}

/// The page with what brotli makes of each file beside it.
fn compressed() -> Scratch {
    let folder = Scratch::new();
    for entry in fs::read_dir(dist()).expect("dist/ can be read") {
        let file = entry.expect("a file").path();
        let bytes = fs::read(&file).expect("a file");
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        fs::write(folder.path().join(format!("{name}.br")), weight::compress(&bytes).expect("memory"))
            .and_then(|()| fs::write(folder.path().join(name), bytes))
            .expect("a copy");
    }
    folder
}

fn once(run: usize, slowdown: u64, folder: &Scratch) -> Vec<f64> {
    let page = Page::blank_of(folder.path());
    page.devtools("Page.enable", json!({}));
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH }));
    page.devtools("Emulation.setCPUThrottlingRate", json!({ "rate": slowdown }));
    sleep(SETTLED);
    page.goto("");
    let times = page.until("the answer on the screen", || match page.js(READ, &[]) {
        Value::Array(times) => Some(times.iter().filter_map(Value::as_f64).collect::<Vec<f64>>()),
        _ => None,
    });
    print(run, &times);
    times
}

fn print(run: usize, times: &[f64]) {
    let cells: Vec<String> = COLUMNS
        .iter()
        .zip(times)
        .map(|(name, time)| format!("{time:>width$.0}", width = name.len()))
        .collect();
    println!("{run:>5}  {}", cells.join("  "));
}

fn median(rows: &[Vec<f64>], column: usize) -> f64 {
    let mut values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

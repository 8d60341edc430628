//! `cold [FOLDER...]`: how long the first answer of built pages takes in a browser that has never seen them, on a
//! slow processor and a slow connection. Not a gate: times depend on the machine, which should be idle.
//!
//! Each run has its own browser and profile; the directories alternate, so that other load on the machine affects all
//! of them. The files come from this machine, compressed by brotli at its best.
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use clap::Parser;
use e2e::{Page, Scratch, dist};
use serde_json::{Value, json};
use xtask::weight::compress;

/// How long the first answer takes in a browser that never saw the page.
#[derive(Parser)]
struct Arguments {
    /// Built pages; `dist/` where none is named
    folders: Vec<PathBuf>,
    /// Runs of each folder
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// How many times slower the processor is made
    #[arg(long, default_value_t = 4)]
    slowdown: u64,
    /// What the line carries, in Mbit/s; 0 for as much as the machine can
    #[arg(long, default_value_t = 9.0)]
    line: f64,
    /// What the line adds to each answer, in milliseconds
    #[arg(long, default_value_t = 0.0)]
    latency: f64,
    /// What stands behind the address, such as `#/1?...`: the way of somebody who follows a link
    #[arg(long, default_value = "")]
    link: String,
}

/// A freshly started browser is busy with itself; a user's browser is not.
const SETTLED: Duration = Duration::from_secs(3);

/// Set before the page loads: when the first answer is on the screen, which the build may have written into the page, and when
/// the engine's own is in the document and on the screen.
const WATCH: &str = "
    const seen = window.seen = {};
    const painted = name => requestAnimationFrame(() => setTimeout(() => { seen[name] = performance.now() }));
    new MutationObserver((_, observer) => {
        const answers = [...document.querySelectorAll('.verdict .big')];
        if (!seen.first && answers.some(answer => answer.checkVisibility())) {
            seen.first = true;
            painted('first_painted');
        }
        if (!answers.some(answer => !answer.closest('#first-answer'))) return;
        observer.disconnect();
        seen.answer = performance.now();
        painted('painted');
    }).observe(document, { childList: true, subtree: true });
    addEventListener('TrunkApplicationStarted', () => { seen.started = performance.now() });
";

/// The times of a run. Unit: millisecond from the start of the navigation.
const READ: &str = "
    const engine = performance.getEntriesByType('resource').find(e => e.name.endsWith('.wasm'));
    if (!seen.painted || !seen.first_painted || !seen.started) return null;
    return [seen.first_painted, engine.responseEnd, seen.answer, seen.started, seen.painted]
";
const COLUMNS: [&str; 5] =
    ["first answer painted", "engine arrived", "its answer there", "engine started", "its answer painted"];

fn main() {
    let mut arguments = Arguments::parse();
    if arguments.folders.is_empty() {
        arguments.folders.push(dist());
    }
    let sites: Vec<Scratch> = arguments.folders.iter().map(|folder| compressed(folder)).collect();
    let line =
        if arguments.line > 0.0 { format!("{} Mbit/s", arguments.line) } else { "no limit".to_owned() };
    println!(
        "milliseconds, processor {} times slower, line {line} and {} ms\n  run  {}  page",
        arguments.slowdown,
        arguments.latency,
        COLUMNS.join("  ")
    );
    let mut rows = vec![Vec::new(); sites.len()];
    for run in 1..=arguments.runs {
        for ((site, folder), rows) in sites.iter().zip(&arguments.folders).zip(&mut rows) {
            let times = once(site, &arguments);
            print(&run.to_string(), &times, folder);
            rows.push(times);
        }
    }
    for (folder, rows) in arguments.folders.iter().zip(&rows) {
        for (name, rank) in [("least", 0), ("half", rows.len() / 2), ("most", rows.len().saturating_sub(1))] {
            let at_rank: Vec<f64> = (0..COLUMNS.len()).map(|column| ranked(rows, column, rank)).collect();
            print(name, &at_rank, folder);
        }
    }
}

/// The page with each file's brotli-compressed copy next to it.
fn compressed(from: &Path) -> Scratch {
    let folder = Scratch::new();
    for entry in fs::read_dir(from).expect("the folder can be read") {
        let file = entry.expect("a file").path();
        let bytes = fs::read(&file).expect("a file");
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        fs::write(folder.path().join(format!("{name}.br")), compress(&bytes).expect("memory"))
            .and_then(|()| fs::write(folder.path().join(name), bytes))
            .expect("a copy");
    }
    folder
}

fn once(site: &Scratch, arguments: &Arguments) -> Vec<f64> {
    let page = Page::blank_of(site.path());
    page.devtools("Page.enable", json!({}));
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH }));
    page.devtools("Emulation.setCPUThrottlingRate", json!({ "rate": arguments.slowdown }));
    page.devtools("Network.enable", json!({}));
    // bytes a second; -1 for no limit
    let rate = if arguments.line > 0.0 { arguments.line * 1e6 / 8.0 } else { -1.0 };
    let line = json!({ "offline": false, "latency": arguments.latency, "downloadThroughput": rate, "uploadThroughput": rate });
    page.devtools("Network.emulateNetworkConditions", line);
    sleep(SETTLED);
    page.goto(&arguments.link);
    page.until("the answer on the screen", || match page.js(READ, &[]) {
        Value::Array(times) => Some(times.iter().filter_map(Value::as_f64).collect::<Vec<f64>>()),
        _ => None,
    })
}

fn print(run: &str, times: &[f64], folder: &Path) {
    let cells: Vec<String> = COLUMNS
        .iter()
        .zip(times)
        .map(|(name, time)| format!("{time:>width$.0}", width = name.len()))
        .collect();
    println!("{run:>5}  {}  {}", cells.join("  "), folder.display());
}

/// The time of that rank, from the shortest, in a column.
fn ranked(rows: &[Vec<f64>], column: usize, rank: usize) -> f64 {
    let mut values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
    values.sort_by(f64::total_cmp);
    values[rank]
}

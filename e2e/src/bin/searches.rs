//! `searches [FOLDER]`: how long searches take in a built page, `dist/` where none is named, with as many workers as
//! the machine has cores or `--workers` says: until the first layout is shown, until all are decided, the longest
//! task of the page meanwhile, and how many layouts a worker decides a second. Not a gate: times depend on the
//! machine, which should be idle.
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use e2e::{Page, dist};
use serde_json::{Value, json};

/// How long searches take in a built page.
#[derive(Parser)]
struct Arguments {
    /// A built page
    folder: Option<PathBuf>,
    /// Workers in place of one for each core
    #[arg(long, default_value_t = 2)]
    workers: u64,
}

/// Runs by name, each as a link.
const RUNS: [(&str, &str); 4] = [
    (
        "Llama 3 405B, 16,384 H100",
        "#/1?model=Llama-3.1-405B&accelerator=H100-SXM&nodes=2048&gpus_per_node=8&gbs=2048&mbs=1&seq=8192&tp=8&sequence_parallel&\
         bf16&use_distributed_optimizer",
    ),
    (
        "DeepSeek-V3, 2,048 H800",
        "#/1?model=DeepSeek-V3&accelerator=H800-SXM&nodes=256&gpus_per_node=8&gbs=15360&mbs=1&seq=4096&ep=64&pp=16&bf16&\
         decoder_first_pipeline_num_layers=3&decoder_last_pipeline_num_layers=2&use_distributed_optimizer&\
         recompute_granularity=full&recompute_method=uniform&recompute_num_layers=1",
    ),
    (
        "Llama 3 70B, 128 H100",
        "#/1?model=Llama-3.1-70B&accelerator=H100-SXM&nodes=16&gpus_per_node=8&gbs=128&mbs=1&seq=8192&tp=8&pp=4&sequence_parallel&\
         bf16&use_distributed_optimizer",
    ),
    (
        "Llama 3 8B, 8 H100",
        "#/1?model=Llama-3.1-8B&accelerator=H100-SXM&nodes=1&gpus_per_node=8&gbs=128&mbs=1&seq=8192&tp=2&sequence_parallel&bf16&\
         use_distributed_optimizer",
    ),
];

const WATCH: &str = "
    window.tasks = [];
    new PerformanceObserver(list => tasks.push(...list.getEntries().map(e => e.duration))).observe({ type: 'longtask' })";
/// Restarts the search and records when the page first shows a layout and when it stops showing progress.
const BEGIN: &str = "
    const begun = performance.now();
    window.seen = {};
    tasks.length = 0;
    [...document.querySelectorAll('#search button')].find(e => e.innerText === 'Search again').click();
    const since = () => performance.now() - begun;
    const look = () => {
        const rows = document.querySelector('#search .layout-table tbody tr');
        // The previous list disappears when the search begins.
        if (!rows) seen.begun ??= since();
        if (seen.begun && rows) seen.first ??= since();
        if (seen.first && !document.querySelector('#search progress')) seen.all ??= since();
        if (!seen.all) requestAnimationFrame(look);
    };
    requestAnimationFrame(look)";
/// A search that takes longer is aborted.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() {
    let arguments = Arguments::parse();
    let folder = arguments.folder.unwrap_or_else(dist);
    println!(
        "{} workers; milliseconds: first layout shown, all decided, longest task of the page; layouts; layouts a second and worker",
        arguments.workers
    );
    for (name, link) in RUNS {
        let page = Page::blank_of(&folder);
        page.devtools("Page.enable", json!({}));
        let cores = format!(
            "Object.defineProperty(navigator, 'hardwareConcurrency', {{ value: {} }});{WATCH}",
            arguments.workers
        );
        page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": cores }));
        page.goto(link);
        // The first one may have begun by itself while the page loaded: so measure another one.
        page.click("#search-tab");
        page.until("the end of the first search", || {
            page.texts("#search button").contains(&"Search again".to_owned()).then_some(())
        });
        thread::sleep(Duration::from_secs(1));
        page.js(BEGIN, &[]);
        let begun = Instant::now();
        let mut seen = Value::Null;
        while begun.elapsed() < PATIENCE && !seen["all"].is_number() {
            thread::sleep(Duration::from_millis(100));
            seen = page.js("return seen", &[]);
        }
        let longest = page.js("return Math.max(0, ...tasks)", &[]);
        let shown =
            |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |number| format!("{number:.0}"));
        let tally = page.texts("#search .searched").concat();
        let digits: String = tally.split(' ').next().unwrap_or_default().replace(',', "");
        let layouts: f64 = digits.parse().unwrap_or_default();
        #[allow(clippy::cast_precision_loss)]
        let rate = seen["all"].as_f64().map(|all| layouts / (all / 1e3) / arguments.workers as f64);
        println!(
            "{:>7} {:>7} {:>7} {layouts:>9} {:>9}  {name}",
            shown(&seen["first"]),
            shown(&seen["all"]),
            shown(&longest),
            rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"))
        );
    }
}

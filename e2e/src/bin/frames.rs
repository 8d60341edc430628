//! `frames [FOLDER]`: how smoothly the map of a built page, `dist/` where none is named, responds: 16 to 131,072
//! GPUs, while it is scrolled, hovered over, zoomed and played. Not a gate: times depend on the machine, which should
//! be idle, and a headless browser paints on the processor.
use std::path::PathBuf;

use clap::Parser;
use e2e::{Page, dist};
use serde_json::{Value, json};

/// How smoothly the map of a built page moves.
#[derive(Parser)]
struct Arguments {
    /// A built page
    folder: Option<PathBuf>,
    /// Times that the processor is slowed down
    #[arg(long, default_value_t = 1)]
    slowdown: u64,
}

/// Nodes of 8.
const NODES: [u64; 4] = [2, 128, 2_048, 16_384];

/// The user's action, in place of `step`: called once a frame with the frame's number.
const ACTIONS: [(&str, &str); 4] = [
    (
        // There and back, so that it never reaches an end.
        "scrolled",
        "frame.scrollTop += (i % 120 < 60 ? 1 : -1) * Math.max(40, frame.scrollHeight / 60)",
    ),
    (
        "hovered over",
        "const box = frame.getBoundingClientRect();
         frame.dispatchEvent(new MouseEvent('mousemove', { bubbles: true,
             clientX: box.x + 80 + (i * 37) % (box.width - 120), clientY: box.y + 10 + (i * 23) % (box.height - 20) }))",
    ),
    (
        // A level every sixth frame, in to the last and out again.
        "zoomed",
        "if (i % 6 === 0) frame.dispatchEvent(new WheelEvent('wheel',
             { bubbles: true, cancelable: true, ctrlKey: true, deltaY: i % 48 < 24 ? -1 : 1 }))",
    ),
    ("played", "if (i === 0) play.click()"),
];

/// Runs `step` for this many frames; returns their times, and the tasks in between that took more than 50 ms.
const RUN: &str = "
    const [step, frames, done] = [new Function('i', 'frame', 'play', arguments[0]), arguments[1], arguments[2]];
    const frame = document.querySelector('.map-frame');
    const play = [...document.querySelectorAll('#map .map-bar button')].find(e => e.innerText === 'Play one step');
    const long = [], between = [];
    const watch = new PerformanceObserver(list => long.push(...list.getEntries().map(e => e.duration)));
    watch.observe({ type: 'longtask' });
    let [i, last] = [0, null];
    const next = now => {
        if (last !== null) between.push(now - last);
        last = now;
        if (i === frames) {
            watch.takeRecords().forEach(e => long.push(e.duration));
            watch.disconnect();
            return done({ between, long });
        }
        step(i++, frame, play);
        requestAnimationFrame(next);
    };
    requestAnimationFrame(next)";
/// At 60 a second, four seconds: the first scene of a played step and its change into the second.
const FRAMES: u64 = 240;

/// What the main thread did so far. Unit: second.
fn spent(page: &Page) -> [f64; 2] {
    let metrics = page.devtools("Performance.getMetrics", json!({}));
    let all = metrics["metrics"].as_array().cloned().unwrap_or_default();
    let of = |name: &str| {
        let found = all.iter().find(|one| one["name"] == name);
        found.and_then(|one| one["value"].as_f64()).unwrap_or_default()
    };
    [of("ScriptDuration"), of("LayoutDuration") + of("RecalcStyleDuration")]
}

fn numbers(value: &Value) -> Vec<f64> {
    let mut numbers: Vec<f64> = value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

fn main() {
    let arguments = Arguments::parse();
    let folder = arguments.folder.unwrap_or_else(dist);
    println!(
        "processor {} times slower; a second: frames; milliseconds: median and longest frame, script and layout of a frame on \
         average, longest task above 50 ms",
        arguments.slowdown
    );
    for nodes in NODES {
        let page = Page::blank_of(&folder);
        page.devtools("Performance.enable", json!({}));
        page.devtools("Emulation.setCPUThrottlingRate", json!({ "rate": arguments.slowdown }));
        let gpus = nodes * 8;
        page.goto(&format!(
            "?view=map#/1?model=Llama-3.1-8B&accelerator=H100-SXM&nodes={nodes}&gpus_per_node=8&gbs={gpus}&mbs=1&seq=8192&tp=2&\
             pp=2&sequence_parallel&bf16&use_distributed_optimizer"
        ));
        page.wait_for(".map-frame svg");
        page.wait_gone("[aria-busy=true]");
        for (name, step) in ACTIONS {
            let before = spent(&page);
            let run = page.js_async(RUN, &[json!(step), json!(FRAMES)]);
            let after = spent(&page);
            let (between, long) = (numbers(&run["between"]), numbers(&run["long"]));
            let whole: f64 = between.iter().sum();
            #[allow(clippy::cast_precision_loss)]
            let frames = between.len().max(1) as f64;
            let of_frame = |i: usize| (after[i] - before[i]) * 1e3 / frames;
            println!(
                "{:>5.0} {:>6.1} {:>6.1} {:>6.1} {:>6.1} {:>6}  {gpus} GPUs, {name}",
                frames * 1e3 / whole,
                between.get(between.len() / 2).copied().unwrap_or_default(),
                between.last().copied().unwrap_or_default(),
                of_frame(0),
                of_frame(1),
                long.last().map_or_else(|| "-".to_owned(), |one| format!("{one:.0}")),
            );
        }
    }
}

//! `busy [SLOWDOWN]`: the longest task for each user action on the page in `dist/`, and how long keys wait, on a
//! processor slowed down by that factor. Not a gate: times depend on the machine, which should be idle.
use std::env;
use std::thread;
use std::time::Duration;

use e2e::{Key, Page};
use serde_json::{Value, json};

const SLOWDOWN: u64 = 4;
/// Time in which a picture is drawn and saved; it is named after the plan.
const PICTURE: Duration = Duration::from_secs(4);
/// Time between two keys, for a fast typist.
const STROKE: Duration = Duration::from_millis(90);
/// What a task may take before progress must show. Unit: millisecond.
const LONG: f64 = 200.0;

const WATCH: &str = "
    window.tasks = []; window.keys = [];
    new PerformanceObserver(list => tasks.push(...list.getEntries().map(e => e.duration))).observe({ type: 'longtask' });
    new PerformanceObserver(list => keys.push(...list.getEntries().filter(e => e.name === 'keydown').map(e => e.duration)))
        .observe({ type: 'event', durationThreshold: 16 })";

/// A launch script of about 14 kB: the length of long published ones.
fn long_script(page: &Page) -> String {
    let mut text = page.value("#script");
    let mut step = 0;
    while text.len() < 14_000 {
        step += 1;
        text += &format!(
            "if [ \"$STEP\" = {step} ]; then\n  EXTRA_{step}=\"--lr {step}.0e-5\" # of stage {step}\nfi\n"
        );
    }
    text
}

/// What happened since the last call.
fn seen(page: &Page) -> (Vec<f64>, Vec<f64>) {
    // entries are reported after their task
    thread::sleep(Duration::from_millis(600));
    let found = page.js("return [tasks.splice(0), keys.splice(0)]", &[]);
    let list =
        |i: usize| found[i].as_array().into_iter().flatten().filter_map(Value::as_f64).collect::<Vec<_>>();
    (list(0), list(1))
}

fn tell(page: &Page, what: &str) {
    page.wait_gone("[aria-busy=true]");
    let (tasks, mut keys) = seen(page);
    let longest = tasks.iter().copied().fold(0.0, f64::max);
    keys.sort_by(f64::total_cmp);
    let keys = match (keys.get(keys.len() / 2), keys.last()) {
        (Some(median), Some(worst)) => format!("; keys painted after {median:.0} ms, at worst {worst:.0} ms"),
        _ => String::new(),
    };
    let mark = if longest > LONG { "  <-- above 200 ms" } else { "" };
    println!("{longest:>6.0} ms  {what} ({} tasks above 50 ms){keys}{mark}", tasks.len());
}

fn main() {
    let slowdown = env::args().nth(1).map_or(SLOWDOWN, |text| text.parse().expect("a number"));
    let page = Page::blank();
    page.devtools("Page.enable", json!({}));
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH }));
    page.devtools("Emulation.setCPUThrottlingRate", json!({ "rate": slowdown }));
    println!("longest task, processor {slowdown} times slower");
    page.goto("");
    tell(&page, "first load");
    page.fill("#script", &long_script(&page));
    tell(&page, "a script of 14 kB pasted");
    page.click("#script");
    page.press(Key::Control + Key::Home);
    page.press(Key::End);
    for key in "\n# a remark\nTP=4\n".chars() {
        page.press(String::from(key).as_str());
        thread::sleep(STROKE);
    }
    tell(&page, "typing into it");
    page.choose(".accelerator select", "A100-SXM-80GB");
    tell(&page, "another accelerator");
    page.click_text("button", "Share");
    tell(&page, "the sheet for sharing");
    page.click_text("#share button", "Cluster map, PNG");
    thread::sleep(PICTURE);
    tell(&page, "the map as a picture");
    page.press(Key::Escape);
    page.click("#schedule-tab");
    page.click(".others summary");
    tell(&page, "all other schedules");
    page.click("#search-tab");
    page.wait_gone("#search progress");
    tell(&page, "the search");
    let script = page
        .value("#script")
        .replace("NNODES=2", "NNODES=2048")
        .replace("--global-batch-size 512", "--global-batch-size 16384");
    page.click("#map-tab");
    page.fill("#script", &script);
    page.wait_text(".plan-name", "16,384");
    tell(&page, "16,384 GPUs");
    page.click("#search-tab");
    page.until("the search of theirs", || (page.count("#search tbody tr") > 0).then_some(()));
    page.wait_gone("#search progress");
    tell(&page, "their search");
    page.click_text("button", "Share");
    page.wait_text("#share", "Files");
    tell(&page, "the sheet for sharing them");
    page.click_text("#share button", "Cluster map, PNG");
    thread::sleep(PICTURE);
    tell(&page, "their map as a picture");
    page.press(Key::Escape);
    let noise = "a line of a log that is no script 0123456789 [x] $y \"z\" 'w' > v\n".repeat(16_000);
    page.fill("#script", &noise);
    page.wait_for(".missing");
    tell(&page, "a megabyte of noise pasted");
    page.click("#script");
    page.press("x");
    thread::sleep(Duration::from_secs(2));
    tell(&page, "a key typed into it");
}

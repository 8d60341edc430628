//! Published runs with known memory: one launch per line of `data/measured/memory.jsonl`, with its runs.

use std::sync::OnceLock;

use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::estimate::{Memory, memory};
use shardscope::launch::{Request, Resolution, read};
use shardscope::source::Source;

const RUNS: &str = include_str!("../../../tests/data/measured/memory.jsonl");

/// The source whose reserved figures were used to fit the allocator slack (`SLACK_LEAST`, `SLACK_PART`,
/// `SLACK_PART_LEAST`).
const SLACK_FROM: &str = "simumax-b200";
/// The sources from whose logs the driver context was read.
const CONTEXT_FROM: [&str; 3] = ["bloom-prequel", "bigscience-1b3-v100", "bigscience-gpt2-v100"];

/// One published run.
pub struct Run {
    /// Family and number.
    pub id: String,
    /// Family of runs: one source, or one series of a source.
    pub family: String,
    /// The accelerator, by its name in the catalog.
    pub accelerator: String,
    /// Number of accelerators.
    pub gpus: u64,
    /// Its launch, resolved.
    pub resolution: Resolution,
    /// The engine's estimate; none for a model that is not estimated.
    pub memory: Option<Memory>,
    /// Whether it ran out of memory.
    pub ran_out: bool,
    /// Whether its samples are shorter than the counted length: neither packed nor padded to it, according to its
    /// launch.
    pub shorter: bool,
    row: Value,
}

/// Which bytes a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Bytes allocated by PyTorch's allocator.
    Allocated,
    /// Bytes that the allocator reserved on the device.
    Reserved,
    /// Bytes that `nvidia-smi` shows as used.
    Device,
    /// Bytes allocated between the end of one step and the start of the next.
    Between,
}

impl Counted {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Allocated, Self::Reserved, Self::Device, Self::Between];

    /// The name, in a word or two.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Reserved => "reserved",
            Self::Device => "device",
            Self::Between => "between steps",
        }
    }
}

/// One measured figure of a run with the engine's estimate.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Which bytes it counts.
    pub counted: Counted,
    /// The pipeline rank on which it was read; none for the rank with the most.
    pub stage: Option<usize>,
    /// GiB.
    pub measured: f64,
    /// GiB.
    pub predicted: f64,
}

/// Every run.
pub fn runs() -> &'static [Run] {
    static ALL: OnceLock<Vec<Run>> = OnceLock::new();
    ALL.get_or_init(|| {
        let launches = RUNS.lines().map(|line| serde_json::from_str(line).expect("a launch as JSON"));
        launches.flat_map(|launch: Value| of_launch(&launch)).collect()
    })
}

fn of_launch(launch: &Value) -> Vec<Run> {
    let family = text(launch, "family");
    let rows = list(launch, "rows");
    let run = |row: &Value| {
        let resolution = resolved(launch, row);
        Run {
            id: format!("{family}-{}", text(row, "id")),
            family: family.to_owned(),
            accelerator: text(row, "gpu").to_owned(),
            gpus: count(row, "gpus").expect("GPUs"),
            memory: resolution.plan.as_ref().map(memory),
            resolution,
            shorter: launch.get("samples").and_then(Value::as_str) == Some("shorter"),
            ran_out: row.get("oom") == Some(&Value::Bool(true)),
            row: row.clone(),
        }
    };
    rows.iter().map(run).collect()
}

/// The run as stated by its launch script.
fn resolved(launch: &Value, row: &Value) -> Resolution {
    let gpus = count(row, "gpus").expect("GPUs");
    // A node has eight GPUs unless the row says otherwise; a smaller run uses part of one.
    let per_node = count(row, "per_node").unwrap_or(8).min(gpus);
    let mut script = String::new();
    for setting in list(launch, "env") {
        script += &format!("export {}\n", setting.as_str().expect("a variable"));
    }
    let nodes = gpus.div_ceil(per_node);
    let program = launch.get("script").and_then(Value::as_str).unwrap_or("pretrain_gpt.py");
    script += &format!("torchrun --nnodes {nodes} --nproc_per_node {per_node} {program}");
    for word in text(launch, "flags").split(' ') {
        // Quoted so that bash does not expand anything.
        script += &format!(" '{word}'");
    }
    let mut overrides = vec![("accelerator".to_owned(), text(row, "gpu").to_owned())];
    for (name, value) in launch.get("set").and_then(Value::as_object).into_iter().flatten() {
        overrides.push((name.clone(), value.as_str().expect("a setting").to_owned()));
    }
    overrides.push(("without".to_owned(), WITHOUT.to_owned()));
    let source = Source::new(&script);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

/// Settings of some runs that are not modelled but do not prevent an estimate: the measurements show how much each
/// matters. If other layers make a different model, nothing is estimated.
const WITHOUT: &str = "overlap-p2p-communication-warmup-flush \
    mtp-use-repeated-layer overlap-param-gather-with-optimizer-step megatron-fsdp-grad-comm-dtype \
    use-transformer-engine-op-fuser first-last-layers-bf16 reuse-grad-buf-for-mxfp8-param-ag reference_mixers";

impl Run {
    /// Whether a constant that `figure` depends on was fitted to figures of its source. Allocated bytes depend on
    /// none.
    #[must_use]
    pub fn is_fitted(&self, figure: &Figure) -> bool {
        let family = self.family.as_str();
        match figure.counted {
            Counted::Allocated | Counted::Between => false,
            Counted::Reserved => family == SLACK_FROM,
            Counted::Device => family == SLACK_FROM || CONTEXT_FROM.contains(&family),
        }
    }

    /// The lines of the statistics in which `figure` counts, as indices into [`Run::LINES`].
    #[must_use]
    pub fn lines(&self, figure: &Figure) -> Vec<usize> {
        let fitted = self.is_fitted(figure);
        let counted = figure.counted;
        [
            counted == Counted::Allocated,
            counted == Counted::Reserved,
            counted == Counted::Device,
            counted == Counted::Between,
            !fitted,
            fitted,
            self.shorter,
        ]
        .into_iter()
        .enumerate()
        .filter_map(|(place, counts)| counts.then_some(place))
        .collect()
    }

    /// Names of those lines.
    pub const LINES: [&'static str; 7] = [
        Counted::Allocated.name(),
        Counted::Reserved.name(),
        Counted::Device.name(),
        Counted::Between.name(),
        "never fitted",
        "a constant was found on their source",
        "samples shorter than counted",
    ];

    /// The measured figures, with their predictions.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let Some(memory) = &self.memory else { return Vec::new() };
        let totals = || memory.ranks.iter().map(|rank| rank.totals);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let mut out = Vec::new();
        let mut figure = |counted, stage, measured, predicted| {
            out.push(Figure { counted, stage, measured, predicted });
        };
        // This figure is in bytes; all others of a row are in GiB.
        if let Some(bytes) = real(&self.row, "peak") {
            let stage = index(count(&self.row, "stage").expect("a stage"));
            let peak = memory.ranks[stage].totals.peak_allocated.in_gib();
            figure(Counted::Allocated, Some(stage), bytes / 1_073_741_824.0, peak);
        }
        for stage in list(&self.row, "stages") {
            let [rank, allocated, reserved] = [0, 1, 2].map(|place| stage[place].as_f64().expect("a figure"));
            let rank = index(rank as u64);
            let totals = memory.ranks[rank].totals;
            figure(Counted::Allocated, Some(rank), allocated, totals.peak_allocated.in_gib());
            figure(Counted::Reserved, Some(rank), reserved, totals.cached_on(memory.capacity).in_gib());
        }
        if let Some(gib) = real(&self.row, "peak_gib") {
            let peak = most(&mut totals().map(|totals| totals.peak_allocated.in_gib()));
            figure(Counted::Allocated, None, gib, peak);
        }
        if let Some(gib) = real(&self.row, "reserved_gib") {
            figure(
                Counted::Reserved,
                None,
                gib,
                most(&mut totals().map(|totals| totals.cached_on(memory.capacity).in_gib())),
            );
        }
        // Figures in bytes, from a GPU on which this project's own scripts ran.
        if let [Some(peak), Some(steady), Some(reserved)] =
            ["peak_bytes", "steady_bytes", "reserved_bytes"].map(|name| real(&self.row, name))
        {
            let totals = memory.ranks[0].totals;
            let gib = |bytes: f64| bytes / 1_073_741_824.0;
            figure(Counted::Allocated, None, gib(peak), totals.peak_allocated.in_gib());
            figure(Counted::Between, None, gib(steady), totals.between_steps.in_gib());
            figure(Counted::Reserved, None, gib(reserved), totals.cached_on(memory.capacity).in_gib());
        }
        if let Some(gib) = real(&self.row, "smi_gib") {
            let shown = most(&mut totals().map(|totals| totals.shown_on(memory.capacity).in_gib()));
            figure(Counted::Device, None, gib, shown);
        }
        out
    }
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_else(|| panic!("no text {name}"))
}

/// The values of a list; empty if there is no list of this name.
fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn real(object: &Value, name: &str) -> Option<f64> {
    object.get(name)?.as_f64()
}

fn count(object: &Value, name: &str) -> Option<u64> {
    object.get(name)?.as_u64()
}

fn index(count: u64) -> usize {
    usize::try_from(count).expect("a small number")
}

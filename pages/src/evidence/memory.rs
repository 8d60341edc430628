//! Published runs whose memory is known: one launch per line of `data/measured/memory.jsonl`, with its runs.

use std::sync::OnceLock;

use shardscope::estimate::{Memory, memory};
use shardscope::intake::shell::Environment;
use shardscope::intake::{Request, Resolution, read};
use shardscope::json::Json;
use shardscope::text::Source;

const RUNS: &str = include_str!("../../../tests/data/measured/memory.jsonl");

/// One published run.
pub struct Run {
    /// Family and number.
    pub id: String,
    /// Where it is from.
    pub family: String,
    /// The accelerator, by the catalog's name.
    pub accelerator: String,
    /// How many of them.
    pub gpus: u64,
    /// Its launch, resolved.
    pub resolution: Resolution,
    /// What the engine says; none of a model that is not estimated.
    pub memory: Option<Memory>,
    /// Whether it ran out of memory.
    pub ran_out: bool,
    row: Json,
}

/// Which bytes a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Those that PyTorch's allocator gave out.
    Allocated,
    /// Those that it took from the device.
    Reserved,
    /// Those that `nvidia-smi` shows as used.
    Device,
}

impl Counted {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Allocated, Self::Reserved, Self::Device];

    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Reserved => "reserved",
            Self::Device => "device",
        }
    }
}

/// One measured figure of a run beside what the engine says.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// What it counts.
    pub counted: Counted,
    /// The pipeline rank it was read on; none: on the rank that has most.
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
        let launches = RUNS.lines().map(|line| Json::read(line).expect("a launch as JSON"));
        launches.flat_map(|launch| of_launch(&launch)).collect()
    })
}

fn of_launch(launch: &Json) -> Vec<Run> {
    let family = text(launch, "family");
    let rows = launch.get("rows").map(Json::list).unwrap_or_default();
    let run = |row: &Json| {
        let resolution = resolved(launch, row);
        Run {
            id: format!("{family}-{}", text(row, "id")),
            family: family.to_owned(),
            accelerator: text(row, "gpu").to_owned(),
            gpus: count(row, "gpus").expect("GPUs"),
            memory: resolution.plan.as_ref().map(memory),
            resolution,
            ran_out: row.get("oom") == Some(&Json::Truth(true)),
            row: row.clone(),
        }
    };
    rows.iter().map(run).collect()
}

/// The run as its launch script says it.
fn resolved(launch: &Json, row: &Json) -> Resolution {
    let gpus = count(row, "gpus").expect("GPUs");
    let per_node = count(row, "per_node").unwrap_or(8).min(gpus);
    let mut script = String::new();
    for setting in launch.get("env").map(Json::list).unwrap_or_default() {
        script += &format!("export {}\n", setting.text().expect("a variable"));
    }
    let nodes = gpus.div_ceil(per_node);
    script += &format!("torchrun --nnodes {nodes} --nproc_per_node {per_node} pretrain_gpt.py");
    for word in text(launch, "flags").split(' ') {
        script += &format!(" '{word}'");
    }
    let mut overrides = vec![("accelerator".to_owned(), text(row, "gpu").to_owned())];
    for (name, value) in launch.get("set").map(Json::pairs).unwrap_or_default() {
        overrides.push((name.clone(), value.text().expect("a setting").to_owned()));
    }
    let source = Source::new(&script);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

impl Run {
    /// What was measured, with the prediction.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let Some(memory) = &self.memory else { return Vec::new() };
        let totals = || memory.ranks.iter().map(|rank| rank.totals);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let mut out = Vec::new();
        let mut figure = |counted, stage, measured, predicted| {
            out.push(Figure { counted, stage, measured, predicted });
        };
        if let Some(bytes) = real(&self.row, "peak") {
            let stage = index(count(&self.row, "stage").expect("a stage"));
            let peak = memory.ranks[stage].totals.peak_allocated.in_gib();
            figure(Counted::Allocated, Some(stage), bytes / 1_073_741_824.0, peak);
        }
        for stage in self.row.get("stages").map(Json::list).unwrap_or_default() {
            let [rank, allocated, reserved] =
                [0, 1, 2].map(|place| number(&stage.list()[place]).expect("a figure"));
            let rank = index(rank as u64);
            let totals = memory.ranks[rank].totals;
            figure(Counted::Allocated, Some(rank), allocated, totals.peak_allocated.in_gib());
            figure(Counted::Reserved, Some(rank), reserved, totals.peak_cached.in_gib());
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
                most(&mut totals().map(|totals| totals.peak_cached.in_gib())),
            );
        }
        if let Some(gib) = real(&self.row, "smi_gib") {
            figure(Counted::Device, None, gib, memory.worst.peak_reserved.in_gib());
        }
        out
    }
}

fn text<'a>(object: &'a Json, name: &str) -> &'a str {
    object.get(name).and_then(Json::text).unwrap_or_else(|| panic!("no text {name}"))
}

fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Number(digits) => digits.parse().ok(),
        _ => None,
    }
}

fn real(object: &Json, name: &str) -> Option<f64> {
    number(object.get(name)?)
}

fn count(object: &Json, name: &str) -> Option<u64> {
    match object.get(name)? {
        Json::Number(digits) => digits.parse().ok(),
        _ => None,
    }
}

fn index(count: u64) -> usize {
    usize::try_from(count).expect("a small number")
}

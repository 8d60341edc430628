//! Files of JSON: a memory snapshot, the profiler's trace, the state and the metrics of a Trainer. Values that are not
//! needed are skipped while reading and never stored.

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use super::figures::{Measured, Remark, Step, Tool};
use super::number::positive;
use super::profile;
use super::snapshot::{Change, Held, Snapshot};

/// The keys of all forms at once: one pass over the file, however large, and its keys determine the form.
#[derive(Deserialize)]
struct File {
    segments: Option<Vec<Segment>>,
    device_traces: Option<Vec<Trace>>,
    #[serde(rename = "traceEvents")]
    events: Option<Steps>,
    #[serde(rename = "global_step")]
    steps: Option<f64>,
    log_history: Option<Vec<Metrics>>,
    train_runtime: Option<f64>,
    train_steps_per_second: Option<f64>,
}

#[derive(Deserialize)]
struct Segment {
    #[serde(default)]
    device: u64,
    total_size: u64,
    allocated_size: u64,
}

/// The metrics that a Trainer writes for the whole run (`transformers/trainer_utils.py`, speed_metrics).
#[derive(Default, Deserialize)]
struct Metrics {
    step: Option<f64>,
    train_runtime: Option<f64>,
    train_steps_per_second: Option<f64>,
}

/// Entries of a device, without those that change nothing.
#[derive(Default)]
struct Trace(Vec<(Change, u64)>);

/// Steps that the profiler marked, by name, with their time in microseconds.
#[derive(Default)]
struct Steps(Vec<(String, f64)>);

#[derive(Deserialize)]
struct TraceEntry {
    action: String,
    size: Option<u64>,
}

#[derive(Deserialize)]
struct Event {
    name: Option<String>,
    cat: Option<String>,
    dur: Option<f64>,
}

/// Reads a list member by member and stores the result of `keep` for each.
struct Kept<T, Out>(fn(T) -> Option<Out>);

impl<'de, T: Deserialize<'de>, Out> Visitor<'de> for Kept<T, Out> {
    type Value = Vec<Out>;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut events = Vec::new();
        while let Some(member) = members.next_element::<T>()? {
            events.extend((self.0)(member));
        }
        Ok(events)
    }
}

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keep = |entry: TraceEntry| Some((Change::parse(entry.action.as_bytes())?, entry.size?));
        deserializer.deserialize_seq(Kept(keep)).map(Self)
    }
}

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keep = |event: Event| {
            // The same step also appears on the device's own line.
            let on_host = event.cat.is_none_or(|category| !category.starts_with("gpu_"));
            let name = event.name.filter(|name| on_host && name.starts_with(profile::STEP))?;
            Some((name, event.dur?))
        };
        deserializer.deserialize_seq(Kept(keep)).map(Self)
    }
}

/// The file's figures; none if it has none of these forms.
pub(crate) fn read(text: &str) -> Option<Measured> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let file = File::deserialize(&mut deserializer).ok()?;
    // JSON lines (a log of one object for each line) would otherwise be read as its first line alone.
    let rest = deserializer.end().is_ok();
    figures(file).filter(|found| rest && found.says_something())
}

fn figures(file: File) -> Option<Measured> {
    if let Some(segments) = file.segments {
        let held = |one: Segment| Held {
            device: one.device,
            reserved: one.total_size,
            allocated: one.allocated_size,
        };
        let segments = segments.into_iter().map(held).collect();
        let traces = file.device_traces.unwrap_or_default().into_iter().map(|trace| trace.0).collect();
        return Some(Snapshot { segments, traces }.measured());
    }
    if let Some(events) = file.events {
        return profile::of_events(events.0);
    }
    let history = file.log_history.unwrap_or_default();
    let (train_runtime, train_steps_per_second) = (file.train_runtime, file.train_steps_per_second);
    let own = Metrics { step: None, train_runtime, train_steps_per_second };
    // The metrics of the whole run come last, in a state's history as in a log.
    let all = [own].into_iter().chain(history);
    let whole = all.rev().find(|one| one.train_runtime.is_some() || one.train_steps_per_second.is_some())?;
    let steps = whole.step.or(file.steps).filter(|steps| *steps >= 1.0);
    // The rate is rounded to three digits by the Trainer, the runtime to four decimal places.
    let mean = match (whole.train_runtime, steps) {
        (Some(runtime), Some(steps)) => runtime / steps,
        _ => 1.0 / whole.train_steps_per_second?,
    };
    let count = steps.map_or(1, counted);
    let step = positive(mean).map(|seconds| Step { seconds, count });
    Some(Measured { step, remark: Some(Remark::Mean), ..Measured::by(Tool::TrainerLog) })
}

/// Steps as a whole number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn counted(steps: f64) -> u64 {
    steps.clamp(0.0, 1e15) as u64
}

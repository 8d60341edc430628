//! The other schedules for the same plan: what each holds in memory and how long its stages wait.

use shardscope_estimate::time::{ScheduleTimes, time};
use shardscope_estimate::{memory_totals, time_fault};
use shardscope_plan::{Field, PipelineSchedule, Plan, Variant};
use shardscope_units::{Bytes, Seconds};

/// Chunks per rank under which the interleaved schedule is tried.
const CHUNKS: [u64; 3] = [1, 2, 4];

/// The plan under a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// `1f1b`, `zb-h1` and so on.
    pub name: &'static str,
    /// Model chunks of a rank.
    pub chunks: u64,
    /// The settings that turn the plan into it; empty for the plan's own.
    pub changes: Vec<(Field, String)>,
    /// Micro-batches (chunk steps, if a rank has several chunks) that the fullest stage holds.
    pub in_flight: u64,
    /// Device memory used on the fullest GPU.
    pub peak: Bytes,
    /// Whether that is less than the device has.
    pub fits: bool,
    /// Share of the pipeline's time in which the slowest stage waits.
    pub bubble: f64,
    /// Time of a step.
    pub step: Seconds,
    /// What the picture of the step is drawn from.
    pub times: ScheduleTimes,
}

/// The plan under every schedule that its layers and micro-batches allow, including its own.
#[must_use]
pub fn alternatives(plan: &Plan) -> Vec<Alternative> {
    let own = Variant::from_plan(plan);
    let mut out = Vec::new();
    for schedule in PipelineSchedule::all() {
        let chunks: &[u64] =
            // Only 1F1B has an interleaved form; the chunks of the others follow from the schedule itself.
            if schedule == PipelineSchedule::OneForwardOneBackward { &CHUNKS } else { &CHUNKS[..1] };
        for &virtual_pipeline in chunks {
            let mut variant = Variant { schedule, ..own.clone() };
            // A folded or mirrored schedule chooses two chunks itself.
            if schedule != own.schedule || chunks.len() > 1 {
                variant.virtual_pipeline = virtual_pipeline;
            }
            // The plan itself, unchanged: `apply` might state defaults, and the row must agree with the verdict to
            // the byte.
            let plan = if variant == own { Some(plan.clone()) } else { variant.apply(plan) };
            out.extend(plan.and_then(|plan| alternative(&plan, variant.changes_from(&own))));
        }
    }
    out
}

/// `None` if no machine could achieve the estimate.
fn alternative(plan: &Plan, changes: Vec<(Field, String)>) -> Option<Alternative> {
    let totals = memory_totals(plan);
    let peak = totals.iter().map(|rank| rank.peak_reserved).max().unwrap_or_default();
    // A time that no machine achieves (see `time_fault`) would appear as the best or worst of the list.
    let time = Some(time(plan)).filter(|time| time_fault(time).is_none())?;
    Some(Alternative {
        name: time.schedule.name,
        chunks: u64::from(time.schedule.shape.chunks),
        changes,
        in_flight: time.schedule.in_flight.iter().copied().max().unwrap_or(0),
        peak,
        // By what is required, not by what PyTorch would cache: cached blocks are released before it fails.
        fits: totals.iter().all(|rank| rank.peak_required <= plan.cluster().accelerator.memory),
        bubble: time.bubble_fraction,
        step: time.step,
        times: time.schedule,
    })
}

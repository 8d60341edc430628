//! The time of a step as reported.

use super::budget::{Training, training};
use super::interval::Interval;
use super::overlap::Bounds;
use super::spent::Parts;
use super::step::Run;
use crate::compute::{Calibration, Issue, calibration};
use crate::flops::{FlopCounts, flops};
use shardscope_explain::{Breakdown, Explanation, Formula};
use shardscope_plan::{PipelineSchedule, Plan};
use shardscope_schedule::{Order, Rehearsal, Shape, StageDurations};
use shardscope_units::{FlopsPerSecond, Quantity, Seconds};

/// The time of one step and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    /// The estimate.
    pub step: Seconds,
    /// The interval that contains nine of ten measured steps of such plans.
    pub interval: Interval,
    /// If everything overlapped that could: not a forecast, but a limit of the hardware.
    pub lower_bound: Seconds,
    /// If nothing overlapped: not a forecast either.
    pub upper_bound: Seconds,
    /// How the estimate is spent; its children sum to it up to rounding.
    pub breakdown: Breakdown<Seconds>,
    /// What tokens these are ([`shardscope_plan::Model::counted_tokens`]).
    pub counted_tokens: &'static str,
    /// Tokens per second over all accelerators.
    pub tokens_per_second: f64,
    /// Samples per second over all accelerators.
    pub samples_per_second: f64,
    /// Tokens per second of one accelerator.
    pub tokens_per_second_per_gpu: f64,
    /// FLOPs of a step by every convention.
    pub flops: FlopCounts,
    /// Model FLOPs per second of one accelerator.
    pub model_rate: FlopsPerSecond,
    /// Hardware FLOPs per second of one accelerator.
    pub hardware_rate: FlopsPerSecond,
    /// The dense peak that the shares below refer to: that of the format that the linear layers run in.
    pub peak: FlopsPerSecond,
    /// Model FLOPs as a share of the peak.
    pub mfu: f64,
    /// Hardware FLOPs as a share of the peak.
    pub hfu: f64,
    /// Share of the pipeline's time that its slowest stage spends waiting, 0 to 1.
    pub bubble_fraction: f64,
    /// The schedule with its durations, from which the timeline is drawn.
    pub schedule: ScheduleTimes,
    /// The complete training, if the plan says how long it is.
    pub training: Option<Training>,
}

impl Time {
    /// The time of one part of the breakdown (`tensor`, `expert`, `data`), and its share of the step.
    #[must_use]
    pub fn waits(&self, part: &str) -> (Seconds, f64) {
        let waits = self.breakdown.child(part).map_or(Seconds::ZERO, Breakdown::value);
        (waits, waits.get() / self.step.get().max(f64::MIN_POSITIVE))
    }
}

/// The schedule of the pipeline with the durations of this plan.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleTimes {
    /// `1f1b`, `interleaved`, `gpipe`, `zb-h1` and so on.
    pub name: &'static str,
    /// Its size.
    pub shape: Shape,
    /// Micro-batches that were simulated; if the step has more, the rest is extrapolated at their pace.
    pub simulated: u32,
    /// By pipeline rank, the most micro-batches (chunk steps if there are several chunks) that it holds.
    pub in_flight: Vec<u64>,
    /// The time of every pass of every chunk.
    pub durations: StageDurations,
    /// Time of all micro-batches through the pipeline.
    pub pipeline: Seconds,
}

/// The time of one step of `plan`.
#[must_use]
pub fn time(plan: &Plan) -> Time {
    time_with(plan, calibration(&plan.cluster().accelerator))
}

/// The same with the caller's constants.
#[must_use]
pub fn time_with(plan: &Plan, calibration: Calibration) -> Time {
    let rehearsal = Rehearsal::new(Shape::from_plan(plan));
    let run = |bounds| Run::new(plan, calibration, bounds);
    let [estimate, lowest, highest] = [Bounds::Estimate, Bounds::Lower, Bounds::Upper].map(run);
    let free = estimate.without_sends();
    let lines = rehearsal.totals([&estimate.durations, &free, &lowest.durations, &highest.durations]);
    let [pipe, pipe_free, pipe_lowest, pipe_highest] = lines.map(|line| line.total);
    let breakdown = breakdown(&estimate, pipe, pipe_free);
    // The sum of the same parts in the order in which a search takes it (`exact_step_seconds`), so that both are equal
    // to the last bit; the breakdown's own sum may differ there.
    let step = estimate.step(pipe);
    let flops = flops(plan);
    let gpus = number(plan.layout().world_size.max(1));
    let seconds = step.get().max(f64::MIN_POSITIVE);
    let samples = number(plan.recipe().global_batch_size) / seconds;
    let tokens = samples * number(plan.model().seq_length);
    let rate = |count: shardscope_units::Flops| FlopsPerSecond::new(count.get() / seconds / gpus);
    let peak = estimate.peak;
    let share = |rate: FlopsPerSecond| rate.get() / peak.get().max(f64::MIN_POSITIVE);
    let (model_rate, hardware_rate) = (rate(flops.model), rate(flops.hardware));
    let bubble = breakdown.child("bubble").map_or(Seconds::ZERO, Breakdown::value);
    let host = breakdown.child("host").map_or(Seconds::ZERO, Breakdown::value);
    Time {
        interval: Interval::new(plan, step, host.get() / seconds),
        lower_bound: lowest.step(pipe_lowest),
        // The estimate charges contention for what overlaps, and the upper bound has no overlap, so the estimate
        // could exceed it.
        upper_bound: highest.step(pipe_highest).greater(step),
        step,
        counted_tokens: plan.model().counted_tokens(),
        tokens_per_second: tokens,
        samples_per_second: samples,
        tokens_per_second_per_gpu: tokens / gpus,
        flops,
        model_rate,
        hardware_rate,
        peak,
        mfu: share(model_rate),
        hfu: share(hardware_rate),
        bubble_fraction: bubble.get() / pipe_free.get().max(f64::MIN_POSITIVE),
        schedule: schedule(&estimate, pipe, rehearsal),
        training: training(plan, step),
        breakdown,
    }
}

/// What a step of `plan` is checked against: its lower bound ([`Time::lower_bound`]), the peak that it runs at, and
/// whether its schedule is extrapolated.
pub(crate) fn held_against(plan: &Plan) -> (Seconds, FlopsPerSecond, bool) {
    let shape = Shape::from_plan(plan);
    let rehearsal = Rehearsal::new(shape);
    let lowest = Run::new(plan, calibration(&plan.cluster().accelerator), Bounds::Lower);
    (lowest.step_by(rehearsal), lowest.peak, rehearsal.micro_batches() < shape.micro_batches)
}

/// How many times the micro-batches that a search simulates fill the pipeline.
const QUICK_FILLS: u64 = 5;

/// Only the step estimate, equal to that of [`time`].
#[must_use]
pub fn exact_step_seconds(plan: &Plan) -> Seconds {
    let calibration = calibration(&plan.cluster().accelerator);
    Run::new(plan, calibration, Bounds::Estimate).step_by(Rehearsal::new(Shape::from_plan(plan)))
}

/// The same for a search over many plans: long schedules are extrapolated at the pace of their first rounds, within 2
/// % of [`exact_step_seconds`] (`tests/suite/bounds.rs`).
#[must_use]
pub fn step_seconds(plan: &Plan) -> Seconds {
    step_seconds_with(plan, calibration(&plan.cluster().accelerator))
}

/// The same with the caller's constants.
#[must_use]
pub fn step_seconds_with(plan: &Plan, calibration: Calibration) -> Seconds {
    Run::new(plan, calibration, Bounds::Estimate)
        .step_by(Rehearsal::quick(Shape::from_plan(plan), QUICK_FILLS))
}

/// The same with the caller's host costs.
#[must_use]
pub fn step_seconds_issued(plan: &Plan, issue: Issue) -> Seconds {
    Run::issued(plan, calibration(&plan.cluster().accelerator), Bounds::Estimate, issue)
        .step_by(Rehearsal::quick(Shape::from_plan(plan), QUICK_FILLS))
}

fn schedule(run: &Run, pipeline: Seconds, rehearsal: Rehearsal) -> ScheduleTimes {
    let shape = run.shape;
    // More micro-batches than these never add to what a stage holds.
    let enough = shape.stages.saturating_mul(shape.chunks).saturating_mul(2).saturating_add(shape.group);
    let mut order = None;
    let mut in_flight = Vec::with_capacity(shape.stages as usize);
    for stage in 0..shape.stages {
        in_flight.push(shape.in_flight(stage).unwrap_or_else(|| {
            let short = Shape { micro_batches: shape.micro_batches.min(enough), ..shape };
            order.get_or_insert_with(|| Order::new(short)).peak(stage, &vec![1; shape.chunks as usize])
        }));
    }
    ScheduleTimes {
        name: name(&shape),
        shape,
        simulated: rehearsal.micro_batches(),
        in_flight,
        durations: run.durations.clone(),
        pipeline,
    }
}

/// The schedule's name in reports.
fn name(shape: &Shape) -> &'static str {
    match shape.kind {
        PipelineSchedule::OneForwardOneBackward if shape.chunks > 1 => "interleaved",
        kind => kind.name(),
    }
}

const MODEL: &str = "Shardscope's step-time model (estimate/time)";
static PER_MICRO_BATCH: Formula =
    Formula::new("m·t", "Time per micro-batch × micro-batches, on the slowest stage.", MODEL)
        .letters(&[("m", "micro-batches of a step"), ("t", "s per micro-batch, on the slowest stage")]);
static TENSOR: Formula =
    Formula::new("m·t", "Exposed tensor-parallel communication, on the slowest stage.", MODEL)
        .letters(&[("m", "micro-batches of a step"), ("t", "s per micro-batch, on the slowest stage")]);
static PIPELINE: Formula = Formula::new(
    "T - Tf",
    "Exposed pipeline communication: the pipeline's time with stage-to-stage sends minus its time without.",
    MODEL,
)
.letters(&[
    ("T", "s of the pipeline with its sends"),
    ("Tf", "s of the pipeline with sends that take no time"),
]);
static BUBBLE: Formula = Formula::new(
    "Tf - m·t",
    "Pipeline bubble: the time the slowest stage is idle in warm-up and cool-down.",
    MODEL,
)
.letters(&[
    ("Tf", "s of the pipeline with sends that take no time"),
    ("m", "micro-batches of a step"),
    ("t", "s of compute per micro-batch, on the slowest stage"),
]);
static DATA: Formula = Formula::new(
    "g + e + m·t",
    "Exposed gradient reduce-scatter and parameter all-gather; the all-reduce of tied embeddings; and, with \
     sharded weights, what every micro-batch waits for.",
    MODEL,
)
.letters(&[
    ("g", "s of exposed reduce-scatter and all-gather"),
    ("e", "s of the all-reduce of tied embeddings"),
    ("m", "micro-batches of a step"),
    ("t", "s that a micro-batch waits for sharded weights"),
]);
static OPTIMIZER: Formula = Formula::new(
    "o",
    "Gradient norm, clipping, the update and the cast back: memory traffic of the rank's own shard.",
    MODEL,
)
.letters(&[("o", "s of the optimizer step")]);
static HOST: Formula = Formula::new(
    "m·t",
    "Time in which the device waits for the host to issue kernels: operators, kernels and messages of a pass, each with what \
     the software spends on it, beyond the device's own time.",
    MODEL,
).letters(&[("m", "micro-batches of a step"), ("t", "s per micro-batch in which the device waits for the host")]);
static OTHER: Formula = Formula::new(
    "i + m·t + w",
    "The fixed cost of an iteration; gradients accumulated outside of GEMMs; waiting for the slowest of many ranks.",
    MODEL,
).letters(&[("i", "s of an iteration whatever it computes"), ("m", "micro-batches of a step"), ("t", "s per micro-batch to accumulate gradients outside of GEMMs"), ("w", "s of waiting for the slowest of many ranks")]);

/// Relative difference below which two sums are considered equal up to their order: no bubble.
const ROUNDING: f64 = 1e-12;

fn breakdown(run: &Run, pipe: Seconds, pipe_free: Seconds) -> Breakdown<Seconds> {
    let batches = run.micro_batches();
    let mut once = Parts::default();
    let mut again = Seconds::ZERO;
    for chunk in run.slowest() {
        once += chunk.once();
        again += chunk.again.total();
    }
    let busy = (once.total() + again) * batches;
    let per_batch = |label: &'static str, formula, each: Seconds| {
        Breakdown::leaf(label, each * batches)
            .because(Explanation::new(formula, &[("m", batches), ("t", each.get())]))
    };
    let compute = Breakdown::sum(
        "compute",
        vec![
            per_batch("GEMMs", &PER_MICRO_BATCH, once.compute.linear),
            per_batch("attention", &PER_MICRO_BATCH, once.compute.attention),
            per_batch("memory-bound kernels", &PER_MICRO_BATCH, once.compute.memory),
        ],
    );
    let pipeline = Breakdown::leaf("pipeline", (pipe - pipe_free).greater(Seconds::ZERO))
        .because(Explanation::new(&PIPELINE, &[("T", pipe.get()), ("Tf", pipe_free.get())]));
    let waited = pipe_free - busy;
    let waited = if waited.get() > busy.get() * ROUNDING { waited } else { Seconds::ZERO };
    let bubble = Breakdown::leaf("bubble", waited).because(Explanation::new(
        &BUBBLE,
        &[("Tf", pipe_free.get()), ("m", batches), ("t", busy.get() / batches)],
    ));
    let (reduced, tied) = (run.epilogue.data, run.tied);
    let data = Breakdown::leaf("data", reduced + tied + once.data * batches).because(Explanation::new(
        &DATA,
        &[("g", reduced.get()), ("e", tied.get()), ("m", batches), ("t", once.data.get())],
    ));
    let optimizer = Breakdown::leaf("optimizer", run.epilogue.optimizer)
        .because(Explanation::new(&OPTIMIZER, &[("o", run.epilogue.optimizer.get())]));
    let waiting = run.step(pipe) - run.unscaled(pipe);
    let other = run.iteration + once.other * batches + waiting;
    let other = Breakdown::leaf("other", other).because(Explanation::new(
        &OTHER,
        &[("i", run.iteration.get()), ("m", batches), ("t", once.other.get()), ("w", waiting.get())],
    ));
    Breakdown::sum(
        "step",
        vec![
            compute,
            per_batch("recompute", &PER_MICRO_BATCH, again),
            per_batch("tensor", &TENSOR, once.tensor),
            pipeline,
            data,
            per_batch("context", &PER_MICRO_BATCH, once.context),
            per_batch("expert", &PER_MICRO_BATCH, once.expert),
            optimizer,
            bubble,
            per_batch("host", &HOST, once.host),
            other,
        ],
    )
}

#[allow(clippy::cast_precision_loss)]
fn number(value: u64) -> f64 {
    value as f64
}

/// The words for a part of a step, by its label.
#[must_use]
pub fn part_words(label: &str) -> &str {
    match label {
        "tensor" => "exposed TP communication",
        "pipeline" => "exposed PP communication",
        "data" => "exposed DP communication (gradient reduce-scatter, parameter all-gather)",
        "context" => "exposed CP communication",
        "expert" => "exposed EP communication",
        "bubble" => "pipeline bubble",
        "host" => "waiting for the host",
        "recompute" => "recomputation",
        other => other,
    }
}

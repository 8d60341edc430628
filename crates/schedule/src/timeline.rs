//! When each event begins and ends: every stage runs its events in order and waits for its inputs.

use super::run::{Clock, run};
use super::{Event, Order, Shape, StageDurations};
use shardscope_plan::PipelineSchedule;
use shardscope_units::{Quantity, Seconds};

/// Number of events up to which a [`Rehearsal`] simulates every one of them.
pub const EXACT_EVENTS: u64 = 400_000;
/// Maximum events of a shortened run, as long as it keeps [`LEAST_FILLS`].
const MOST_EVENTS: u64 = 8_000_000;
/// Minimum events of a shortened run.
const LEAST_EVENTS: u64 = 200_000;
/// Minimum micro-batches of a shortened run, in multiples of what fills the pipeline once: enough to reach a steady
/// state in nearly every case.
const ENOUGH_FILLS: u64 = 16;
/// The same for a pipeline so deep that more would exceed [`MOST_EVENTS`]: one to fill, one to drain, one for the
/// pace, and half for what has not settled.
const LEAST_FILLS: (u64, u64) = (7, 2);
/// Minimum number of micro-batches assumed to fill the pipeline: in a short pipeline a pattern over several of them
/// may repeat.
const LEAST_FILL: u64 = 16;

/// An event with its times from the start of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// The event.
    pub event: Event,
    /// When it begins.
    pub start: Seconds,
    /// When it ends.
    pub end: Seconds,
}

/// A simulated step: when each event begins and ends, if that was recorded, and the derived figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// By stage, in order.
    pub stages: Vec<Vec<Timed>>,
    /// From the first start to the last end.
    pub total: Seconds,
    /// The longest time between a stage's own first start and last end: the step time if stages need not start
    /// together (zero-bubble with post-validation of the optimizer step).
    pub longest: Seconds,
    /// By stage, the time spent working.
    pub busy: Vec<Seconds>,
}

impl Timeline {
    /// The result for one of the sets of durations.
    fn new<const N: usize>(clocks: &[Clock<N>], lane: usize) -> Self {
        // Stages may start late and end early: the step is the last end, and a stage's own span is the difference.
        let greatest =
            |time: &dyn Fn(&Clock<N>) -> f64| Seconds::new(clocks.iter().map(time).fold(0.0, f64::max));
        Self {
            stages: Vec::new(),
            total: greatest(&|clock| clock.end[lane]),
            longest: greatest(&|clock| clock.end[lane] - clock.first[lane]),
            busy: clocks.iter().map(|clock| Seconds::new(clock.busy[lane])).collect(),
        }
    }

    /// Extrapolates by adding its difference from `shorter` `rounds` more times, but no faster than its busiest stage
    /// works.
    fn continued(mut self, shorter: &Self, rounds: f64) -> Self {
        let busiest = |of: &Self| of.busy.iter().fold(Seconds::ZERO, |most, busy| most.greater(*busy));
        // If the longer run settles better, a round looks faster than it is; its busiest stage still has to do its
        // work.
        let least = busiest(&self) - busiest(shorter);
        let on = |long: Seconds, short: Seconds| long + (long - short).greater(least) * rounds;
        self.total = on(self.total, shorter.total);
        self.longest = on(self.longest, shorter.longest);
        for (long, short) in self.busy.iter_mut().zip(&shorter.busy) {
            *long = *long + (*long - *short) * rounds;
        }
        self
    }

    /// The fraction of all stages' time in which they are idle, 0 to 1.
    #[must_use]
    pub fn bubble(&self) -> f64 {
        // What remains of p stages times the step; no bubble formula.
        let busy: f64 = self.busy.iter().map(|busy| busy.get()).sum();
        let whole = self.total.get() * self.busy.iter().map(|_| 1.0).sum::<f64>();
        if whole > 0.0 { 1.0 - busy / whole } else { 0.0 }
    }
}

/// Simulates `order` under `durations`.
#[must_use]
pub fn timeline(order: &Order, durations: &StageDurations) -> Timeline {
    let mut stages: Vec<Vec<Timed>> = Vec::new();
    for stage in 0..order.shape().stages {
        stages.push(Vec::with_capacity(order.stage(stage).len()));
    }
    let clocks = run(order, [durations], |stage: usize, event, [start], [end]| {
        if let Some(list) = stages.get_mut(stage) {
            list.push(Timed { event, start: Seconds::new(start), end: Seconds::new(end) });
        }
    });
    Timeline { stages, ..Timeline::new(&clocks, 0) }
}

/// The same under each of `durations` at once, without the events' own times (`stages` stays empty).
#[must_use]
pub fn elapsed<const N: usize>(order: &Order, durations: [&StageDurations; N]) -> [Timeline; N] {
    let clocks = run(order, durations, |_, _, _, _| {});
    std::array::from_fn(|lane| Timeline::new(&clocks, lane))
}

/// How a schedule is simulated: in full, or shortened and extrapolated.
///
/// Between filling and draining, a pipeline repeats itself. Beyond [`EXACT_EVENTS`] only enough micro-batches to
/// settle are simulated, and once more with fewer; the difference in time gives the pace at which the omitted
/// micro-batches continue. Over random schedules with stages up to twice as slow as others, the full step is within 1
/// % of the simulation of every event (`tests/suite/schedule.rs`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rehearsal {
    /// What is simulated.
    shape: Shape,
    /// For a shortened run, the micro-batches of the second simulation and how many more rounds are still to come.
    more: Option<(u32, f64)>,
}

impl Rehearsal {
    /// The rehearsal for a schedule of `shape`.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let shape = shape.settled();
        if u64::from(shape.micro_batches).saturating_mul(events_per_micro_batch(&shape)) <= EXACT_EVENTS {
            return Self { shape, more: None };
        }
        let fills = |events: u64| events / events_per_micro_batch(&shape) / fill(&shape);
        let fills = fills(LEAST_EVENTS).max(ENOUGH_FILLS).min(fills(MOST_EVENTS));
        Self::shortened(shape, fills * LEAST_FILLS.1)
    }

    /// For a search over many plans: limits the micro-batches to what fills the pipeline this many times.
    #[must_use]
    pub fn quick(shape: Shape, fills: u64) -> Self {
        Self::shortened(shape.settled(), fills * LEAST_FILLS.1)
    }

    /// With at most `halves` half fills, but at least [`LEAST_FILLS`].
    fn shortened(shape: Shape, halves: u64) -> Self {
        let all = u64::from(shape.micro_batches);
        let round = round(&shape);
        let whole = |micro_batches: u64| micro_batches.div_ceil(round).saturating_mul(round);
        let fill = fill(&shape);
        // With the same remainder as the full step, since the end of a step depends on it.
        let long = whole(halves.max(LEAST_FILLS.0).saturating_mul(fill) / LEAST_FILLS.1) + all % round;
        let again = whole(fill);
        if long >= all {
            return Self { shape, more: None };
        }
        let (micro_batches, again) = (small(long), small(again));
        let left = f64::from(shape.micro_batches - micro_batches) / f64::from(again);
        Self { shape: Shape { micro_batches, ..shape }, more: Some((again, left)) }
    }

    /// Micro-batches that are simulated individually; fewer than the step has if the rest is extrapolated.
    #[must_use]
    pub fn micro_batches(&self) -> u32 {
        self.shape.micro_batches
    }

    /// Whether every event is simulated.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.more.is_none()
    }

    /// The times of the full step under each of `durations`, without its events (`stages` stays empty).
    #[must_use]
    pub fn totals<const N: usize>(&self, durations: [&StageDurations; N]) -> [Timeline; N] {
        let of = |micro_batches| elapsed(&Order::new(Shape { micro_batches, ..self.shape }), durations);
        let all = of(self.shape.micro_batches);
        let Some((again, rounds)) = self.more else { return all };
        let mut shorter = of(self.shape.micro_batches - again).into_iter();
        all.map(|whole| whole.continued(&shorter.next().unwrap_or_default(), rounds))
    }
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn events_per_micro_batch(shape: &Shape) -> u64 {
    let passes = if shape.splits_backward() { 3 } else { 2 };
    u64::from(shape.parts()).saturating_mul(passes).max(1)
}

/// Micro-batches that fill the pipeline once.
fn fill(shape: &Shape) -> u64 {
    u64::from(shape.stages.max(round_of_groups(shape))).max(LEAST_FILL)
}

/// Micro-batches after which the order repeats itself: a group if chunks alternate in groups, one for each direction
/// of `DualPipe`, and two if the ends of the orders depend on parity.
fn round(shape: &Shape) -> u64 {
    u64::from(round_of_groups(shape).max(2))
}

fn round_of_groups(shape: &Shape) -> u32 {
    let grouped = shape.kind == PipelineSchedule::OneForwardOneBackward && shape.chunks > 1;
    if grouped { shape.group.max(1) } else { 1 }
}

/// The times of the full step of a schedule that is simulated once.
#[must_use]
pub fn totals(shape: Shape, durations: &StageDurations) -> Timeline {
    let [timeline] = Rehearsal::new(shape).totals([durations]);
    timeline
}

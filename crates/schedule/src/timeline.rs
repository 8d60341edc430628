//! When each event begins and ends: every stage takes its events in order and waits for what it needs.

use super::run::{Clock, run};
use super::{Event, Order, Shape};
use shardscope_units::Seconds;

/// Events up to which a [`Rehearsal`] lets every one of them run.
pub const EXACT_EVENTS: u64 = 400_000;

/// How long the passes of one chunk take for one micro-batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChunkTime {
    /// Forward.
    pub forward: Seconds,
    /// Backward for the input gradient, recomputation included.
    pub backward: Seconds,
    /// Backward for the weight gradient. A whole backward pass takes both.
    pub weight: Seconds,
}

/// How long everything takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageDurations {
    /// By stage and chunk.
    pub chunks: Vec<Vec<ChunkTime>>,
    /// A message from stage r to stage r + 1 (the last: to the first), and back.
    pub sends: Vec<Seconds>,
    /// Whether a stage stands still while it sends (no overlapped p2p).
    pub blocking: bool,
}

impl StageDurations {
    /// The same times on every stage and chunk of `shape`.
    #[must_use]
    pub fn even(shape: &Shape, chunk: ChunkTime, send: Seconds) -> Self {
        let of_stage = (0..shape.chunks).map(|_| chunk).collect::<Vec<_>>();
        Self {
            chunks: (0..shape.stages).map(|_| of_stage.clone()).collect(),
            sends: (0..shape.stages).map(|_| send).collect(),
            blocking: false,
        }
    }

    /// The time of a message between two stages; none on one and the same.
    pub(super) fn between(&self, one: u32, other: u32) -> f64 {
        if one == other {
            return 0.0;
        }
        let (low, high) = (one.min(other), one.max(other));
        let link = if high - low == 1 { low } else { high };
        self.sends.get(link as usize).map_or(0.0, |send| send.get())
    }
}

/// An event with its times from the start of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// What.
    pub event: Event,
    /// When it begins.
    pub start: Seconds,
    /// When it ends.
    pub end: Seconds,
}

/// The step as it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// By stage, in order.
    pub stages: Vec<Vec<Timed>>,
    /// From the first begin to the last end.
    pub total: Seconds,
    /// The longest time between a stage's own first begin and last end: what a step takes when stages
    /// need not start together (zero-bubble with post-validation of the optimizer step).
    pub longest: Seconds,
    /// By stage, the time spent at work.
    pub busy: Vec<Seconds>,
}

impl Timeline {
    fn of(clocks: &[Clock]) -> Self {
        let greatest = |time: fn(&Clock) -> f64| Seconds::new(clocks.iter().map(time).fold(0.0, f64::max));
        Self {
            stages: Vec::new(),
            total: greatest(|clock| clock.end),
            longest: greatest(|clock| clock.end - clock.first),
            busy: clocks.iter().map(|clock| Seconds::new(clock.busy)).collect(),
        }
    }

    /// What it becomes after `rounds` more of what it has over `shorter`.
    fn continued(mut self, shorter: &Self, rounds: f64) -> Self {
        let on = |long: Seconds, short: Seconds| long + (long - short) * rounds;
        self.total = on(self.total, shorter.total);
        self.longest = on(self.longest, shorter.longest);
        for (long, short) in self.busy.iter_mut().zip(&shorter.busy) {
            *long = on(*long, *short);
        }
        self
    }

    /// The part of all stages' time in which they stand idle, 0 to 1.
    #[must_use]
    pub fn bubble(&self) -> f64 {
        let busy: f64 = self.busy.iter().map(|busy| busy.get()).sum();
        let whole = self.total.get() * self.busy.iter().map(|_| 1.0).sum::<f64>();
        if whole > 0.0 { 1.0 - busy / whole } else { 0.0 }
    }
}

/// Lets `order` run under `durations`.
#[must_use]
pub fn timeline(order: &Order, durations: &StageDurations) -> Timeline {
    let mut stages: Vec<Vec<Timed>> = Vec::new();
    for stage in 0..order.shape().stages {
        stages.push(Vec::with_capacity(order.stage(stage).len()));
    }
    let mut note = |stage: usize, event, start, end| {
        if let Some(list) = stages.get_mut(stage) {
            list.push(Timed { event, start: Seconds::new(start), end: Seconds::new(end) });
        }
    };
    let clocks = run(order, durations, &mut note);
    Timeline { stages, ..Timeline::of(&clocks) }
}

/// The same without the events' own times (`stages` stays empty).
#[must_use]
pub fn elapsed(order: &Order, durations: &StageDurations) -> Timeline {
    Timeline::of(&run(order, durations, |_, _, _, _| {}))
}

/// A schedule laid out once, to be run under several durations.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// The whole of it; of a long one a part.
    order: Order,
    /// Of a long one the same a round shorter, and the rounds that are left out.
    shorter: Option<(Order, f64)>,
}

impl Rehearsal {
    /// Of a schedule of `shape`: whole up to [`EXACT_EVENTS`]; beyond, the steady state of so long a run is
    /// continued at its own pace.
    #[must_use]
    pub fn of(shape: Shape) -> Self {
        let shape = shape.settled();
        let order = |micro_batches| Order::of(Shape { micro_batches, ..shape });
        let per_batch = u64::from(shape.stages) * u64::from(shape.chunks) * 3;
        let most = u32::try_from(EXACT_EVENTS / per_batch.max(1)).unwrap_or(u32::MAX);
        let group = shape.group.max(1).saturating_mul(2);
        if shape.micro_batches <= most.max(group.saturating_mul(2)) {
            return Self { order: order(shape.micro_batches), shorter: None };
        }
        let mut long = shape.micro_batches % group;
        long += (most.saturating_sub(long) / group).max(2) * group;
        let rounds = f64::from((shape.micro_batches - long) / group);
        Self { order: order(long), shorter: Some((order(long - group), rounds)) }
    }

    /// The times of the whole step without its events (`stages` stays empty).
    #[must_use]
    pub fn totals(&self, durations: &StageDurations) -> Timeline {
        let whole = elapsed(&self.order, durations);
        match &self.shorter {
            Some((shorter, rounds)) => whole.continued(&elapsed(shorter, durations), *rounds),
            None => whole,
        }
    }
}

/// The times of the whole step of a schedule that is run once.
#[must_use]
pub fn totals(shape: Shape, durations: &StageDurations) -> Timeline {
    Rehearsal::of(shape).totals(durations)
}

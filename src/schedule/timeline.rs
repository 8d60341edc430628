//! When each event begins and ends: every stage takes its events in order and waits for what it needs.

use super::{Action, Event, Order, Shape};
use crate::quantity::Seconds;

/// Events up to which [`totals`] lets every one of them run.
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

    fn of(&self, stage: usize, event: Event) -> f64 {
        let Some(time) = self.chunks.get(stage).and_then(|chunks| chunks.get(event.chunk as usize)) else {
            return 0.0;
        };
        match event.action {
            Action::Forward => time.forward.get(),
            Action::Backward => time.backward.get() + time.weight.get(),
            Action::BackwardInput => time.backward.get(),
            Action::WeightGradient => time.weight.get(),
        }
    }

    /// The time of a message between two stages; none on one and the same.
    fn between(&self, one: u32, other: u32) -> f64 {
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
    let mut stages: Vec<Vec<Timed>> =
        (0..order.shape().stages).map(|stage| Vec::with_capacity(order.stage(stage).len())).collect();
    let clocks = run(order, durations, |stage, event, start, end| {
        if let Some(list) = stages.get_mut(stage) {
            list.push(Timed { event, start: Seconds::new(start), end: Seconds::new(end) });
        }
    });
    Timeline { stages, ..Timeline::of(&clocks) }
}

/// The times of the whole step without its events (`stages` stays empty). Exact up to [`EXACT_EVENTS`];
/// beyond, the steady state of so long a run is continued at its own pace.
#[must_use]
pub fn totals(shape: Shape, durations: &StageDurations) -> Timeline {
    let shape = shape.settled();
    let of = |micro_batches| {
        let order = Order::of(Shape { micro_batches, ..shape });
        Timeline::of(&run(&order, durations, |_, _, _, _| {}))
    };
    let per_batch = u64::from(shape.stages) * u64::from(shape.chunks) * 3;
    let most = u32::try_from(EXACT_EVENTS / per_batch.max(1)).unwrap_or(u32::MAX);
    let group = shape.group.max(1).saturating_mul(2);
    if shape.micro_batches <= most.max(group.saturating_mul(2)) {
        return of(shape.micro_batches);
    }
    let mut long = shape.micro_batches % group;
    long += (most.saturating_sub(long) / group).max(2) * group;
    let (shorter, longer) = (of(long - group), of(long));
    let rounds = f64::from((shape.micro_batches - long) / group);
    longer.continued(&shorter, rounds)
}

#[derive(Clone, Copy, Default)]
struct Clock {
    /// Next event of the stage.
    next: usize,
    /// When the stage is free again.
    free: f64,
    /// When its last work ended.
    end: f64,
    /// When it first began.
    first: f64,
    /// Time spent at work.
    busy: f64,
}

impl Clock {
    fn took(&mut self, events: usize, start: f64, end: f64) {
        if self.next == 0 {
            self.first = start;
        }
        self.next += events;
        self.busy += end - start;
        self.end = end;
    }
}

/// When results are ready, by part (times direction) and micro-batch; negative: not yet.
struct Ready {
    forward: Vec<f64>,
    backward: Vec<f64>,
    batches: usize,
    parts: u32,
}

impl Ready {
    const NOT_YET: f64 = -1.0;

    fn of(shape: &Shape) -> Self {
        let batches = shape.micro_batches as usize;
        let parts = shape.parts();
        let cells = batches * parts as usize;
        Self { forward: vec![Self::NOT_YET; cells], backward: vec![Self::NOT_YET; cells], batches, parts }
    }

    fn cell(&self, part: u32, event: Event) -> usize {
        part as usize * self.batches + event.micro_batch as usize
    }

    /// Notes that the result of `event` is ready at `end`.
    fn set(&mut self, shape: &Shape, stage: u32, event: Event, end: f64) {
        let cell = self.cell(shape.part(stage, event.chunk), event);
        let list = match event.action {
            Action::Forward => &mut self.forward,
            Action::Backward | Action::BackwardInput => &mut self.backward,
            Action::WeightGradient => return,
        };
        if let Some(slot) = list.get_mut(cell) {
            *slot = end;
        }
    }

    /// When `event` on `stage` has all it needs.
    fn needs(&self, shape: &Shape, durations: &StageDurations, stage: u32, event: Event) -> f64 {
        let part = shape.part(stage, event.chunk);
        let from = |list: &[f64], other: u32| {
            let ready = list.get(self.cell(other, event)).copied().unwrap_or(0.0);
            let (sender, _) = shape.holder(other, event.chunk);
            if ready < 0.0 { ready } else { ready + durations.between(sender, stage) }
        };
        match event.action {
            Action::Forward if part == 0 => 0.0,
            Action::Forward => from(&self.forward, part - 1),
            Action::WeightGradient => from(&self.backward, part),
            _ if part + 1 == self.parts => from(&self.forward, part),
            _ => from(&self.backward, part + 1),
        }
    }
}

fn run(
    order: &Order,
    durations: &StageDurations,
    mut note: impl FnMut(usize, Event, f64, f64),
) -> Vec<Clock> {
    let shape = *order.shape();
    let mut ready = Ready::of(&shape);
    let mut clocks = vec![Clock::default(); shape.stages as usize];
    let mut moved = true;
    while moved {
        moved = false;
        for stage in 0..shape.stages {
            let events = order.stage(stage);
            let Some(clock) = clocks.get_mut(stage as usize) else { continue };
            while let Some(batch) = at_once(events, clock.next) {
                let needed = batch.iter().map(|event| ready.needs(&shape, durations, stage, *event));
                let Some(needed) = latest(needed) else { break };
                let start = clock.free.max(needed);
                let end = start + batch.iter().map(|event| durations.of(stage as usize, *event)).sum::<f64>();
                let mut begin = start;
                clock.free = end;
                for &event in batch {
                    let work = durations.of(stage as usize, event);
                    note(stage as usize, event, begin, begin + work);
                    begin += work;
                    clock.free += sending(&shape, durations, stage, event);
                    ready.set(&shape, stage, event, end);
                }
                clock.took(batch.len(), start, end);
                moved = true;
            }
        }
    }
    clocks
}

/// The next event of a stage, or two where they run as one.
fn at_once(events: &[Event], next: usize) -> Option<&[Event]> {
    let count = if events.get(next)?.joined { 2 } else { 1 };
    events.get(next..next + count)
}

/// The latest of the times; none while one of them is not known yet.
fn latest(times: impl Iterator<Item = f64>) -> Option<f64> {
    times
        .reduce(|one, other| if one < 0.0 || other < 0.0 { Ready::NOT_YET } else { one.max(other) })
        .filter(|time| *time >= 0.0)
}

/// The time `stage` stands still to send the result of `event`.
fn sending(shape: &Shape, durations: &StageDurations, stage: u32, event: Event) -> f64 {
    if !durations.blocking {
        return 0.0;
    }
    let part = shape.part(stage, event.chunk);
    let to = match event.action {
        Action::Forward if part + 1 < shape.parts() => part + 1,
        Action::Backward | Action::BackwardInput if part > 0 => part - 1,
        _ => return 0.0,
    };
    durations.between(stage, shape.holder(to, event.chunk).0)
}

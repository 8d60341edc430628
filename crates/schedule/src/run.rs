//! Event-driven simulation of an order: a stage works until it lacks an input, and continues when that arrives.
//!
//! A micro-batch goes from part to part of the model, forward to the last and back to the first. So at most one of
//! its results is in flight at any moment, described by how many passes it has completed and when the last of them
//! ended. A stage that lacks a result records which one, and the pass that produces it resumes the stage. Every event
//! is visited once, plus once for each time that its stage had to wait.

use super::{Action, Event, Order, Shape, StageDurations};

/// A stage's clock under `N` sets of durations at once.
#[derive(Clone, Copy)]
pub(super) struct Clock<const N: usize> {
    /// Next event of the stage.
    next: usize,
    /// When the stage is free again.
    free: [f64; N],
    /// When its last work ended.
    pub(super) end: [f64; N],
    /// When it started its first work.
    pub(super) first: [f64; N],
    /// Time spent working.
    pub(super) busy: [f64; N],
}

/// How far a micro-batch has progressed.
#[derive(Clone, Copy)]
struct Progress<const N: usize> {
    /// Passes completed: forward through part k is number k, backward through it number 2 · parts - 1 - k.
    passes: u32,
    /// When the last of them ended.
    ended: [f64; N],
}

/// One of the two passes of a chunk, as its neighbours see it.
#[derive(Clone, Copy)]
struct Hop<const N: usize> {
    /// Passes that a micro-batch must have completed before this one can begin.
    needs: u32,
    /// The stage that may continue once this pass has ended: the one that holds the next part. At the last part that
    /// is the stage itself, where the micro-batch turns around; after the first part there is none.
    to: Option<u32>,
    /// How long its input is in transit. Unit: second.
    delay: [f64; N],
    /// How long the stage is blocked while it sends its result. Unit: second.
    sending: [f64; N],
}

/// What is fixed about one chunk of one stage.
#[derive(Clone, Copy)]
struct ChunkTiming<const N: usize> {
    forward: Hop<N>,
    backward: Hop<N>,
    /// Time of each action. Unit: second.
    work: [[f64; N]; 4],
}

impl<const N: usize> ChunkTiming<N> {
    fn new(shape: &Shape, durations: [&StageDurations; N], stage: u32, chunk: u32) -> Self {
        let part = shape.part(stage, chunk);
        let holder = |part: u32| shape.holder(part, chunk).0;
        let before = part.checked_sub(1).map(holder);
        let after = Some(part + 1).filter(|next| *next < shape.parts()).map(holder);
        let delay =
            |of: &StageDurations, other: Option<u32>| other.map_or(0.0, |other| of.between(other, stage));
        let delays = |other| durations.map(|of| delay(of, other));
        let sending = |other| durations.map(|of| if of.blocking { delay(of, other) } else { 0.0 });
        let times = durations.map(|of| {
            let time = of.chunks.get(stage as usize).and_then(|chunks| chunks.get(chunk as usize));
            time.copied().unwrap_or_default()
        });
        Self {
            forward: Hop {
                needs: part,
                to: Some(after.unwrap_or(stage)),
                delay: delays(before),
                sending: sending(after),
            },
            backward: Hop {
                needs: 2 * shape.parts() - 1 - part,
                to: before,
                delay: delays(after),
                sending: sending(before),
            },
            // In the order of `Action`, which indexes it.
            work: [
                times.map(|time| time.forward.get()),
                times.map(|time| time.backward.get() + time.weight.get()),
                times.map(|time| time.backward.get()),
                times.map(|time| time.weight.get()),
            ],
        }
    }

    /// The pass for `action`; a weight gradient only waits for its turn, since its stage has already computed the
    /// input gradient.
    fn hop(&self, action: Action) -> Option<&Hop<N>> {
        match action {
            Action::Forward => Some(&self.forward),
            Action::Backward | Action::BackwardInput => Some(&self.backward),
            Action::WeightGradient => None,
        }
    }
}

/// What a stage waits for: a micro-batch with this many completed passes.
type Lack = (u32, u32);

struct Run<'a, const N: usize> {
    order: &'a Order,
    timings: Vec<ChunkTiming<N>>,
    progress: Vec<Progress<N>>,
    clocks: Vec<Clock<N>>,
    /// By stage, what it is waiting for.
    lacks: Vec<Option<Lack>>,
    /// Stages that can continue, with the next one last.
    due: Vec<u32>,
}

/// Simulates `order` under each of `durations` at once, since the dependencies are the same under all. Calls `note`
/// with each event's stage, starts and ends, and returns the stages' clocks.
pub(super) fn run<const N: usize>(
    order: &Order,
    durations: [&StageDurations; N],
    mut note: impl FnMut(usize, Event, [f64; N], [f64; N]),
) -> Vec<Clock<N>> {
    let shape = order.shape();
    let stages = shape.stages as usize;
    let mut timings = Vec::with_capacity(stages * shape.chunks as usize);
    for stage in 0..shape.stages {
        for chunk in 0..shape.chunks {
            timings.push(ChunkTiming::new(shape, durations, stage, chunk));
        }
    }
    let start = Progress { passes: 0, ended: [0.0; N] };
    let clock = Clock { next: 0, free: [0.0; N], end: [0.0; N], first: [0.0; N], busy: [0.0; N] };
    let mut run = Run {
        order,
        timings,
        progress: vec![start; shape.micro_batches as usize],
        clocks: vec![clock; stages],
        lacks: vec![None; stages],
        // The first stage goes first: only it has work that waits for nothing.
        due: (0..shape.stages).rev().collect(),
    };
    while let Some(stage) = run.due.pop() {
        run.work(stage, &mut note);
    }
    run.clocks
}

impl<const N: usize> Run<'_, N> {
    /// Runs `stage` until it lacks an input or is done.
    fn work(&mut self, stage: u32, note: &mut impl FnMut(usize, Event, [f64; N], [f64; N])) {
        let place = stage as usize;
        let chunks = self.order.shape().chunks as usize;
        let events = self.order.stage(stage);
        let Some(mut clock) = self.clocks.get(place).copied() else { return };
        let Some(timings) = self.timings.get(place * chunks..(place + 1) * chunks) else { return };
        let progress = &mut self.progress;
        let mut lack = None;
        while let Some(&event) = events.get(clock.next) {
            // Joined events run as one: neither begins before both have their inputs.
            let second = if event.joined { events.get(clock.next + 1).copied() } else { None };
            let mut start = clock.free;
            for event in [Some(event), second].into_iter().flatten() {
                if let Err(missing) = wait(&mut start, timings, progress, event) {
                    lack = Some(missing);
                }
            }
            if lack.is_some() {
                break;
            }
            let worked = |from: [f64; N], event: Event| {
                let timing = timings.get(event.chunk as usize);
                timing.map_or(from, |timing| sums(from, timing.work[event.action as usize]))
            };
            let between = worked(start, event);
            let end = second.map_or(between, |event| worked(between, event));
            note(place, event, start, between);
            if clock.next == 0 {
                clock.first = start;
            }
            clock.next += 1;
            if let Some(event) = second {
                note(place, event, between, end);
                clock.next += 1;
            }
            for lane in 0..N {
                clock.busy[lane] += end[lane] - start[lane];
            }
            (clock.free, clock.end) = (end, end);
            for event in [Some(event), second].into_iter().flatten() {
                let hop = timings.get(event.chunk as usize).and_then(|timing| timing.hop(event.action));
                let own = progress.get_mut(event.micro_batch as usize);
                let (Some(hop), Some(own)) = (hop, own) else { continue };
                // Blocking sends hold up the sender's next event, not the time at which the receiver has the result.
                clock.free = sums(clock.free, hop.sending);
                *own = Progress { passes: hop.needs + 1, ended: end };
                let waits = hop.to.and_then(|to| Some((to, self.lacks.get_mut(to as usize)?)));
                if let Some((to, lack)) = waits
                    && *lack == Some((event.micro_batch, hop.needs + 1))
                {
                    // It continues from its own clock once this stage stops: events are timed by what they wait for,
                    // so the order in which stages are processed changes no time.
                    *lack = None;
                    self.due.push(to);
                }
            }
        }
        if let Some(slot) = self.clocks.get_mut(place) {
            *slot = clock;
        }
        if let Some(slot) = self.lacks.get_mut(place) {
            *slot = lack;
        }
    }
}

fn sums<const N: usize>(mut one: [f64; N], other: [f64; N]) -> [f64; N] {
    for (one, other) in one.iter_mut().zip(other) {
        *one += other;
    }
    one
}

/// Delays `start` until `event` has all its inputs, or returns what it lacks.
fn wait<const N: usize>(
    start: &mut [f64; N],
    timings: &[ChunkTiming<N>],
    progress: &[Progress<N>],
    event: Event,
) -> Result<(), Lack> {
    let hop = timings.get(event.chunk as usize).and_then(|timing| timing.hop(event.action));
    let own = progress.get(event.micro_batch as usize);
    let (Some(hop), Some(own)) = (hop, own) else { return Ok(()) };
    // A micro-batch goes through its parts in one order only, so a count of passes says where it is.
    if own.passes != hop.needs {
        return Err((event.micro_batch, hop.needs));
    }
    for (start, ready) in start.iter_mut().zip(sums(own.ended, hop.delay)) {
        *start = start.max(ready);
    }
    Ok(())
}

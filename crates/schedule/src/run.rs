//! Lets an order run, driven by events: a stage works on until it lacks something, and goes on when that arrives.
//!
//! A micro-batch goes from part to part of the model, forward to the last and back to the first. So one result
//! of it at most is under way at any moment: how many passes it has behind it, and when the last of them ended.
//! A stage that lacks a result notes which, and the pass that gives it takes the stage up again. Every event is
//! looked at once, and once more for each time that its stage had to wait.

use super::{Action, Event, Order, Shape, StageDurations};

/// A stage's clock.
#[derive(Clone, Copy, Default)]
pub(super) struct Clock {
    /// Next event of the stage.
    next: usize,
    /// When the stage is free again.
    free: f64,
    /// When its last work ended.
    pub(super) end: f64,
    /// When it first began.
    pub(super) first: f64,
    /// Time spent at work.
    pub(super) busy: f64,
}

/// How far a micro-batch has come.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Passes behind it: forward through part k is number k, backward through it number 2 · parts - 1 - k.
    passes: u32,
    /// When the last of them ended.
    ended: f64,
}

/// One of the two passes of a chunk, as its neighbours see it.
#[derive(Clone, Copy)]
struct Hop {
    /// Passes that a micro-batch has behind it when this one can begin.
    needs: u32,
    /// How long what it needs is under way. Unit: second.
    delay: f64,
    /// The stage whose turn it is then; the stage itself at the last part, and none behind the first.
    to: Option<u32>,
    /// How long the stage stands still to send its result. Unit: second.
    sending: f64,
}

/// What is fixed about one chunk of one stage.
#[derive(Clone, Copy)]
struct Desk {
    forward: Hop,
    backward: Hop,
    /// Time of each action. Unit: second.
    work: [f64; 4],
}

impl Desk {
    fn of(shape: &Shape, durations: &StageDurations, stage: u32, chunk: u32) -> Self {
        let part = shape.part(stage, chunk);
        let holder = |part: u32| shape.holder(part, chunk).0;
        let before = part.checked_sub(1).map(holder);
        let after = Some(part + 1).filter(|next| *next < shape.parts()).map(holder);
        let delay = |other: Option<u32>| other.map_or(0.0, |other| durations.between(other, stage));
        let sending = |other: Option<u32>| if durations.blocking { delay(other) } else { 0.0 };
        let time = durations.chunks.get(stage as usize).and_then(|chunks| chunks.get(chunk as usize));
        let time = time.copied().unwrap_or_default();
        let [forward, backward, weight] = [time.forward, time.backward, time.weight].map(|time| time.get());
        Self {
            forward: Hop {
                needs: part,
                delay: delay(before),
                to: Some(after.unwrap_or(stage)),
                sending: sending(after),
            },
            backward: Hop {
                needs: 2 * shape.parts() - 1 - part,
                delay: delay(after),
                to: before,
                sending: sending(before),
            },
            work: [forward, backward + weight, backward, weight],
        }
    }

    /// The pass that `action` is; a weight gradient waits for nothing but its turn, since its stage has worked
    /// out the input gradient before.
    fn hop(&self, action: Action) -> Option<&Hop> {
        match action {
            Action::Forward => Some(&self.forward),
            Action::Backward | Action::BackwardInput => Some(&self.backward),
            Action::WeightGradient => None,
        }
    }
}

/// What a stage waits for: a micro-batch with so many passes behind it.
type Lack = (u32, u32);

struct Run<'a> {
    order: &'a Order,
    desks: Vec<Desk>,
    progress: Vec<Progress>,
    clocks: Vec<Clock>,
    /// By stage, what it stands still for.
    lacks: Vec<Option<Lack>>,
    /// Stages that can go on, the next one last.
    due: Vec<u32>,
}

/// Runs `order`, telling `note` each event's stage, start and end; gives the stages' clocks.
pub(super) fn run(
    order: &Order,
    durations: &StageDurations,
    mut note: impl FnMut(usize, Event, f64, f64),
) -> Vec<Clock> {
    let shape = order.shape();
    let stages = shape.stages as usize;
    let mut desks = Vec::with_capacity(stages * shape.chunks as usize);
    for stage in 0..shape.stages {
        for chunk in 0..shape.chunks {
            desks.push(Desk::of(shape, durations, stage, chunk));
        }
    }
    let mut run = Run {
        order,
        desks,
        progress: vec![Progress::default(); shape.micro_batches as usize],
        clocks: vec![Clock::default(); stages],
        lacks: vec![None; stages],
        due: (0..shape.stages).rev().collect(),
    };
    while let Some(stage) = run.due.pop() {
        run.work(stage, &mut note);
    }
    run.clocks
}

impl Run<'_> {
    /// Lets `stage` work on until it lacks something or is done.
    fn work(&mut self, stage: u32, note: &mut impl FnMut(usize, Event, f64, f64)) {
        let place = stage as usize;
        let chunks = self.order.shape().chunks as usize;
        let events = self.order.stage(stage);
        let Some(mut clock) = self.clocks.get(place).copied() else { return };
        let Some(desks) = self.desks.get(place * chunks..(place + 1) * chunks) else { return };
        let progress = &mut self.progress;
        let mut lack = None;
        while let Some(&event) = events.get(clock.next) {
            let second = if event.joined { events.get(clock.next + 1).copied() } else { None };
            let mut start = clock.free;
            for event in [Some(event), second].into_iter().flatten() {
                match ready(desks, progress, event) {
                    Ok(at) => start = start.max(at),
                    Err(missing) => lack = Some(missing),
                }
            }
            if lack.is_some() {
                break;
            }
            let work = |event: Event| {
                desks.get(event.chunk as usize).map_or(0.0, |desk| desk.work[event.action as usize])
            };
            let between = start + work(event);
            let end = second.map_or(between, |event| between + work(event));
            note(place, event, start, between);
            clock.free = end;
            if clock.next == 0 {
                clock.first = start;
            }
            clock.next += 1;
            if let Some(event) = second {
                note(place, event, between, end);
                clock.next += 1;
            }
            clock.busy += end - start;
            clock.end = end;
            for event in [Some(event), second].into_iter().flatten() {
                let Some(hop) = desks.get(event.chunk as usize).and_then(|desk| desk.hop(event.action))
                else {
                    continue;
                };
                clock.free += hop.sending;
                let Some(own) = progress.get_mut(event.micro_batch as usize) else { continue };
                *own = Progress { passes: hop.needs + 1, ended: end };
                let waits = hop.to.and_then(|to| Some((to, self.lacks.get_mut(to as usize)?)));
                if let Some((to, lack)) = waits
                    && *lack == Some((event.micro_batch, hop.needs + 1))
                {
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

/// When `event` has all it needs, or what it lacks.
fn ready(desks: &[Desk], progress: &[Progress], event: Event) -> Result<f64, Lack> {
    let Some(hop) = desks.get(event.chunk as usize).and_then(|desk| desk.hop(event.action)) else {
        return Ok(0.0);
    };
    let own = progress.get(event.micro_batch as usize).copied().unwrap_or_default();
    if own.passes == hop.needs { Ok(own.ended + hop.delay) } else { Err((event.micro_batch, hop.needs)) }
}

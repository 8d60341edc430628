//! How many micro-batches each chunk of a stage holds, at every moment that can be its fullest.

use shardscope_plan::{PipelineSchedule, Plan};
use shardscope_schedule::{Action, Order, Shape};

/// Micro-batches that a stage's chunks hold when a backward begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flight {
    /// By chunk, the one that begins its backward included.
    pub(super) counts: Vec<u64>,
    /// By chunk, those whose weight gradients are put off: their linear layers' inputs and output gradients
    /// are left. Empty where backward is one piece.
    pub(super) waiting: Vec<u64>,
    /// The chunk that begins its backward.
    pub(super) backward: usize,
}

impl Flight {
    /// Whether it holds at least as much of everything as `other` when the same chunk begins its backward.
    fn covers(&self, other: &Self) -> bool {
        let most = |one: &[u64], other: &[u64]| one.iter().zip(other).all(|(one, other)| one >= other);
        self.backward == other.backward
            && most(&self.counts, &other.counts)
            && most(&self.waiting, &other.waiting)
    }
}

/// Micro-batches up to which the rarer orders are walked through: their pattern repeats long before.
const WALKED_PER_STAGE: u32 = 6;

/// The flights of `stage` that can be its fullest, `chunks` chunks on it.
pub(super) fn flights(plan: &Plan, stage: u32, chunks: usize) -> Vec<Flight> {
    let shape = Shape::from_plan(plan);
    match shape.kind {
        PipelineSchedule::GPipe => {
            let all = u64::from(shape.micro_batches);
            vec![Flight {
                counts: vec![all; chunks],
                waiting: Vec::new(),
                backward: chunks.saturating_sub(1),
            }]
        }
        PipelineSchedule::OneForwardOneBackward if shape.chunks > 1 => interleaved(&shape, stage),
        PipelineSchedule::OneForwardOneBackward
        | PipelineSchedule::ZeroBubbleH1
        | PipelineSchedule::ZeroBubbleH2 => {
            let held = limit(&shape).or(shape.in_flight(stage)).unwrap_or(1);
            let mut counts = vec![0; chunks.max(1)];
            counts[0] = held;
            vec![Flight { counts, waiting: Vec::new(), backward: 0 }]
        }
        _ => walked(shape, stage, chunks),
    }
}

/// Micro-batches' worth of memory that the automatic zero-bubble orders are given and fill on every stage: 2p for ZB-2p
/// (Qi et al. 2023, section 4.1). The p of ZB-1p are what its order holds.
fn limit(shape: &Shape) -> Option<u64> {
    let limit = (2 * u64::from(shape.stages)).min(u64::from(shape.micro_batches));
    (shape.kind == PipelineSchedule::ZeroBubbleH2).then_some(limit)
}

/// Forward and backward go through the chunks in groups, so that the counts change along straight lines:
/// only the ends of those lines can be the fullest.
fn interleaved(shape: &Shape, stage: u32) -> Vec<Flight> {
    let steps = u64::from(shape.steps());
    let warmup = u64::from(shape.warmup(stage));
    let period = u64::from(shape.group) * u64::from(shape.chunks);
    let ahead = (warmup + 1).min(steps);
    let mut out: Vec<Flight> = Vec::new();
    for pair in 0..period.min(steps) {
        let forward = (ahead + pair).min(steps);
        // A line ends where the next forward or the next backward is of another chunk.
        let turns = pair == 0 || turns(shape, forward) || turns(shape, pair);
        if turns {
            out.push(flight(shape, forward, pair));
            if pair > 0 {
                out.push(flight(shape, (forward - 1).max(ahead.min(forward)), pair - 1));
            }
        }
    }
    out
}

/// Whether the step after `step` steps is of another chunk than the one before.
fn turns(shape: &Shape, step: u64) -> bool {
    step.is_multiple_of(u64::from(shape.group.max(1)))
}

/// Counts after so many forward and backward steps.
fn flight(shape: &Shape, forward: u64, backward: u64) -> Flight {
    let chunks = u64::from(shape.chunks);
    let mut counts = Vec::with_capacity(8);
    for chunk in 0..chunks {
        counts.push(done(shape, forward, chunk).saturating_sub(done(shape, backward, chunks - 1 - chunk)));
    }
    let next = backward / u64::from(shape.group.max(1)) % chunks;
    let backward = usize::try_from(chunks - 1 - next).unwrap_or(0);
    Flight { counts, waiting: Vec::new(), backward }
}

/// How many of the first `steps` steps are of `chunk`, groups taken as full.
fn done(shape: &Shape, steps: u64, chunk: u64) -> u64 {
    let group = u64::from(shape.group.max(1));
    let period = group * u64::from(shape.chunks.max(1));
    let rest = (steps % period).saturating_sub(chunk * group).min(group);
    (steps / period * group + rest).min(u64::from(shape.micro_batches))
}

/// Walks through an order, keeping what is held at every forward, less what another forward of the same chunk exceeds.
fn walked(mut shape: Shape, stage: u32, chunks: usize) -> Vec<Flight> {
    shape.micro_batches = shape.micro_batches.min(WALKED_PER_STAGE.saturating_mul(shape.stages));
    let splits = shape.splits_backward();
    let size = chunks.max(2);
    let (mut counts, mut waiting) = (vec![0_u64; size], vec![0_u64; size]);
    let mut out: Vec<Flight> = Vec::new();
    for event in Order::of_stage(shape, stage) {
        let chunk = usize::try_from(event.chunk).unwrap_or(0).min(size - 1);
        match event.action {
            Action::Forward => {
                counts[chunk] += 1;
                let waiting = if splits { waiting.clone() } else { Vec::new() };
                let flight = Flight { counts: counts.clone(), waiting, backward: chunk };
                if !out.iter().rev().any(|other| other.covers(&flight)) {
                    out.retain(|other| !flight.covers(other));
                    out.push(flight);
                }
            }
            Action::Backward => counts[chunk] = counts[chunk].saturating_sub(1),
            Action::BackwardInput => {
                counts[chunk] = counts[chunk].saturating_sub(1);
                waiting[chunk] += 1;
            }
            Action::WeightGradient => waiting[chunk] = waiting[chunk].saturating_sub(1),
        }
    }
    out
}

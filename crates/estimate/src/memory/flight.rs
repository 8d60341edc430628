//! How many micro-batches each chunk of a stage holds, at every moment that may be its peak.

use shardscope_plan::PipelineSchedule;
use shardscope_schedule::{Action, Order, Shape};
use smallvec::{SmallVec, smallvec};

/// A number of each chunk of a stage: most stages have few, and a search asks for a flight of every rank of every layout.
pub(super) type PerChunk = SmallVec<[u64; 4]>;

/// Micro-batches that a stage's chunks hold when a backward begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flight {
    /// By chunk, including the micro-batch that begins its backward.
    pub(super) counts: PerChunk,
    /// By chunk, micro-batches with deferred weight gradients: the inputs and output gradients of their linear layers
    /// remain. Empty if backward is not split.
    pub(super) waiting: PerChunk,
    /// The chunk that begins its backward.
    pub(super) backward: usize,
    /// The chunk whose forward ended last.
    pub(super) forward: Option<usize>,
}

impl Flight {
    /// Whether it holds at least as much of everything as `other`, with the same chunk beginning its backward.
    fn covers(&self, other: &Self) -> bool {
        let most = |one: &[u64], other: &[u64]| one.iter().zip(other).all(|(one, other)| one >= other);
        self.backward == other.backward
            && most(&self.counts, &other.counts)
            && most(&self.waiting, &other.waiting)
    }
}

/// The rarer orders are walked up to this many micro-batches per stage: their pattern repeats long before.
const WALKED_PER_STAGE: u32 = 6;

/// The flights of `stage`, which has `chunks` chunks, that may be its peak.
pub(super) fn flights(shape: Shape, stage: u32, chunks: usize) -> SmallVec<[Flight; 1]> {
    match shape.kind {
        // All forwards come first: every micro-batch is alive when the first backward begins.
        PipelineSchedule::GPipe => {
            let all = u64::from(shape.micro_batches);
            smallvec![Flight {
                counts: smallvec![all; chunks],
                waiting: PerChunk::new(),
                backward: chunks.saturating_sub(1),
                forward: Some(chunks.saturating_sub(1)),
            }]
        }
        PipelineSchedule::OneForwardOneBackward if shape.chunks > 1 => interleaved(&shape, stage).into(),
        PipelineSchedule::OneForwardOneBackward
        | PipelineSchedule::ZeroBubbleH1
        | PipelineSchedule::ZeroBubbleH2 => {
            let held = limit(&shape).or(shape.in_flight(stage)).unwrap_or(1);
            let mut counts: PerChunk = smallvec![0; chunks.max(1)];
            counts[0] = held;
            smallvec![Flight { counts, waiting: PerChunk::new(), backward: 0, forward: Some(0) }]
        }
        _ => walked(shape, stage, chunks).into(),
    }
}

/// Memory limit, in micro-batches, that the automatic zero-bubble orders are given and fill on every stage: 2p for
/// ZB-2p (Qi et al. 2023, section 4.1). For ZB-1p, the p is what its order holds anyway.
fn limit(shape: &Shape) -> Option<u64> {
    let limit = (2 * u64::from(shape.stages)).min(u64::from(shape.micro_batches));
    (shape.kind == PipelineSchedule::ZeroBubbleH2).then_some(limit)
}

/// The steps of an interleaved stage: a group of micro-batches goes through the chunks one by one, then the next
/// group does; the last group is the remainder (`megatron/core/pipeline_parallel/schedules.py:get_schedule_table`).
struct Steps {
    group: u64,
    chunks: u64,
    batches: u64,
}

impl Steps {
    fn from_shape(shape: &Shape) -> Self {
        let [group, chunks] = [shape.group, shape.chunks].map(|size| u64::from(size.max(1)));
        Self { group, chunks, batches: u64::from(shape.micro_batches) }
    }

    /// Steps of all full groups.
    fn full(&self) -> u64 {
        self.batches / self.group * self.group * self.chunks
    }

    /// The step at which the group that contains step `steps` (counted from 0) begins, and its number of
    /// micro-batches.
    fn group_at(&self, steps: u64) -> (u64, u64) {
        let (full, round) = (self.full(), self.group * self.chunks);
        if steps < full {
            (steps / round * round, self.group)
        } else {
            (full, (self.batches % self.group).max(1))
        }
    }

    /// The chunk of step `steps` (counted from 0), in order of the chunks.
    fn chunk(&self, steps: u64) -> u64 {
        let (begin, size) = self.group_at(steps);
        (steps - begin) / size % self.chunks
    }

    /// Whether step `steps` (counted from 0) belongs to another chunk or another group than the step before.
    fn turns(&self, steps: u64) -> bool {
        let (begin, size) = self.group_at(steps);
        (steps - begin).is_multiple_of(size)
    }

    /// How many of the first `steps` steps belong to `chunk`.
    fn done(&self, steps: u64, chunk: u64) -> u64 {
        let (begin, size) = self.group_at(steps);
        let before = begin / self.chunks;
        (before + (steps - begin).saturating_sub(chunk * size).min(size)).min(self.batches)
    }

    /// The flight after this many forward and backward steps.
    fn flight(&self, forward: u64, backward: u64) -> Flight {
        let mut counts = PerChunk::new();
        for chunk in 0..self.chunks {
            let behind = self.done(backward, self.chunks - 1 - chunk);
            counts.push(self.done(forward, chunk).saturating_sub(behind));
        }
        let place = |chunk: u64| usize::try_from(chunk).unwrap_or(0);
        let backward = place(self.chunks - 1 - self.chunk(backward));
        Flight { counts, waiting: PerChunk::new(), backward, forward: Some(place(self.chunk(forward - 1))) }
    }
}

/// Forward and backward go through the chunks in groups, so the counts change along straight lines, and only the ends
/// of those lines can be the peak. Every round of the groups is like the next, except if the last is shorter.
fn interleaved(shape: &Shape, stage: u32) -> Vec<Flight> {
    let of = Steps::from_shape(shape);
    let steps = u64::from(shape.steps());
    // Warm-up forwards, and the one forward that 1F1B runs before its first backward.
    let ahead = (u64::from(shape.warmup(stage)) + 1).min(steps);
    let round = (of.group * of.chunks).min(steps);
    let shorter = if of.full() == steps { steps } else { of.full().saturating_sub(ahead) };
    let mut out: Vec<Flight> = Vec::new();
    for pair in (0..round).chain(shorter.max(round)..steps) {
        let forward = (ahead + pair).min(steps);
        // A line ends if the next forward or backward changes chunk relative to the previous or the following one.
        if [forward - 1, forward, pair, pair + 1].into_iter().any(|steps| of.turns(steps)) {
            out.push(of.flight(forward, pair));
        }
    }
    out
}

/// Walks through an order and records a flight at every forward, dropping those that another forward of the same
/// chunk covers.
fn walked(mut shape: Shape, stage: u32, chunks: usize) -> Vec<Flight> {
    shape.micro_batches = shape.micro_batches.min(WALKED_PER_STAGE.saturating_mul(shape.stages));
    let splits = shape.splits_backward();
    let size = chunks.max(2);
    let (mut counts, mut waiting): (PerChunk, PerChunk) = (smallvec![0; size], smallvec![0; size]);
    let mut out: Vec<Flight> = Vec::new();
    for event in Order::of_stage(shape, stage) {
        let chunk = usize::try_from(event.chunk).unwrap_or(0).min(size - 1);
        match event.action {
            Action::Forward => {
                counts[chunk] += 1;
                let waiting = if splits { waiting.clone() } else { PerChunk::new() };
                let flight =
                    Flight { counts: counts.clone(), waiting, backward: chunk, forward: Some(chunk) };
                // A flight that another covers can never be the peak; without this the list would grow with the
                // micro-batches.
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

#[cfg(test)]
mod tests {
    use super::{Flight, PerChunk, interleaved, limit};
    use shardscope_plan::PipelineSchedule;
    use shardscope_schedule::{Action, Order, Shape};

    /// Every flight of `stage`, one per backward.
    fn all(shape: Shape, stage: u32) -> Vec<Flight> {
        let mut counts = PerChunk::from_elem(0, shape.chunks as usize);
        let (mut out, mut forward) = (Vec::new(), None);
        for event in Order::of_stage(shape, stage) {
            let chunk = event.chunk as usize;
            match event.action {
                Action::Forward => {
                    counts[chunk] += 1;
                    forward = Some(chunk);
                }
                Action::Backward => {
                    let forward = forward.take();
                    out.push(Flight {
                        counts: counts.clone(),
                        waiting: PerChunk::new(),
                        backward: chunk,
                        forward,
                    });
                    counts[chunk] -= 1;
                }
                Action::BackwardInput | Action::WeightGradient => panic!("{event:?}"),
            }
        }
        out
    }

    /// The largest total of any of `flights`, if a micro-batch takes `kept` in each chunk and its backward adds
    /// `more`; and the same if its forward does.
    fn most(flights: &[Flight], kept: &[u64], more: &[u64]) -> [Option<u64>; 2] {
        let kept =
            |flight: &Flight| flight.counts.iter().zip(kept).map(|(count, kept)| count * kept).sum::<u64>();
        let backward = flights.iter().map(|flight| kept(flight) + more[flight.backward]).max();
        let forward = flights.iter().filter_map(|flight| Some(kept(flight) + more[flight.forward?])).max();
        [backward, forward]
    }

    /// The ends of the lines hold the most, whatever the chunks weigh, even if the last group is shorter.
    #[test]
    fn ends_of_lines_are_the_fullest() {
        let mut state = 7_u64;
        let mut below = |bound: u32| -> u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from((state >> 33) % u64::from(bound)).unwrap_or_default()
        };
        let mut shorter = 0;
        for _ in 0..4000 {
            let stages = 2 + below(4);
            let chunks = 1 + below(4);
            let group = stages + below(4);
            let rest = if below(2) == 0 { 0 } else { stages + below(group - stages + 1) };
            let micro_batches = group * (1 + below(3)) + rest;
            let kind = PipelineSchedule::OneForwardOneBackward;
            let extra_warmup = below(2) == 0;
            let shape = Shape {
                kind,
                stages,
                chunks,
                group,
                micro_batches,
                extra_warmup,
                all_warmup_when_few: false,
            }
            .settled();
            shorter += u32::from(!shape.micro_batches.is_multiple_of(shape.group));
            let stage = below(stages);
            let kept: Vec<u64> = (0..chunks).map(|_| below(100).into()).collect();
            let more: Vec<u64> = (0..chunks).map(|_| below(300).into()).collect();
            let (found, walked) = (interleaved(&shape, stage), all(shape, stage));
            assert_eq!(
                most(&found, &kept, &more),
                most(&walked, &kept, &more),
                "{shape:?}, stage {stage}, {kept:?}, {more:?}"
            );
        }
        assert!(shorter > 500, "{shorter} shapes with a shorter group");
    }

    /// ZB-2p is given 2p micro-batches, or all of them if there are fewer.
    #[test]
    fn a_stage_of_zb_2p_holds_twice_its_stages() {
        let shape = |kind, micro_batches| {
            Shape {
                kind,
                stages: 4,
                chunks: 1,
                group: 4,
                micro_batches,
                extra_warmup: false,
                all_warmup_when_few: false,
            }
            .settled()
        };
        let of = |kind, micro_batches| limit(&shape(kind, micro_batches));
        assert_eq!(of(PipelineSchedule::ZeroBubbleH2, 32), Some(8));
        assert_eq!(of(PipelineSchedule::ZeroBubbleH2, 5), Some(5));
        assert_eq!(of(PipelineSchedule::ZeroBubbleH1, 32), None);
    }
}

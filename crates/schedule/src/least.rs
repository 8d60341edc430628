//! The minimum time that a step's micro-batches can take under given durations: a lower bound for every order of
//! events.

use super::{Placement, Shape, StageDurations};
use shardscope_units::Seconds;

/// Relative amount by which summing in a different order may exceed the simulation of every event.
const ROUNDING: f64 = 1e-9;

impl Shape {
    /// A lower bound of [`totals`](super::totals) for every schedule: every stage has to do all of its own work,
    /// which begins when the first micro-batch has passed the parts before it and, if backward is not split, is
    /// followed by the last micro-batch's way back through them.
    ///
    /// Proof. The first event of stage s is a forward of one of its chunks, part q: it begins no earlier than the
    /// forwards of parts 0 to q - 1 and the messages between them take in sequence. Then s works through all its
    /// events, one at a time. Its last event is a backward of some chunk, part r, unless weight gradients are split
    /// off; the micro-batch then still has to go back through parts r - 1 to 0. A run that is extrapolated from a
    /// shorter one adds at least the busiest stage's work for every micro-batch left out.
    #[must_use]
    pub fn least(&self, durations: &StageDurations) -> Seconds {
        let shape = self.settled();
        let two_way = shape.placement() == Placement::TwoWay;
        // Each direction takes half; a stage works on both, once per chunk.
        let batches = f64::from(shape.micro_batches) / if two_way { 2.0 } else { 1.0 };
        let back = !shape.splits_backward();
        let (ways_in, ways_out) = if two_way { (Vec::new(), Vec::new()) } else { ways(&shape, durations) };
        let mut most = 0.0_f64;
        for stage in 0..shape.stages {
            let Some(chunks) = durations.chunks.get(stage as usize) else { continue };
            let work: f64 =
                chunks.iter().map(|time| time.forward.get() + time.backward.get() + time.weight.get()).sum();
            let nearest = |ways: &[f64]| {
                let of = |chunk: u32| ways.get(shape.part(stage, chunk) as usize).copied().unwrap_or(0.0);
                // Which chunk comes first is up to the order: only the shortest way is valid for all of them.
                (0..shape.chunks).map(of).fold(f64::INFINITY, f64::min)
            };
            let around =
                if two_way { 0.0 } else { nearest(&ways_in) + if back { nearest(&ways_out) } else { 0.0 } };
            most = most.max(work * batches + around);
        }
        Seconds::new(most * (1.0 - ROUNDING))
    }
}

/// By part, how long a micro-batch takes to reach it and to return from it to the first.
fn ways(shape: &Shape, durations: &StageDurations) -> (Vec<f64>, Vec<f64>) {
    let parts = shape.parts() as usize;
    let (mut ways_in, mut ways_out) = (Vec::with_capacity(parts), Vec::with_capacity(parts));
    let (mut there, mut home) = (0.0, 0.0);
    for part in 0..shape.parts() {
        ways_in.push(there);
        ways_out.push(home);
        let (stage, chunk) = shape.holder(part, 0);
        let time = durations.chunks.get(stage as usize).and_then(|chunks| chunks.get(chunk as usize));
        let time = time.copied().unwrap_or_default();
        let message = if part + 1 < shape.parts() {
            durations.between(stage, shape.holder(part + 1, 0).0)
        } else {
            0.0
        };
        there += time.forward.get() + message;
        home += time.backward.get() + time.weight.get() + message;
    }
    (ways_in, ways_out)
}

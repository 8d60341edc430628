//! `DualPipe` and `DualPipeV`: forward of one stream alongside backward of the other (DeepSeek-V3 technical report,
//! section 3.2.1; order of the public `DualPipe` repository).

use super::draft::Draft;
use super::{Event, Placement, Shape};

/// The eight phases of one rank. `near` is the chunk whose stream starts on this side.
pub(super) fn both_ways(shape: &Shape, stage: u32) -> Vec<Event> {
    let (p, m) = (shape.stages, shape.micro_batches);
    let two_way = shape.placement() == Placement::TwoWay;
    // Ranks counted from the nearer end, and how many there are on one side.
    let (rank, side) = if two_way { (stage.min(p - 1 - stage), p / 2) } else { (stage, p) };
    let (near, far) = if two_way && stage >= side { (1, 0) } else { (0, 1) };
    let half = m.div_ceil(2);
    let ranges = if two_way { [(0, half), (half, m)] } else { [(0, m), (0, m)] };
    // Fewer micro-batches than fill the pipeline still go through the phases for a full pipeline; the draft drops the
    // passes of missing micro-batches.
    let planned = if two_way { half } else { m }.max(2 * side);
    let mut draft = Draft::new(ranges);
    // Ranks between this one and the point where the streams meet.
    let inner = side - rank - 1;
    for _ in 0..2 * inner {
        draft.forward(near);
    }
    for _ in 0..=rank {
        draft.forward(near);
        draft.forward(far);
    }
    for _ in 0..inner {
        draft.input(far);
        draft.weight();
        draft.forward(far);
    }
    for step in 0..planned - 2 * side + rank + 1 {
        if step == 0 && inner == 0 {
            // Where the streams meet, the first pair is not joined, because the neighbours wait for the forward.
            draft.forward(near);
            draft.backward(far);
        } else {
            draft.joined(near, far);
        }
        draft.joined(far, near);
    }
    for _ in 0..inner {
        draft.backward(far);
        draft.joined(far, near);
    }
    last_phases(&mut draft, rank, inner, [near, far]);
    draft.finish()
}

/// The streams drain: backward only, split from the second half on.
fn last_phases(draft: &mut Draft, rank: u32, inner: u32, [near, far]: [u32; 2]) {
    let steps = rank + 1;
    let mut split = false;
    let mut back = |draft: &mut Draft, chunk, turn: bool| {
        split |= turn;
        if split { draft.input(chunk) } else { draft.backward(chunk) }
    };
    for step in 0..steps {
        let turn = step == steps / 2;
        back(draft, far, turn && rank % 2 == 1);
        back(draft, near, turn && rank.is_multiple_of(2));
    }
    for _ in 0..inner {
        draft.weight();
        draft.input(near);
    }
}

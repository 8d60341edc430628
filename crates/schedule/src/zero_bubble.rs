//! Zero-bubble orders: the weight gradient waits until there is nothing better to do.

use super::draft::Draft;
use super::{Event, Shape};

/// ZB-H1 and ZB-H2: pairs of forward and backward with `lag` weight gradients deferred, so that every stage holds the
/// same number of micro-batches (Qi et al. 2023, sections 2.1 and 2.2).
pub(super) fn lagging(shape: &Shape, stage: u32, lag: u32) -> Vec<Event> {
    let batches = shape.micro_batches;
    let mut draft = Draft::new([(0, batches), (0, 0)]);
    for _ in 0..shape.warmup(stage) {
        draft.forward(0);
    }
    for _ in 0..batches {
        // The draft drops those beyond the last.
        draft.forward(0);
        draft.input(0);
        if draft.owed() > lag as usize {
            draft.weight();
        }
    }
    draft.finish()
}

/// ZB-V: folded chunks, with the last rank feeding itself (Qi et al. 2024; the order of
/// `torch.distributed.pipelining` `ScheduleZBVZeroBubble`).
pub(super) fn folded(shape: &Shape, stage: u32) -> Vec<Event> {
    let (p, m) = (shape.stages, shape.micro_batches);
    // Fewer do not fill the V; the draft drops the passes of missing micro-batches.
    let planned = m.max(2 * p - 1);
    let mut draft = Draft::new([(0, m), (0, m)]);
    let both = |draft: &mut Draft, chunk| {
        draft.input(chunk);
        draft.weight_now();
    };
    for _ in 0..2 * (p - stage) - 1 {
        draft.forward(0);
    }
    for _ in 0..stage {
        draft.forward(1);
        draft.forward(0);
    }
    for _ in 0..p - stage {
        draft.forward(1);
        both(&mut draft, 1);
    }
    while draft.forwards(1) < draft.forwards(0) || draft.forwards(0) < planned {
        if draft.forwards(0) < planned {
            draft.forward(0);
        }
        both(&mut draft, 0);
        draft.forward(1);
        both(&mut draft, 1);
    }
    for _ in 0..stage {
        draft.input(0);
        draft.input(1);
    }
    for _ in 0..p - stage {
        draft.input(0);
        draft.weight_of(0);
    }
    for _ in 0..stage {
        draft.weight_of(1);
    }
    draft.finish()
}

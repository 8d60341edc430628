//! Orders that repeat one building block, a micro-batch's passes at fixed times, every six slots
//! (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", section 3).

use super::{Action, Event, Shape};
use shardscope_plan::PipelineSchedule;

/// Slots after which the next micro-batch starts: two chunks times forward, backward, weight gradient.
const PERIOD: u64 = 6;

/// When one micro-batch's four passes begin on one stage: forward down, forward up, backward down,
/// backward up.
type Block = [u64; 4];

/// The events of `stage` when the block is repeated and compacted.
pub(super) fn repeated(shape: &Shape, stage: u32) -> Vec<Event> {
    let split = shape.kind != PipelineSchedule::OneForwardOneBackwardV;
    let block = match shape.kind {
        PipelineSchedule::VMin => v_min(shape.stages.into(), stage.into()),
        PipelineSchedule::VHalf => v_half(shape.stages.into(), stage.into()),
        _ => whole_backward(shape.stages.into(), stage.into()),
    };
    let backward = if split { Action::BackwardInput } else { Action::Backward };
    let kinds = [(Action::Forward, 0), (Action::Forward, 1), (backward, 1), (backward, 0)];
    // Slots only order the passes; `timeline` determines when each runs, given the real durations.
    let mut passes: Vec<(u64, Event)> = Vec::with_capacity(4 * shape.micro_batches as usize);
    for batch in 0..shape.micro_batches {
        for (&start, &(action, chunk)) in block.iter().zip(&kinds) {
            passes.push((start + PERIOD * u64::from(batch), Event::new(action, batch, chunk)));
        }
    }
    // No two passes of a stage share a slot (the gaps below ensure that), so sorting by start suffices.
    passes.sort_by_key(|(start, _)| *start);
    if split {
        return with_weights(&passes);
    }
    passes.into_iter().map(|(_, event)| event).collect()
}

/// Places the weight gradients into the free slots, oldest first.
fn with_weights(passes: &[(u64, Event)]) -> Vec<Event> {
    let mut events = Vec::with_capacity(passes.len() * 3 / 2);
    let mut owed = Vec::new();
    // How many pending weight gradients are placed, and the next free slot.
    let (mut paid, mut free) = (0, 0);
    for &(time, event) in passes {
        while free < time && paid < owed.len() {
            events.push(owed[paid]);
            (paid, free) = (paid + 1, free + 1);
        }
        events.push(event);
        free = time + 1;
        if event.action.is_backward() {
            owed.push(Event { action: Action::WeightGradient, ..event });
        }
    }
    events.extend_from_slice(&owed[paid..]);
    events
}

fn v_min(p: u64, i: u64) -> Block {
    // The backward down follows the forward down by 2p slots. If 3 divides p, that is a multiple of the period, and
    // both would fall into the same slot, for different micro-batches.
    let gap = if p.is_multiple_of(3) { 2 } else { 0 };
    [i, 2 * p - 1 - i, 2 * p + gap + i, 4 * p + gap - 1 - i]
}

fn v_half(p: u64, i: u64) -> Block {
    // The same for the passes up, which are 3p slots apart: a multiple of the period if p is even.
    let gap = if p.is_multiple_of(2) { 3 } else { 0 };
    [2 * i, 3 * p - 2 - i, 3 * p + gap + 2 * i - 1, 6 * p + gap - 2 - i]
}

/// 1F1B-V: a backward takes two slots, and three slots are left free after every third one so that
/// repeated blocks do not meet.
fn whole_backward(p: u64, i: u64) -> Block {
    let gap = if p.is_multiple_of(3) { 3 } else { 0 };
    let start = 2 * p + 1 + gap;
    let phase = (3 - (p + 2) % 3) % 3;
    let backward = |step: u64| start + 2 * step + 3 * ((phase + step) / 3);
    [1 + i, 2 * p - i, backward(i), backward(2 * p - 1 - i)]
}

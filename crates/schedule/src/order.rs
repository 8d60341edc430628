//! The events of every stage, in order.

use super::{Action, Event, Shape, block, dual, zero_bubble};
use shardscope_plan::PipelineSchedule;

/// What every stage does, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    shape: Shape,
    stages: Vec<Vec<Event>>,
}

impl Order {
    /// The order of `shape`.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let shape = shape.settled();
        let mut stages = Vec::with_capacity(shape.stages as usize);
        for stage in 0..shape.stages {
            stages.push(events(&shape, stage));
        }
        Self { shape, stages }
    }

    /// Only the events of `stage`, in order: what it holds does not depend on other stages.
    #[must_use]
    pub fn of_stage(shape: Shape, stage: u32) -> Vec<Event> {
        events(&shape.settled(), stage)
    }

    /// The normalised shape that it was made from.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The events of `stage`, in order.
    pub fn events(&self, stage: u32) -> impl Iterator<Item = Event> + '_ {
        self.stage(stage).iter().copied()
    }

    /// How many events there are, over all stages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stages.iter().map(Vec::len).sum()
    }

    /// Whether there are no events at all, which never happens for a normalised shape.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn stage(&self, stage: u32) -> &[Event] {
        usize::try_from(stage).ok().and_then(|stage| self.stages.get(stage)).map_or(&[], Vec::as_slice)
    }
}

fn events(shape: &Shape, stage: u32) -> Vec<Event> {
    match shape.kind {
        PipelineSchedule::GPipe => all_forward(shape),
        PipelineSchedule::OneForwardOneBackward => pairs(shape, stage),
        PipelineSchedule::ZeroBubbleH1 => zero_bubble::lagging(shape, stage, stage),
        PipelineSchedule::ZeroBubbleH2 => zero_bubble::lagging(shape, stage, 2 * stage),
        PipelineSchedule::ZeroBubbleV => zero_bubble::folded(shape, stage),
        PipelineSchedule::VHalf | PipelineSchedule::VMin | PipelineSchedule::OneForwardOneBackwardV => {
            block::repeated(shape, stage)
        }
        PipelineSchedule::DualPipe | PipelineSchedule::DualPipeV => dual::both_ways(shape, stage),
    }
}

/// The forward steps as (micro-batch, chunk): a group of g micro-batches goes through chunk after chunk.
fn forward_steps(shape: &Shape) -> Vec<(u32, u32)> {
    let Shape { micro_batches, chunks, .. } = *shape;
    let mut steps = Vec::with_capacity(micro_batches as usize * chunks as usize);
    let mut first = 0;
    while first < micro_batches {
        let end = first.saturating_add(shape.group.max(1)).min(micro_batches);
        for chunk in 0..chunks {
            for micro_batch in first..end {
                steps.push((micro_batch, chunk));
            }
        }
        first = end;
    }
    steps
}

/// 1F1B, interleaved when there is more than one chunk.
fn pairs(shape: &Shape, stage: u32) -> Vec<Event> {
    let warmup = shape.warmup(stage) as usize;
    let last = shape.chunks - 1;
    let steps = forward_steps(shape);
    let mut events = Vec::with_capacity(2 * steps.len());
    // Backward steps follow the forward ones at a distance of `warmup`: warm-up, steady state and cool-down are one
    // loop, which at first has only forwards and at the end only backwards.
    for index in 0..steps.len() + warmup {
        if let Some((batch, chunk)) = steps.get(index) {
            events.push(Event::new(Action::Forward, *batch, *chunk));
        }
        if let Some((batch, chunk)) = index.checked_sub(warmup).and_then(|index| steps.get(index)) {
            // Micro-batches return in the order they went, through the chunks from the last to the first.
            events.push(Event::new(Action::Backward, *batch, last - chunk));
        }
    }
    events
}

/// `GPipe`: every forward, chunk by chunk, then every backward from the last chunk on.
fn all_forward(shape: &Shape) -> Vec<Event> {
    let mut events = Vec::new();
    let mut add = |action, chunk| {
        for batch in 0..shape.micro_batches {
            events.push(Event::new(action, batch, chunk));
        }
    };
    for chunk in 0..shape.chunks {
        add(Action::Forward, chunk);
    }
    for chunk in (0..shape.chunks).rev() {
        add(Action::Backward, chunk);
    }
    events
}

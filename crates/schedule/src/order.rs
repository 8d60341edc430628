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
    pub fn of(shape: Shape) -> Self {
        let shape = shape.settled();
        let mut stages = Vec::with_capacity(shape.stages as usize);
        for stage in 0..shape.stages {
            stages.push(events(&shape, stage));
        }
        Self { shape, stages }
    }

    /// The events of `stage` alone, in order: what it holds needs no other.
    #[must_use]
    pub fn of_stage(shape: Shape, stage: u32) -> Vec<Event> {
        events(&shape.settled(), stage)
    }

    /// What it was made from.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The events of `stage`, in order.
    pub fn events(&self, stage: u32) -> impl Iterator<Item = Event> + '_ {
        self.stage(stage).iter().copied()
    }

    /// All events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stages.iter().map(Vec::len).sum()
    }

    /// Whether nothing is done at all, which no shape asks for.
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
    for index in 0..steps.len() + warmup {
        if let Some((batch, chunk)) = steps.get(index) {
            events.push(Event::new(Action::Forward, *batch, *chunk));
        }
        if let Some((batch, chunk)) = index.checked_sub(warmup).and_then(|index| steps.get(index)) {
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

/// A list of events of two chunks in the making: counts micro-batches by itself and leaves out those
/// beyond what there is.
pub(super) struct Draft {
    events: Vec<Event>,
    /// First micro-batch and one past the last, by chunk.
    ranges: [(u32, u32); 2],
    forward: [u32; 2],
    backward: [u32; 2],
    /// Weight gradients put off, by chunk and micro-batch, and how many of them are no longer owed.
    put_off: Vec<(u32, u32)>,
    paid: usize,
}

impl Draft {
    pub(super) fn new(ranges: [(u32, u32); 2]) -> Self {
        Self { events: Vec::new(), ranges, forward: [0; 2], backward: [0; 2], put_off: Vec::new(), paid: 0 }
    }

    fn push(&mut self, action: Action, count: u32, chunk: u32) {
        let (first, end) = self.ranges[usize::from(chunk == 1)];
        let batch = first.saturating_add(count);
        if batch < end {
            self.events.push(Event::new(action, batch, chunk));
        }
    }

    pub(super) fn forward(&mut self, chunk: u32) {
        let count = &mut self.forward[usize::from(chunk == 1)];
        let batch = *count;
        *count += 1;
        self.push(Action::Forward, batch, chunk);
    }

    fn next_backward(&mut self, chunk: u32) -> u32 {
        let count = &mut self.backward[usize::from(chunk == 1)];
        *count += 1;
        *count - 1
    }

    /// The whole backward pass.
    pub(super) fn backward(&mut self, chunk: u32) {
        let batch = self.next_backward(chunk);
        self.push(Action::Backward, batch, chunk);
    }

    /// A forward of one chunk and a whole backward of another as one.
    pub(super) fn joined(&mut self, forward: u32, backward: u32) {
        let before = self.events.len();
        self.forward(forward);
        let between = self.events.len();
        self.backward(backward);
        if between > before
            && self.events.len() > between
            && let Some(event) = self.events.get_mut(before)
        {
            event.joined = true;
        }
    }

    /// The input gradient; the weight gradient is owed.
    pub(super) fn input(&mut self, chunk: u32) {
        let batch = self.next_backward(chunk);
        self.put_off.push((chunk, batch));
        self.push(Action::BackwardInput, batch, chunk);
    }

    /// The oldest weight gradient owed.
    pub(super) fn weight(&mut self) {
        if let Some(&(chunk, batch)) = self.put_off.get(self.paid) {
            self.paid += 1;
            self.push(Action::WeightGradient, batch, chunk);
        }
    }

    /// The weight gradient of the latest input gradient.
    pub(super) fn weight_now(&mut self) {
        if self.owed() > 0
            && let Some((chunk, batch)) = self.put_off.pop()
        {
            self.push(Action::WeightGradient, batch, chunk);
        }
    }

    /// The oldest weight gradient owed by `chunk`.
    pub(super) fn weight_of(&mut self, chunk: u32) {
        let owed = self.put_off.get(self.paid..).unwrap_or_default();
        if let Some(place) = owed.iter().position(|(other, _)| *other == chunk) {
            let (chunk, batch) = self.put_off.remove(self.paid + place);
            self.push(Action::WeightGradient, batch, chunk);
        }
    }

    pub(super) fn owed(&self) -> usize {
        self.put_off.len() - self.paid
    }

    pub(super) fn forwards(&self, chunk: u32) -> u32 {
        self.forward[usize::from(chunk == 1)]
    }

    /// Pays every weight gradient owed and gives the events.
    pub(super) fn finish(mut self) -> Vec<Event> {
        while self.owed() > 0 {
            self.weight();
        }
        self.events
    }
}

//! A builder of events on two chunks, for schedules that are specified pass by pass.

use super::{Action, Event};

/// A builder for a list of events on two chunks. Schedules add passes as if there were always enough micro-batches;
/// the builder counts them and drops those beyond the last one.
pub(super) struct Draft {
    events: Vec<Event>,
    /// First micro-batch and one past the last, by chunk.
    ranges: [(u32, u32); 2],
    forward: [u32; 2],
    backward: [u32; 2],
    /// Deferred weight gradients, by chunk and micro-batch, and how many of them have been done.
    put_off: Vec<(u32, u32)>,
    paid: usize,
}

/// The index of the counters of `chunk`.
fn place(chunk: u32) -> usize {
    usize::from(chunk == 1)
}

impl Draft {
    pub(super) fn new(ranges: [(u32, u32); 2]) -> Self {
        Self { events: Vec::new(), ranges, forward: [0; 2], backward: [0; 2], put_off: Vec::new(), paid: 0 }
    }

    fn push(&mut self, action: Action, count: u32, chunk: u32) {
        let (first, end) = self.ranges[place(chunk)];
        let batch = first.saturating_add(count);
        if batch < end {
            self.events.push(Event::new(action, batch, chunk));
        }
    }

    pub(super) fn forward(&mut self, chunk: u32) {
        let count = &mut self.forward[place(chunk)];
        let batch = *count;
        *count += 1;
        self.push(Action::Forward, batch, chunk);
    }

    fn next_backward(&mut self, chunk: u32) -> u32 {
        let count = &mut self.backward[place(chunk)];
        *count += 1;
        *count - 1
    }

    /// A full backward pass.
    pub(super) fn backward(&mut self, chunk: u32) {
        let batch = self.next_backward(chunk);
        self.push(Action::Backward, batch, chunk);
    }

    /// A forward of one chunk and a full backward of another, joined.
    pub(super) fn joined(&mut self, forward: u32, backward: u32) {
        let before = self.events.len();
        self.forward(forward);
        let between = self.events.len();
        self.backward(backward);
        // Only if both exist is the pair joined.
        if between > before
            && self.events.len() > between
            && let Some(event) = self.events.get_mut(before)
        {
            event.joined = true;
        }
    }

    /// The input gradient; its weight gradient is deferred.
    pub(super) fn input(&mut self, chunk: u32) {
        let batch = self.next_backward(chunk);
        self.put_off.push((chunk, batch));
        self.push(Action::BackwardInput, batch, chunk);
    }

    /// The oldest deferred weight gradient.
    pub(super) fn weight(&mut self) {
        if let Some(&(chunk, batch)) = self.put_off.get(self.paid) {
            // Finished ones stay at the front: removing them would move all the others.
            self.paid += 1;
            self.push(Action::WeightGradient, batch, chunk);
        }
    }

    /// The weight gradient that belongs to the input gradient just added.
    pub(super) fn weight_now(&mut self) {
        if let Some((chunk, batch)) = self.put_off.pop() {
            self.push(Action::WeightGradient, batch, chunk);
        }
    }

    /// The oldest deferred weight gradient of `chunk`.
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
        self.forward[place(chunk)]
    }

    /// Adds all remaining deferred weight gradients and returns the events.
    pub(super) fn finish(mut self) -> Vec<Event> {
        while self.owed() > 0 {
            self.weight();
        }
        self.events
    }
}

//! Events of two chunks in the making, for schedules that are told pass by pass.

use super::{Action, Event};

/// A list of events of two chunks in the making. Schedules tell passes as if there were always enough micro-batches: it
/// counts by itself and leaves out those beyond what there is.
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

/// Where what is counted of `chunk` stands.
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
        // Only a pair of which both are there runs as one.
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
            // Paid ones stay in front: taking them out would move all behind them.
            self.paid += 1;
            self.push(Action::WeightGradient, batch, chunk);
        }
    }

    /// The weight gradient of the input gradient just made.
    pub(super) fn weight_now(&mut self) {
        if let Some((chunk, batch)) = self.put_off.pop() {
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
        self.forward[place(chunk)]
    }

    /// Pays every weight gradient owed and gives the events.
    pub(super) fn finish(mut self) -> Vec<Event> {
        while self.owed() > 0 {
            self.weight();
        }
        self.events
    }
}

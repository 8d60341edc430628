//! How many activations a stage holds at once.

use super::{Action, Order, Shape};
use shardscope_plan::PipelineSchedule;

impl Shape {
    /// Chunk steps whose activations `stage` holds at its peak, if there is a formula: 1F1B, interleaved, `GPipe`,
    /// ZB-H1 and ZB-H2.
    #[must_use]
    pub fn in_flight(&self, stage: u32) -> Option<u64> {
        let steps = u64::from(self.steps());
        let held = match self.kind {
            PipelineSchedule::GPipe => steps,
            // One more than the warm-up: the first forward of the steady state runs before the first backward frees anything.
            PipelineSchedule::OneForwardOneBackward => u64::from(self.warmup(stage)) + 1,
            // Forwards ahead and deferred weight gradients add up to the same number on every stage.
            PipelineSchedule::ZeroBubbleH1 => u64::from(self.stages),
            // H2 fills the warm-up bubble with p - 1 more forwards than H1 (Qi et al. 2023, section 3).
            PipelineSchedule::ZeroBubbleH2 => 2 * u64::from(self.stages) - 1,
            _ => return None,
        };
        Some(held.min(steps))
    }
}

impl Order {
    /// The peak that `stage` holds if each chunk in flight weighs `weights[chunk]` (bytes, or 1 to count), from a
    /// forward until its backward or weight gradient is done.
    #[must_use]
    pub fn peak(&self, stage: u32, weights: &[u64]) -> u64 {
        self.held(stage, weights).max().unwrap_or(0)
    }

    /// What `stage` holds during each of its events, in order: a forward counts from its start, a
    /// backward until its end.
    pub fn held<'a>(&'a self, stage: u32, weights: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
        let mut held = 0_u64;
        let mut leaving = 0_u64;
        self.events(stage).map(move |event| {
            // What a backward frees is still held while it runs, so it is subtracted only before the next event.
            held = held.saturating_sub(leaving);
            leaving = 0;
            let chunk = usize::try_from(event.chunk).unwrap_or(usize::MAX);
            let weight = weights.get(chunk).copied().unwrap_or(0);
            if event.action == Action::Forward {
                held = held.saturating_add(weight);
            } else if event.action.releases() {
                leaving = weight;
            }
            held
        })
    }

    /// How many micro-batches of each chunk `stage` holds when it first reaches its peak.
    #[must_use]
    pub fn fullest(&self, stage: u32) -> Vec<u64> {
        let chunks = usize::try_from(self.shape().chunks).unwrap_or(1);
        let mut held = vec![0_u64; chunks];
        let mut fullest = held.clone();
        let (mut sum, mut most) = (0_u64, 0_u64);
        for event in self.events(stage) {
            let Some(count) = usize::try_from(event.chunk).ok().and_then(|chunk| held.get_mut(chunk)) else {
                continue;
            };
            if event.action == Action::Forward {
                *count += 1;
                sum += 1;
                if sum > most {
                    most = sum;
                    fullest.clone_from(&held);
                }
            } else if event.action.releases() {
                *count = count.saturating_sub(1);
                sum = sum.saturating_sub(1);
            }
        }
        fullest
    }
}

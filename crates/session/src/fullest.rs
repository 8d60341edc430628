//! The part of a plan that is closest to running out of memory.

use super::{Fit, Shown};
use shardscope_estimate::{Needs, PhaseKind};
use shardscope_units::Bytes;

/// Where the verdict is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullestPlace {
    /// A pipeline stage, by its rank.
    Stage(u64),
    /// A phase of reinforcement learning, on the fullest GPU.
    Phase(PhaseKind),
    /// The rollout phase, whose KV cache holds no rollout of full length.
    Starved,
}

/// The part that is closest to running out of memory, or has run out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fullest {
    /// Where.
    pub place: FullestPlace,
    /// What the device holds there at its peak, above its capacity only if it runs out of memory.
    pub peak: Bytes,
    /// Bytes of cached blocks that PyTorch's allocator must free to get there; zero if they fit.
    pub released: Bytes,
    /// The verdict on the plan.
    pub fit: Fit,
}

impl Fullest {
    const fn new(place: FullestPlace, needs: Needs, fit: Fit) -> Self {
        Self { place, peak: needs.bytes, released: needs.released, fit }
    }

    /// Text after the peak about what the allocator must release; empty if it need not release anything.
    #[must_use]
    pub fn condition(&self) -> String {
        Needs { bytes: self.peak, released: self.released }.condition()
    }

    /// The place in words: `stage 3`, `the rollout phase`.
    #[must_use]
    pub fn place_name(&self) -> String {
        match self.place {
            FullestPlace::Stage(stage) => format!("stage {stage}"),
            FullestPlace::Phase(kind) => format!("the {} phase", kind.name()),
            FullestPlace::Starved => format!("the {} phase", PhaseKind::Rollout.name()),
        }
    }
}

impl Shown {
    /// The verdict with the place that decides it: the worst phase of reinforcement learning, otherwise the fullest
    /// stage.
    #[must_use]
    pub fn fullest(&self) -> Option<Fullest> {
        let phase = self.phases.iter().max_by_key(|phase| (phase.fit, phase.peak));
        // With rollouts the training's peak is one of the phases, so the stages need not be checked as well.
        if let Some(phase) = phase {
            // A starved rollout phase can be far below capacity: the place states that its KV cache, not its size, is
            // the problem.
            let place = if phase.starved { FullestPlace::Starved } else { FullestPlace::Phase(phase.kind) };
            return Some(Fullest::new(place, phase.needs, phase.fit));
        }
        let worst = self.worst()?;
        Some(Fullest::new(FullestPlace::Stage(worst.stage), worst.needs, worst.fit))
    }

    /// Whether the plan runs out of memory anywhere.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.fullest().is_some_and(|fullest| fullest.fit == Fit::DoesNotFit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::gallery;
    use crate::{State, explain_memory};
    use shardscope_units::size;

    #[test]
    fn a_published_run_is_above_its_cards_only_where_it_runs_out_of_memory() {
        let mut released = Vec::new();
        for example in gallery().into_iter().flat_map(|chapter| chapter.examples) {
            let Some(shown) = State::new(example.input).shown else { continue };
            let (fullest, memory) = (shown.fullest().expect("a stage"), &shown.report.memory);
            assert_eq!(fullest.fit, Fit::from_verdict(memory.verdict), "{}", example.name);
            assert_eq!(fullest.peak > memory.capacity, fullest.fit == Fit::DoesNotFit, "{}", example.name);
            assert_eq!(fullest.released > Bytes::ZERO, !fullest.condition().is_empty());
            if fullest.released > Bytes::ZERO {
                released.push((example.name, fullest));
            }
        }
        let (name, fullest) = released.first().expect("a run that is tight by what PyTorch caches");
        assert_eq!((name.as_str(), fullest.fit), ("Llama 3 405B", Fit::Tight));
        // Its bar, row and tree show the verdict's figure, not what the allocator would hold on a larger device.
        let shown = State::new(gallery()[0].examples[0].input.clone()).shown.expect("a plan");
        let worst = shown.worst().expect("a stage");
        assert_eq!(worst.reserved, fullest.peak);
        assert_eq!(worst.uses.iter().copied().sum::<Bytes>(), fullest.peak);
        let tree = explain_memory(&shown.report.memory, worst.stage, None).expect("a tree");
        assert_eq!(tree.value, size(fullest.peak));
        let last = tree.parts.last().expect("what is released");
        assert_eq!(last.value, format!("−{}", size(fullest.released)));
    }
}

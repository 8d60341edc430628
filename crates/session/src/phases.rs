//! The phases of reinforcement learning as they are shown, and what of a plan comes nearest to running out of memory.

use super::{Branch, Fit, Shown};
use shardscope_estimate::{Memory, PhaseKind};
use shardscope_units::{Bytes, size};

/// One phase of reinforcement learning on the fullest GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseMemory {
    /// Which.
    pub kind: PhaseKind,
    /// All that the device holds in it. Phases follow each other: their peaks are never summed.
    pub peak: Bytes,
    /// What it is made of, by name.
    pub parts: Vec<(String, Bytes)>,
    /// The verdict on it.
    pub fit: Fit,
    /// The KV cache that is left holds less than one rollout of full length, so that the engine does not start, however
    /// little the phase takes.
    pub starved: bool,
}

/// The phases in their order; none where nothing is rolled out.
pub(super) fn phase_memories(memory: &Memory) -> Vec<PhaseMemory> {
    let Some(rl) = &memory.rl else { return Vec::new() };
    let shown = rl.phases.iter().map(|phase| PhaseMemory {
        kind: phase.kind,
        peak: phase.breakdown.value(),
        parts: phase
            .breakdown
            .children()
            .iter()
            .map(|part| (part.label().to_owned(), part.value()))
            .collect(),
        fit: Fit::of(phase.verdict),
        starved: phase.kind == PhaseKind::Rollout && rl.cache_rollouts == 0,
    });
    shown.collect()
}

/// What a phase's memory is made of.
#[must_use]
pub fn explain_phase(memory: &Memory, kind: PhaseKind) -> Option<Branch> {
    let phase = memory.rl.as_ref()?.phases.iter().find(|phase| phase.kind == kind)?;
    Some(Branch::of(&phase.breakdown, size))
}

/// Where the verdict comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A pipeline stage, by its rank.
    Stage(u64),
    /// A phase of reinforcement learning, on the fullest GPU.
    Phase(PhaseKind),
    /// The rollout phase, whose KV cache holds no rollout of full length.
    Starved,
}

/// What comes nearest to running out of memory, or is out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fullest {
    /// Where.
    pub place: Place,
    /// What the device holds there at its peak.
    pub peak: Bytes,
    /// The verdict on the plan.
    pub fit: Fit,
}

impl Fullest {
    /// The place in words: `stage 3`, `the rollout phase`.
    #[must_use]
    pub fn place_name(&self) -> String {
        match self.place {
            Place::Stage(stage) => format!("stage {stage}"),
            Place::Phase(kind) => format!("the {} phase", kind.name()),
            Place::Starved => format!("the {} phase", PhaseKind::Rollout.name()),
        }
    }
}

impl Shown {
    /// The verdict with the place that decides it: the gravest phase of reinforcement learning, else the fullest stage.
    #[must_use]
    pub fn fullest(&self) -> Option<Fullest> {
        let phase = self.phases.iter().max_by_key(|phase| (phase.fit, phase.peak));
        if let Some(phase) = phase {
            let place = if phase.starved { Place::Starved } else { Place::Phase(phase.kind) };
            return Some(Fullest { place, peak: phase.peak, fit: phase.fit });
        }
        let worst = self.worst()?;
        Some(Fullest { place: Place::Stage(worst.stage), peak: worst.reserved, fit: worst.fit })
    }

    /// Whether the plan runs out of memory anywhere.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.fullest().is_some_and(|fullest| fullest.fit == Fit::DoesNotFit)
    }
}

//! What of a plan comes nearest to running out of memory.

use super::{Fit, Shown};
use shardscope_estimate::PhaseKind;
use shardscope_units::Bytes;

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

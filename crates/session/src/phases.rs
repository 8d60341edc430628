//! The phases of reinforcement learning as displayed.

use super::{Branch, Fit};
use shardscope_estimate::{Memory, Needs, PhaseKind};
use shardscope_units::{Bytes, size};

/// One phase of reinforcement learning on the fullest GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseMemory {
    /// Which.
    pub kind: PhaseKind,
    /// Everything that the device holds in it, as in the verdict. Phases alternate: their peaks are never summed.
    pub peak: Bytes,
    /// Its parts by name, in bytes.
    pub parts: Vec<(String, Bytes)>,
    /// The verdict on it.
    pub fit: Fit,
    /// Its peak as in the verdict.
    pub needs: Needs,
    /// Whether the remaining KV cache holds less than one full-length rollout, so that the engine does not start,
    /// however little the phase takes.
    pub starved: bool,
}

/// The phases in their order; empty without rollouts.
pub(super) fn phase_memories(memory: &Memory) -> Vec<PhaseMemory> {
    let Some(rl) = &memory.rl else { return Vec::new() };
    let shown = rl.phases.iter().map(|phase| PhaseMemory {
        kind: phase.kind,
        peak: phase.needs.bytes,
        parts: phase
            .breakdown
            .children()
            .iter()
            .enumerate()
            .map(|(place, part)| {
                // The first part is the training's peak, which includes PyTorch's cache.
                let released = if place == 0 { phase.needs.released } else { Bytes::ZERO };
                (part.label().to_owned(), part.value().less(released))
            })
            .collect(),
        fit: Fit::from_verdict(phase.verdict),
        needs: phase.needs,
        starved: phase.kind == PhaseKind::Rollout && rl.cache_rollouts == 0,
    });
    shown.collect()
}

/// What a phase's memory is made of; `None` without rollouts or without that phase.
#[must_use]
pub fn explain_phase(memory: &Memory, kind: PhaseKind) -> Option<Branch> {
    let phase = memory.rl.as_ref()?.phases.iter().find(|phase| phase.kind == kind)?;
    Some(Branch::from_breakdown(&phase.breakdown, size))
}

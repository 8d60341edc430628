//! How much communication hides behind arithmetic, and what that costs.

use super::spent::Parts;
use crate::compute::{Cost, Device, GRAPHED, Issue};
use shardscope_operators::Dimension;
use shardscope_plan::Plan;
use shardscope_units::Seconds;

/// How much is assumed to overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bounds {
    /// Everything that can.
    Lower,
    /// What the framework does.
    Estimate,
    /// Nothing.
    Upper,
}

/// Rules of overlap of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overlaps {
    pub(super) bounds: Bounds,
    /// `--tp-comm-overlap`.
    pub(super) tensor: bool,
    /// `--overlap-moe-expert-parallel-comm`.
    pub(super) expert: bool,
    /// What the host spends per kernel.
    pub(super) issue: Issue,
}

impl Overlaps {
    pub(super) fn new(plan: &Plan, bounds: Bounds) -> Self {
        let recipe = plan.recipe();
        Self {
            bounds,
            // Userbuffers pipeline the gathers and scatters of sequence parallelism; Megatron rejects the flag
            // without it.
            tensor: recipe.overlap.tensor && plan.layout().sequence_parallel,
            expert: recipe.overlap.expert,
            issue: issue(plan, bounds),
        }
    }
}

/// Host costs; zero for the lower bound, which assumes that everything overlaps.
fn issue(plan: &Plan, bounds: Bounds) -> Issue {
    if bounds == Bounds::Lower { GRAPHED } else { Issue::new(plan.recipe(), &plan.cluster().accelerator) }
}

/// Communication of one pass over one section, by dimension: the exposed part and the part that may hide.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    tensor: [Seconds; 2],
    context: [Seconds; 2],
    expert: [Seconds; 2],
}

impl Traffic {
    pub(super) fn add(&mut self, dimension: Dimension, time: Seconds, hidden: bool) {
        let list = match dimension {
            Dimension::Tensor => &mut self.tensor,
            Dimension::Context | Dimension::ContextInner | Dimension::ContextOuter => &mut self.context,
            // Within a section only expert messages remain: data-parallel and pipeline messages are counted around
            // it.
            _ => &mut self.expert,
        };
        if let Some(slot) = list.get_mut(usize::from(hidden)) {
            *slot += time;
        }
    }
}

/// The exposed part of `traffic` that runs alongside `compute`, of which `products` are products with weights.
pub(super) fn exposed(
    overlaps: &Overlaps,
    device: &Device,
    traffic: Traffic,
    compute: Cost,
    products: Seconds,
    layer: bool,
) -> Parts {
    let all = |pair: [Seconds; 2]| pair[0] + pair[1];
    let calibration = &device.calibration;
    let mut parts = Parts::default();
    match overlaps.bounds {
        Bounds::Lower => return parts,
        Bounds::Upper => {
            (parts.tensor, parts.context) = (all(traffic.tensor), all(traffic.context));
            return parts;
        }
        Bounds::Estimate => {}
    }
    // Userbuffers cut a product and its message into pieces that overlap; the embedding and the output layer do not
    // use them.
    parts.tensor = if overlaps.tensor && layer {
        all(traffic.tensor) * (1.0 - calibration.user_buffer_overlap)
    } else {
        traffic.tensor[0] + beyond(traffic.tensor[1], products, calibration.contention)
    };
    // The ring's next keys and values travel while attention works on those already received.
    parts.context =
        traffic.context[0] + beyond(traffic.context[1], compute.attention, calibration.contention);
    parts
}

/// The exposed expert exchanges of forward and backward, given the arithmetic of both passes. If they overlap at all,
/// the forward pass of one micro-batch runs alongside the backward pass of another, layer by layer, so the exchanges
/// of either hide behind both (`megatron/core/pipeline_parallel/combined_1f1b.py`; DeepSeek-V3 report, section
/// 3.2.1).
pub(super) fn across(
    overlaps: &Overlaps,
    device: &Device,
    both: [Traffic; 2],
    window: Seconds,
) -> [Seconds; 2] {
    let [alone, hidden] = [0, 1].map(|hides: usize| both.map(|traffic| traffic.expert[hides]));
    match overlaps.bounds {
        Bounds::Lower => [Seconds::ZERO; 2],
        Bounds::Upper => [alone[0] + hidden[0], alone[1] + hidden[1]],
        Bounds::Estimate => {
            let all = hidden[0] + hidden[1];
            let left =
                beyond(all, window, device.calibration.contention).get() / all.get().max(f64::MIN_POSITIVE);
            [alone[0] + hidden[0] * left, alone[1] + hidden[1] * left]
        }
    }
}

/// The part of `communication` that exceeds the `window` it hides in, plus the slowdown of the arithmetic it hides
/// behind: it takes multiprocessors and memory bandwidth.
pub(super) fn beyond(communication: Seconds, window: Seconds, contention: f64) -> Seconds {
    let hidden = communication.get().min(window.get());
    Seconds::new(communication.get() - hidden + contention * hidden)
}

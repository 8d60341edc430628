//! The minimum memory of layouts: weights, gradients and optimizer states, regardless of what is saved for backward.

use super::dominance::lightest;
use super::known::Known;
use super::space::Space;
use shardscope_estimate::{Totals, memory_totals};
use shardscope_plan::{Embeddings, Plan, StageSplit, Variant};
use shardscope_units::{Bytes, Quantity};

/// Bytes that stay on a rank whatever is recomputed and however small the micro-batch. Gradients that are created
/// anew in every step need not exist at the peak.
fn resident(plan: &Plan, totals: &Totals) -> Bytes {
    let anew = plan.recipe().software.semantics().makes_gradients_anew;
    let gradients = if anew { Bytes::ZERO } else { totals.gradients };
    totals.parameters + totals.optimizer + gradients
}

/// The floor of a cut with `shapes`, as a share of the device's memory; above 1 nothing fits. The total of weights,
/// gradients and states over all stages does not depend on how layers are split, and some stage holds at least its
/// even share. None if no shape is a valid plan.
pub(crate) fn of_cut(space: &Space, shapes: &[Variant], known: &mut Known) -> Option<f64> {
    // A tied embedding exists once if the first and last stage are on the same rank, otherwise twice.
    let folded = shapes.iter().any(|shape| shape.schedule.own_chunks() == Some(2));
    if folded && space.plan.model().embeddings == Embeddings::Tied {
        return Some(0.0);
    }
    let shape = shapes
        .iter()
        .find(|shape| shape.apply(&space.plan).is_some_and(|plan| plan.layout().copies() == 1))?;
    let rests = space.rests(shape);
    let plans = lightest(&rests)
        .filter_map(|(sharding, overlap)| Variant { sharding, overlap, ..shape.clone() }.apply(&space.plan));
    plans
        .map(|plan| {
            let totals = known.totals(&plan);
            let all: Bytes = totals.iter().map(|totals| resident(&plan, totals)).sum();
            let stages: f64 = totals.iter().map(|_| 1.0).sum();
            // States are padded per stage, by far less than this.
            all.number() / stages * (1.0 - PADDING) / plan.cluster().accelerator.memory.number()
        })
        .reduce(f64::min)
}

/// Relative difference in padding between splits: buffers are rounded up to a few hundred elements per optimizer
/// rank, out of hundreds of millions.
const PADDING: f64 = 1e-3;

/// A lower bound on the number of accelerators: fewer cannot hold weights, gradients and optimizer states even once.
/// It is what one replica without data parallelism holds, divided by the memory of a device. None if there is no such
/// replica.
#[must_use]
pub fn least_gpus(plan: &Plan) -> Option<u64> {
    let own = Variant::from_plan(plan);
    let mut cluster = plan.cluster().clone();
    (cluster.num_nodes, cluster.gpus_per_node) = (1, own.tensor);
    // One stage, so that a tied embedding exists once and DualPipe has no second copy of the model.
    let variant = Variant {
        pipeline: 1,
        virtual_pipeline: 1,
        group: None,
        split: StageSplit::EVEN,
        context: 1,
        expert: 1,
        expert_tensor: own.tensor,
        micro_batch_size: 1,
        instances: 1,
        ..own
    };
    let one = variant.checked_on(plan, plan.model().clone(), cluster).ok()?;
    let all: Bytes = memory_totals(&one).iter().map(|totals| resident(&one, totals)).sum();
    let bytes = all.get().saturating_mul(one.layout().tensor);
    Some(bytes.div_ceil(plan.cluster().accelerator.memory.get().max(1)))
}

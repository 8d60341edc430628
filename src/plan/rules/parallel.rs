//! The layout: process groups, stages, interleaving.

use super::Refusals;
use crate::plan::hints::divisors;
use crate::plan::{Contradiction, DpSharding, Field, PipelineSchedule, Plan, RankOrder};

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    groups(plan, refusals);
    interleaving(plan, refusals);
    rank_order(plan, refusals);
    context(plan, refusals);
    instances(plan, refusals);
}

/// The degrees multiply to the world, and every stage of every rank is there.
fn groups(plan: &Plan, refusals: &mut Refusals) {
    let (layout, cluster) = (plan.layout(), plan.cluster());
    let (world, p) = (layout.world_size, layout.pipeline);
    refusals.unless(
        cluster.gpus() == world,
        "cluster-size",
        &[Field::WorldSize, Field::NumNodes, Field::GpusPerNode],
        || {
            format!(
                "{} nodes of {} GPUs are not the {world} ranks of the layout",
                cluster.num_nodes, cluster.gpus_per_node
            )
        },
    );
    let dense = [layout.tensor, p, layout.context, layout.data];
    let product = dense.iter().fold(1_u64, |product, degree| product.saturating_mul(*degree));
    refusals.unless(product == world && product > 0, "world-size", &[Field::WorldSize], || {
        format!("TP x PP x CP x DP = {product} is not the world size {world}")
    });
    let sparse = [layout.expert_tensor, layout.expert, p, layout.expert_data];
    let product = sparse.iter().fold(1_u64, |product, degree| product.saturating_mul(*degree));
    let moe = plan.model().experts.is_some();
    refusals.unless(
        !moe || product == world,
        "expert-world-size",
        &[Field::ExpertModelParallelSize, Field::WorldSize],
        || format!("expert TP x EP x PP x expert DP = {product} is not the world size {world}"),
    );
    let stages = &layout.stages.stages;
    let held: u64 = stages.iter().map(crate::plan::Stage::layers).sum();
    let complete = stages.len() as u64 == p
        && stages.iter().all(|stage| stage.chunks.len() as u64 == layout.virtual_pipeline)
        && held == plan.model().num_layers.saturating_mul(layout.copies());
    refusals.unless(complete, "stage-map", &[Field::PipelineModelParallelSize, Field::NumLayers], || {
        format!(
            "the stages hold {held} layers on {} ranks, and should hold {} on {p}",
            stages.len(),
            plan.model().num_layers
        )
    });
}

/// Interleaving needs a pipeline, and enough micro-batches (`schedules.py`).
fn interleaving(plan: &Plan, refusals: &mut Refusals) {
    let (layout, recipe) = (plan.layout(), plan.recipe());
    let (p, v) = (layout.pipeline, layout.virtual_pipeline);
    if v <= 1 || layout.schedule != PipelineSchedule::OneForwardOneBackward {
        return;
    }
    let fields =
        [Field::NumLayersPerVirtualPipelineStage, Field::PipelineModelParallelSize, Field::OverlapP2pComm];
    if p < 2 {
        let message = format!("{v} chunks per rank need PP greater than 1");
        refusals.push(Contradiction::new("vpp-without-pp", &fields, message));
        return;
    }
    if p == 2 && !recipe.overlap.pipeline {
        let message = "interleaving over PP 2 needs overlapped pipeline sends".to_owned();
        let hint = "leave --no-overlap-p2p-communication out, or take PP greater than 2";
        refusals.push(Contradiction::new("vpp-overlap", &fields, message).hint(hint));
    }
    let (m, g) = (recipe.num_micro_batches, layout.microbatch_group_size);
    let fields =
        [Field::GlobalBatchSize, Field::MicrobatchGroupSizePerVpStage, Field::PipelineModelParallelSize];
    if g < p || g > m {
        let message = format!(
            "interleaving takes micro-batches in groups of {g}: at least PP {p}, at most the {m} of a step"
        );
        let slice = recipe.micro_batch_size.saturating_mul(layout.data);
        let hint = format!("a global batch of at least {}", slice.saturating_mul(g.max(p)));
        refusals.push(
            Contradiction::new("vpp-micro-batches", &fields, message)
                .hint(hint)
                .nearest(Some(slice.saturating_mul(g.max(p)))),
        );
    } else if m % g != 0 && m % g < p {
        let slice = recipe.micro_batch_size.saturating_mul(layout.data);
        let near = crate::plan::hints::nearest_multiple(m, g).saturating_mul(slice);
        let message = format!("{m} micro-batches in groups of {g} leave {}, fewer than PP {p}", m % g);
        let hint = format!("a global batch of {near} gives a multiple of {g} micro-batches");
        refusals
            .push(Contradiction::new("vpp-micro-batches", &fields, message).hint(hint).nearest(Some(near)));
    }
}

/// `--use-tp-pp-dp-mapping` needs dense and expert data-parallel sizes to be the same (`parallel_state.py`).
fn rank_order(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    if layout.rank_order == RankOrder::TpCpEpDpPp || layout.pipeline == 1 {
        return;
    }
    let (dense, experts) = (layout.tensor * layout.context, layout.expert_tensor * layout.expert);
    refusals.unless(dense == experts, "rank-order", &[Field::UseTpPpDpMapping, Field::ContextParallelSize, Field::ExpertModelParallelSize], || {
        format!("--use-tp-pp-dp-mapping with PP {} needs TP x CP = {dense} and expert TP x EP = {experts} to be equal", layout.pipeline)
    });
}

fn context(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    let levels = &layout.hierarchical_context;
    let product = levels.iter().fold(1_u64, |product, level| product.saturating_mul(*level));
    refusals.unless(
        levels.is_empty() || product == layout.context,
        "hierarchical-cp",
        &[Field::HierarchicalContextParallelSizes, Field::ContextParallelSize],
        || format!("the levels of context parallelism multiply to {product}, and CP is {}", layout.context),
    );
}

fn instances(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    let (n, replicas) = (layout.distributed_optimizer_instances, layout.data * layout.context);
    if n <= 1 {
        return;
    }
    let fields = [Field::NumDistributedOptimizerInstances, Field::DataParallelSize];
    if plan.recipe().dp_sharding == DpSharding::Replicated {
        let message = format!("{n} instances of the distributed optimizer, which is off");
        refusals.push(
            Contradiction::new("instances-without-optimizer", &fields, message)
                .hint("add --use-distributed-optimizer"),
        );
    }
    if !replicas.is_multiple_of(n) {
        let fitting = divisors(replicas);
        let message = format!(
            "{replicas} data-parallel ranks cannot be split into {n} instances of the distributed optimizer"
        );
        let nearest = crate::plan::hints::nearest_of(&fitting, n);
        refusals.push(Contradiction::new("instances", &fields, message).nearest(nearest));
    }
}

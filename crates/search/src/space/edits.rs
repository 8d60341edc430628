//! Single changes of a plan: one setting, plus whatever must follow from it.

use super::sizes::{
    contexts, experts, instances, micro_batches, orders, pipelines, precisions, schedules, tensors,
};
use super::values::Space;
use super::{hosts, recomputations, rests, splits};
use crate::dimension::{Choices, Dimension};
use shardscope_plan::{Fp8, OffloadModule, Plan, Recompute, StageSplit, Variant};

/// One change and its dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The dimension.
    pub dimension: Dimension,
    /// The plan with only this change.
    pub variant: Variant,
}

/// Every single change of `from` that stays within the space around `space`'s plan.
pub(crate) fn singles(space: &Space, from: &Variant) -> Vec<Edit> {
    let (plan, choices) = (&space.plan, &space.choices);
    let mut out: Vec<Edit> = Vec::new();
    let mut take = |dimension: Dimension, variant: Variant| {
        // Each dimension's values include the present one.
        if variant != *from {
            out.push(Edit { dimension, variant });
        }
    };
    for tensor in tensors(plan, from, choices) {
        take(Dimension::Tensor, with_tensor(from, tensor));
    }
    for pipeline in pipelines(plan, from, choices) {
        take(Dimension::Pipeline, with_pipeline(plan, from, choices, pipeline));
    }
    let own = from.schedule.own_chunks().filter(|_| from.pipeline > 1);
    for (split, virtual_pipeline) in splits::ways(plan, from, choices, from.pipeline, own) {
        // Ways are pairs; a single change moves one of the two.
        if split == from.split {
            take(Dimension::VirtualPipeline, Variant { virtual_pipeline, group: None, ..from.clone() });
        } else if virtual_pipeline == from.virtual_pipeline {
            take(Dimension::Split, Variant { split, ..from.clone() });
        }
    }
    for context in contexts(plan, from, choices) {
        take(Dimension::Context, Variant { context, ..from.clone() });
    }
    for (expert, expert_tensor) in experts(plan, from, choices, from.tensor) {
        if expert_tensor == from.expert_tensor {
            take(Dimension::Expert, Variant { expert, ..from.clone() });
        } else if expert == from.expert {
            take(Dimension::ExpertTensor, Variant { expert_tensor, ..from.clone() });
        }
    }
    for micro_batch_size in micro_batches(plan, from, choices) {
        take(Dimension::MicroBatch, Variant { micro_batch_size, ..from.clone() });
    }
    if from.tensor > 1 {
        take(
            Dimension::SequenceParallel,
            Variant { sequence_parallel: !from.sequence_parallel, ..from.clone() },
        );
    }
    let parts = from.pipeline * from.virtual_pipeline;
    let layers = plan.model().num_layers.div_ceil(parts.max(1));
    for recompute in recomputations::recomputations(plan, from, choices, &recomputations::lists(plan), layers)
    {
        take(Dimension::Recompute, Variant { recompute, ..from.clone() });
    }
    for (sharding, overlap) in rests::rests(plan, from, choices, from) {
        if sharding == from.sharding {
            take(Dimension::Overlap, Variant { overlap, ..from.clone() });
        } else {
            let mut overlap = from.overlap;
            // Consequences are part of a change: a plan that would be refused because of an old flag is no answer.
            overlap.param_gather &= sharding != shardscope_plan::DpSharding::Replicated;
            take(Dimension::Sharding, Variant { sharding, overlap, ..from.clone() });
        }
    }
    for overlap in space.overlaps(from, from.sequence_parallel) {
        take(Dimension::Overlap, Variant { overlap, ..from.clone() });
    }
    for fp8 in precisions(plan, from, choices) {
        take(Dimension::Precision, Variant { fp8, ..from.clone() });
    }
    for optimizer_on_host in hosts::optimizers(plan, from, choices) {
        take(Dimension::Offload, Variant { optimizer_on_host, ..from.clone() });
    }
    for offloaded in hosts::modules(plan, from, choices) {
        take(Dimension::OffloadModules, Variant { offloaded, ..from.clone() });
    }
    for instances in instances(plan, from, choices, from.tensor) {
        take(Dimension::Instances, Variant { instances, ..from.clone() });
    }
    for rank_order in orders(plan, from, choices) {
        take(Dimension::RankOrder, Variant { rank_order, ..from.clone() });
    }
    if from.pipeline > 1 {
        for schedule in schedules(plan, from, choices) {
            // Chunks of one schedule say nothing about another's.
            let virtual_pipeline = schedule.own_chunks().unwrap_or(1);
            if schedule != from.schedule {
                take(
                    Dimension::Schedule,
                    Variant { schedule, virtual_pipeline, group: None, ..from.clone() },
                );
            }
        }
    }
    out
}

/// Expert tensor and sequence parallelism keep their present relation to the tensor size.
pub(super) fn with_tensor(from: &Variant, tensor: u64) -> Variant {
    let expert_tensor = if from.expert_tensor == from.tensor { tensor } else { from.expert_tensor };
    let sequence_parallel = tensor > 1 && (from.sequence_parallel || from.tensor == 1);
    let mut variant = Variant { tensor, expert_tensor, sequence_parallel, ..from.clone() };
    variant.overlap.tensor &= sequence_parallel;
    variant
}

/// Another number of stages, split as now if that divides, else evenly, else in the first possible way; chunks as now
/// if they divide, else one.
pub(super) fn with_pipeline(plan: &Plan, from: &Variant, choices: &Choices, pipeline: u64) -> Variant {
    let own = from.schedule.own_chunks().filter(|_| pipeline > 1);
    let ways = splits::ways(plan, from, choices, pipeline, own);
    let rank = |(split, chunks): &(StageSplit, u64)| {
        let chunks_kept = *chunks == if pipeline > 1 { from.virtual_pipeline } else { 1 };
        (*split != from.split && *split != StageSplit::EVEN, !chunks_kept, *chunks)
    };
    let best = ways.into_iter().min_by_key(rank);
    let (split, virtual_pipeline) = best.unwrap_or((StageSplit::EVEN, 1));
    let group = from.group.filter(|_| pipeline == from.pipeline);
    Variant { pipeline, split, virtual_pipeline, group, ..from.clone() }
}

impl Edit {
    /// What it changes in `from`, in the notation that readers use: `TP 4 → 8`.
    #[must_use]
    pub fn words(&self, from: &Variant) -> String {
        let to = &self.variant;
        let sizes = [
            ("TP", from.tensor, to.tensor),
            ("PP", from.pipeline, to.pipeline),
            ("VPP", from.virtual_pipeline, to.virtual_pipeline),
            ("CP", from.context, to.context),
            ("EP", from.expert, to.expert),
            ("MBS", from.micro_batch_size, to.micro_batch_size),
            ("optimizer instances", from.instances, to.instances),
        ];
        let mut said: Vec<String> = Vec::new();
        for (name, old, new) in sizes {
            if old != new {
                said.push(format!("{name} {old} → {new}"));
            }
        }
        if self.dimension == Dimension::ExpertTensor {
            said.push(format!("expert TP {} → {}", from.expert_tensor, to.expert_tensor));
        }
        if from.sequence_parallel != to.sequence_parallel && self.dimension == Dimension::SequenceParallel {
            said.push(format!("sequence parallelism {}", on(to.sequence_parallel)));
        }
        if from.sharding != to.sharding {
            said.push(format!("ZeRO stage {} → {}", from.sharding.zero_stage(), to.sharding.zero_stage()));
        }
        if from.schedule != to.schedule {
            said.push(format!("schedule {} → {}", from.schedule.name(), to.schedule.name()));
        }
        if self.dimension == Dimension::Split {
            said.push(split(&to.split));
        }
        if from.rank_order != to.rank_order {
            said.push("the other rank order".to_owned());
        }
        if from.recompute != to.recompute {
            said.push(recomputed(&to.recompute));
        }
        if from.fp8 != to.fp8 {
            let name = |of: &Option<Fp8>| of.as_ref().map_or("16-bit", |fp8| fp8.recipe.name());
            said.push(format!("{} products → {}", name(&from.fp8), name(&to.fp8)));
        }
        if from.optimizer_on_host != to.optimizer_on_host {
            said.push(format!(
                "optimizer states on the {}",
                if to.optimizer_on_host { "host" } else { "device" }
            ));
        }
        if from.offloaded != to.offloaded {
            let names: Vec<&str> = to.offloaded.each().map(OffloadModule::name).collect();
            said.push(if names.is_empty() {
                "no modules offloaded".to_owned()
            } else {
                format!("modules offloaded: {}", names.join(", "))
            });
        }
        let flags = [
            ("overlapped gradient reduction", from.overlap.grad_reduce, to.overlap.grad_reduce),
            ("overlapped parameter gather", from.overlap.param_gather, to.overlap.param_gather),
            ("overlapped TP communication", from.overlap.tensor, to.overlap.tensor),
            ("overlapped expert communication", from.overlap.expert, to.overlap.expert),
        ];
        for (name, old, new) in flags {
            if old != new && self.dimension == Dimension::Overlap {
                said.push(format!("{name} {}", on(new)));
            }
        }
        said.join(", ")
    }
}

fn split(split: &StageSplit) -> String {
    let size = |size: &Option<u64>| match size {
        None => "as many layers".to_owned(),
        Some(1) => "1 layer".to_owned(),
        Some(size) => format!("{size} layers"),
    };
    match split {
        StageSplit::Even { account_for_embedding: true, account_for_loss: true } => {
            "embedding and loss counted as layers of their stages".to_owned()
        }
        StageSplit::Even { account_for_embedding: true, .. } => {
            "the embedding counted as a layer of the first stage".to_owned()
        }
        StageSplit::Even { account_for_loss: true, .. } => {
            "the loss counted as a layer of the last stage".to_owned()
        }
        StageSplit::Even { .. } => "layers spread evenly over stages".to_owned(),
        StageSplit::Ends { first, last } => {
            format!("{} on the first stage and {} on the last", size(first), size(last))
        }
        StageSplit::Layout(text) => format!("pipeline layout {text}"),
    }
}

const fn on(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

fn recomputed(recompute: &Recompute) -> String {
    match recompute {
        Recompute::None => "no recomputation".to_owned(),
        Recompute::Selective(modules) => {
            let names: Vec<&str> = modules.iter().map(|module| module.name()).collect();
            format!("selective recomputation of {}", names.join(", "))
        }
        Recompute::Uniform { .. } => "full recomputation".to_owned(),
        Recompute::Block { num_layers: 1, .. } => "recompute 1 layer of every chunk".to_owned(),
        Recompute::Block { num_layers, .. } => format!("recompute {num_layers} layers of every chunk"),
        Recompute::Every { period, others: false } => format!("recompute one layer in {period}"),
        Recompute::Every { period, others: true } => format!("recompute all but one layer in {period}"),
    }
}

//! Messages sent once per step: tied embeddings, gradients of weights that all tensor ranks hold, scalars
//! (`megatron/core/distributed/finalize_model_grads.py`, `megatron/core/optimizer/optimizer.py`).

use super::buffers::{holds_embedding, shares_embedding};
use super::builder::{Builder, Sent};
use super::ledger::{Parallelism, Place};
use shardscope_explain::Formula;
use shardscope_operators::{
    Account, Collective, SectionKind, Shape, Shard, Weight, WeightGroup, WeightPart, section_counts,
};
use shardscope_plan::{DpSharding, NumberFormat, Objective, Stage};
use shardscope_topology::GroupKind;
use shardscope_units::product;

const FINALIZE: &str = "megatron/core/distributed/finalize_model_grads.py";
const OPTIMIZER: &str = "megatron/core/optimizer/optimizer.py";

static TIED: Formula = Formula::new(
    "V·h·Bg",
    "The first and last stages hold the same tied embedding: their gradients are all-reduced.",
    FINALIZE,
);
static WHOLE: Formula = Formula::new(
    "elements·Bg",
    "Each tensor rank has seen only its shard of the sequence: gradients of replicated weights are all-reduced.",
    FINALIZE,
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);
static NORM: Formula =
    Formula::new("4", "The sum of squares of all gradients, for gradient clipping, fp32.", OPTIMIZER);
static OVERFLOW: Formula = Formula::new(
    "4",
    "Whether any gradient has overflowed (found_inf), for the loss scaler, fp32.",
    OPTIMIZER,
);
static LOSS: Formula = Formula::new(
    "2·4",
    "Sum of losses and number of tokens, for logging, fp32.",
    "megatron/training/training.py",
);

static ITEMS: Formula = Formula::new(
    "8·elements",
    "Labels of a step on each rank, int64 (`average_tokens_across_devices`): the loss is divided by their sum.",
    "transformers/trainer.py:get_batch_samples",
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);

/// Adds the messages sent once per step.
pub(super) fn add(builder: &mut Builder<'_>) {
    tied_embedding(builder);
    whole_weights(builder);
    scalars(builder);
}

fn gradient(builder: &Builder<'_>, name: &'static str, shape: Shape, formula: &'static Formula) -> Sent {
    let format = builder.plan().recipe().grads_dtype;
    Sent {
        name,
        tensor: "gradients",
        collective: Collective::AllReduce,
        place: Place::AfterLastBackward,
        shape,
        width: format.width(),
        dtype: format.name(),
        overlapped: false,
        formula,
    }
}

fn tied_embedding(builder: &mut Builder<'_>) {
    if !shares_embedding(builder.plan()) {
        return;
    }
    let x = builder.symbols;
    let plan = builder.plan();
    let stages = &plan.layout().stages.stages;
    let holds = |stage: usize| stages.get(stage).is_some_and(|stage| holds_embedding(plan, stage));
    let calls = builder.step_calls(&|stage| u64::from(holds(stage)));
    let sent = gradient(builder, "word_embeddings", Shape::new(&[x.v, x.h]), &TIED);
    builder.add(Parallelism::Embedding, GroupKind::Embedding, sent, calls);
}

/// With sequence parallelism: norms, biases of row-parallel layers, routers and whatever else is not sharded. Without
/// it, only the norms of queries and keys, which each rank applies to its own heads.
fn whole_weights(builder: &mut Builder<'_>) {
    let x = builder.symbols;
    let layout = x.plan.layout();
    // A single tensor rank sees all tokens and heads, so its gradients are complete.
    if layout.tensor <= 1 {
        return;
    }
    let mut elements = [0_u64; SectionKind::ALL.len()];
    for (elements, kind) in elements.iter_mut().zip(SectionKind::ALL) {
        for weight in kind.weights(&x) {
            if is_partial(layout.sequence_parallel, &weight) {
                *elements += weight.count().get();
            }
        }
    }
    for stage in 0..builder.stages() {
        let chunks = layout.stages.stages.get(stage).map_or(&[][..], |stage| &stage.chunks);
        let counts = chunks.iter().map(|chunk| section_counts(&x, chunk));
        let all: u64 = counts.map(|counts| dot(&counts, &elements)).sum();
        if all > 0 {
            let calls = builder.step_calls(&|other| u64::from(other == stage));
            let sent = gradient(builder, "weights not cut", Shape::new(&[all]), &WHOLE);
            builder.add(Parallelism::Tensor, GroupKind::Tensor, sent, calls);
        }
    }
}

fn dot(counts: &[u64], elements: &[u64]) -> u64 {
    counts.iter().zip(elements).map(|(count, elements)| product(*count, *elements)).sum()
}

/// Whether tensor ranks hold a weight in full but see only part of what goes through it, so that its gradient is
/// summed (`finalize_model_grads.py`: parameters that require a gradient and are marked accordingly). Image patches
/// are not sharded over ranks.
fn is_partial(sequence_parallel: bool, weight: &Weight) -> bool {
    let replicated = weight.shard == Shard::Whole
        && weight.group == WeightGroup::Dense
        && weight.role.trains()
        && weight.part != WeightPart::VisionTower;
    let head_norm = weight.part == WeightPart::HeadNorm;
    // Positions are added before the sequence is sharded, so every rank has their full gradient.
    replicated && if sequence_parallel { weight.account != Account::Embedding } else { head_norm }
}

fn scalars(builder: &mut Builder<'_>) {
    let recipe = builder.plan().recipe();
    let every = builder.step_calls(&|_| 1);
    let sharded = recipe.dp_sharding != DpSharding::Replicated;
    // With sharded gradients every rank of an optimizer instance holds a different part of the sum; replicated, only
    // model-parallel ranks differ.
    let group = if sharded { GroupKind::OptimizerInstance } else { GroupKind::Model };
    let norm = number(builder, ("gradient norm", "square"), 1, &NORM);
    builder.add(Parallelism::Scalars, group, norm, every.clone());
    // bf16 has the exponent range of fp32 and trains without a loss scaler.
    if recipe.params_dtype == NumberFormat::Fp16 {
        let scale = number(builder, ("loss scale", "overflow"), 1, &OVERFLOW);
        builder.add(Parallelism::Scalars, group, scale, every);
    }
    if recipe.transformers.ddp.is_some() {
        return items(builder);
    }
    let stages = &builder.plan().layout().stages.stages;
    let ends = |stage: usize| stages.get(stage).is_some_and(Stage::has_output_layer);
    let at_end = builder.step_calls(&|stage| u64::from(ends(stage)));
    let loss = number(builder, ("loss", "sum and count"), 2, &LOSS);
    builder.add(Parallelism::Scalars, GroupKind::DataContext, loss, at_end);
}

/// transformers' Trainer logs the loss once in many steps, but divides each by the number of labels on all ranks.
fn items(builder: &mut Builder<'_>) {
    if builder.plan().recipe().tuning.objective != Objective::NextToken {
        return;
    }
    let ranks = builder.groups.size(GroupKind::DataContext);
    let sent = Sent {
        collective: Collective::AllGather,
        width: 8,
        dtype: "int64",
        ..number(builder, ("loss", "number of labels"), ranks, &ITEMS)
    };
    let once = builder.step_calls(&|_| 1);
    builder.add(Parallelism::Scalars, GroupKind::DataContext, sent, once);
}

/// A message of a few fp32 numbers with this name and purpose.
fn number(
    builder: &Builder<'_>,
    (name, tensor): (&'static str, &'static str),
    elements: u64,
    formula: &'static Formula,
) -> Sent {
    Sent {
        tensor,
        width: NumberFormat::Fp32.width(),
        dtype: NumberFormat::Fp32.name(),
        ..gradient(builder, name, Shape::new(&[elements]), formula)
    }
}

//! The values that each dimension takes around a plan.

use crate::dimension::{Choices, Dimension, Values};
use shardscope_plan::hints::divisors;
use shardscope_plan::{Fp8, Lora, PipelineSchedule, Plan, RankOrder, Variant};

/// Deepest pipeline tried. Beyond that, the bubble would require thousands of micro-batches.
const MAX_PIPELINE: u64 = 128;
/// Shortest sequence that context parallelism may leave on a rank. Unit: token.
const MIN_LOCAL_SEQUENCE: u64 = 1024;
/// Largest micro-batch tried.
const MAX_MICRO_BATCH: u64 = 16;

/// Whether the software shards models over ranks.
fn cuts(plan: &Plan) -> bool {
    plan.recipe().software.semantics().cuts_models
}

/// `values` plus the plan's own, filtered by what `dimension` allows.
fn allowed(choices: &Choices, dimension: Dimension, stated: u64, values: Vec<u64>) -> Vec<u64> {
    let mut values = values;
    values.push(stated);
    values.sort();
    values.dedup();
    values.retain(|value| choices.get(dimension).allow(*value, stated));
    values
}

pub(super) fn tensors(plan: &Plan, base: &Variant, choices: &Choices) -> Vec<u64> {
    let domain = plan.cluster().fast_domain.max(plan.cluster().gpus_per_node);
    let most = if !cuts(plan) { 1 } else { domain };
    let mut values = divisors(plan.model().num_attention_heads);
    // Beyond the fast links only if the reader asks for it by a range.
    let asked = |value: u64| match choices.get(Dimension::Tensor) {
        Values::Between(_, upper) => value <= *upper,
        _ => false,
    };
    values.retain(|value| *value <= most || asked(*value));
    allowed(choices, Dimension::Tensor, base.tensor, values)
}

pub(super) fn contexts(plan: &Plan, base: &Variant, choices: &Choices) -> Vec<u64> {
    let sequence = plan.model().seq_length;
    let mut values = vec![1];
    // The length of a pack follows from the tokens per rank: another size would make different packs.
    let packs = plan.recipe().sample_length.is_some();
    if packs {
        values.clear();
    } else if cuts(plan) {
        values.extend(
            divisors(sequence / 2).into_iter().filter(|value| sequence / value >= MIN_LOCAL_SEQUENCE),
        );
    }
    allowed(choices, Dimension::Context, base.context, values)
}

/// Expert parallel and expert tensor parallel sizes.
pub(super) fn experts(plan: &Plan, base: &Variant, choices: &Choices, tensor: u64) -> Vec<(u64, u64)> {
    let Some(experts) = &plan.model().experts else { return vec![(1, tensor)] };
    if !cuts(plan) {
        return vec![(base.expert, base.expert_tensor)];
    }
    let sizes = allowed(choices, Dimension::Expert, base.expert, divisors(experts.num_experts));
    let mut widths: Vec<u64> = match choices.get(Dimension::ExpertTensor) {
        // Unless given, it follows the tensor size.
        Values::Stated if base.expert_tensor == base.tensor => vec![tensor],
        Values::Stated => vec![base.expert_tensor],
        values => {
            let mut widths = divisors(tensor);
            widths.retain(|width| values.allow(*width, base.expert_tensor));
            widths
        }
    };
    // Messages of adapters on experts over expert tensor ranks are not modelled: the verdict is marked if the plan
    // has such ranks, and no layout may introduce them.
    let adapters = |lora: &Lora| lora.library.semantics().shares_experts && lora.modules.reach_experts();
    if base.expert_tensor == 1 && plan.recipe().tuning.lora.as_ref().is_some_and(adapters) {
        widths = vec![1];
    }
    sizes.into_iter().flat_map(|expert| widths.iter().map(move |width| (expert, *width))).collect()
}

pub(super) fn micro_batches(plan: &Plan, base: &Variant, choices: &Choices) -> Vec<u64> {
    // A micro-batch of packed sequences is one pack.
    let packs = plan.recipe().sample_length.is_some();
    let mut values = divisors(if packs { 1 } else { plan.recipe().global_batch_size });
    let ranged = matches!(choices.get(Dimension::MicroBatch), Values::Between(..));
    values.retain(|value| *value <= MAX_MICRO_BATCH || ranged);
    allowed(choices, Dimension::MicroBatch, base.micro_batch_size, values)
}

pub(super) fn pipelines(plan: &Plan, base: &Variant, choices: &Choices) -> Vec<u64> {
    let most = if cuts(plan) { MAX_PIPELINE.min(plan.model().num_layers) } else { 1 };
    let mut values = divisors(plan.layout().world_size);
    values.retain(|value| *value <= most);
    allowed(choices, Dimension::Pipeline, base.pipeline, values)
}

pub(super) fn orders(plan: &Plan, base: &Variant, choices: &Choices) -> Vec<RankOrder> {
    let orders = plan.recipe().software.semantics().offers.orders_ranks;
    if choices.get(Dimension::RankOrder).vary() && orders {
        vec![RankOrder::TpCpEpDpPp, RankOrder::TpCpEpPpDp]
    } else {
        vec![base.rank_order]
    }
}

/// The schedules of the plan's software: Megatron forks with zero bubbles are identified by the schedule in use.
pub(super) fn schedules(plan: &Plan, base: &Variant, choices: &Choices) -> Vec<PipelineSchedule> {
    use PipelineSchedule as P;
    let own = vec![base.schedule];
    if !choices.get(Dimension::Schedule).vary() {
        return own;
    }
    let offers = &plan.recipe().software.semantics().offers;
    match base.schedule {
        P::ZeroBubbleH1
        | P::ZeroBubbleH2
        | P::ZeroBubbleV
        | P::VHalf
        | P::VMin
        | P::OneForwardOneBackwardV
            if offers.has_zero_bubble_fork =>
        {
            vec![
                P::OneForwardOneBackward,
                P::ZeroBubbleH1,
                P::ZeroBubbleH2,
                P::ZeroBubbleV,
                P::VHalf,
                P::VMin,
                P::OneForwardOneBackwardV,
            ]
        }
        P::DualPipe | P::DualPipeV => vec![P::OneForwardOneBackward, P::DualPipe, P::DualPipeV],
        _ if !offers.schedules.is_empty() => offers.schedules.to_vec(),
        _ => own,
    }
}

/// The product format as stated and, if the reader opens it, 16 bits and whatever else the software supports on this
/// device.
pub(super) fn precisions(plan: &Plan, base: &Variant, choices: &Choices) -> Vec<Option<Fp8>> {
    let mut out = vec![base.fp8.clone()];
    if !choices.get(Dimension::Precision).vary() {
        return out;
    }
    if base.fp8.is_some() {
        out.push(None);
    }
    let stated = base.fp8.as_ref().map(|fp8| fp8.recipe);
    let offered = plan.recipe().software.semantics().offers.fp8_recipes.iter().copied();
    for recipe in offered.filter(|recipe| Some(*recipe) != stated) {
        if recipe.runs_on(&plan.cluster().accelerator) {
            out.push(Some(Fp8 { format: recipe.usual_format().to_owned(), recipe, param_gather: false }));
        }
    }
    out
}

/// Groups of replicas that each hold a full set of shards: as stated and, if the reader opens it and the software
/// supports it, as many as leave something to shard. Which of them divide the replicas depends on the stages
/// ([`super::Space::cuts`]).
pub(super) fn instances(plan: &Plan, base: &Variant, choices: &Choices, tensor: u64) -> Vec<u64> {
    let offers = plan.recipe().software.semantics().offers.groups_replicas;
    // For one stage, which has the most replicas; with more stages, fewer of these sizes divide.
    let replicas = plan.layout().world_size / tensor.max(1);
    let mut values = vec![1];
    if offers && plan.recipe().tuning.is_full() {
        values.extend(divisors(replicas).into_iter().filter(|value| *value < replicas));
    }
    allowed(choices, Dimension::Instances, base.instances, values)
}

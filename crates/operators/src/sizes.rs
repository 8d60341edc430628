//! Per-rank sizes of what only some models have: experts, multi-latent attention, linear mixers.

use shardscope_plan::{Experts, Model, NumberFormat, Plan, Recipe, Router};
use shardscope_units::{Count, Quantity};

/// Rows of a mask that SDPA's memory-efficient kernel takes begin at multiples of so many elements: `preprocess_mask` pads others.
pub(crate) const MASK_ALIGNMENT: u64 = 8;

/// Sizes of a mixture-of-experts layer on one rank, with tokens spread evenly over experts unless the plan says
/// otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpertSizes {
    /// All routed experts, E.
    pub experts: u64,
    /// Experts of one token.
    pub topk: u64,
    /// Copies of tokens that this rank sends, T.
    pub sent: u64,
    /// Copies of tokens that this rank's experts receive, R.
    pub received: u64,
    /// Router entries of the all-gather dispatcher: gathered tokens times local experts, M.
    pub map: u64,
    /// Width of one expert on this rank, fm.
    pub ffn: u64,
    /// Width of the shared experts on this rank, fs.
    pub shared: u64,
    /// Width of what experts read and write: hidden, or the latent size if they have a narrower space, hm.
    pub hidden: u64,
    /// Bytes of a routing probability, Bp.
    pub probability: u64,
    /// Ranks that hold an expert of one token, at most.
    pub fan: u64,
}

/// Widths of multi-latent attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatentSizes {
    /// Query latent, ql; 0 without one.
    pub query: u64,
    /// Key/value latent, kl.
    pub key_value: u64,
    /// Unrotated part of a head, dn.
    pub plain: u64,
    /// Rotated part of a head, dr.
    pub rotary: u64,
    /// Value head, dv.
    pub value: u64,
}

/// Widths of a linear mixer on one rank; all 0 without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinearSizes {
    /// Heads of queries and keys, hk.
    pub key_heads: u64,
    /// Heads of values, hv.
    pub value_heads: u64,
    /// Width of a key head, dk.
    pub key_width: u64,
    /// Width of a value head, dl.
    pub value_width: u64,
    /// Tokens of the convolution, lc.
    pub convolution: u64,
    /// Rank of a low-rank projection, lr.
    pub rank: u64,
}

/// How experts and tokens are sharded.
struct Cut {
    tokens: u64,
    tensor: u64,
    expert: u64,
    expert_tensor: u64,
    sequence_parallel: bool,
}

impl ExpertSizes {
    pub(super) fn new(plan: &Plan) -> Self {
        let layout = plan.layout();
        let recipe = plan.recipe();
        let sequences = recipe.micro_batch_size * recipe.tuning.objective.sequences();
        let tokens = plan.model().seq_length / layout.context * sequences;
        let cut = Cut {
            tokens: if layout.sequence_parallel { tokens / layout.tensor } else { tokens },
            tensor: layout.tensor,
            expert: layout.expert,
            expert_tensor: layout.expert_tensor,
            sequence_parallel: layout.sequence_parallel,
        };
        Self::cut(plan, &cut)
    }

    pub(super) fn unsharded(plan: &Plan) -> Self {
        let recipe = plan.recipe();
        let tokens = plan.model().seq_length * recipe.micro_batch_size * recipe.tuning.objective.sequences();
        Self::cut(plan, &Cut { tokens, tensor: 1, expert: 1, expert_tensor: 1, sequence_parallel: false })
    }

    fn cut(plan: &Plan, cut: &Cut) -> Self {
        let (model, recipe) = (plan.model(), plan.recipe());
        let Some(experts) = &model.experts else { return Self::default() };
        let sent = sent(recipe, experts, cut.tokens);
        let gathered = cut.tokens * cut.expert_tensor * cut.expert;
        Self {
            experts: experts.num_experts,
            topk: experts.router_topk,
            sent,
            received: received(recipe, sent, cut),
            map: gathered * (experts.num_experts / cut.expert.max(1)),
            ffn: experts.ffn_hidden_size / cut.expert_tensor.max(1),
            shared: experts.shared_expert_intermediate_size.unwrap_or(0) / cut.tensor.max(1),
            hidden: experts.latent_size.unwrap_or(model.hidden_size),
            probability: probability(plan),
            fan: fan(recipe, experts, cut) * cut.expert_tensor,
        }
    }
}

/// Ranks to which a token is sent at most: one for each of its experts, or those that hold a run of as many.
fn fan(recipe: &Recipe, experts: &Experts, cut: &Cut) -> u64 {
    let most = experts.router_topk.min(cut.expert);
    if !recipe.moe.balanced_gate {
        return most;
    }
    let here = (experts.num_experts / cut.expert.max(1)).max(1);
    let whole = here.is_multiple_of(experts.router_topk.max(1));
    (experts.router_topk.div_ceil(here) + u64::from(!whole)).min(most)
}

/// Bytes of a routing probability: as the router is configured, or as in transformers' modules.
fn probability(plan: &Plan) -> u64 {
    let recipe = plan.recipe();
    if !recipe.software.semantics().eager_modules {
        return recipe.moe.router_dtype.width();
    }
    let width = recipe.params_dtype.width();
    let compute = recipe.transformers.autocast.map_or(width, NumberFormat::width).min(width);
    let arranged = &plan.model().arrangement;
    // A softmax over the chosen experts is cast to the dtype of the router's input, which is the weights'.
    if arranged.chosen_routing && !arranged.clamped_experts {
        return width;
    }
    let wide = match arranged.router {
        Router::Own | Router::Weighing => arranged.fp32_routing,
        // Autocast computes every softmax in fp32.
        Router::Sampled | Router::Typed => recipe.autocasts(),
        // And every sum.
        Router::Sigmoid => arranged.normalized_routing && recipe.autocasts(),
        Router::Fp32Held => width == NumberFormat::Fp32.width(),
        Router::Fp32 | Router::Fp32Grouped | Router::Normed => true,
        // Autocast computes the router's product in 16 bits; weights that are not summed in place are in fp32 anyway.
        Router::Fp32Sigmoid => arranged.fp32_routing || !recipe.autocasts(),
    };
    if wide { NumberFormat::Fp32.width() } else { compute }
}

/// Copies of `tokens` tokens that go to experts: top-k per token, or what the capacity factor allows and pads to
/// (`megatron/core/transformer/moe/moe_utils.py:get_capacity`).
fn sent(recipe: &Recipe, experts: &Experts, tokens: u64) -> u64 {
    let chosen = tokens * experts.router_topk;
    let Some(factor) = recipe.moe.capacity_factor else { return chosen };
    let share = Count::new(chosen).number() / Count::new(experts.num_experts.max(1)).number();
    let capacity = Count::rounded_up(share * factor).get().saturating_mul(experts.num_experts);
    if recipe.moe.pad_to_capacity { capacity } else { capacity.min(chosen) }
}

/// Copies of tokens that the experts of one rank receive, on the busiest rank if the plan states its excess over the
/// even share: at most what all ranks of the group send, and what the capacity lets through. Padded inputs equal the
/// capacity regardless of routing.
fn received(recipe: &Recipe, sent: u64, cut: &Cut) -> u64 {
    let even = sent * if cut.sequence_parallel { cut.expert_tensor } else { 1 };
    let moe = &recipe.moe;
    if moe.hottest_rank <= 1.0 || moe.pad_to_capacity {
        return even;
    }
    let factor = moe.capacity_factor.map_or(moe.hottest_rank, |most| moe.hottest_rank.min(most.max(1.0)));
    let hottest = Count::rounded_up(Count::new(even).number() * factor).get();
    hottest.min(even.saturating_mul(cut.expert.max(1)))
}

impl LatentSizes {
    pub(super) fn new(model: &Model) -> Self {
        let Some(latent) = model.latent else { return Self::default() };
        Self {
            query: latent.q_lora_rank.unwrap_or(0),
            key_value: latent.kv_lora_rank,
            plain: latent.qk_head_dim,
            rotary: latent.qk_pos_emb_head_dim,
            value: latent.v_head_dim,
        }
    }
}

impl LinearSizes {
    pub(super) fn new(model: &Model, tensor: u64) -> Self {
        let Some(linear) = model.mixers.linear else { return Self::default() };
        Self {
            key_heads: (linear.key_heads / tensor.max(1)).max(1),
            value_heads: (linear.value_heads / tensor.max(1)).max(1),
            key_width: linear.key_width,
            value_width: linear.value_width,
            convolution: linear.convolution,
            rank: linear.rank,
        }
    }

    /// Width of all queries, or of all keys, lk.
    #[must_use]
    pub const fn keys(&self) -> u64 {
        self.key_heads * self.key_width
    }

    /// Width of all values, lv.
    #[must_use]
    pub const fn values(&self) -> u64 {
        self.value_heads * self.value_width
    }
}

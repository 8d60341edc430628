//! Weights (`megatron/core/transformer/moe`): router, shared-expert gate and latent projections replicated on every
//! rank; shared experts sharded like a dense MLP; routed experts distributed over the expert-parallel ranks and each
//! sharded by the expert tensor size. The router's balancing bias is a buffer, not a parameter.

use crate::norm;
use crate::{Account, Axis, Created, Shape, Shard, Symbols, Weight, WeightGroup, WeightPart, WeightRole};
use shardscope_plan::{Experts, LinearBias, Router};

pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let Some(experts) = &x.model().experts else { return Vec::new() };
    let bias = x.model().linear_bias == LinearBias::All;
    let mut out = Vec::with_capacity(8);
    let router = Weight::replicated("router.weight", Account::Router, &[experts.num_experts, x.h]);
    // Elsewhere transformers holds a parameter that is no linear layer.
    let router = if x.model().arrangement.router == Router::Normed { router.as_linear() } else { router };
    out.extend((!x.recipe().moe.balanced_gate).then_some(router));
    if bias {
        out.push(Weight::replicated("router.bias", Account::Router, &[experts.num_experts]));
    }
    out.extend(latent_projections(x, experts, bias));
    out.extend(routed(x, experts, bias));
    out.extend(shared(x, experts));
    if x.model().arrangement.router == Router::Normed {
        out.push(Weight::replicated("router.scale", Account::Router, &[x.h]));
        out.push(Weight::replicated("router.per_expert_scale", Account::Router, &[experts.num_experts]));
    }
    if x.model().arrangement.dense_beside_experts {
        out.extend(norm::post(x, ["post_experts_layernorm.weight", "post_experts_layernorm.bias"]));
    }
    out.extend(norm::post(x, ["post_mlp_layernorm.weight", "post_mlp_layernorm.bias"]));
    out
}

fn latent_projections(x: &Symbols<'_>, experts: &Experts, bias: bool) -> Vec<Weight> {
    let Some(latent) = experts.latent_size else { return Vec::new() };
    let mut out = vec![
        Weight::replicated("fc1_latent_proj.weight", Account::Experts, &[latent, x.h]).as_linear(),
        Weight::replicated("fc2_latent_proj.weight", Account::Experts, &[x.h, latent]).as_linear(),
    ];
    if bias {
        out.push(Weight::replicated("fc1_latent_proj.bias", Account::Experts, &[latent]));
        out.push(Weight::replicated("fc2_latent_proj.bias", Account::Experts, &[x.h]));
    }
    out
}

fn routed(x: &Symbols<'_>, experts: &Experts, bias: bool) -> Vec<Weight> {
    let width = experts.latent_size.unwrap_or(x.h);
    let ffn = experts.ffn_hidden_size;
    let rows = x.gate * ffn;
    let mut out = Vec::with_capacity(4);
    out.extend([expert(x, "experts.linear_fc1.weight", &[rows, width], Axis::Output)]);
    if bias {
        out.push(expert(x, "experts.linear_fc1.bias", &[rows], Axis::Output));
    }
    out.push(expert(x, "experts.linear_fc2.weight", &[width, ffn], Axis::Input));
    if bias {
        out.push(expert(x, "experts.linear_fc2.bias", &[width], Axis::Neither));
    }
    out
}

/// Over which ranks gradients of routed experts are reduced: separate ranks only if experts are distributed, or
/// sharded differently from dense layers (`use_expert_pgs` in `megatron/core/extensions/transformer_engine.py`).
pub(crate) fn group(x: &Symbols<'_>) -> WeightGroup {
    let layout = x.plan.layout();
    let own = layout.expert > 1 || layout.expert_tensor != layout.tensor;
    if own { WeightGroup::Expert } else { WeightGroup::Dense }
}

/// The weight `shape` of every routed expert, with experts as the first dimension.
fn expert(x: &Symbols<'_>, name: &'static str, shape: &[u64], axis: Axis) -> Weight {
    let layout = x.plan.layout();
    let all = x.model().experts.as_ref().map_or(0, |experts| experts.num_experts);
    let cut = match axis {
        Axis::Output => Some(0),
        Axis::Input => Some(shape.len().saturating_sub(1)),
        Axis::Neither => None,
    };
    let mut full = Shape::new(&[all]);
    let mut local = Shape::new(&[all / layout.expert.max(1)]);
    for (index, &size) in shape.iter().enumerate() {
        full.push(size);
        local.push(if cut == Some(index) { size / layout.expert_tensor.max(1) } else { size });
    }
    Weight {
        name,
        account: Account::Experts,
        full,
        local,
        shard: Shard::Expert(axis),
        group: group(x),
        linear: shape.len() == 2,
        copy: false,
        role: WeightRole::Trained,
        part: WeightPart::Plain,
        created: Created::Listed,
    }
}

fn shared(x: &Symbols<'_>, experts: &Experts) -> Vec<Weight> {
    let Some(width) = experts.shared_expert_intermediate_size else { return Vec::new() };
    let account = Account::SharedExperts;
    let mut out = Vec::new();
    if experts.shared_expert_gate {
        let gate = Weight::replicated("shared_experts.gate_weight", account, &[1, x.h]);
        out.push(gate.created(Created::Last));
    }
    let first = Weight::column("shared_experts.linear_fc1.weight", account, [x.gate * width, x.h], x.t);
    out.push(first.as_part(WeightPart::GateAndUp));
    out.push(Weight::row("shared_experts.linear_fc2.weight", account, [x.h, width], x.t));
    out
}

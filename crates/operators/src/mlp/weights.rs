//! Weights (`megatron/core/transformer/mlp.py`): the first projection, twice as wide when gated, is column-parallel;
//! the second is row-parallel.

use crate::{Account, Symbols, Weight, WeightPart, norm};
use shardscope_plan::{ActivationSteps, LinearBias};

pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let ffn = x.ffn;
    let rows = x.gate * ffn;
    let bias = x.model().linear_bias == LinearBias::All;
    let mut out = Vec::with_capacity(4);
    out.extend([
        Weight::column("linear_fc1.weight", Account::Mlp, [rows, x.h], x.t).as_part(WeightPart::GateAndUp)
    ]);
    if bias {
        out.push(
            Weight::split_vector("linear_fc1.bias", Account::Mlp, rows, x.t).as_part(WeightPart::GateAndUp),
        );
    }
    out.push(Weight::row("linear_fc2.weight", Account::Mlp, [x.h, ffn], x.t));
    if bias {
        out.push(Weight::replicated("linear_fc2.bias", Account::Mlp, &[x.h]));
    }
    // One weight for each side of xIELU (`transformers/activations.py:XIELUActivation`).
    if x.model().arrangement.activation_steps == ActivationSteps::Xielu {
        out.push(Weight::replicated("act_fn.alpha", Account::Mlp, &[2]));
    }
    out.extend(norm::post(x, ["post_mlp_layernorm.weight", "post_mlp_layernorm.bias"]));
    out
}

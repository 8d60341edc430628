//! Arithmetic of the dense MLP.

use crate::shared::{activation, around_products, layers, residual_addition};
use crate::{Symbols, Work, norm};
use shardscope_plan::RecomputeModule;

const MLP: &[RecomputeModule] = &[RecomputeModule::Mlp];

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let (tokens, full) = (x.full_tokens(), x.model().ffn_hidden_size);
    let first = layers(x, x.gate, x.model().arrangement.fused_gate_up);
    let mut work = vec![
        Work::linears(first, "linear_fc1", [x.n, x.gate * x.f, x.h], [tokens, x.gate * full, x.h]),
        activation(x, "mlp_activation", x.n, x.f),
        Work::linear("linear_fc2", [x.n, x.h, x.f], [tokens, x.h, full]),
    ];
    work.extend(around_products(x, "mlp_input", first, [0, 0]));
    Work::within(&mut work, MLP);
    work.extend(norm::behind(x, "post_mlp_layernorm"));
    work.push(residual_addition(x, "mlp_bda"));
    work
}

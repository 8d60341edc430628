//! Arithmetic of the dense MLP.

use crate::anatomy::shared::{activation, residual_addition};
use crate::anatomy::{Matmul, Symbols, Work};
use crate::plan::RecomputeModule;

const MLP: &[RecomputeModule] = &[RecomputeModule::Mlp];

pub(in crate::anatomy) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let (tokens, full) = (x.full_tokens(), x.model().ffn_hidden_size);
    let fc1 = Matmul::linear("linear_fc1", [x.n, x.gate * x.f, x.h], [tokens, x.gate * full, x.h]);
    let fc2 = Matmul::linear("linear_fc2", [x.n, x.h, x.f], [tokens, x.h, full]);
    vec![
        Work::Matmul(fc1).within(MLP),
        activation(x, "mlp_activation", x.n, x.f).within(MLP),
        Work::Matmul(fc2).within(MLP),
        residual_addition(x, "mlp_bda"),
    ]
}

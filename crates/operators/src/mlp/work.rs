//! Arithmetic of the dense MLP.

use crate::shared::{activation, around_products, kernel, layers, residual_addition};
use crate::{Symbols, Work, as_written, norm, pieces, sampled};
use shardscope_plan::{NamedTensor, RecomputeModule};
use shardscope_units::Bytes;

const MLP: &[RecomputeModule] = &[RecomputeModule::Mlp];

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let (tokens, full) = (x.full_tokens(), x.ffn);
    let first = layers(x, x.gate, x.model().arrangement.fused_gate_up);
    let mut work = vec![
        Work::linears(first, "linear_fc1", [x.n, x.gate * x.f, x.h], [tokens, x.gate * full, x.h]),
        activation(x, "mlp_activation", x.n, x.f),
        Work::linear("linear_fc2", [x.n, x.h, x.f], [tokens, x.h, full]),
    ];
    let kept = [NamedTensor::Gate, NamedTensor::Up].map(|tensor| x.recipe().named.has(tensor));
    work[0].repeat(match kept {
        [false, false] => 1.0,
        [true, true] => 0.0,
        _ => 0.5,
    });
    if x.samples_products() {
        let [first, second] = sampled::of_mlp(x);
        work[0].repeat(first);
        work[2].repeat(second);
    }
    // Its result is part of the layer's output, which no gradient of the layer needs.
    if x.recipe().software.semantics().compiled_step {
        work[2].repeat(0.0);
    }
    if x.model().arrangement.dropout.mlp {
        let moved = Bytes::new(x.n * x.f * (2 * x.projected_width + 1));
        work.push(kernel("mlp_dropout", [moved, moved], [1, 1]));
    }
    work.extend(around_products(x, "mlp_input", first, [0, 0]));
    if x.as_written() {
        work.push(as_written::summed(x, "mlp_input", x.gate));
    }
    Work::within(&mut work, MLP);
    work.extend(norm::behind(x, "post_mlp_layernorm"));
    work.push(residual_addition(x, "mlp_bda"));
    // The layer's end comes behind its experts where there are some beside the MLP, or behind its own embedding.
    let last = !x.model().arrangement.dense_beside_experts && x.layer_input == 0;
    work.extend(pieces::layer_scale(x).filter(|_| last));
    work
}

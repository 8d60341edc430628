//! Tensors kept for backward: the norm's input, which is the residual stream, and its fp32 statistics. Its
//! output is booked by whoever reads it.

use crate::adapters::{Alive, input_needs_gradient};
use crate::{Operator, Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{Normalization, RecomputeModule};

const SOURCE: &str = "megatron/core/transformer/transformer_layer.py";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;

static INPUT: Formula = Formula::new("S·h·Br", "The norm's input, which is the residual stream.", SOURCE);
static MEAN: Formula = Formula::new("4·S", "The mean of each token, in fp32 (LayerNorm only).", SOURCE);
static DEVIATION: Formula = Formula::new("4·S", "The inverse deviation of each token, in fp32.", SOURCE);

pub(crate) fn saved(operator: Operator, x: &Symbols<'_>) -> Vec<Saved> {
    if !input_needs_gradient(operator, x) {
        return Vec::new();
    }
    if operator != Operator::FinalNorm && is_recomputed(x) {
        return vec![Saved::new("norm input", &[x.s_local, x.h], x.residual_width, &INPUT)];
    }
    kept(x)
}

/// Whether the norms of the layers are recomputed (`--recompute-modules layernorm`).
pub(crate) fn is_recomputed(x: &Symbols<'_>) -> bool {
    x.recomputes(RecomputeModule::LayerNorm)
}

/// What becomes of a norm's output whoever reads it.
pub(crate) fn alive(x: &Symbols<'_>) -> Alive {
    if is_recomputed(x) { Alive::Recomputed } else { Alive::No }
}

/// What a norm of the residual stream keeps when it is not recomputed.
pub(crate) fn kept(x: &Symbols<'_>) -> Vec<Saved> {
    let lean = x.recipe().fusions.memory_efficient_norm;
    let mut out = Vec::with_capacity(3);
    if !lean {
        out.push(Saved::new("norm input", &[x.s_local, x.h], x.residual_width, &INPUT));
        if x.model().normalization == Normalization::LayerNorm {
            out.push(Saved::new("norm mean", &[x.s_local], STATISTIC, &MEAN));
        }
    }
    out.push(Saved::new("norm inverse deviation", &[x.s_local], STATISTIC, &DEVIATION));
    out
}

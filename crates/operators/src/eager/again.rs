//! A layer that is recomputed whole and compiled with its checkpoint: its backward pass is one graph, which
//! recomputes each part of the layer just before it is needed (prime-rl's layers, recorded by
//! tests/record/prime_rl_layers.py).

use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const LAYERS: &str = "prime_rl/trainer/model.py:apply_ac, apply_compile; torch/_functorch/partitioners.py";

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static MLP: Formula = Formula::new(
    "6·n·f·Bc",
    "Gate and up of the MLP recomputed, their product, and the gradients of all three.",
    LAYERS,
);
static ATTENTION: Formula = Formula::new(
    "2·n·(a + k)·d·Bc",
    "Queries, keys and values, rotated, and the attention's output.",
    LAYERS,
);
static BEFORE_NORMS: Formula = Formula::new("n·(a + k)·d·Bc", "Queries and keys before their norms.", LAYERS);
static STREAM: Formula = Formula::new(
    "4·n·h·Bc",
    "The residual stream after attention, its norm, the normalised input, and the gradient of the layer's output.",
    LAYERS,
);
static SUMS: Formula =
    Formula::new("4·n·(a + 2)", "Statistics of both norms and log-sum-exp of attention, fp32.", LAYERS);
static HEAD_SUMS: Formula =
    Formula::new("4·n·(a + k)", "Statistics of the norms of queries and keys, fp32.", LAYERS);

/// What backward of one layer holds at its peak, apart from the layer's input and weight gradients; `None` if layers
/// are not compiled this way, or are of a different kind.
#[must_use]
pub fn worked_out_again(x: &Symbols<'_>) -> Option<Transient> {
    let recipe = x.recipe();
    if !(recipe.transformers.compiled_checkpoints && x.recomputes_layers()) {
        return None;
    }
    let heads = (x.a + x.k) * x.d;
    let mut out = vec![
        Saved::new("the MLP and its gradients", &[6, x.n, x.f], x.compute_width, &MLP),
        Saved::new("attention", &[2, x.n, heads], x.compute_width, &ATTENTION),
        Saved::new("the stream and its gradient", &[4, x.n, x.h], x.compute_width, &STREAM),
        Saved::new("statistics", &[x.n, x.a + 2], FLOAT, &SUMS),
    ];
    if x.model().qk_layernorm {
        out.push(Saved::new(
            "queries and keys before their norms",
            &[x.n, heads],
            x.compute_width,
            &BEFORE_NORMS,
        ));
        out.push(Saved::new("statistics of queries and keys", &[x.n, x.a + x.k], FLOAT, &HEAD_SUMS));
    }
    Some(Transient::new("backward of a recomputed layer", Bytes::ZERO, out))
}

//! What linear mixers share: the convolution before, the projections, the scan over chunks.

use crate::shared::{kernel, residual_addition};
use crate::{Account, Matmul, MatmulKind, Symbols, Weight, Work};
use shardscope_plan::LinearMixer;
use shardscope_units::Bytes;

/// Tokens of a chunk within which a scan multiplies as attention does (`fla/ops/gated_delta_rule/chunk.py`: 64).
pub(crate) const CHUNK: u64 = 64;
/// Bytes of an fp32 number.
pub(super) const FLOAT: u64 = 4;

/// The mixer's sizes, unsharded; `None` if the model has no linear mixer, in which case no layer needs it.
pub(super) fn unsharded(x: &Symbols<'_>) -> Option<LinearMixer> {
    x.model().mixers.linear
}

/// A weight `[rows, columns]` that is sharded by rows and not part of a matrix product.
pub(super) fn rows(name: &'static str, [rows, columns]: [u64; 2], t: u64) -> Weight {
    Weight { linear: false, ..Weight::column(name, Account::Attention, [rows, columns], t) }
}

/// A vector that is sharded over the tensor ranks.
pub(super) fn vector(name: &'static str, elements: u64, t: u64) -> Weight {
    Weight::split_vector(name, Account::Attention, elements, t)
}

/// The output projection from `width` elements.
pub(super) fn output(x: &Symbols<'_>, width: u64, bias: bool) -> Vec<Weight> {
    let mut out = vec![Weight::row("out_proj.weight", Account::Attention, [x.h, width], x.t)];
    if bias {
        out.push(Weight::replicated("out_proj.bias", Account::Attention, &[x.h]));
    }
    out
}

/// A linear layer with `columns` columns on this rank and `full` unsharded.
pub(super) fn input(x: &Symbols<'_>, name: &'static str, columns: u64, full: u64) -> Work {
    Work::linear(name, [x.n, columns, x.h], [x.full_tokens(), full, x.h])
}

/// The convolution over `columns` columns with its activation: one read and one write; in backward the input, the
/// gradient and the result (`causal_conv1d/causal_conv1d_interface.py`).
pub(super) fn convolution(x: &Symbols<'_>, columns: u64) -> Work {
    let moved = x.n * columns;
    kernel("causal_conv1d", [x.bytes(2 * moved), x.bytes(3 * moved)], [1, 1])
}

/// The gate and the norm after the scan, over `columns` columns: two reads and a write, and twice that in backward.
pub(super) fn gated_norm(x: &Symbols<'_>, columns: u64) -> Work {
    let moved = x.n * columns;
    kernel("gated_norm", [x.bytes(3 * moved), x.bytes(6 * moved)], [1, 1])
}

/// The scan of one value head over its chunks: the products of a chunk on this rank are `within` multiply-adds per
/// token and head; for the unsharded model, `counted` are those that FLOP counts use. Between chunks the states are
/// written and read.
pub(super) fn scan(x: &Symbols<'_>, within: u64, counted: [u64; 2]) -> Vec<Work> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let sizes = x.linear;
    let [outer, inner] = counted;
    let local_inner = (within / sizes.value_width.max(1)).max(1);
    let product = Work::Matmul(Matmul {
        name: "scan",
        batch: x.b * sizes.value_heads,
        local: [x.s, sizes.value_width, local_inner],
        full_batch: x.b * unsharded.value_heads,
        full: [x.model().seq_length, outer, inner],
        kind: MatmulKind::Values,
        share: 1.0,
        modules: &[],
        trains: false,
        layers: 1,
        fp32_gradient: false,
        masked: false,
        window: None,
        again: false,
        repeated: 1.0,
    });
    let states = x.n.div_ceil(CHUNK) * sizes.value_heads * sizes.key_width * sizes.value_width;
    let moved = x.bytes(2 * states);
    vec![product, kernel("chunk_states", [moved, Bytes::new(2 * moved.get())], [2, 4])]
}

/// Products within a chunk: of keys with keys, of the inverse with keys and values, of queries with keys and with
/// values; and with the state: keys, queries, and the update. FLOPs are counted as in Megatron: the four products of
/// a token with the state (`megatron/training/training.py:num_floating_point_operations`). Then the states.
pub(super) fn delta_rule(x: &Symbols<'_>) -> Vec<Work> {
    let (k, v) = (x.linear.key_width, x.linear.value_width);
    scan(x, CHUNK * (3 * k + 2 * v) + 3 * k * v, [v, 4 * k])
}

/// The output projection and the residual addition after it.
pub(super) fn last(x: &Symbols<'_>) -> Vec<Work> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let tokens = x.full_tokens();
    vec![
        Work::linear("out_proj", [x.n, x.h, x.linear.values()], [tokens, x.h, unsharded.values()]),
        residual_addition(x, "mixer_bda"),
    ]
}

//! The gated delta rule as transformers runs it without flash-linear-attention: PyTorch's own operations, and a loop in
//! Python over chunks (`torch_chunk_gated_delta_rule`, transformers 5.17). Kernels and bytes are those that PyTorch
//! dispatched on a CPU (`tests/record/reference_rule.py`, `tests/suite/reference_rule.rs`): convolution, norms, gates
//! and repeated heads with it, products by themselves among the kernels.

use super::parts::{CHUNK, delta_rule, input, last};
use crate::shared::kernel;
use crate::{Symbols, Work};
use shardscope_plan::LinearMixer;
use shardscope_units::Bytes;

/// What a mixer's passes dispatch besides its linear layers.
struct Dispatched {
    /// Kernels, and kernels for each chunk of a sequence.
    kernels: [u64; 2],
    /// Bytes for each element of the values and of the repeated keys, of the products of a chunk's keys with its
    /// keys, of all keys, and of the states between chunks.
    bytes: [u64; 5],
}

/// Under autocast: forward, backward.
const MIXED: [Dispatched; 2] = [
    Dispatched { kernels: [81, 17], bytes: [212, 214, 12, 18, 1] },
    Dispatched { kernels: [115, 48], bytes: [304, 380, 130, 57, 31] },
];
/// In one type.
const PLAIN: [Dispatched; 2] = [
    Dispatched { kernels: [77, 9], bytes: [204, 165, 18, 18, 0] },
    Dispatched { kernels: [114, 37], bytes: [286, 343, 111, 58, 8] },
];
/// Under autocast of fp32 weights.
const WIDE: [Dispatched; 2] = [
    Dispatched { kernels: [87, 17], bytes: [241, 222, 2, 47, 0] },
    Dispatched { kernels: [120, 48], bytes: [342, 391, 118, 86, 19] },
];
/// Bytes by which backward writes each gradient of a chunk: into zeros as large as the tensor that the chunk is cut
/// from, which are added to those of the other chunks (`select_backward`), fp32.
const SCATTERED: u64 = 16;

pub(super) fn work(x: &Symbols<'_>, unsharded: LinearMixer) -> Vec<Work> {
    let sizes = x.linear;
    // Queries, keys, values and gate; step and decay. Qwen3.5 has a layer for each of gate, step and decay.
    let split = x.model().arrangement.split_mixer_inputs;
    let (wide, full) = (2 * sizes.keys() + sizes.values(), 2 * unsharded.keys() + unsharded.values());
    let mut work = Vec::with_capacity(7);
    if split {
        work.push(input(x, "in_proj_qkv", wide, full));
        work.push(input(x, "in_proj_z", sizes.values(), unsharded.values()));
        work.push(input(x, "in_proj_b", sizes.value_heads, unsharded.value_heads));
        work.push(input(x, "in_proj_a", sizes.value_heads, unsharded.value_heads));
    } else {
        work.push(input(x, "in_proj_qkvz", wide + sizes.values(), full + unsharded.values()));
        work.push(input(x, "in_proj_ba", 2 * sizes.value_heads, 2 * unsharded.value_heads));
    }
    // The rule's products; its states are among the bytes below.
    work.extend(delta_rule(x).into_iter().filter(|work| matches!(work, Work::Matmul(_))));
    work.push(dispatched(x));
    work.extend(last(x));
    work
}

fn dispatched(x: &Symbols<'_>) -> Work {
    let sizes = x.linear;
    let heads = x.n * sizes.value_heads;
    let chunks = x.s.div_ceil(CHUNK);
    let states = x.b * chunks * sizes.value_heads * sizes.key_width * sizes.value_width;
    let elements =
        [heads * sizes.value_width, heads * sizes.key_width, heads * CHUNK, x.n * sizes.keys(), states];
    let of = match (x.recipe().autocasts(), x.casts_weights()) {
        (true, true) => WIDE,
        (true, false) => MIXED,
        (false, _) => PLAIN,
    };
    let moved =
        |of: &Dispatched| -> u64 { of.bytes.iter().zip(elements).map(|(each, all)| each * all).sum() };
    // Values and results, keys, queries and keys after the inverse, and the products of queries with keys.
    let cut = heads * (2 * sizes.value_width + 3 * sizes.key_width + CHUNK);
    let bytes = [moved(&of[0]), moved(&of[1]) + SCATTERED * chunks * cut];
    let launches = of.map(|of| of.kernels[0] + of.kernels[1] * chunks);
    kernel("delta_rule_reference", bytes.map(Bytes::new), launches)
}

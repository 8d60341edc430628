//! Layers of torchtitan that are not compiled: every operation of its model is a kernel of its own, as PyTorch dispatches it
//! (`tests/record/kernels_of_a_titan_layer.py`).

use super::{Kernel, Symbols, Work};
use crate::pieces::FLOAT;
use shardscope_plan::Activation;
use shardscope_units::Bytes;

fn kernel(name: &'static str, bytes: [u64; 2], launches: [u64; 2]) -> Work {
    alone(Kernel::new(name, bytes.map(Bytes::new), launches))
}

/// A kernel that compiled layers do not have in this form.
pub(crate) fn alone(kernel: Kernel) -> Work {
    Work::Kernel(Kernel { alone: true, ..kernel })
}

/// Rotation of `columns` columns as complex numbers in fp32 (`apply_rotary_emb`): a cast, a product with a table that all heads
/// share, and a cast back, for queries and for keys. In backward the table's conjugate is written out first.
pub(crate) fn rotary(x: &Symbols<'_>, columns: u64) -> Work {
    let each = 2 * (x.width + FLOAT) + 2 * FLOAT;
    kernel("rotary", [x.n * columns * each; 2], [6, 8])
}

/// Keys and values repeated for every query head of their group (`repeat_kv`); in backward the sums over them.
pub(crate) fn repeated_groups(x: &Symbols<'_>) -> Option<Work> {
    let moved = 2 * x.n * (x.a + x.k) * x.d * x.width;
    (x.k < x.a).then(|| kernel("repeated_groups", [moved; 2], [2, 2]))
}

/// A gated activation of `elements` outputs: its function and a product, and in backward both of the product's gradients and
/// the function's.
pub(crate) fn gate(x: &Symbols<'_>, name: &'static str, elements: u64) -> Option<Work> {
    let gated = x.model().activation == Activation::Swiglu;
    gated.then(|| kernel(name, [5, 9].map(|passes| passes * x.width * elements), [2, 3]))
}

/// The sum of the gradients that `layers` linear layers have of the input that they share.
pub(crate) fn summed(x: &Symbols<'_>, name: &'static str, layers: u64) -> Work {
    let sums = layers - 1;
    // Of the whole input: torchtitan gathers it before them and scatters the sum (`PrepareModuleInput`).
    kernel(name, [0, 3 * sums * x.n * x.h * x.width], [0, sums])
}

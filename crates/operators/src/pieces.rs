//! Arithmetic of plain PyTorch modules that are not compiled, operation by operation as PyTorch dispatches them
//! (`tests/record/kernels_of_a_layer.py`): rotary embedding, activations, the operations around the residual stream,
//! attention without a fused kernel, and the casts of autocast. The stream is `residual_width` wide, weights `width`,
//! products `compute_width`, and their outputs `projected_width`.

use super::work::{Addressed, Within};
use super::{Kernel, Symbols, Work, norm};
use shardscope_plan::{ActivationSteps, JointParts, LinearBias, RotationTables};
use shardscope_units::Bytes;

/// Bytes of an fp32 number.
pub(super) const FLOAT: u64 = 4;

fn kernel(name: &'static str, bytes: [Bytes; 2], launches: [u64; 2]) -> Work {
    Work::Kernel(Kernel::new(name, bytes, launches))
}

fn addressed(name: &'static str, bytes: [Bytes; 2], launches: [u64; 2], addressed: Addressed) -> Work {
    Work::Kernel(Kernel { addressed, ..Kernel::new(name, bytes, launches) })
}

/// A gate's activation and its product over halves of one tensor, `elements` outputs `p` bytes wide: both read strided
/// rows, and in backward the activation's own gradient and one of the product's.
pub(super) fn halves_of_one(elements: u64, p: u64) -> Addressed {
    Addressed { elements: [2 * elements; 2], bytes: [5 * p * elements, 6 * p * elements] }
}

/// Kernels and bytes per element, or of several.
pub(super) type Moved = (u64, u64);

/// A cast of an element between formats of these widths, if they differ.
pub(super) const fn cast(one: u64, other: u64) -> Moved {
    if one == other { (0, 0) } else { (1, one + other) }
}

/// `rotate_half` of transformers for `columns` columns of queries and keys, one after the other: two products with
/// tables as wide as the weights, a negation, a concatenation, a sum; in backward each half is filled with zeros and
/// copied, and three gradients are added. Under autocast the kernel's operands are cast, and in backward each
/// product's gradient. After their own norms, queries and keys are as wide as the weights, unless these norms keep
/// their input's dtype. Tables may be in fp32 (OLMo 2), or half as wide (gpt-oss): then each half of a head is four
/// products, a difference and a sum, and a concatenation.
pub(super) fn rotary(x: &Symbols<'_>, columns: u64) -> Work {
    let arranged = &x.model().arrangement;
    let w = if arranged.fp32_rotation { FLOAT } else { x.width };
    let widened = x.model().qk_layernorm && !norm::keeps_type(x);
    let p = if widened { x.width } else { x.projected_width };
    if arranged.rotation_tables == RotationTables::Half {
        return halves(x, columns, [p, w]);
    }
    let ((casts, moved), (back_casts, back_moved)) = (cast(w, x.compute_width), cast(w, p));
    let forward = 5 * p + 5 * w + moved;
    let backward = moved + 4 * w + 2 * back_moved + 11 * p;
    let mut launches = [10 + 2 * casts, 18 + 2 * casts + 4 * back_casts];
    let mut bytes = [forward, backward].map(|each| each * x.n * columns);
    // Heads are transposed and tables shared by them: two products, the halves' negation and concatenation, the sum;
    // backward two products, a sum, and the halves negated and copied.
    let each = [4 * p + 4 * w, 8 * p + 3 * w].map(|each| each * x.n * columns);
    let mut index = Addressed { elements: [9 * x.n * columns / 2; 2], bytes: each };
    if x.model().latent.is_none() && (x.rotated < x.d || arranged.passed_rotation) {
        // Part of each head is rotated and concatenated with the rest; in backward both gradients are written into
        // zeros and added.
        let part = bytes.map(|bytes| bytes / x.d * x.rotated);
        let parts = if x.rotated < x.d { [5, 7] } else { [3, 4] };
        launches = [launches[0] + 2, launches[1] + 2 * parts[0]];
        bytes = [part[0] + 2 * p * x.n * columns, part[1] + parts[1] * p * x.n * columns];
        let of_part = |all: [u64; 2]| all.map(|all| all / x.d * x.rotated);
        index = Addressed { elements: of_part(index.elements), bytes: of_part(index.bytes) };
    }
    index.bytes = [index.bytes[0].min(bytes[0]), index.bytes[1].min(bytes[1])];
    // Of queries alone.
    let launches = if x.borrows { launches.map(|each| each / 2) } else { launches };
    addressed("rotary", bytes.map(Bytes::new), launches, index)
}

/// How backward joins the gradients of queries, keys and values (`packed` columns) if one layer computes them and it
/// takes more than one concatenation.
pub(super) fn joint_parts(x: &Symbols<'_>, packed: u64) -> Option<Work> {
    let arranged = &x.model().arrangement;
    let zeros = 3 * packed + 2 * packed + 6 * packed;
    let (launches, columns) = match arranged.joint_parts {
        _ if !arranged.fused_qkv => return None,
        JointParts::Split => return None,
        JointParts::Headwise => (2, 4 * packed),
        // Gradients of queries and keys are laid out head by head and copied; or are multiplied by the factor that
        // scaled their product.
        // Places that were indexed are added to zeros.
        JointParts::Indexed => (8, zeros),
        JointParts::Sliced | JointParts::Selected => (10, zeros + 2 * (x.a + x.k) * x.d),
    };
    let bytes = Bytes::new(x.n * columns * x.compute_width);
    Some(kernel("attention_parts", [Bytes::ZERO, bytes], [0, launches]))
}

/// Queries that were concatenated head by head keep that layout, and a fused kernel's output inherits it, so it is
/// copied for its product.
pub(super) fn output_copy(x: &Symbols<'_>) -> Option<Work> {
    let joined = x.rotated < x.d || x.model().arrangement.passed_rotation;
    let bytes = Bytes::new(2 * x.n * x.a * x.d * x.compute_width);
    joined.then(|| kernel("attention_output", [bytes, Bytes::ZERO], [1, 0]))
}

fn halves(x: &Symbols<'_>, columns: u64, [p, w]: [u64; 2]) -> Work {
    let made = w.max(p);
    let ((casts, moved), (back_casts, back_moved)) = (cast(made, x.compute_width), cast(made, p));
    let forward = 2 * (p + made) + 5 * made + moved;
    let backward = moved + 4 * made + made + 3 * made + 2 * p + 2 * back_moved;
    let launches = [14 + 2 * casts, 16 + 2 * casts + 8 * back_casts];
    let each = [forward, backward].map(|each| each * x.n * columns);
    let index = Addressed { elements: [4 * x.n * columns; 2], bytes: each };
    addressed("rotary", each.map(Bytes::new), launches, index)
}

/// The activation of an MLP with `elements` outputs: its function, and the gate's product with the other half. Each
/// has its own gradient. A custom kernel of the library, if there is one, reads and writes once.
pub(super) fn activation(x: &Symbols<'_>, name: &'static str, elements: u64) -> Work {
    let p = x.projected_width;
    let bias = if x.model().linear_bias == LinearBias::All { (1, x.gate * p) } else { (0, 0) };
    let steps = x.model().arrangement.activation_steps;
    let new = steps == ActivationSteps::NewGelu && x.gate == 1;
    let ([ahead, forward], [back, backward]) = match (new, x.recipe().autocasts()) {
        _ if x.recipe().fusions.bias_activation => plain_activation(x, p),
        _ if x.model().arrangement.gelu_by_hand => ([9, 21 * p], [18, 44 * p]),
        _ if steps == ActivationSteps::Xielu => xielu(x, p),
        // The third power and what follows from it are in fp32 under autocast: casts of the input and of the result,
        // and in backward of the gradient, of both summands and of their sum (`autocast_mode.h:AT_FORALL_FP32`).
        (true, true) => ([10, 12 * FLOAT + 14 * p], [15, 21 * FLOAT + 17 * p]),
        (true, false) => ([8, 18 * p], [11, 28 * p]),
        (false, _) => plain_activation(x, p),
    };
    // Gradients of halves that one layer computed are joined for it.
    let joined = x.gate > 1 && x.model().arrangement.fused_gate_up && !x.recipe().fusions.bias_activation;
    let join = if joined { (1, 2 * (x.gate * p)) } else { (0, 0) };
    let bytes = [forward, backward + bias.1 + join.1].map(|each| Bytes::new(elements * each));
    let index = if joined { halves_of_one(elements, p) } else { Addressed::default() };
    addressed(name, bytes, [ahead, back + bias.0 + join.0], index)
}

/// The same of xIELU (`transformers/activations.py:XIELUActivation._xielu_python`): its signs, the positive side (two
/// products with the input and one with a constant, a sum), the negative side (a minimum, an exponential, a difference, a
/// product, one with the constant, a sum) and the choice between them; three kernels of single elements. Backward gives each
/// its gradient and sums six gradients of the input. Under autocast the weights make what they multiply fp32, as is the
/// exponential; gradients are cast back to the input's type, and the output for its product.
fn xielu(x: &Symbols<'_>, p: u64) -> ([u64; 2], [u64; 2]) {
    if x.recipe().autocasts() {
        ([17, 18 * FLOAT + 14 * p + 2], [36, 34 * FLOAT + 37 * p + 6])
    } else {
        ([15, 28 * p + 2], [29, 57 * p + 6])
    }
}

/// Kernels of a single-kernel activation and of its gate's product, and the bytes that they move per output element
/// of `p` bytes, forward and backward.
pub(super) fn plain_activation(x: &Symbols<'_>, p: u64) -> ([u64; 2], [u64; 2]) {
    match x.gate {
        gate if x.recipe().fusions.bias_activation => ([1, (gate + 1) * p], [1, (1 + 2 * gate) * p]),
        1 => ([1, 2 * p], [1, 3 * p]),
        _ => ([2, 5 * p], [3, 9 * p]),
    }
}

/// Dropout and the residual sum after attention and MLP; in backward the sum of the two gradients, with the branch's
/// cast to its dtype, and the sum over tokens of a bias's gradient.
pub(super) fn residual_addition(x: &Symbols<'_>, name: &'static str) -> Work {
    addition(x, name, x.projected_width, x.model().linear_bias == LinearBias::All)
}

/// The same for a branch of elements `p` bytes wide that comes from no linear layer, or from one that has a bias.
pub(super) fn addition(x: &Symbols<'_>, name: &'static str, p: u64, bias: bool) -> Work {
    let r = x.residual_width;
    let dropped = u64::from(x.model().arrangement.dropout.residual);
    let bias = u64::from(bias);
    let (casts, moved) = cast(r, p);
    let scaled = u64::from(x.model().arrangement.scaled_branches);
    let drop = dropped * (2 * p + 1) + scaled * 2 * p;
    let bytes = [p + 2 * r + drop, 3 * r + moved + drop + bias * p];
    let launches = [1 + dropped + scaled, 1 + casts + dropped + scaled + bias];
    kernel(name, bytes.map(|each| Bytes::new(x.s_local * x.h * each)), launches)
}

/// The sum of the gradients of keys and of values where one projection gives both.
pub(super) fn joint_gradient(x: &Symbols<'_>) -> Option<Work> {
    let bytes = Bytes::new(3 * x.n * x.k * x.d * x.compute_width);
    (x.pair == 1).then(|| kernel("key_value_gradients", [Bytes::ZERO, bytes], [0, 1]))
}

/// The constant of a layer that its output is multiplied by in place, and the gradient's product with it.
pub(super) fn layer_scale(x: &Symbols<'_>) -> Option<Work> {
    let there = x.in_pieces() && x.model().arrangement.scaled_layers;
    let bytes = Bytes::new(2 * x.s_local * x.h * x.residual_width);
    there.then(|| kernel("layer_scale", [bytes; 2], [1, 1]))
}

/// What runs around the products of `layers` layers that read one input: casts of it under autocast, which caches
/// none, and of its gradients; the sums of these; and `copied` columns of gradients made contiguous for their
/// products, or joined if one layer computes all.
pub(super) fn around_products(
    x: &Symbols<'_>,
    name: &'static str,
    layers: u64,
    [copied, joined]: [u64; 2],
) -> Option<Work> {
    // Quantized weights count their own.
    let casts = x.casts_weights() && !x.is_packed();
    let (ahead, moved) = if casts { cast(x.width, x.compute_width) } else { (0, 0) };
    let inputs = layers * x.h * moved;
    let sums = 3 * (layers - 1) * x.h * x.width;
    let copies = 2 * (copied + joined) * x.compute_width;
    let launches =
        [ahead * layers, ahead * layers + layers - 1 + 2 * u64::from(copied > 0) + u64::from(joined > 0)];
    let bytes = [inputs, inputs + sums + copies].map(|each| Bytes::new(x.n * each));
    (launches[1] > 0).then(|| kernel(name, bytes, launches))
}

/// Casts of the biases of a layer's `linears` layers under autocast, each a kernel whose bytes do not count.
pub(super) fn bias_casts(x: &Symbols<'_>, linears: u64) -> u64 {
    if x.model().linear_bias == LinearBias::All { linears } else { 0 }
}

/// Keys and values repeated for every query head before a fused kernel; in backward the sums over them.
pub(super) fn repeated_groups(x: &Symbols<'_>) -> Option<Work> {
    let modules = &x.recipe().software.semantics().modules;
    let repeats = modules.repeats_groups && !(modules.views_one_group && x.k == 1) && x.k < x.a;
    let moved = Bytes::new(2 * x.n * (x.a + x.k) * x.d * x.compute_width);
    repeats.then(|| kernel("repeated_groups", [moved; 2], [2, 2]))
}

/// Softmax over `scores` materialised elements without a fused kernel (`eager_attention_forward`): scaled, a mask of `square`
/// elements added, cast to fp32, normalised, cast back; and dropout.
pub(super) fn softmax(x: &Symbols<'_>, scores: u64, square: u64) -> Vec<Work> {
    let c = x.compute_width;
    let (casts, moved) = cast(c, FLOAT);
    if crate::attention::sinks(x).is_some() {
        return sinks(x, scores, square);
    }
    // In BLOOM the scaling is part of the product (`baddbmm`).
    let scaled = u64::from(x.model().arrangement.joint_parts != JointParts::Selected);
    // A cap is a division, a tanh and a product (Gemma 2).
    let capped = u64::from(x.model().arrangement.attention_softcap);
    let mask = [
        Bytes::new(scores * (2 + 2 * scaled + 6 * capped) * c + square * c),
        Bytes::new(scores * (2 * scaled + 7 * capped) * c),
    ];
    let normalised = [2 * moved + 2 * FLOAT, 2 * moved + 3 * FLOAT].map(|each| Bytes::new(scores * each));
    // All heads share the mask. BLOOM's product adds to a tensor that all queries share, which it copies first.
    let shared = Addressed { elements: [scores, 0], bytes: [(2 * scores + square) * c, 0] };
    let copied = Within { launches: [1 - scaled, 0], bytes: [(1 - scaled) * 2 * scores * c, 0] };
    // A cast to a wider type is not vectorized.
    let wider = Addressed { elements: [casts * scores; 2], bytes: [moved * scores; 2] };
    let softmax = Kernel::new("softmax", normalised, [1 + 2 * casts; 2]);
    let masked = Kernel::new("scale_and_mask", mask, [1 + scaled + 3 * capped, scaled + 3 * capped]);
    let mut work = vec![
        Work::Kernel(Kernel { addressed: shared, within: copied, ..masked }),
        Work::Kernel(Kernel { sums_rows: true, addressed: wider, ..softmax }),
    ];
    if x.model().arrangement.dropout.attention {
        let dropped = Bytes::new(scores * (2 * c + 1));
        work.push(kernel("attention_dropout", [dropped; 2], [1, 1]));
    }
    work
}

/// The same with a sink per head, an additional column of scores (gpt-oss): scaled and masked, concatenated, the
/// maximum subtracted, and a softmax in their own dtype. In backward the sink's gradient is sliced off, and the
/// largest one's written into zeros.
fn sinks(x: &Symbols<'_>, scores: u64, square: u64) -> Vec<Work> {
    let c = x.compute_width;
    let joined = scores + x.b * x.a * x.s;
    let mask = [scores * 4 * c + square * c, scores * 2 * c];
    let normalised = [(scores + 6 * joined) * c, (2 * scores + 13 * joined) * c];
    // The mask is shared by heads, the maximum by a row's columns; rows that are one column longer start at no multiple of
    // 16 bytes, so that concatenating, softmax and slicing address elements one by one too.
    let masked = Addressed { elements: [scores, scores], bytes: [(2 * scores + square) * c, mask[1]] };
    let rows = Addressed {
        elements: [3 * joined, scores + joined],
        bytes: [(scores + 5 * joined) * c, (2 * scores + 3 * joined) * c],
    };
    vec![
        addressed("scale_and_mask", mask.map(Bytes::new), [2, 1], masked),
        Work::Kernel(Kernel {
            sums_rows: true,
            addressed: rows,
            ..Kernel::new("softmax", normalised.map(Bytes::new), [4, 9])
        }),
    ]
}

/// Copies around the two products of that attention: keys and values repeated for every query head, or made
/// contiguous if each has its own, queries and the output made contiguous; in backward the output's gradient, sums
/// over the heads of a group, and the gradient of values.
pub(super) fn layout(x: &Symbols<'_>) -> Work {
    let (wide, narrow) = (x.a * x.d, x.k * x.d);
    let grouped = x.k < x.a;
    let sums = if grouped { 2 * (wide + narrow) } else { 0 };
    let keys = if grouped { sums } else { 4 * wide };
    let arranged = &x.model().arrangement;
    // Concatenated halves are already laid out as the product needs them; the gradient of selected values is written
    // elsewhere.
    let queries = u64::from(arranged.rotation_tables != RotationTables::Half);
    let values = u64::from(arranged.joint_parts != JointParts::Selected);
    let columns = [keys + 2 * wide * (1 + queries), 2 * wide + sums + 2 * narrow * values];
    let bytes = columns.map(|columns| Bytes::new(x.n * columns * x.compute_width));
    let moved = columns.map(|columns| x.n * columns / 2);
    let index = Addressed { elements: moved, bytes: bytes.map(Bytes::get) };
    addressed("attention_layout", bytes, [3 + queries, 1 + values + 2 * u64::from(grouped)], index)
}

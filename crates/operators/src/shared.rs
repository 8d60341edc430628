//! Arithmetic that several operators share: the attention core, rotary embedding, the residual
//! addition, and the two halves of an MLP. Bytes are reads plus writes of whole tensors.

use super::{Kernel, Matmul, MatmulKind, Symbols, Work, as_written, pieces};
use shardscope_plan::{AttentionKernel, LinearBias, RecomputeModule};
use shardscope_units::{Bytes, Count, Quantity};

const CORE: &[RecomputeModule] = &[RecomputeModule::CoreAttention, RecomputeModule::Attention];

/// Widths of one head: of queries and keys, and of values.
#[derive(Clone, Copy)]
pub(super) struct HeadWidths {
    pub(super) query: u64,
    pub(super) value: u64,
}

/// Scores, softmax, dropout and values. With a flash kernel only the two products are left: everything else happens
/// in registers. `packed` is the width of queries, keys and values together on one rank.
pub(super) fn core_attention(x: &Symbols<'_>, widths: HeadWidths, packed: u64) -> Vec<Work> {
    let model = x.model();
    let keys = x.keys;
    let (local, full) = (x.b * x.a, x.b * model.num_attention_heads);
    let seen = Seen::new(x);
    let product = |name, kind, inner, outer| {
        Work::Matmul(Matmul {
            name,
            batch: local,
            local: [x.s, outer, inner],
            full_batch: full,
            full: [x.sequence, outer, inner],
            kind,
            share: seen.share,
            modules: CORE,
            trains: false,
            layers: 1,
            fp32_gradient: false,
            masked: masked(x),
            window: seen.window,
            again: false,
            repeated: 1.0,
        })
    };
    let mut work = vec![product("attention_scores", MatmulKind::Scores, widths.query, seen.keys)];
    let unfused = x.recipe().attention_kernel == AttentionKernel::Unfused;
    if unfused && x.in_pieces() {
        work.extend(pieces::softmax(x, local * x.s * keys, x.b * x.s * keys));
    } else if unfused {
        work.extend(softmax(x, local * x.s * keys));
    }
    work.push(product("attention_values", MatmulKind::Values, seen.keys, widths.value));
    if unfused && x.in_pieces() {
        work.push(pieces::layout(x));
    } else if unfused {
        let context = x.bytes(2 * x.n * x.a * widths.value);
        let pack = x.bytes(2 * x.n * packed);
        work.push(kernel("attention_layout", [context, pack], [1, 2]));
    }
    Work::within(&mut work, CORE);
    work
}

/// Whether plain PyTorch modules hand their fused kernel a mask: causality alone needs none, but a window does
/// (`transformers/masking_utils.py:_ignore_causal_mask_sdpa`), and the kernel then computes every pair.
fn masked(x: &Symbols<'_>) -> bool {
    let asked = x.recipe().transformers.padding_mask || x.window.is_some() || x.masks_images();
    // What is added to scores of relative distances is a mask too.
    let asked = asked || x.model().encoder.is_some();
    x.in_pieces() && asked && x.recipe().attention_kernel == AttentionKernel::Sdpa
}

/// The keys that a query is multiplied with, and the fraction of these products that its mask keeps.
struct Seen {
    keys: u64,
    share: f64,
    /// Tokens of a window that slides, and of the sequence.
    window: Option<[u64; 2]>,
}

impl Seen {
    /// A causal query sees half of the sequence on average. Of a window of w tokens, for kernels that support
    /// windows, it sees everything except what would precede the first token: w s - w²/2 pairs of s w. Of a chunk,
    /// half. A kernel that takes a mask multiplies with every key.
    fn new(x: &Symbols<'_>) -> Self {
        let keys = match x.recipe().attention_kernel {
            // In a pack of samples, only its own (`cu_seqlens`).
            AttentionKernel::Flash | AttentionKernel::Fused => x.plan.attended_length(),
            AttentionKernel::Sdpa | AttentionKernel::Unfused => x.keys,
        };
        // Every token of a source sees all others, and so does each of the target.
        if x.encodes || x.crosses {
            return Self { keys, share: 1.0, window: None };
        }
        let Some(window) = x.window.filter(|window| window.tokens < keys) else {
            return Self { keys, share: 0.5, window: None };
        };
        let [all, tokens] = [keys, window.tokens].map(|tokens| Count::new(tokens).number());
        let share = if window.chunked { 0.5 } else { 1.0 - tokens / (2.0 * all) };
        match x.recipe().attention_kernel {
            AttentionKernel::Flash | AttentionKernel::Fused => {
                let slides = (!window.chunked).then_some([window.tokens, keys]);
                Self { keys: window.tokens, share, window: slides }
            }
            AttentionKernel::Sdpa | AttentionKernel::Unfused => {
                Self { keys, share: share * tokens / all, window: None }
            }
        }
    }
}

/// Softmax and dropout over `scores` materialised elements. The fused causal kernel reads the lower triangle and
/// writes the full square (`scaled_upper_triang_masked_softmax`); unfused, scale, mask, softmax and the casts to and
/// from fp32 are separate kernels.
fn softmax(x: &Symbols<'_>, scores: u64) -> Vec<Work> {
    let recipe = x.recipe();
    let (w, fused) = (x.width, recipe.fusions.masked_softmax);
    let half = w.div_ceil(2);
    let forward =
        if fused { half + w } else { 4 * w + if recipe.fusions.softmax_in_fp32 { 8 + 4 + w } else { 2 * w } };
    let backward =
        if fused { 3 * w } else { 5 * w + if recipe.fusions.softmax_in_fp32 { 8 + 2 * w } else { w } };
    let launches = if fused { [1, 1] } else { [4, 4] };
    let bytes = [forward, backward].map(|each| Bytes::new(scores * each));
    let mut work = vec![row_sums("softmax", bytes, launches)];
    if recipe.attention_dropout {
        // Reads and writes the probabilities, writes (backward: reads) a mask of one byte.
        let moved = Bytes::new(scores * (2 * w + 1));
        work.push(kernel("attention_dropout", [moved, moved], [1, 1]));
    }
    work
}

/// Rotary embedding of `columns` columns: reads and writes each element once; unfused (rotate, two products, a sum),
/// three times.
pub(super) fn rotary(x: &Symbols<'_>, columns: u64) -> Work {
    let fused = x.recipe().fusions.rope;
    if x.in_pieces() && !fused {
        return pieces::rotary(x, columns);
    }
    if x.as_written() {
        return as_written::rotary(x, columns);
    }
    let passes = if fused { 1 } else { 3 };
    kernel("rotary", [x.bytes(2 * passes * x.n * columns); 2], [2 * passes; 2])
}

/// Bias, dropout and residual addition after attention and MLP, and in backward the sum of the two gradient branches.
/// Fused forward: two reads, one write and the mask.
pub(super) fn residual_addition(x: &Symbols<'_>, name: &'static str) -> Work {
    if x.in_pieces() {
        return pieces::residual_addition(x, name);
    }
    let recipe = x.recipe();
    let elements = x.s_local * x.h;
    let (w, r) = (x.width, x.residual_width);
    let (bias, dropout) = (x.model().linear_bias == LinearBias::All, recipe.hidden_dropout);
    let mask = u64::from(dropout);
    let (forward, launches) = if recipe.fusions.bias_dropout_add || !(bias || dropout) {
        (w + 2 * r + mask, 1)
    } else {
        let parts = u64::from(bias) * 2 * w + u64::from(dropout) * (2 * w + 1) + w + 2 * r;
        (parts, 1 + u64::from(bias) + u64::from(dropout))
    };
    let sum_of_branches = 3 * r;
    let backward = sum_of_branches + u64::from(dropout) * (2 * w + 1) + u64::from(bias) * w;
    let back_launches = 1 + u64::from(dropout) + u64::from(bias);
    kernel(name, [Bytes::new(elements * forward), Bytes::new(elements * backward)], [launches, back_launches])
}

/// The activation between the two projections of an MLP: `rows` rows of `width` columns after it, and `g` times as
/// many before it. Backward reads the gradient and the input and writes the input's gradient.
pub(super) fn activation(x: &Symbols<'_>, name: &'static str, rows: u64, columns: u64) -> Work {
    let elements = rows * columns;
    if x.in_pieces() {
        return pieces::activation(x, name, elements);
    }
    if let Some(gate) = x.as_written().then(|| as_written::gate(x, name, elements)).flatten() {
        return gate;
    }
    let (g, w) = (x.gate, x.width);
    let bias = u64::from(x.model().linear_bias == LinearBias::All);
    let fused = x.recipe().fusions.bias_activation;
    // Unfused: bias addition, then (gated) the function and the product on their own.
    let extra = if fused { 0 } else { bias * 2 * g + 2 * (g - 1) };
    let forward = (g + 1 + extra) * w;
    let backward = (1 + 2 * g + extra + bias * g) * w;
    let more = if fused { 0 } else { bias + (g - 1) };
    kernel(
        name,
        [Bytes::new(elements * forward), Bytes::new(elements * backward)],
        [1 + more, 1 + more + bias],
    )
}

/// Number of layers that a fused projection of `parts` parts is run as: plain PyTorch modules have one for each part
/// unless the model fuses them.
pub(super) fn layers(x: &Symbols<'_>, parts: u64, joined: bool) -> u64 {
    if x.in_pieces() && !joined { parts } else { 1 }
}

/// What runs around the products of `layers` plain PyTorch layers that read one input. `copied`: columns of gradients
/// that are made contiguous for their products, and that are joined.
pub(super) fn around_products(
    x: &Symbols<'_>,
    name: &'static str,
    layers: u64,
    copied: [u64; 2],
) -> Option<Work> {
    if x.in_pieces() { pieces::around_products(x, name, layers, copied) } else { None }
}

/// Under autocast plain modules cast each weight before its product, and its gradient after it (`torch.amp.autocast`;
/// one cast serves a forward pass), except for grouped products, which autocast does not handle. Quantized weights
/// are dequantized instead.
pub(super) fn cast_weights(x: &Symbols<'_>, work: &mut Vec<Work>) {
    if !x.in_pieces() || !x.casts_weights() || x.is_packed() {
        return;
    }
    let (mut all, mut trained, mut layers) = (0, 0, 0);
    for one in work.iter() {
        if let Work::Matmul(matmul) = one
            && matmul.kind.has_weight()
            && !(matmul.batch > 1 && x.expert_width() == x.width)
        {
            let weights = matmul.batch * matmul.local[1] * matmul.local[2];
            (all, layers) = (all + weights, layers + matmul.layers);
            trained += if matmul.trains { weights } else { 0 };
        }
    }
    if layers > 0 {
        let bytes = [all, trained].map(|weights| Bytes::new(weights * (x.width + x.compute_width)));
        let launches = layers + pieces::bias_casts(x, layers);
        work.push(row_sums("weight_casts", bytes, [launches, if trained > 0 { launches } else { 0 }]));
    }
}

/// The same, with casts and sums over rows.
pub(super) fn row_sums(name: &'static str, bytes: [Bytes; 2], launches: [u64; 2]) -> Work {
    Work::Kernel(Kernel { sums_rows: true, ..Kernel::new(name, bytes, launches) })
}

/// Gradients of the biases of `layers` layers, `columns` columns in total: one read of the output's gradient.
pub(super) fn bias_gradient(x: &Symbols<'_>, name: &'static str, columns: u64, layers: u64) -> Work {
    let width = if x.in_pieces() { x.projected_width } else { x.width };
    // Casts of biases that other layers have are counted with those of weights.
    let alone =
        x.in_pieces() && x.casts_weights() && !x.is_packed() && x.model().linear_bias == LinearBias::QkvOnly;
    let casts = if alone { layers } else { 0 };
    kernel(name, [Bytes::ZERO, Bytes::new(x.n * columns * width)], [casts, layers + casts])
}

/// Kernels that move `bytes` in `launches` launches, forward and backward.
pub(super) fn kernel(name: &'static str, bytes: [Bytes; 2], launches: [u64; 2]) -> Work {
    Work::Kernel(Kernel::new(name, bytes, launches))
}

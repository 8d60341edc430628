//! What runs around the products of experts in plain PyTorch modules, operation by operation as PyTorch dispatches
//! them (`tests/record/kernels_of_a_layer.py`): the router's choice, tokens sorted by expert and masked
//! (`transformers/integrations/moe.py: grouped_mm_experts_forward`), or weights copied for every token
//! (`batched_mm_experts_forward`), the activation, the weighted sum. Operations on less than a token's columns are
//! counted only as launches. A sort, and the sum of gradients by index, count as one kernel each.

use crate::pieces::{self, FLOAT, Moved, cast};
use crate::work::{Addressed, Kernel, Within};
use crate::{Symbols, Work};
use shardscope_plan::{ExpertKernel, Router};
use shardscope_units::Bytes;

/// Kernels and bytes, forward and backward.
#[derive(Clone, Copy, Default)]
struct Passes {
    launches: [u64; 2],
    bytes: [u64; 2],
    addressed: Addressed,
    within: Within,
}

impl Passes {
    /// Marks `elements` in forward (0) or backward (1) of `each` bytes as addressed one by one.
    fn address(&mut self, pass: usize, elements: u64, each: u64) {
        self.addressed.elements[pass] += elements;
        self.addressed.bytes[pass] += elements * each;
    }

    /// Fills a mask of one column into copies of `elements` both ways: a copy, unless it is `in_place`, and the fill.
    fn mask(&mut self, elements: u64, width: u64, in_place: bool) {
        self.both(elements, (1, 2 * width));
        for pass in [0, 1] {
            self.address(pass, elements, 2 * width);
            if pass == 1 || !in_place {
                self.within.launches[pass] += 1;
                self.within.bytes[pass] += 2 * width * elements;
            }
        }
    }

    /// Launches that move little data.
    fn small(&mut self, launches: [u64; 2]) {
        self.launches[0] += launches[0];
        self.launches[1] += launches[1];
    }

    /// Moves `elements` in forward.
    fn ahead(&mut self, elements: u64, (launches, each): Moved) {
        self.launches[0] += launches;
        self.bytes[0] += elements * each;
    }

    /// Moves `elements` in backward.
    fn back(&mut self, elements: u64, (launches, each): Moved) {
        self.launches[1] += launches;
        self.bytes[1] += elements * each;
    }

    /// The same both ways.
    fn both(&mut self, elements: u64, moved: Moved) {
        self.ahead(elements, moved);
        self.back(elements, moved);
    }

    fn streams(self, name: &'static str) -> Work {
        let Self { bytes, launches, addressed, within } = self;
        Work::Kernel(Kernel { addressed, within, ..Kernel::new(name, bytes.map(Bytes::new), launches) })
    }

    /// The same if operands are cast, read once for many elements, or strided.
    fn casts(self, name: &'static str) -> Work {
        let Self { bytes, launches, addressed, within } = self;
        let kernel = Kernel::new(name, bytes.map(Bytes::new), launches);
        Work::Kernel(Kernel { sums_rows: true, addressed, within, ..kernel })
    }
}

/// Kernels of a sort of a rank's copies besides the one counted (`cub::DeviceRadixSort`, and the casts and copies
/// around it), as a profile of OLMoE's layers shows them.
const SORT: u64 = 20;

/// The same for a sum by index, which sorts the indices first (`indexing_backward_kernel`).
const ADDED_BY_INDEX: u64 = 9;

/// Sizes of the experts of one rank.
struct Sizes {
    /// Elements of the tokens, and of their copies.
    tokens: u64,
    copies: u64,
    /// Elements after the activation.
    inner: u64,
    /// Bytes per element of the tokens, of the experts' output, of routing weights, and of the weighted output.
    given: u64,
    made: u64,
    weighed: u64,
    /// The same for the sum over a token's experts: autocast computes sums in fp32
    /// (`autocast_mode.h:AT_FORALL_FP32_SET_OPT_DTYPE`).
    summed: u64,
}

impl Sizes {
    fn new(x: &Symbols<'_>) -> Self {
        let (given, made) = (x.width, x.expert_width());
        let weighed = made.max(x.moe.probability);
        Self {
            tokens: x.s_local * x.moe.hidden,
            copies: x.moe.sent * x.moe.hidden,
            inner: x.moe.sent * x.moe.ffn,
            given,
            made,
            weighed,
            summed: if x.recipe().autocasts() { FLOAT } else { weighed },
        }
    }
}

/// Everything before the experts' first product: the top-k choice, and sorting tokens by expert.
pub(super) fn in_front(x: &Symbols<'_>) -> Vec<Work> {
    let sizes = Sizes::new(x);
    vec![choice(x), order(x, &sizes)]
}

/// Everything after it: the activation between the products, and the sum after both.
pub(super) fn behind(x: &Symbols<'_>) -> [Work; 2] {
    let sizes = Sizes::new(x);
    [activation(x, &sizes), sum(x, &sizes)]
}

/// Whether experts run this way: not in a loop over them, and not if scores are multiplied into what every expert
/// reads (Llama 4).
pub(super) fn counts(x: &Symbols<'_>) -> bool {
    let looped = x.recipe().transformers.experts == ExpertKernel::Loop;
    x.in_pieces()
        && !looped
        && !crate::eager::dispatches(x)
        && x.model().arrangement.router != Router::Weighing
}

/// The router's probabilities and its choice.
fn choice(x: &Symbols<'_>) -> Work {
    let arranged = &x.model().arrangement;
    let (w, c) = (x.width, x.compute_width);
    let mut passes = Passes::default();
    // Softmax and top-k; in backward zeros, the chosen values written into them, and the softmax.
    passes.small([2, 3]);
    let autocasts = x.recipe().autocasts();
    let product = match arranged.router {
        Router::Own | Router::Sampled | Router::Weighing | Router::Sigmoid | Router::Typed => {
            passes.both(x.s_local * x.h, cast(w, c));
            c
        }
        Router::Normed => {
            passes.both(x.s_local * x.h, cast(w, c));
            // Products with a weight per channel and with a constant; backward has both, and the weight's own gradient
            // with its sum over tokens.
            passes.ahead(x.s_local * x.h, (2, 4 * w));
            passes
                .back(x.s_local * x.h, (if x.trains { 4 } else { 2 }, if x.trains { 8 * w } else { 4 * w }));
            // The chosen weights times one per expert.
            passes.small([2, 4 + cast(w, FLOAT).0]);
            c
        }
        Router::Fp32Held => {
            passes.both(x.s_local * x.h, cast(w, FLOAT));
            FLOAT
        }
        Router::Fp32 | Router::Fp32Grouped | Router::Fp32Sigmoid => {
            let again = if autocasts { c } else { FLOAT };
            // Input and weight to fp32, and under autocast both cast back.
            for of in [cast(w, FLOAT), cast(FLOAT, again)] {
                passes.both(x.s_local * x.h, of);
                passes.both(x.moe.experts * x.h, of);
            }
            // A constant that scales the chosen weights.
            passes.small([1, 1]);
            again
        }
    };
    if arranged.chosen_routing {
        // For a bias, the sum over tokens.
        passes.small([0, u64::from(arranged.clamped_experts)]);
        return passes.casts("router_topk");
    }
    let widened = cast(product, FLOAT).0;
    passes.small([widened, widened]);
    if arranged.normalized_routing {
        // A sum, a copy and a division in place; in backward three divisions, a negation, a product and two sums.
        passes.small([3, 7]);
    }
    let narrowed = cast(FLOAT, x.moe.probability).0;
    passes.small([narrowed, narrowed]);
    passes.casts("router_topk")
}

/// Copies of tokens sorted by expert, or of weights in token order.
fn order(x: &Symbols<'_>, of: &Sizes) -> Work {
    let mut passes = Passes::default();
    passes.ahead(of.tokens, (1, of.given));
    passes.ahead(of.copies, (0, of.given));
    if x.recipe().transformers.experts == ExpertKernel::Batched {
        // Repeated tokens' gradients are summed.
        passes.back(of.tokens, (1, of.given));
        passes.back(of.copies, (0, of.given));
        passes.small([1, 0]);
        // Both weights for every copy: read and written; in backward zeros, to which the copies' gradients are added.
        let each = (x.gate + 1) * x.moe.ffn * x.moe.hidden;
        passes.ahead(x.moe.experts * each, (2, x.width));
        passes.ahead(x.moe.sent * each, (0, x.width));
        if x.trains {
            passes.back(x.moe.experts * each, (4, 3 * x.width));
            passes.back(x.moe.sent * each, (0, x.width));
        }
        return passes.streams("permute");
    }
    // Sorted, ranks and weights gathered, counted and cumulated, compared and clamped; and the inverse permutation.
    passes.small([10, 0]);
    // The inverse permutation, and the copies' gradients added to zeros in order: of the weighted output, of the
    // weights, of tokens.
    passes.ahead(of.copies, (1, 2 * of.weighed));
    passes.back(of.copies, (2, 4 * of.weighed));
    passes.small([0, 2]);
    passes.back(of.tokens, (2, 3 * of.given));
    passes.back(of.copies, (0, of.given));
    // Added by index: read, read and written.
    passes.address(1, of.copies, 3 * of.weighed);
    passes.address(1, of.copies, of.given);
    passes.within.launches[0] += SORT;
    passes.within.launches[1] += 3 * ADDED_BY_INDEX;
    passes.streams("permute")
}

/// The experts' activation and its gate, whose halves are in one tensor; gpt-oss clamps both, in steps
/// (`GptOssExperts._apply_gate`), and adds biases.
fn activation(x: &Symbols<'_>, of: &Sizes) -> Work {
    let w = of.made;
    let mut passes = Passes::default();
    if x.model().arrangement.clamped_experts {
        passes.ahead(of.inner, (7, 16 * w));
        // Products and a sum; clamp masks of one byte each; two halves written into zeros, and their sum.
        passes.back(of.inner, (20, 41 * w + 8));
        for (table, columns) in [(x.gate * x.moe.ffn, x.gate * of.inner), (x.moe.hidden, of.copies)] {
            let table = table * x.moe.experts;
            passes.ahead(columns, (2, 4 * w));
            passes.ahead(table, (0, w));
            if x.trains {
                passes.back(columns, (2, w));
                passes.back(table, (0, 3 * w));
            }
        }
        return passes.casts("experts.activation");
    }
    let ([ahead, forward], [back, backward]) = pieces::plain_activation(x, w);
    passes.ahead(of.inner, (ahead, forward));
    passes.back(of.inner, (back, backward));
    if x.gate > 1 {
        passes.addressed += pieces::halves_of_one(of.inner, w);
    }
    if x.gate > 1 {
        // Both halves' gradients are joined.
        passes.back(of.inner, (1, 2 * (x.gate * w)));
    }
    passes.casts("experts.activation")
}

/// Masks of copies for experts that are not on this rank, the weights' products, and the sum over each token's
/// experts.
fn sum(x: &Symbols<'_>, of: &Sizes) -> Work {
    let mut passes = Passes::default();
    if x.recipe().transformers.experts == ExpertKernel::Grouped {
        passes.mask(of.copies, of.given, true);
        passes.mask(x.gate * of.inner, of.made, false);
        passes.mask(of.copies, of.made, false);
    }
    // Weighted; in backward two products, the sum over columns, and a cast to the experts' output dtype.
    passes.ahead(of.copies, (1, of.made + of.weighed));
    passes.address(0, of.copies, of.made + of.weighed);
    passes.back(of.copies, (3, 5 * of.weighed + of.made));
    passes.address(1, of.copies, 2 * of.weighed);
    passes.back(of.copies, cast(of.weighed, of.made));
    // Outputs weighted by narrower numbers give those numbers a wider gradient.
    passes.small([0, u64::from(x.moe.probability < of.made)]);
    // Summed, and expanded again in backward.
    passes.ahead(of.tokens, (0, of.summed));
    passes.ahead(of.copies, (1, of.weighed));
    passes.back(of.tokens, (0, of.summed));
    passes.back(of.copies, (1, of.weighed));
    passes.address(1, of.copies, of.weighed);
    passes.both(of.tokens, cast(of.summed, of.given));
    passes.casts("unpermute")
}

/// What comes between the shared experts' products and the sum with the routed ones: their gate, a sigmoid of one
/// column.
pub(super) fn shared_sum(x: &Symbols<'_>, switched: bool) -> Work {
    let (tokens, w, p) = (x.s_local * x.h, x.width, x.projected_width);
    let mut passes = Passes::default();
    passes.ahead(tokens, (1, p + 2 * w));
    passes.back(tokens, cast(w, p));
    if switched {
        passes.small([1, 1]);
        passes.ahead(tokens, (1, 2 * p));
        passes.back(tokens, (3, 6 * p));
    }
    passes.streams("shared_experts.sum")
}

/// Casts of what `linears` layers of the shared experts read, and the sums of all gradients with respect to one
/// input.
pub(super) fn inputs(x: &Symbols<'_>, linears: u64) -> Work {
    let (tokens, w) = (x.s_local * x.h, x.width);
    let mut passes = Passes::default();
    for _ in 0..linears {
        passes.both(tokens, cast(w, x.compute_width));
    }
    // In addition, the router and the experts read it.
    passes.back(tokens, (linears + 1, 3 * w * (linears + 1)));
    passes.streams("experts.input")
}

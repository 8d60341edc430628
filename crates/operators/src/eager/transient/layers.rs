//! Backward of attention and MLP: gradients, and what their linear layers hold in addition.

use super::super::capped_scores;
use super::super::flow::is_adapted;
use super::super::manual;
use super::super::norm::copies_layer_input;
use super::super::tape::Step;
use super::super::views::is_too_wide;
use super::shared::{AUTOGRAD, FLOAT, residual, returned};
use crate::adapters::others_columns;
use crate::compiled_by_unsloth::is_compiled;
use crate::{Operator, Parts, Saved, Symbols, Transient, fp32_between_modules};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, LinearModule, NumberFormat, Quantization, Recompute};
use shardscope_units::Bytes;

const FOUR_BIT: &str = "bitsandbytes/autograd/_functions.py:MatMul4Bit";

const LORA: &str = "peft/tuners/lora/layer.py:Linear.forward, backward";

/// Keys that a thread block of PyTorch's memory-efficient attention takes at a time in backward, for heads wider than 128.
const KEYS_OF_A_BLOCK: u64 = 64;

/// Parts of the keys, of all heads together, beyond which it makes no more.
const PARTS_OF_KEYS: u64 = 200;

/// Inputs and matrices are cast to the dtype of the layer's own result, or to fp16.
const CAST_LORA: &str = "unsloth_zoo/compiler.py:COMPILED_LORA_FORWARD, COMPILED_LORA_FORWARD_forced_float32";

const DROPPED_RESULT: &str = "nemo_automodel/components/_peft/lora.py:LinearLoRA.forward, backward";
const DORA: &str = "peft/tuners/lora/dora.py:DoraLinearLayer.get_weight_norm";

const FLASH: &str = "flash-attn backward: queries' gradient summed in fp32, keys' and values' by query head";

pub(super) static INNER: Formula =
    Formula::new("n·f·Bc", "Gradient of the product of both halves.", AUTOGRAD);

static BEFORE: Formula = Formula::new("g·n·f·Bc", "Gradients of both halves.", AUTOGRAD);

static INPUTS: Formula =
    Formula::new("2·n·h·Bc", "Gradients of an input, of one reader and of all so far.", AUTOGRAD);

pub(super) static FIRST: Formula = Formula::new("f·h·B", "One projection's weight gradient.", AUTOGRAD);

pub(super) static SQUARE: Formula =
    Formula::new("A·h·B", "The largest weight gradient of the attention's projections.", AUTOGRAD);

pub(super) static OUTPUT: Formula = Formula::new("n·A·Bc", "Gradient of the attention output.", AUTOGRAD);

static PACKED: Formula = Formula::new("n·(A + 2·K)·Bc", "Gradients of queries, keys and values.", AUTOGRAD);

static SUMMED: Formula = Formula::new("4·n·A", "The gradient of the queries, accumulated in fp32.", FLASH);

static EXPANDED: Formula =
    Formula::new("2·n·A·Bc", "Gradients of keys and values for every query head.", FLASH);

static BLOCKS: Formula = Formula::new(
    "512·d·(a·b + 200)",
    "Gradients of keys and values of a block of 64 keys in fp32, of each head and as many parts of the keys as give 200 at most.",
    "aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernel_backward.h:workspace_elements_gk",
);

static SCORES: Formula = Formula::new("a·s·s·b·Bc", "Gradient of the 16-bit probabilities.", AUTOGRAD);

static SOFTMAX: Formula =
    Formula::new("8·a·s·s·b", "Gradients of the softmax's output and input, fp32.", AUTOGRAD);

/// Each in the adapter's dtype, and in the compute dtype.
static ADAPTER_MLP: [Formula; 2] = [
    Formula::new("n·f·Ba", "Gradient of an adapter's input in its own dtype.", LORA),
    Formula::new("n·f·Bc", "Gradient of an adapter's input in 16 bits.", CAST_LORA),
];

static ADAPTER: [Formula; 2] = [
    Formula::new("n·h·Ba", "Gradient of an adapter's input in its own dtype.", LORA),
    Formula::new("n·h·Bc", "Gradient of an adapter's input in 16 bits.", CAST_LORA),
];

static ADAPTER_OUT: [Formula; 2] = [
    Formula::new("n·A·Ba", "Gradient of an adapter's input in its own dtype.", LORA),
    Formula::new("n·A·Bc", "Gradient of an adapter's input in 16 bits.", CAST_LORA),
];

static RESULT_WIDE: Formula =
    Formula::new("n·h·Ba", "Gradient of an adapter's result in front of its dropout.", DROPPED_RESULT);

static RESULT_MLP: Formula =
    Formula::new("n·f·Ba", "Gradient of an adapter's result in front of its dropout.", DROPPED_RESULT);

static RESULT_HEADS: Formula =
    Formula::new("n·A·Ba", "Gradient of an adapter's result in front of its dropout.", DROPPED_RESULT);

static RESULT_JOINED: Formula = Formula::new(
    "n·(A + 2·K)·Ba",
    "Gradient of an adapter's result in front of its dropout.",
    DROPPED_RESULT,
);

static PRODUCT: Formula =
    Formula::new("n·f·Bc", "The product of both halves, which its caller still holds.", LORA);

static RESULT: Formula =
    Formula::new("n·h·Bc", "The base layer's output, to which the adapter's is added.", LORA);

static DROPPED: Formula =
    Formula::new("2·n·f·Ba", "The adapter's input in its own dtype, and the same after its dropout.", LORA);

static CAST: Formula = Formula::new("n·f·Ba", "The adapter's input in its own dtype.", LORA);

static SCALED: Formula = Formula::new(
    "n·h·Bc",
    "The gradient of the adapter's result, scaled, which asks for what is recomputed.",
    LORA,
);

static NORMED_INPUT: Formula = Formula::new(
    "n·h·Bc",
    "The MLP's input, which the module still holds and frozen layers do not keep.",
    "transformers/models/llama/modeling_llama.py:LlamaMLP.forward",
);

static STREAM: Formula = Formula::new(
    "n·h·B",
    "The residual stream behind attention, of which the norm keeps a copy in fp32.",
    "transformers/models/llama/modeling_llama.py:LlamaDecoderLayer.forward",
);

static OTHERS: Formula = Formula::new(
    "h·(r - r/t)·Ba",
    "lora_B's gradient for the columns of other tensor ranks: DTensor makes it whole.",
    "nemo_automodel/components/distributed/parallel_styles.py:RowwiseParallelLora",
);

static NORMED_MLP: Formula = Formula::new(
    "4·f·h·Ba",
    "The adapter's matrices multiplied, the same scaled, the weight in its type, and their sum, before its norm is taken.",
    DORA,
);

static NORMED: Formula = Formula::new(
    "4·A·h·Ba",
    "The adapter's matrices multiplied, the same scaled, the weight in its type, and their sum, before its norm is taken.",
    DORA,
);

static WHOLE_MLP: Formula = Formula::new("f·h·Bc", "A dequantized weight, for one GEMM.", FOUR_BIT);

static WHOLE: Formula = Formula::new("A·h·Bc", "A dequantized weight, for one GEMM.", FOUR_BIT);

static WHOLE_JOINED: Formula = Formula::new(
    "(A + 2·K)·h·Bc",
    "The dequantized weight of queries, keys and values, for one GEMM.",
    FOUR_BIT,
);

/// What a linear layer of these modules holds in addition to its gradients.
struct Extras {
    weight: &'static Formula,
    adapter: &'static [Formula; 2],
    result: &'static Formula,
    whole: &'static Formula,
    inner: u64,
    outer: u64,
}

impl Extras {
    fn tensors(&self, x: &Symbols<'_>, modules: &[LinearModule]) -> Vec<Saved> {
        let mut out = Vec::with_capacity(3);
        let shape = [self.inner, self.outer];
        if x.trains {
            out.push(Saved::new("weight gradient", &shape, x.width, self.weight).cut(Parts::Gradient));
        }
        if modules.iter().any(|module| is_adapted(x, *module)) {
            let [own, narrow] = self.adapter;
            let (width, formula) =
                if is_compiled(x) { (x.compute_width, narrow) } else { (x.adapter_width, own) };
            out.push(Saved::new("gradient of an adapter's input", &[x.n, self.inner], width, formula));
            let result = Saved::new(
                "gradient of an adapter's result",
                &[x.n, self.outer],
                x.adapter_width,
                self.result,
            );
            out.extend(x.recipe().tuning.lora.filter(|lora| lora.drops_result).map(|_| result));
        }
        if x.recipe().tuning.quantization != Quantization::None {
            out.extend(in_full(x, "dequantized weight", &shape, self.whole));
        }
        out
    }
}

/// The part of the gradient of a row-parallel layer's adapter that is other tensor ranks'.
fn of_others(x: &Symbols<'_>, operator: Operator) -> Option<Saved> {
    let elements = others_columns(x, operator);
    let gradient =
        Saved::new("adapter gradient of other ranks' columns", &[elements], x.adapter_width, &OTHERS);
    (elements > 0).then_some(gradient)
}

/// A quantized weight in full, and in fp16 as well where it is unpacked so.
pub(super) fn in_full(
    x: &Symbols<'_>,
    name: &'static str,
    shape: &[u64],
    formula: &'static Formula,
) -> impl Iterator<Item = Saved> {
    let recipe = x.recipe();
    let twice =
        recipe.software.semantics().modules.unpacks_in_fp16 && recipe.compute_dtype() != NumberFormat::Fp16;
    let one = Saved::new(name, shape, x.compute_width, formula);
    [Some(one), twice.then_some(one)].into_iter().flatten()
}

/// What DoRA holds in forward for one of `modules`, whose weight is `inner` by `outer`. A weight already in the
/// adapter's dtype needs no copy, but is counted as one anyway.
fn dora_norm(
    x: &Symbols<'_>,
    modules: &[LinearModule],
    [inner, outer]: [u64; 2],
    formula: &'static Formula,
) -> Option<Transient> {
    let adapted = modules.iter().any(|module| is_adapted(x, *module));
    let dora = x.recipe().tuning.lora.is_some_and(|lora| lora.dora);
    let copies = Saved::several("weights before DoRA's norm", &[4, inner, outer], x.adapter_width, formula);
    (dora && adapted).then(|| Transient::forward("DoRA's norm in forward", vec![copies]))
}

/// What PEFT holds in forward for `down_proj`, the last linear layer of a decoder layer, whose input it casts to the
/// adapter's dtype and may apply dropout to. If layers are recomputed, this is the end of the recomputation that the
/// gradient of the adapter's result triggered.
fn adapted_in_forward(x: &Symbols<'_>) -> Option<Transient> {
    let lora = x.recipe().tuning.lora.filter(|lora| lora.modules.has(LinearModule::Down))?;
    let casts = x.adapter_width != x.projected_width && !x.is_quantized(LinearModule::Down);
    let again = !matches!(x.recipe().recompute, Recompute::None | Recompute::Selective(_));
    let (wide, stream) = ([x.n, x.f], [x.n, x.h]);
    if !casts || !(lora.dropout || again) {
        return None;
    }
    let mut tensors = vec![
        residual(x),
        Saved::new("the layer's own result", &stream, x.compute_width, &RESULT),
        Saved::new("product of both halves", &wide, x.projected_width, &PRODUCT),
    ];
    let name = "the same in the adapter's type";
    tensors.push(if lora.dropout {
        Saved::several(
            "the same in the adapter's type, after dropout",
            &[2, x.n, x.f],
            x.adapter_width,
            &DROPPED,
        )
    } else {
        Saved::new(name, &wide, x.adapter_width, &CAST)
    });
    if again {
        tensors.push(Saved::new(
            "scaled gradient of the adapter's result",
            &stream,
            x.compute_width,
            &SCALED,
        ));
        tensors.push(Saved::new("the MLP's input", &stream, x.compute_width, &NORMED_INPUT));
        if copies_layer_input(x) {
            tensors.push(Saved::new("the residual stream behind attention", &stream, x.width, &STREAM));
        }
    }
    Some(Transient::forward("down_proj's adapter in forward", tensors))
}

pub(super) fn attention(x: &Symbols<'_>) -> Vec<Transient> {
    use LinearModule::{Key, Output, Query, Value};
    let (wide, width) = (x.a * x.d, x.compute_width);
    let packed = wide + 2 * x.k * x.d;
    let output = Saved::new("gradient of the output", &[x.n, wide], width, &OUTPUT);
    let inputs = Saved::new("gradients of query, key and value", &[x.n, packed], width, &PACKED)
        .cut(Parts::Columns([wide, x.k * x.d, x.k * x.d]));
    let of_output = Extras {
        weight: &SQUARE,
        adapter: &ADAPTER_OUT,
        result: &RESULT_WIDE,
        whole: &WHOLE,
        inner: wide,
        outer: x.h,
    };
    let joined = x.recipe().software.semantics().modules.joins_projections;
    let (whole, outer, result) =
        if joined { (&WHOLE_JOINED, packed, &RESULT_JOINED) } else { (&WHOLE, wide, &RESULT_HEADS) };
    let of_input = Extras { weight: &SQUARE, adapter: &ADAPTER, result, whole, inner: x.h, outer };
    let mut projection = vec![residual(x), output];
    projection.extend(if manual::output(x) {
        manual::projection(x, true)
    } else {
        of_output.tensors(x, &[Output])
    });
    projection.extend(of_others(x, Operator::SelfAttention));
    let mut core = vec![residual(x), output, inputs];
    let mut gone = returned(Operator::SelfAttention, x, &[Step::Last]);
    if capped_scores::is_region(x) {
        core = vec![residual(x), output];
        core.extend(capped_scores::backward(x));
        gone += Bytes::new(capped_scores::returned(x));
    } else if x.recipe().attention_kernel == AttentionKernel::Unfused {
        let scores = [x.b, x.a, x.s, x.s];
        core.push(Saved::new("gradient of the probabilities", &scores, width, &SCORES));
        core.push(
            Saved::new("fp32 gradients of the softmax", &[2 * x.b, x.a, x.s, x.s], FLOAT, &SOFTMAX)
                .cut(Parts::Equal(2)),
        );
    } else {
        core.push(Saved::new("fp32 query gradient", &[x.n, wide], FLOAT, &SUMMED));
        if is_too_wide(x, x.recipe().attention_kernel) {
            // Keys and values of a block, 64 of each (`attention_backward.cu`, `kernels/cutlassB.h`: the kernels for any width).
            let shape = [2 * KEYS_OF_A_BLOCK, x.d, x.a * x.b + PARTS_OF_KEYS];
            core.push(Saved::new("fp32 gradients of a block of keys and values", &shape, FLOAT, &BLOCKS));
        }
        if x.k < x.a {
            core.push(Saved::several("expanded gradients", &[2, x.n, wide], width, &EXPANDED));
        }
    }
    let mut first = vec![residual(x), inputs];
    if manual::queries(x) {
        first.extend(manual::projection(x, false));
    } else {
        first.push(Saved::several("gradients of the input", &[2, x.n, x.h], width, &INPUTS));
        first.extend(of_input.tensors(x, &[Query, Key, Value]));
    }
    let mut out: Vec<Transient> =
        dora_norm(x, &[Output, Query, Key, Value], [wide, x.h], &NORMED).into_iter().collect();
    out.extend([
        Transient::new("backward of o_proj", Bytes::ZERO, projection),
        if fp32_between_modules::is_fp32_between_modules(x) {
            fp32_between_modules::core(x, residual(x), gone)
        } else {
            Transient::new("backward of the attention", gone, core)
        },
        Transient::new(
            "backward of q_proj, k_proj and v_proj",
            returned(Operator::SelfAttention, x, &[Step::Last, Step::Core]),
            first,
        ),
    ]);
    out
}

pub(super) fn mlp(x: &Symbols<'_>) -> Vec<Transient> {
    use LinearModule::{Down, Gate, Up};
    if manual::mlp(x) {
        return manual::mlp_backward(x, residual(x));
    }
    let width = x.projected_width;
    let inner = Saved::new("gradient of the product", &[x.n, x.f], width, &INNER);
    // Liger's backward of the gated activation overwrites both halves with them (`liger_kernel/ops/swiglu.py:
    // _swiglu_backward_kernel`).
    let fresh = if x.recipe().transformers.liger_gates { 0 } else { x.gate };
    let before =
        Saved::new("gradients of both halves", &[x.n, fresh * x.f], width, &BEFORE).cut(Parts::Equal(fresh));
    let of_down = Extras {
        weight: &FIRST,
        adapter: &ADAPTER_MLP,
        result: &RESULT_WIDE,
        whole: &WHOLE_MLP,
        inner: x.f,
        outer: x.h,
    };
    let of_first = Extras {
        weight: &FIRST,
        adapter: &ADAPTER,
        result: &RESULT_MLP,
        whole: &WHOLE_MLP,
        inner: x.h,
        outer: x.f,
    };
    let mut second = vec![residual(x), inner];
    second.extend(of_down.tensors(x, &[Down]));
    second.extend(of_others(x, Operator::Mlp));
    let mut first =
        vec![residual(x), before, Saved::several("gradients of the input", &[2, x.n, x.h], width, &INPUTS)];
    first.extend(of_first.tensors(x, &[Gate, Up]));
    let mut out: Vec<Transient> =
        dora_norm(x, &[Down, Gate, Up], [x.f, x.h], &NORMED_MLP).into_iter().collect();
    out.extend(adapted_in_forward(x));
    out.extend([
        Transient::new("backward of down_proj", Bytes::ZERO, second),
        Transient::new(
            "backward of the activation",
            returned(Operator::Mlp, x, &[Step::Last]),
            vec![residual(x), inner, before],
        ),
        Transient::new(
            "backward of gate_proj and up_proj",
            returned(Operator::Mlp, x, &[Step::Last, Step::Core]),
            first,
        ),
    ]);
    out
}

//! What backward holds in the output projection, the attention itself, and the QKV projection.

use crate::adapters::{LINEAR_PROJ, LINEAR_QKV};
use crate::transient::{gathered, gathered_again, has_weight_gradient, masked, residual, scattered, tensors};
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, OffloadModule};
use shardscope_units::Bytes;

const ATTENTION: &str = "megatron/core/transformer/attention.py, backward";
const FLASH: &str = "flash-attn backward: queries' gradient summed in fp32";
const UNFUSED: &str =
    "TransformerEngine, attention/dot_product_attention/backends.py:UnfusedDotProductAttention";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static OUTPUT: Formula = Formula::new("n·A·B", "Gradient of the attention output.", ATTENTION);
static PROJECTION: Formula = Formula::new("A·h·B", "The output projection's weight gradient.", ATTENTION);
static PACKED: Formula = Formula::new("n·(A + 2·K)·B", "Gradients of queries, keys and values.", ATTENTION);
static SUMMED: Formula = Formula::new("4·n·A", "The gradient of the queries, accumulated in fp32.", FLASH);
static UNNORMED: Formula = Formula::new("a·s·s·b·B", "The attention scores, before the softmax.", UNFUSED);
static MASK: Formula = Formula::new("s·s", "The attention mask, one byte per query and key.", UNFUSED);
static BY_HEAD: Formula = Formula::new("n·A·B", "The attention's output.", UNFUSED);
static SCORES: Formula = Formula::new("a·s·s·b·B", "Gradient of the attention probabilities.", ATTENTION);
static BEFORE: Formula =
    Formula::new("a·s·s·b·B", "Gradient of the probabilities before dropout.", ATTENTION);
static INPUT: Formula = Formula::new("n·h·B", "Gradient of the QKV projection's input.", ATTENTION);
static QKV: Formula = Formula::new("(A + 2·K)·h·B", "The QKV projection's weight gradient.", ATTENTION);

pub(crate) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    let width = x.a * x.d;
    let packed = width + 2 * x.k * x.d;
    let weight = has_weight_gradient(x);
    let output = Saved::new("gradient of the output", &[x.n, width], x.width, &OUTPUT);
    let inputs = Saved::new("gradients of query, key and value", &[x.n, packed], x.width, &PACKED);

    let mut projection = tensors([residual(x)]);
    projection.extend(masked(x));
    // A row-parallel layer's output gradient arrives as this rank's shard of the sequence, and its GEMMs need all of
    // it.
    projection.extend(gathered(x, "gathered gradient"));
    projection.push(output);
    let gradient = Saved::new("linear_proj weight gradient", &[width, x.h], x.width, &PROJECTION);
    projection.extend(weight.then_some(gradient));
    projection.extend(LINEAR_PROJ.gradient(x, Some(width)));

    let mut core = tensors([residual(x), output, inputs]);
    core.extend(kernel(x, width));

    let mut qkv = tensors([residual(x), inputs]);
    // Forward saved only this rank's shard of the input: so the weight gradient gathers it again.
    qkv.extend(gathered_again(x));
    qkv.push(Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT));
    qkv.extend(scattered(x));
    let gradient = Saved::new("linear_qkv weight gradient", &[packed, x.h], x.width, &QKV);
    qkv.extend(weight.then_some(gradient));
    qkv.extend(LINEAR_QKV.gradient(x, None));
    vec![
        Transient::new("backward of linear_proj", Bytes::ZERO, projection),
        Transient::new("backward of the attention", Bytes::ZERO, core)
            .with(&[OffloadModule::AttentionProjection]),
        Transient::new("backward of linear_qkv", after_core(x), qkv)
            .with(&[OffloadModule::AttentionProjection, OffloadModule::CoreAttention]),
    ]
}

/// What forward holds at the end of an attention that consists of several kernels: the scores, which a variable still
/// references, the mask, and the output before and after its heads are concatenated
/// (`backends.py:UnfusedDotProductAttention._forward`).
pub(crate) fn forward_points(x: &Symbols<'_>) -> Vec<Transient> {
    if x.recipe().attention_kernel != AttentionKernel::Unfused {
        return Vec::new();
    }
    let heads = [x.n, x.a, if x.model().latent.is_some() { x.latent.value } else { x.d }];
    let tensors = vec![
        Saved::new("attention scores", &[x.b, x.a, x.s, x.s], x.width, &UNNORMED),
        Saved::new("mask of the scores", &[x.s, x.s], 1, &MASK),
        Saved::new("attention output, head by head", &heads, x.width, &BY_HEAD),
        Saved::new("attention output", &heads, x.width, &BY_HEAD),
    ];
    let modules = &[OffloadModule::AttentionNorm, OffloadModule::CoreAttention];
    vec![Transient::new("forward of the attention", Bytes::ZERO, tensors).with(modules)]
}

/// What the kernel itself needs for its gradients.
fn kernel(x: &Symbols<'_>, width: u64) -> Vec<Saved> {
    if x.recipe().attention_kernel != AttentionKernel::Unfused {
        // Blocks of keys add to a query's gradient in no fixed order: flash-attn accumulates it in fp32 and casts it
        // at the end.
        return vec![Saved::new("fp32 query gradient", &[x.n, width], FLOAT, &SUMMED)];
    }
    let shape = [x.b, x.a, x.s, x.s];
    let mut out = vec![Saved::new("gradient of the probabilities", &shape, x.width, &SCORES)];
    if x.recipe().attention_dropout {
        out.push(Saved::new("gradient before dropout", &shape, x.width, &BEFORE));
    }
    out
}

/// Bytes freed when the attention itself is done: everything except the QKV projection's input.
fn after_core(x: &Symbols<'_>) -> Bytes {
    super::saved(x).into_iter().filter(|saved| !saved.first_input).map(|saved| saved.bytes).sum()
}

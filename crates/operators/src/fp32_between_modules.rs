//! What a Gemma 3 layer with adapters saves if unsloth trains it on a device without bf16: weights and products are
//! in fp16, the stream, which would overflow fp16, and attention in fp32. Modules are compiled individually, not the
//! layer as a whole. Recorded runs are matched to the byte (`tests/data/activations/unsloth_fp32.jsonl`).

use super::{Operator, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::LinearModule;
use shardscope_units::Bytes;

const NORM: &str = "unsloth_zoo/temporary_patches/gemma.py:_gemma3_rms_norm_float32";
const ATTENTION: &str = "unsloth_zoo/temporary_patches/gemma.py:patch_Gemma3Attention, prepare";
const MLP: &str = "unsloth_zoo/temporary_patches/gemma.py:patch_Gemma3MLP";
const SDPA: &str = "unsloth_zoo/temporary_patches/gemma.py:patch_Gemma3Attention, gqa_sdpa";
const LORA: &str = "unsloth_zoo/compiler.py:COMPILED_LORA_FORWARD_forced_float32";
const AUTOGRAD: &str = "torch autograd: a node's gradients are alive while it runs";
/// Bytes of an element in fp32.
const FLOAT: u64 = 4;

static STREAM: Formula = Formula::new("n·h·Br", "The residual stream, fp32, input of a norm.", NORM);
static DEVIATION: Formula =
    Formula::new("4·n", "The reciprocal standard deviation of each token, fp32.", NORM);
static BRANCH: Formula = Formula::new("n·h·B", "A projection's output, input of the norm behind it.", NORM);
static NORMED: Formula = Formula::new("n·h·B", "The norm's output, for the adapters' gradients.", LORA);
static QUERIES: Formula = Formula::new("n·A·B", "The queries before their norm.", ATTENTION);
static KEYS: Formula = Formula::new("n·K·B", "The keys before their norm.", ATTENTION);
static QUERY_DEVIATIONS: Formula =
    Formula::new("4·n·a", "The reciprocal standard deviation of each query head, fp32.", ATTENTION);
static KEY_DEVIATIONS: Formula =
    Formula::new("4·n·k", "The reciprocal standard deviation of each key head, fp32.", ATTENTION);
static WIDE: Formula = Formula::new("4·n·A", "Queries, or the attention's output, fp32.", SDPA);
static GROUPS: Formula = Formula::new("4·n·K", "Keys, or values, of each group, fp32.", SDPA);
static LSE: Formula = Formula::new("4·n·a", "Log-sum-exp per head and token, fp32.", SDPA);
static NARROWED: Formula =
    Formula::new("n·A·B", "The attention's output in fp16, for the adapter's gradient.", LORA);
static INNER: Formula = Formula::new("n·f·B", "Gate, up projection, or their product.", MLP);
static RANKS: Formula = Formula::new("n·r·B", "The output of lora_A, input of lora_B.", LORA);
static CASTS_HEADS: Formula = Formula::new("r·(h + A)·B", "The adapter's matrices, cast to fp16.", LORA);
static CASTS_GROUPS: Formula = Formula::new("r·(h + K)·B", "The adapter's matrices, cast to fp16.", LORA);
static CASTS_INNER: Formula = Formula::new("r·(h + f)·B", "The adapter's matrices, cast to fp16.", LORA);
static OUTPUT: Formula = Formula::new("4·n·A", "Gradient of the attention's output, fp32.", AUTOGRAD);
static PACKED: Formula =
    Formula::new("4·n·(A + 2·K)", "Gradients of queries, keys and values, fp32.", AUTOGRAD);
static EXPANDED: Formula =
    Formula::new("8·n·A", "Gradients of keys and values for every query head, fp32.", AUTOGRAD);

/// Whether layers run with their stream and attention in fp32 and their matrix products in fp16.
#[must_use]
pub fn is_fp32_between_modules(x: &Symbols<'_>) -> bool {
    let recipe = x.recipe();
    recipe.fusions.compiled_layers
        && recipe.fp32_residual
        && recipe.software.semantics().modules.fuses_adapters
}

fn has(x: &Symbols<'_>, module: LinearModule) -> bool {
    x.recipe().tuning.lora.is_some_and(|lora| lora.modules.has(module))
}

/// What the adapters of `modules` save; they map between the residual stream and a width of `other`.
fn adapters(x: &Symbols<'_>, modules: &[LinearModule], other: u64, casts: &'static Formula) -> Vec<Saved> {
    let adapted = modules.iter().filter(|module| has(x, **module));
    adapted
        .flat_map(|_| {
            [
                Saved::new("LoRA B input", &[x.n, x.lora_rank], x.width, &RANKS),
                Saved::new("LoRA in 16 bits", &[x.lora_rank, x.h + other], x.width, casts),
            ]
        })
        .collect()
}

/// What `operator` saves in such a layer; `None` if the layer is different.
pub(super) fn saved(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Saved>> {
    use LinearModule::{Down, Gate, Key, Output, Query, Up, Value};
    let (wide, width) = ([x.n, x.h], x.width);
    let (heads, groups) = ([x.n, x.a, x.d], [x.n, x.k, x.d]);
    let deviation = |name| Saved::new(name, &[x.n], FLOAT, &DEVIATION);
    let behind = [Saved::new("post-norm input", &wide, width, &BRANCH), deviation("post-norm statistics")];
    Some(match operator {
        Operator::InputNorm | Operator::PreMlpNorm | Operator::FinalNorm => vec![
            Saved::new("norm input", &wide, x.residual_width, &STREAM),
            deviation("norm inverse deviation"),
        ],
        Operator::SelfAttention | Operator::WindowedAttention => {
            let reads = [Query, Key, Value].iter().any(|module| has(x, *module));
            let input = reads.then(|| Saved::new("linear_qkv input", &wide, width, &NORMED));
            let mut saved: Vec<Saved> = input.into_iter().collect();
            saved.extend([
                Saved::new("projected query", &heads, width, &QUERIES),
                Saved::new("projected key", &groups, width, &KEYS),
                Saved::new("query norm statistics", &[x.n, x.a], FLOAT, &QUERY_DEVIATIONS),
                Saved::new("key norm statistics", &[x.n, x.k], FLOAT, &KEY_DEVIATIONS),
                Saved::new("query", &heads, FLOAT, &WIDE),
                Saved::new("key", &groups, FLOAT, &GROUPS),
                Saved::new("value", &groups, FLOAT, &GROUPS),
                Saved::new("attention output", &heads, FLOAT, &WIDE),
                Saved::new("log-sum-exp", &[x.b, x.a, x.s], FLOAT, &LSE),
            ]);
            saved.extend(has(x, Output).then(|| Saved::new("linear_proj input", &heads, width, &NARROWED)));
            saved.extend(behind);
            saved.extend(adapters(x, &[Query, Output], x.a * x.d, &CASTS_HEADS));
            saved.extend(adapters(x, &[Key, Value], x.k * x.d, &CASTS_GROUPS));
            saved
        }
        Operator::Mlp => {
            let inner = [x.n, x.f];
            let mut saved: Vec<Saved> = Vec::with_capacity(12);
            if has(x, Gate) || has(x, Up) {
                saved.push(Saved::new("linear_fc1 input", &wide, width, &NORMED));
            }
            saved.extend(["gate", "linear half"].map(|name| Saved::new(name, &inner, width, &INNER)));
            if has(x, Down) {
                saved.push(Saved::new("linear_fc2 input", &inner, width, &INNER));
            }
            saved.extend(behind);
            saved.extend(adapters(x, &[Gate, Up, Down], x.f, &CASTS_INNER));
            saved
        }
        _ => return None,
    })
}

/// What backward of attention holds in addition to what is saved: everything in fp32, with PyTorch's memory-efficient
/// kernel, which accumulates in place.
pub(super) fn core(x: &Symbols<'_>, residual: Saved, gone: Bytes) -> Transient {
    let wide = x.a * x.d;
    let mut tensors = vec![
        residual,
        Saved::new("gradient of the output", &[x.n, wide], FLOAT, &OUTPUT),
        Saved::new("gradients of query, key and value", &[x.n, wide + 2 * x.k * x.d], FLOAT, &PACKED),
    ];
    if x.k < x.a {
        tensors.push(Saved::new("expanded gradients", &[2, x.n, wide], FLOAT, &EXPANDED));
    }
    Transient::new("backward of the attention", gone, tensors)
}

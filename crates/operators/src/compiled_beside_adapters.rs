//! What a layer keeps beside adapters that `torch.compile` has compiled as a whole, as unsloth does with layers that it has no functions
//! of its own for: what its partitioner chose. Recorded runs are met to the byte (`tests/data/activations/unsloth_compiled.jsonl`).

use super::{Operator, Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, LinearModule, NormPlaces};

const BLOCK: &str = "unsloth/models/_block_compile.py:patch_block_compile";
const CUT: &str = "torch/_functorch/partitioners.py:min_cut_rematerialization_partition";
const LORA: &str = "unsloth_zoo/compiler.py:lora_forward";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;

static INPUT: Formula = Formula::new("n·h·B", "The layer's input; its norm is recomputed from it.", CUT);
static DEVIATION: Formula =
    Formula::new("4·n", "The reciprocal standard deviation of each token, fp32.", CUT);
static NORMED: Formula = Formula::new("n·h·Bc", "The norm's output, for the adapters' gradients.", CUT);
static ADDED: Formula = Formula::new(
    "n·h·Bc",
    "A projection's output, from which the residual stream and its norm are recomputed.",
    CUT,
);
static QUERIES: Formula = Formula::new("n·A·Bc", "Queries, or keys or values repeated for every head.", CUT);
static GROUPS: Formula = Formula::new("n·K·Bc", "Keys, or values, of each group.", CUT);
static BEFORE_QUERY: Formula = Formula::new("n·A·Bc", "The queries before their norm.", CUT);
static BEFORE_KEY: Formula = Formula::new("n·K·Bc", "The keys before their norm.", CUT);
static QUERY_DEVIATIONS: Formula =
    Formula::new("4·n·a", "The reciprocal standard deviation of each query head, fp32.", CUT);
static KEY_DEVIATIONS: Formula =
    Formula::new("4·n·k", "The reciprocal standard deviation of each key head, fp32.", CUT);
static OUTPUT: Formula = Formula::new("n·A·Bc", "The attention's output.", CUT);
static LSE: Formula = Formula::new("4·n·a", "Log-sum-exp per head and token, fp32.", CUT);
static MASK: Formula = Formula::new("b·s·s·Bc", "The attention mask, which unsloth always passes.", BLOCK);
static INNER: Formula = Formula::new("n·f·Bc", "Gate, up projection, or their product.", CUT);
static RANKS: Formula = Formula::new("n·r·Bc", "The output of lora_A, input of lora_B.", LORA);
static CASTS_HEADS: Formula = Formula::new("r·(h + A)·Bc", "The adapter's matrices, cast to 16 bits.", LORA);
static CASTS_GROUPS: Formula = Formula::new("r·(h + K)·Bc", "The adapter's matrices, cast to 16 bits.", LORA);
static CASTS_INNER: Formula = Formula::new("r·(h + f)·Bc", "The adapter's matrices, cast to 16 bits.", LORA);

/// What the adapters of `modules` keep, which stand between the residual stream and what is `other` wide.
fn adapters(x: &Symbols<'_>, modules: &[LinearModule], other: u64, casts: &'static Formula) -> Vec<Saved> {
    let (rank, width) = (x.lora_rank, x.compute_width);
    let mut out = Vec::with_capacity(2 * modules.len());
    for _ in modules.iter().filter(|module| has(x, **module)) {
        out.push(Saved::new("LoRA B input", &[x.n, rank], width, &RANKS));
        if x.adapter_width != width {
            out.push(Saved::new("LoRA in 16 bits", &[rank, x.h + other], width, casts));
        }
    }
    out
}

fn has(x: &Symbols<'_>, module: LinearModule) -> bool {
    x.recipe().tuning.lora.is_some_and(|lora| lora.modules.has(module))
}

/// What `operator` keeps in such a layer; none where it is another.
pub(super) fn saved(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Saved>> {
    use LinearModule::{Down, Gate, Key, Output, Query, Up, Value};
    let (wide, inner, width) = ([x.n, x.h], [x.n, x.f], x.compute_width);
    let (heads, groups) = ([x.n, x.a, x.d], [x.n, x.k, x.d]);
    let both = x.model().arrangement.norm_places == NormPlaces::Around;
    let deviation = |name| Saved::new(name, &[x.n], STATISTIC, &DEVIATION);
    let added = Saved::new("linear_proj output", &wide, width, &ADDED);
    Some(match operator {
        Operator::InputNorm => {
            vec![Saved::new("layer input", &wide, x.width, &INPUT), deviation("norm inverse deviation")]
        }
        Operator::PreMlpNorm if both => vec![deviation("norm inverse deviation")],
        Operator::PreMlpNorm => vec![added, deviation("norm inverse deviation")],
        Operator::SelfAttention | Operator::WindowedAttention => {
            let masked = x.recipe().attention_kernel == AttentionKernel::Sdpa;
            let (shape, formula) = if masked && x.k < x.a { (heads, &QUERIES) } else { (groups, &GROUPS) };
            let reads = [Query, Key, Value].iter().any(|module| has(x, *module));
            let mut kept: Vec<Saved> =
                reads.then(|| Saved::new("linear_qkv input", &wide, width, &NORMED)).into_iter().collect();
            kept.extend([
                Saved::new("query", &heads, width, &QUERIES),
                Saved::new("key", &shape, width, formula),
                Saved::new("value", &shape, width, formula),
                Saved::new("attention output", &heads, width, &OUTPUT),
                Saved::new("log-sum-exp", &[x.b, x.a, x.s], STATISTIC, &LSE),
            ]);
            if masked {
                kept.push(Saved::new("mask", &[x.b, x.s, x.s], width, &MASK));
            }
            if x.model().qk_layernorm {
                kept.extend([
                    Saved::new("projected query", &heads, width, &BEFORE_QUERY),
                    Saved::new("projected key", &groups, width, &BEFORE_KEY),
                    Saved::new("query norm statistics", &[x.n, x.a], STATISTIC, &QUERY_DEVIATIONS),
                    Saved::new("key norm statistics", &[x.n, x.k], STATISTIC, &KEY_DEVIATIONS),
                ]);
            }
            if both {
                kept.extend([added, deviation("post-norm statistics")]);
            }
            kept.extend(adapters(x, &[Query, Output], x.a * x.d, &CASTS_HEADS));
            kept.extend(adapters(x, &[Key, Value], x.k * x.d, &CASTS_GROUPS));
            kept
        }
        Operator::Mlp => {
            let mut kept: Vec<Saved> = Vec::with_capacity(8);
            if has(x, Gate) || has(x, Up) {
                kept.push(Saved::new("linear_fc1 input", &wide, width, &NORMED));
            }
            kept.extend(["gate", "linear half"].map(|name| Saved::new(name, &inner, width, &INNER)));
            if has(x, Down) {
                kept.push(Saved::new("linear_fc2 input", &inner, width, &INNER));
            }
            if both {
                kept.push(Saved::new("post-norm input", &wide, width, &ADDED));
                kept.push(deviation("post-norm statistics"));
            }
            kept.extend(adapters(x, &[Gate, Up, Down], x.f, &CASTS_INNER));
            kept
        }
        _ => return None,
    })
}

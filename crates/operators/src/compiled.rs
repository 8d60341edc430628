//! What a Llama-like layer compiled as a whole by `torch.compile` saves: the choice of its partitioner.

use super::fp32_between_modules::{self, is_fp32_between_modules};
use super::{Operator, Saved, Symbols, Transient, compiled_by_unsloth};
use shardscope_explain::Formula;
use shardscope_plan::{
    AttentionKernel, HostIssue, LinearBias, LossKind, NormPlaces, Normalization, PositionEmbedding,
    RecomputeModule,
};
use shardscope_units::Bytes;

const SOURCE: &str = "torch/_functorch/partitioners.py:min_cut_rematerialization_partition";
const LOSS: &str = "olmo_core/nn/lm_head.py:LMHead.forward, which torch compiles with its loss";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static STREAM: Formula = Formula::new("n·h·Br", "The layer's input.", SOURCE);
static ADDED: Formula = Formula::new(
    "n·h·B",
    "The output projection's output, which makes the MLP's part of the stream again.",
    SOURCE,
);
static DEVIATION: Formula =
    Formula::new("4·n", "The reciprocal standard deviation of each token, fp32.", SOURCE);
static NORMED: Formula = Formula::new("n·h·B", "The norm's output, which the GEMMs read.", SOURCE);
static HEADS: Formula = Formula::new("n·A·B", "Queries, or keys or values repeated for every head.", SOURCE);
static GROUPS: Formula = Formula::new("n·K·B", "The keys.", SOURCE);
static JOINED: Formula =
    Formula::new("n·(A + 2·K)·B", "The fused projection's output, of which the values are a view.", SOURCE);
static PROJECTED: Formula = Formula::new(
    "n·(A + 2·K)·B",
    "The fused projection's output, of which the values are a view, or queries and keys before their norms.",
    SOURCE,
);
static RNG: Formula = Formula::new("16", "The random number generator's state, two int64.", SOURCE);
static MOMENTS: Formula =
    Formula::new("8·n", "Mean and reciprocal standard deviation of each token, fp32.", SOURCE);
static BOTH: Formula = Formula::new("2·n·f·B", "Gate and up in one storage.", SOURCE);
static KEYS: Formula = Formula::new("n·K·B", "Keys, or values, of each group.", SOURCE);
static PROJECTED_QUERY: Formula =
    Formula::new("n·A·B", "The queries before their norm, which is recomputed.", SOURCE);
static PROJECTED_KEY: Formula =
    Formula::new("n·K·B", "The keys before their norm, which is recomputed.", SOURCE);
static QUERY_DEVIATIONS: Formula =
    Formula::new("4·n·a", "The reciprocal standard deviation of each query head, fp32.", SOURCE);
static KEY_DEVIATIONS: Formula =
    Formula::new("4·n·k", "The reciprocal standard deviation of each key head, fp32.", SOURCE);
static LOGITS: Formula = Formula::new("n·V·B", "The logits as the output layer made them.", LOSS);
static EXTREMES: Formula = Formula::new("8·n", "Each token's max logit and log-sum-exp, fp32.", LOSS);
static SQUARED: Formula = Formula::new(
    "5·n",
    "Each token's log-sum-exp in fp32, which z-loss squares, and whether it has a label.",
    LOSS,
);
static LABELS: Formula = Formula::new("8·n", "The labels, int64.", LOSS);
static COUNT: Formula = Formula::new("8", "Tokens that have a label, one int64.", LOSS);
static OUTPUT: Formula = Formula::new("n·A·B", "The attention's output.", SOURCE);
static LSE: Formula = Formula::new("4·n·a", "Log-sum-exp per head and token, fp32.", SOURCE);
static INNER: Formula = Formula::new("n·f·B", "Gate, linear half, or the second projection's input.", SOURCE);

/// What an individually compiled layer of OLMo saves, in the parts before and after the attention kernel. The
/// recorded ones have `LayerNorm`s without weights before, or RMS norms after with norms over all heads; other layers
/// stop the verdict by name.
fn broken(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Saved>> {
    let wide = [x.n, x.h];
    let (heads, groups) = ([x.n, x.a, x.d], [x.n, x.k, x.d]);
    let behind = x.model().arrangement.norm_places == NormPlaces::Behind;
    let projected = Saved::new("linear_proj output", &wide, x.width, &ADDED);
    let deviation = |name| Saved::new(name, &[x.n], STATISTIC, &DEVIATION);
    let moments = Saved::new("norm statistics", &[2, x.n], STATISTIC, &MOMENTS);
    Some(match operator {
        Operator::InputNorm if behind => Vec::new(),
        Operator::InputNorm => vec![Saved::new("layer input", &wide, x.width, &NORMED), moments],
        Operator::PreMlpNorm if behind => Vec::new(),
        Operator::PreMlpNorm => vec![projected, moments],
        Operator::SelfAttention => {
            let mut saved = vec![
                Saved::new("linear_qkv input", &wide, x.width, &NORMED),
                Saved::new("query", &heads, x.width, &HEADS),
                Saved::new("key", &groups, x.width, &GROUPS),
                Saved::new("value", &[x.n, x.a + 2 * x.k, x.d], x.width, &JOINED),
                Saved::new("attention output", &heads, x.width, &OUTPUT),
                Saved::new("log-sum-exp", &[x.b, x.a, x.s], STATISTIC, &LSE),
                Saved::new("random state", &[2], 2 * STATISTIC, &RNG),
            ];
            if x.model().qk_layernorm {
                saved.extend(["query norm statistics", "key norm statistics"].map(deviation));
            }
            if behind {
                saved.extend([projected, deviation("post-norm statistics")]);
            }
            saved
        }
        Operator::Mlp => {
            let mut saved = vec![
                Saved::new("linear_fc1 input", &wide, x.width, &NORMED),
                Saved::new("gate and up", &[x.n, 2 * x.f], x.width, &BOTH),
                Saved::new("linear_fc2 input", &[x.n, x.f], x.width, &INNER),
            ];
            if behind {
                saved.push(Saved::new("post-norm input", &wide, x.width, &NORMED));
                saved.push(deviation("post-norm statistics"));
            }
            saved
        }
        _ => return None,
    })
}

/// What a layer of OLMo-core or litgpt saves when compiled as one graph: the attention kernel is an operator registered
/// with torch's library. Norms, both halves of rotations and residual sums are recomputed. Of a fused projection (litgpt)
/// the output is kept whole where values, or queries and keys before their norms, are views of it.
fn whole(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Saved>> {
    let (wide, inner) = ([x.n, x.h], [x.n, x.f]);
    let (heads, groups) = ([x.n, x.a, x.d], [x.n, x.k, x.d]);
    let model = x.model();
    let behind = model.arrangement.norm_places == NormPlaces::Behind;
    let deviation = |name| Saved::new(name, &[x.n], STATISTIC, &DEVIATION);
    let projected = Saved::new("linear_proj output", &wide, x.width, &ADDED);
    Some(match operator {
        Operator::InputNorm | Operator::PreMlpNorm if behind => Vec::new(),
        Operator::InputNorm => {
            vec![Saved::new("layer input", &wide, x.width, &NORMED), deviation("norm inverse deviation")]
        }
        Operator::PreMlpNorm => vec![projected, deviation("norm inverse deviation")],
        Operator::SelfAttention | Operator::WindowedAttention => {
            let repeated = x.recipe().attention_kernel == AttentionKernel::Sdpa && x.k < x.a;
            let (shape, formula) = if repeated { (heads, &HEADS) } else { (groups, &KEYS) };
            let joined = x.recipe().software.semantics().modules.joins_projections;
            let views = joined && !repeated;
            let mut saved = vec![
                Saved::new("linear_qkv input", &wide, x.width, &NORMED),
                Saved::new("query", &heads, x.width, &HEADS),
                Saved::new("key", &shape, x.width, formula),
            ];
            if !views {
                saved.push(Saved::new("value", &shape, x.width, formula));
            }
            if views || joined && model.qk_layernorm {
                let all = [x.n, x.a + 2 * x.k, x.d];
                saved.push(Saved::new("projected query, key and value", &all, x.width, &PROJECTED));
            }
            saved.extend([
                Saved::new("attention output", &heads, x.width, &OUTPUT),
                Saved::new("log-sum-exp", &[x.b, x.a, x.s], STATISTIC, &LSE),
            ]);
            if x.recipe().attention_kernel == AttentionKernel::Flash {
                saved.push(Saved::new("random state", &[2], 2 * STATISTIC, &RNG));
            }
            if model.qk_layernorm {
                if !joined {
                    saved.push(Saved::new("projected query", &heads, x.width, &PROJECTED_QUERY));
                    saved.push(Saved::new("projected key", &groups, x.width, &PROJECTED_KEY));
                }
                saved.extend(if model.arrangement.norms_over_heads {
                    ["query norm statistics", "key norm statistics"].map(deviation)
                } else {
                    [
                        Saved::new("query norm statistics", &[x.n, x.a], STATISTIC, &QUERY_DEVIATIONS),
                        Saved::new("key norm statistics", &[x.n, x.k], STATISTIC, &KEY_DEVIATIONS),
                    ]
                });
            }
            if behind {
                saved.extend([projected, deviation("post-norm statistics")]);
            }
            saved
        }
        Operator::Mlp => {
            let mut saved = vec![Saved::new("linear_fc1 input", &wide, x.width, &NORMED)];
            if !x.recomputes(RecomputeModule::Mlp) {
                saved.extend([
                    Saved::new("gate", &inner, x.width, &INNER),
                    Saved::new("linear half", &inner, x.width, &INNER),
                    Saved::new("linear_fc2 input", &inner, x.width, &INNER),
                ]);
            }
            if behind {
                saved.push(Saved::new("post-norm input", &wide, x.width, &NORMED));
                saved.push(deviation("post-norm statistics"));
            }
            saved
        }
        Operator::FinalNorm => {
            vec![Saved::new("norm input", &wide, x.width, &NORMED), deviation("norm statistics")]
        }
        Operator::OutputLayer if x.recipe().loss == LossKind::Compiled => {
            let squared = Saved::new("squared log-sum-exp", &[x.n], STATISTIC + 1, &SQUARED);
            let kept = [
                Saved::new("lm_head input", &wide, x.width, &NORMED),
                Saved::new("kept logits", &[x.n, x.v], x.width, &LOGITS),
                Saved::new("max logits and sums", &[x.n], 2 * STATISTIC, &EXTREMES),
                Saved::new("labels", &[x.n], INDEX, &LABELS),
                Saved::new("tokens with a label", &[1], INDEX, &COUNT),
            ];
            kept.into_iter().chain(x.recipe().transformers.z_loss.then_some(squared)).collect()
        }
        _ => return None,
    })
}

/// Whether layers are like those that were recorded: dense, unsharded, with RMS norms, rotary positions and gated
/// MLPs.
fn is_recorded(x: &Symbols<'_>) -> bool {
    let (model, recipe) = (x.model(), x.recipe());
    recipe.fusions.compiled_layers
        && recipe.software.semantics().issue == HostIssue::Compiled
        && (x.t, x.context) == (1, 1)
        && recipe.fp8.is_none()
        && recipe.tuning.is_full()
        && !(recipe.hidden_dropout
            || recipe.attention_dropout
            || model.qk_layernorm
            || model.mixers.output_gate)
        && model.linear_bias == LinearBias::None
        && model.normalization == Normalization::RmsNorm
        && model.position_embedding == PositionEmbedding::Rope
        && model.activation.is_gated()
}

/// What `operator` saves in such a layer; `None` if the layer is different, or if the operator saves what it always
/// does.
pub(super) fn saved(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Saved>> {
    let recipe = x.recipe();
    if is_fp32_between_modules(x) {
        return fp32_between_modules::saved(operator, x);
    }
    if compiled_by_unsloth::is_compiled(x) {
        return compiled_by_unsloth::saved(operator, x);
    }
    if recipe.fusions.compiled_layers && recipe.software.semantics().modules.breaks_at_attention {
        return broken(operator, x);
    }
    if recipe.fusions.compiled_layers && recipe.software.semantics().modules.compiles_whole {
        return whole(operator, x);
    }
    if !is_recorded(x) {
        return None;
    }
    let (wide, heads, inner) = ([x.n, x.h], [x.n, x.a * x.d], [x.n, x.f]);
    let deviation = Saved::new("norm inverse deviation", &[x.n], STATISTIC, &DEVIATION);
    Some(match operator {
        Operator::InputNorm => vec![Saved::new("layer input", &wide, x.residual_width, &STREAM), deviation],
        Operator::PreMlpNorm => vec![Saved::new("linear_proj output", &wide, x.width, &ADDED), deviation],
        Operator::SelfAttention => vec![
            Saved::new("linear_qkv input", &wide, x.width, &NORMED),
            Saved::new("query", &heads, x.width, &HEADS),
            Saved::new("repeated key", &heads, x.width, &HEADS),
            Saved::new("repeated value", &heads, x.width, &HEADS),
            Saved::new("attention output", &heads, x.width, &OUTPUT),
            Saved::new("log-sum-exp", &[x.b, x.a, x.s], STATISTIC, &LSE),
        ],
        Operator::Mlp => vec![
            Saved::new("linear_fc1 input", &wide, x.width, &NORMED),
            Saved::new("gate", &inner, x.width, &INNER),
            Saved::new("linear half", &inner, x.width, &INNER),
            Saved::new("linear_fc2 input", &inner, x.width, &INNER),
        ],
        _ => return None,
    })
}

/// Points of backward, none of which frees more than is saved: the first products' input is read last.
pub(super) fn bounded(operator: Operator, x: &Symbols<'_>, mut points: Vec<Transient>) -> Vec<Transient> {
    if let Some(kept) = saved(operator, x) {
        let first = kept.first().map_or(Bytes::ZERO, |saved| saved.bytes);
        let most = kept.iter().map(|saved| saved.bytes).sum::<Bytes>().less(first);
        for point in &mut points {
            point.returned = point.returned.min(most);
        }
    }
    if let Some(gradients) = compiled_by_unsloth::earlier_gradients(operator, x) {
        for point in points.iter_mut().filter(|point| !point.in_forward) {
            point.tensors.push(gradients);
        }
    }
    points
}

//! What a layer compiled as a whole by `torch.compile` saves, as unsloth does for layers without its own functions,
//! with adapters or if all its weights train: the choice of the partitioner. Recorded runs are matched to the byte
//! (`tests/data/activations/unsloth_compiled.jsonl`).

use super::{Operator, Parts, Saved, Symbols, is_fp32_between_modules};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, BaseTraining, LinearKind, LinearModule, NormPlaces, Objective};

const MASKS: &str = "unsloth_zoo/temporary_patches/misc.py:_maskless_causal_arguments";
const JOINED: &str =
    "unsloth/trainer.py: padding_free where it is not stated; transformers/masking_utils.py:sdpa_mask";
const CUT: &str = "torch/_functorch/partitioners.py:min_cut_rematerialization_partition";
/// PyTorch's own convolution, without the package `causal_conv1d`, which unsloth's notebooks do not install.
const SHORT: &str = "transformers/models/lfm2/modeling_lfm2.py:Lfm2ShortConv.forward, causal_conv1d_fn";
const REGION: &str = "torch/_functorch/_aot_autograd/runtime_wrappers.py: CompiledFunctionBackward returns all gradients at once";
const LORA: &str = "unsloth_zoo/compiler.py:lora_forward";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;

static INPUT: Formula = Formula::new("n·h·B", "The layer's input; its norm is recomputed from it.", CUT);
static DEVIATION: Formula =
    Formula::new("4·n", "The reciprocal standard deviation of each token, fp32.", CUT);
static NORMED: Formula =
    Formula::new("n·h·Bc", "The norm's output, for the gradients of what reads it.", CUT);
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
static MASK: Formula = Formula::new("b·s·s·Bc", "The attention mask.", MASKS);
static JOINED_MASK: Formula =
    Formula::new("n·n·Bc", "The attention mask of samples that are joined to one row.", JOINED);
static INNER: Formula = Formula::new("n·f·Bc", "Gate, up projection, or their product.", CUT);
static RANKS: Formula = Formula::new("n·r·Bc", "The output of lora_A, input of lora_B.", LORA);
static CASTS_HEADS: Formula = Formula::new("r·(h + A)·Bc", "The adapter's matrices, cast to 16 bits.", LORA);
static CASTS_GROUPS: Formula = Formula::new("r·(h + K)·Bc", "The adapter's matrices, cast to 16 bits.", LORA);
static MIXED: Formula = Formula::new("n·lv·Bc", "The convolution's input, behind the first gate.", CUT);
static PROJECTED: Formula =
    Formula::new("n·(2·lk + lv)·Bc", "Both gates of a short convolution and what they act on.", CUT);
static CONVOLVED: Formula = Formula::new(
    "b·(s + lc - 1)·lv·Bc",
    "The convolution's output with its padding, which is cut off afterwards.",
    SHORT,
);
static SECOND: Formula =
    Formula::new("n·lv·Bc", "The second gate's output, for the gradient of what reads it.", CUT);
static CASTS_IN: Formula =
    Formula::new("r·(h + 2·lk + lv)·Bc", "The adapter's matrices, cast to 16 bits.", LORA);
static CASTS_OUT: Formula = Formula::new("r·(h + lv)·Bc", "The adapter's matrices, cast to 16 bits.", LORA);
static ATTENTION_WEIGHTS: Formula = Formula::new(
    "2·h·(A + K)·Bc",
    "Weights of the four projections, cast to 16 bits, for their inputs' gradients.",
    CUT,
);
static MIXER_WEIGHTS: Formula = Formula::new(
    "(2·h·(lk + lv) + lc·lv)·Bc",
    "Weights of both projections and of the convolution, cast to 16 bits, for their inputs' gradients.",
    CUT,
);
static MLP_WEIGHTS: Formula = Formula::new(
    "3·h·f·Bc",
    "Weights of the three projections, cast to 16 bits, for their inputs' gradients.",
    CUT,
);
static OF_MLP: Formula = Formula::new("3·h·f·B", "Gradients of the MLP's weights.", REGION);
static OF_LAYER: Formula =
    Formula::new("h·(2·(A + K) + 3·f)·B", "Gradients of the weights of a layer's projections.", REGION);
static OF_MIXER_LAYER: Formula = Formula::new(
    "h·(2·(lk + lv) + 3·f)·B",
    "Gradients of the weights of a layer's projections, of one with a convolution.",
    REGION,
);
static CASTS_INNER: Formula = Formula::new("r·(h + f)·Bc", "The adapter's matrices, cast to 16 bits.", LORA);

/// What the adapters of `modules` save; they map between the residual stream and a width of `other`.
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

/// Whether unsloth compiles layers as a whole, those whose stream and attention are in fp32 module by module.
pub(super) fn is_compiled(x: &Symbols<'_>) -> bool {
    let recipe = x.recipe();
    recipe.fusions.compiled_layers && recipe.software.semantics().modules.fuses_adapters
}

/// Whether the samples of a micro-batch are concatenated into one row without padding, as unsloth's trainer does with
/// text by default: unless the micro-batches are cheap and many (`unsloth/utils/padding_choice.py`), where it pads
/// them, which takes less.
#[must_use]
pub fn joins_samples(x: &Symbols<'_>) -> bool {
    // Of the models with a tower only Gemma 3, if there are no images (`unsloth/trainer.py:_processor_text_only`).
    let text =
        x.model().vision.is_none_or(|tower| tower.image_patches == Some(0) && is_fp32_between_modules(x));
    is_compiled(x) && x.b > 1 && text && x.recipe().tuning.objective == Objective::NextToken
}

/// Weight gradients that a layer's backward has computed before it reaches `operator`, if all its weights train: it
/// is one autograd function, which returns all of them at its end.
pub(super) fn earlier_gradients(operator: Operator, x: &Symbols<'_>) -> Option<Saved> {
    // The gradients of a first micro-batch remain as those of the step, which are counted anyway.
    let accumulates = x.recipe().num_micro_batches > 1;
    if !(accumulates && is_compiled(x) && x.recipe().tuning.base == BaseTraining::All) {
        return None;
    }
    let of_mlp = 3 * x.h * x.f;
    let of_attention = 2 * x.h * (x.a + x.k) * x.d;
    let of_mixer = x.h * 2 * (x.linear.keys() + x.linear.values());
    let (elements, formula) = match operator {
        Operator::SelfAttention | Operator::WindowedAttention | Operator::Linear(_) => (of_mlp, &OF_MLP),
        Operator::InputNorm if of_mixer > of_attention => (of_mlp + of_mixer, &OF_MIXER_LAYER),
        Operator::InputNorm => (of_mlp + of_attention, &OF_LAYER),
        _ => return None,
    };
    Some(
        Saved::new("gradients of the layer's weights so far", &[elements], x.width, formula)
            .cut(Parts::Gradient),
    )
}

fn has(x: &Symbols<'_>, module: LinearModule) -> bool {
    x.recipe().tuning.lora.is_some_and(|lora| lora.modules.has(module))
}

/// Whether the input of `module` is saved: for an adapter's gradient, or for its weight's.
fn reads(x: &Symbols<'_>, module: LinearModule) -> bool {
    x.recipe().tuning.base == BaseTraining::All || has(x, module)
}

/// 16-bit casts of `elements` trained fp32 weights: autocast casts them within the region.
fn cast_weights(x: &Symbols<'_>, elements: u64, formula: &'static Formula) -> Option<Saved> {
    let cast = x.recipe().tuning.base == BaseTraining::All && x.compute_width < x.width;
    cast.then(|| Saved::new("weights in 16 bits", &[elements], x.compute_width, formula))
}

/// A short convolution between two gates.
fn short_convolution(x: &Symbols<'_>) -> Vec<Saved> {
    let (width, values, columns) =
        (x.compute_width, x.linear.values(), 2 * x.linear.keys() + x.linear.values());
    let adapted = reads(x, LinearModule::Mixer);
    let padded = x.s + x.linear.convolution.saturating_sub(1);
    let mut saved: Vec<Saved> = Vec::with_capacity(9);
    if adapted {
        saved.push(Saved::new("in_proj input", &[x.n, x.h], width, &NORMED));
    }
    saved.extend([
        Saved::new("projected input", &[x.n, columns], width, &PROJECTED),
        Saved::new("convolution input", &[x.n, values], width, &MIXED),
        Saved::new("convolution output", &[x.b, padded, values], width, &CONVOLVED),
    ]);
    if adapted {
        saved.push(Saved::new("out_proj input", &[x.n, values], width, &SECOND));
    }
    let mixer = [LinearModule::Mixer];
    saved.extend(adapters(x, &mixer, columns, &CASTS_IN));
    saved.extend(adapters(x, &mixer, values, &CASTS_OUT));
    saved.extend(cast_weights(x, x.h * (columns + values) + x.linear.convolution * values, &MIXER_WEIGHTS));
    saved
}

/// What `operator` saves in such a layer; `None` if the layer is different.
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
            // transformers repeats keys and values if there is a mask.
            let (kernel, padded) = (x.recipe().attention_kernel, x.recipe().transformers.padding_mask);
            let masked = kernel == AttentionKernel::Sdpa && padded;
            let (shape, formula) = if masked && x.k < x.a { (heads, &QUERIES) } else { (groups, &GROUPS) };
            let shared = [Query, Key, Value].iter().any(|module| reads(x, *module));
            let mut saved: Vec<Saved> =
                shared.then(|| Saved::new("linear_qkv input", &wide, width, &NORMED)).into_iter().collect();
            saved.extend([
                Saved::new("query", &heads, width, &QUERIES),
                Saved::new("key", &shape, width, formula),
                Saved::new("value", &shape, width, formula),
                Saved::new("attention output", &heads, width, &OUTPUT),
                Saved::new("log-sum-exp", &[x.b, x.a, x.s], STATISTIC, &LSE),
            ]);
            if masked {
                saved.push(if joins_samples(x) {
                    Saved::new("mask", &[x.n, x.n], width, &JOINED_MASK)
                } else {
                    Saved::new("mask", &[x.b, x.s, x.s], width, &MASK)
                });
            }
            if x.model().qk_layernorm {
                saved.extend([
                    Saved::new("projected query", &heads, width, &BEFORE_QUERY),
                    Saved::new("projected key", &groups, width, &BEFORE_KEY),
                    Saved::new("query norm statistics", &[x.n, x.a], STATISTIC, &QUERY_DEVIATIONS),
                    Saved::new("key norm statistics", &[x.n, x.k], STATISTIC, &KEY_DEVIATIONS),
                ]);
            }
            if both {
                saved.extend([added, deviation("post-norm statistics")]);
            }
            saved.extend(adapters(x, &[Query, Output], x.a * x.d, &CASTS_HEADS));
            saved.extend(adapters(x, &[Key, Value], x.k * x.d, &CASTS_GROUPS));
            saved.extend(cast_weights(x, 2 * x.h * (x.a + x.k) * x.d, &ATTENTION_WEIGHTS));
            saved
        }
        Operator::Linear(LinearKind::ShortConvolution) => short_convolution(x),
        Operator::Mlp => {
            let mut saved: Vec<Saved> = Vec::with_capacity(8);
            if reads(x, Gate) || reads(x, Up) {
                saved.push(Saved::new("linear_fc1 input", &wide, width, &NORMED));
            }
            saved.extend(["gate", "linear half"].map(|name| Saved::new(name, &inner, width, &INNER)));
            if reads(x, Down) {
                saved.push(Saved::new("linear_fc2 input", &inner, width, &INNER));
            }
            if both {
                saved.push(Saved::new("post-norm input", &wide, width, &ADDED));
                saved.push(deviation("post-norm statistics"));
            }
            saved.extend(adapters(x, &[Gate, Up, Down], x.f, &CASTS_INNER));
            saved.extend(cast_weights(x, 3 * x.h * x.f, &MLP_WEIGHTS));
            saved
        }
        _ => return None,
    })
}

//! Norms. transformers writes an RMSNorm as a cast to fp32, a square, a mean, an inverse root, a product, a cast back
//! and the product with the weight; a LayerNorm is one kernel.

use super::exchange::dispatches;
use super::flow::Flow;
use super::tape::Tape;
use crate::Symbols;
use shardscope_explain::Formula;
use shardscope_plan::{NormModule, NormPlaces, NormProduct, Normalization};

const RMS: &str = "transformers/models/llama/modeling_llama.py:LlamaRMSNorm";
const GEMMA: &str = "transformers/models/gemma2/modeling_gemma2.py:Gemma2RMSNorm";
const RAISED: &str = "transformers/models/gemma4/modeling_gemma4.py:Gemma4RMSNorm";
const NEMOTRON: &str = "transformers/models/nemotron/modeling_nemotron.py:NemotronLayerNorm1P";
const GLM: &str = "transformers/models/glm4/modeling_glm4.py:Glm4DecoderLayer";
const OLMO: &str = "transformers/models/olmo2/modeling_olmo2.py:Olmo2RMSNorm";
const COHERE: &str = "transformers/models/cohere/modeling_cohere.py:CohereLayerNorm";
const LIGER: &str = "liger_kernel/ops/rms_norm.py:LigerRMSNormFunction";
const UNSLOTH: &str = "unsloth/kernels/rms_layernorm.py:Fast_RMS_Layernorm.forward";
const WIDENED: &str = "litgpt/model.py:RMSNorm.forward";
const FUNCTIONAL: &str =
    "torch.nn.functional.rms_norm of an fp32 input: a product of both in fp32, then a cast";
const LAYER: &str = "torch.nn.functional.layer_norm";
const AUTOCAST: &str = "aten/src/ATen/autocast_mode.h:AT_FORALL_FP32, of which layer_norm is";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static CAPPED: Formula = Formula::new(
    "n·h·Bc",
    "The tanh of the last norm's output.",
    "torchtune/models/gemma2/_component_builders.py:Gemma2FinalNorm.forward",
);
static INPUT: Formula = Formula::new(
    "4·S·h",
    "The norm's input in fp32: a cast of the 16-bit input, or the residual stream itself.",
    RMS,
);
pub(super) static DEVIATION: Formula = Formula::new("4·S", "The reciprocal RMS of each token, fp32.", RMS);
static SQUARES: Formula = Formula::new("4·S", "The mean square of each token, fp32.", RAISED);
static QUERY_SQUARES: Formula = Formula::new("4·n·a", "The mean square of each query head, fp32.", RAISED);
static KEY_SQUARES: Formula = Formula::new("4·n·k", "The mean square of each key head, fp32.", RAISED);
static ROUTER_DEVIATIONS: Formula =
    Formula::new("8·S", "The mean square of each token, and its reciprocal root, fp32.", RAISED);
static VALUE_INPUT: Formula = Formula::new("4·n·K", "The values in fp32.", RAISED);
static VALUE_DEVIATIONS: Formula =
    Formula::new("8·n·k", "The mean square of each value head, and its reciprocal root, fp32.", RAISED);
static NORMED: Formula = Formula::new("S·h·B", "The normalised input, for the weight's gradient.", RMS);
static POST_NORMED: Formula = Formula::new("n·h·Bc", "The normalised input, for the weight's gradient.", GLM);
static NORMED_FP32: Formula =
    Formula::new("4·n·h", "The normalised input in fp32, for the weight's gradient.", GEMMA);
static WIDE: Formula =
    Formula::new("4·n·h", "The normalised input in fp32, for the weight's gradient.", OLMO);
static UNCAST: Formula =
    Formula::new("4·n·h", "The normalised input in fp32, for the weight's gradient.", FUNCTIONAL);
static CENTRED: Formula = Formula::new(
    "4·n·h",
    "The input minus its mean in fp32, computed a second time for the multiplication.",
    COHERE,
);
static CENTRED_NORMED: Formula =
    Formula::new("4·n·h", "The normalised input in fp32, for the weight's gradient.", COHERE);
static CENTRED_WEIGHT: Formula = Formula::new("4·h", "The weight in fp32.", COHERE);
static WIDE_WEIGHT: Formula = Formula::new("4·h", "The weight in fp32.", WIDENED);
static SCALE: Formula = Formula::new("4·h", "One plus the weight, in fp32.", GEMMA);
static OWN_SCALE: Formula = Formula::new("h·B", "One plus the weight.", NEMOTRON);
static OWN_INPUT: Formula = Formula::new("S·h·B", "The norm's input in its own dtype.", LIGER);
static KERNEL_INPUT: Formula =
    Formula::new("n·h·B", "The norm's input, which is the residual stream.", LAYER);
static LAYER_INPUT: Formula =
    Formula::new("4·n·h", "The norm's input, which autocast casts to fp32.", AUTOCAST);
static WIDE_BIAS: Formula = Formula::new("4·h", "The bias in fp32.", AUTOCAST);
static QUERY_SCALE: Formula =
    Formula::new("4·A", "The weight, or the bias, of the queries' norm in fp32.", AUTOCAST);
static KEY_SCALE: Formula =
    Formula::new("4·K", "The weight, or the bias, of the keys' norm in fp32.", AUTOCAST);
static MOMENTS: Formula =
    Formula::new("8·n", "Mean and reciprocal standard deviation of each token, fp32.", LAYER);
static QUERY_INPUT: Formula = Formula::new("4·n·A", "The queries in fp32.", RMS);
static QUERY_DEVIATION: Formula = Formula::new("4·n·a", "One statistic for each query head, fp32.", RMS);
static QUERY_NORMED: Formula = Formula::new("n·A·Bc", "The normalised queries.", RMS);
static KEY_INPUT: Formula = Formula::new("4·n·K", "The keys in fp32.", RMS);
static KEY_DEVIATION: Formula = Formula::new("4·n·k", "One statistic for each key head, fp32.", RMS);
static KEY_NORMED: Formula = Formula::new("n·K·Bc", "The normalised keys.", RMS);

static WHOLE_DEVIATION: Formula =
    Formula::new("4·n", "One statistic for each token: the norm is over all heads.", OLMO);
static QUERY_OWN: Formula = Formula::new("n·A·Bc", "The queries before their norm.", UNSLOTH);
static KEY_OWN: Formula = Formula::new("n·K·Bc", "The keys before their norm.", UNSLOTH);
static QUERY_AND_GATE: Formula =
    Formula::new("8·n·A", "The queries, and the gate beside them, in fp32.", GEMMA);
static PROJECTED: Formula = Formula::new(
    "4·n·(A + 2·K)",
    "The projection's fp32 output, of which queries and keys are views.",
    WIDENED,
);
static QUERY_FP32: Formula = Formula::new("4·n·A", "The normalised queries in fp32.", GEMMA);
static KEY_FP32: Formula = Formula::new("4·n·K", "The normalised keys in fp32.", GEMMA);
static WIDE_QUERY_WEIGHT: Formula = Formula::new("4·A", "The weight of the queries' norm in fp32.", WIDENED);
static WIDE_KEY_WEIGHT: Formula = Formula::new("4·K", "The weight of the keys' norm in fp32.", WIDENED);
static HEAD_SCALE: Formula = Formula::new("4·d", "One plus the weight of a norm of heads, in fp32.", GEMMA);

/// Names of what norms of queries and of keys save: input, statistics, weight and bias in fp32.
const QUERY_NAMES: [&str; 4] =
    ["query norm input", "query norm statistics", "query norm weight", "query norm bias"];
const KEY_NAMES: [&str; 4] = ["key norm input", "key norm statistics", "key norm weight", "key norm bias"];

/// Names of what a norm saves.
struct Names {
    input: &'static str,
    statistics: &'static str,
    squares: &'static str,
    normed: &'static str,
    scale: &'static str,
    bias: &'static str,
    centred: &'static str,
    /// Bytes of an element of the normalised input if it is rounded, and the formula.
    product: (fn(&Symbols<'_>) -> u64, &'static Formula),
}

static OWN: Names = Names {
    input: "norm input",
    statistics: "norm statistics",
    squares: "norm mean squares",
    normed: "normalised input",
    scale: "norm weight plus one",
    bias: "norm bias",
    centred: "norm input less its mean",
    product: (|x| x.width, &NORMED),
};
static POST: Names = Names {
    input: "post-norm input",
    statistics: "post-norm statistics",
    squares: "post-norm mean squares",
    normed: "post-norm normalised input",
    scale: "post-norm weight plus one",
    bias: "post-norm bias",
    centred: "post-norm input less its mean",
    product: (|x| x.compute_width, &POST_NORMED),
};

static OF_EXPERTS: Names = Names {
    input: "experts' norm input",
    statistics: "experts' norm statistics",
    squares: "experts' norm mean squares",
    normed: "experts' norm normalised input",
    scale: "experts' norm weight plus one",
    bias: "experts' norm bias",
    centred: "experts' norm input less its mean",
    product: (|x| x.compute_width, &POST_NORMED),
};

/// Whether layers have norms before attention and MLP.
fn is_in_front(x: &Symbols<'_>) -> bool {
    x.model().arrangement.norm_places != NormPlaces::Behind
}

/// The norm before attention.
pub(super) fn input(tape: &mut Tape<'_, '_>) {
    if !is_in_front(tape.x) {
        return;
    }
    let needed = Flow::new(tape.x).input;
    norm(tape, &OWN, needed, tape.x.trains);
}

/// The norm before the MLP, or before the experts `beside` it; in a parallel block it reads what the first one has already
/// saved.
pub(super) fn pre_mlp(tape: &mut Tape<'_, '_>, beside: bool) {
    if !is_in_front(tape.x) {
        return;
    }
    // After a single norm the MLP reads what attention reads.
    if tape.x.model().arrangement.single_norm {
        return;
    }
    let (flow, parallel) = (Flow::new(tape.x), tape.x.model().arrangement.parallel_residual);
    let needed = if parallel { flow.input } else { flow.residual };
    norm(tape, &OWN, needed, tape.x.trains);
    // The experts' norm reads the fp32 stream that the norm before the MLP beside them has saved.
    if beside && tape.x.residual_width == FLOAT {
        tape.saved.retain(|(_, saved)| saved.name != OWN.input);
    }
    // Both read the stream itself, except for casts, which each norm makes for itself.
    if parallel && tape.x.model().normalization == Normalization::LayerNorm && !is_widened(tape.x) {
        tape.saved.retain(|(_, saved)| saved.name != OWN.input);
    }
}

/// The norm after the last layer.
pub(super) fn last(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    norm(tape, &OWN, true, x.trains);
    tape.keep(caps_last(x), "capped output of the last norm", &[x.n, x.h], x.compute_width, &CAPPED);
}

/// Whether the last norm's output is capped, instead of the logits.
pub(super) fn caps_last(x: &Symbols<'_>) -> bool {
    x.model().arrangement.final_softcap && x.recipe().software.semantics().modules.caps_last_norm
}

/// A norm after attention or MLP, whose input requires a gradient if `needed`.
pub(super) fn post(tape: &mut Tape<'_, '_>, needed: bool) {
    if tape.x.model().arrangement.norm_places != NormPlaces::InFront {
        norm(tape, &POST, needed, tape.x.trains);
    }
}

/// The norm between experts and the norm of the layer's end, where a dense MLP stands beside them.
pub(super) fn of_experts(tape: &mut Tape<'_, '_>) {
    norm(tape, &OF_EXPERTS, true, tape.x.trains);
}

/// The norm of the stream without weights that a router reads. An fp32 stream is what the norm before the MLP saved.
pub(super) fn of_router(tape: &mut Tape<'_, '_>, needed: bool) {
    let x = tape.x;
    let own = needed && x.residual_width < FLOAT;
    tape.keep(own, "router norm input", &[x.s_local, x.h], FLOAT, &INPUT);
    tape.keep(needed, "router norm statistics", &[2, x.s_local], FLOAT, &ROUTER_DEVIATIONS);
}

/// A norm over the hidden size whose input requires a gradient if `needed` and whose weight trains if `trains`.
fn norm(tape: &mut Tape<'_, '_>, names: &Names, needed: bool, trains: bool) {
    let x = tape.x;
    let (wide, rows) = ([x.s_local, x.h], [x.s_local]);
    let there = x.model().arrangement.norm_weights;
    let trains = trains && there.stream;
    if x.model().normalization == Normalization::LayerNorm && in_fp32(x) {
        tape.keep(needed || trains, names.input, &wide, FLOAT, &LAYER_INPUT);
        tape.keep(needed || trains, names.statistics, &[2, x.s_local], FLOAT, &MOMENTS);
        let reads = (needed || trains) && there.stream;
        tape.keep(reads, names.scale, &[x.h], FLOAT, &WIDE_WEIGHT);
        tape.keep(reads && there.biases, names.bias, &[x.h], FLOAT, &WIDE_BIAS);
    } else if x.model().normalization == Normalization::LayerNorm {
        tape.keep(needed || trains, names.input, &wide, x.width, &KERNEL_INPUT);
        tape.keep(needed || trains, names.statistics, &[2, x.s_local], FLOAT, &MOMENTS);
        let plus_one = x.model().arrangement.norm_product == NormProduct::PlusOne;
        tape.keep(needed && plus_one, names.scale, &[x.h], x.width, &OWN_SCALE);
    } else if is_kernel(x) {
        tape.keep(needed || trains, names.input, &wide, x.width, &OWN_INPUT);
        tape.keep(needed || trains, names.statistics, &rows, FLOAT, &DEVIATION);
    } else {
        tape.keep(needed, names.input, &wide, FLOAT, &INPUT);
        tape.keep(needed, names.statistics, &rows, FLOAT, &DEVIATION);
        let product = x.model().arrangement.norm_product;
        tape.keep(needed && product == NormProduct::Raised, names.squares, &rows, FLOAT, &SQUARES);
        super::uncast_norm::input_of_norm(tape, needed);
        if product == NormProduct::PlusOne {
            tape.keep(trains, names.normed, &wide, FLOAT, &NORMED_FP32);
            tape.keep(needed, names.scale, &[x.h], FLOAT, &SCALE);
        } else if product == NormProduct::Centred {
            tape.keep(needed, names.centred, &wide, FLOAT, &CENTRED);
            tape.keep(trains, names.normed, &wide, FLOAT, &CENTRED_NORMED);
            tape.keep(needed && x.width < FLOAT, names.scale, &[x.h], FLOAT, &CENTRED_WEIGHT);
        } else if matches!(product, NormProduct::Wide | NormProduct::Widened | NormProduct::Raised) {
            tape.keep(trains, names.normed, &wide, FLOAT, &WIDE);
            let copied = needed && product != NormProduct::Wide && x.width < FLOAT;
            tape.keep(copied, names.scale, &[x.h], FLOAT, &WIDE_WEIGHT);
        } else if module(x) != NormModule::CastBefore {
            let widened = module(x) == NormModule::Widened;
            tape.keep(trains, names.normed, &wide, FLOAT, &UNCAST);
            tape.keep(needed && widened && x.width < FLOAT, names.scale, &[x.h], FLOAT, &WIDE_WEIGHT);
        } else {
            // After attention or MLP it reads what autocast left in 16 bits.
            let (width, formula) = names.product;
            tape.keep(trains, names.normed, &wide, width(x), formula);
        }
    }
}

/// Whether a LayerNorm is in fp32 among operations in 16 bits: if the software or the model states so, or under autocast
/// on a GPU, whose list of fp32 operations includes it, unlike a CPU's.
pub(super) fn in_fp32(x: &Symbols<'_>) -> bool {
    let stated = x.recipe().software.semantics().modules.fp32_layer_norm && x.compute_width < FLOAT;
    stated || (x.model().arrangement.fp32_layer_norm && x.width < FLOAT) || is_widened(x)
}

/// Whether autocast makes a LayerNorm's output fp32 that 16-bit linear layers read: each casts it back and saves its
/// own copy. Nemotron's norm disables autocast for itself (`modeling_nemotron.py:NemotronLayerNorm1P.forward`), and OLMo's
/// casts its output back (`modeling_olmo.py:OlmoLayerNorm.forward`).
pub(super) fn is_widened(x: &Symbols<'_>) -> bool {
    let arranged = &x.model().arrangement;
    let plain = arranged.norm_product != NormProduct::PlusOne && !arranged.fp32_layer_norm;
    x.recipe().autocasts() && x.model().normalization == Normalization::LayerNorm && plain && x.width < FLOAT
}

/// How norms are written.
fn module(x: &Symbols<'_>) -> NormModule {
    match x.recipe().software.semantics().modules.norm {
        NormModule::KernelAlone if x.model().qk_layernorm && !dispatches(x) => NormModule::CastBefore,
        NormModule::KernelAlone => NormModule::Kernel,
        other => other,
    }
}

/// Whether it is a single kernel that saves its input in its own dtype.
pub(crate) fn is_kernel(x: &Symbols<'_>) -> bool {
    x.recipe().transformers.liger_norms || module(x) == NormModule::Kernel
}

/// Whether a layer's first norm saves an fp32 copy of the layer's input rather than the input itself.
#[must_use]
pub fn copies_layer_input(x: &Symbols<'_>) -> bool {
    let recipe = x.recipe();
    let eager = recipe.software.semantics().eager_modules && !recipe.fusions.compiled_layers;
    let copies = match x.model().normalization {
        Normalization::LayerNorm => in_fp32(x),
        Normalization::RmsNorm => !is_kernel(x),
    };
    eager && copies && is_in_front(x) && x.residual_width < FLOAT
}

/// The norms of queries and keys, head by head or over all heads together.
pub(super) fn query_and_key(tape: &mut Tape<'_, '_>, flow: &Flow) {
    let x = tape.x;
    if x.model().arrangement.plain_head_norms && x.in_window {
        tape.keep(flow.query, "query norm input", &[x.n, x.a, x.d], FLOAT, &QUERY_INPUT);
        tape.keep(flow.query, "query norm statistics", &[x.n, x.a], FLOAT, &QUERY_DEVIATION);
        tape.keep(flow.key, "key norm input", &[x.n, x.k, x.d], FLOAT, &KEY_INPUT);
        tape.keep(flow.key, "key norm statistics", &[x.n, x.k], FLOAT, &KEY_DEVIATION);
    }
    if !x.model().qk_layernorm {
        return;
    }
    let there = x.model().arrangement.norm_weights;
    let trains = x.trains && there.heads;
    if x.model().normalization == Normalization::LayerNorm && in_fp32(x) {
        for (needed, heads, [input, statistics, weight, bias], [own, scale]) in [
            (flow.query, x.a, QUERY_NAMES, [&QUERY_INPUT, &QUERY_SCALE]),
            (flow.key, x.k, KEY_NAMES, [&KEY_INPUT, &KEY_SCALE]),
        ] {
            tape.keep(needed, input, &[x.n, heads, x.d], FLOAT, own);
            tape.keep(needed, statistics, &[2, x.n], FLOAT, &MOMENTS);
            tape.keep(needed && there.heads, weight, &[heads * x.d], FLOAT, scale);
            tape.keep(needed && there.heads && there.biases, bias, &[heads * x.d], FLOAT, scale);
        }
        return;
    }
    let norm = module(x);
    if norm == NormModule::Kernel {
        let [query, key] = [&QUERY_OWN, &KEY_OWN];
        tape.keep(flow.query, "query norm input", &[x.n, x.a, x.d], x.compute_width, query);
        tape.keep(flow.query, "query norm statistics", &[x.n, x.a], FLOAT, &QUERY_DEVIATION);
        tape.keep(flow.key, "key norm input", &[x.n, x.k, x.d], x.compute_width, key);
        tape.keep(flow.key, "key norm statistics", &[x.n, x.k], FLOAT, &KEY_DEVIATION);
        return;
    }
    let product = x.model().arrangement.norm_product;
    let wide = product != NormProduct::Rounded || norm != NormModule::CastBefore;
    let raised = product == NormProduct::Raised;
    let widened = norm == NormModule::Widened || raised;
    let scale = product == NormProduct::PlusOne || (widened && x.width < FLOAT);
    let normed = if wide { [&QUERY_FP32, &KEY_FP32] } else { [&QUERY_NORMED, &KEY_NORMED] };
    let width = match () {
        () if wide => FLOAT,
        () if x.model().arrangement.norms_behind_rotation => x.width,
        () => x.compute_width,
    };
    // In fp32 there is nothing to cast: the norm reads a view of queries and gate together.
    let viewed = x.recipe().software.semantics().modules.joins_projections && x.compute_width == FLOAT;
    if viewed {
        tape.keep(flow.query, "query norm input", &[x.n, x.a + 2 * x.k, x.d], FLOAT, &PROJECTED);
    } else if x.model().mixers.output_gate && x.compute_width == FLOAT {
        tape.keep(flow.query, "query norm input", &[x.n, 2 * x.a, x.d], FLOAT, &QUERY_AND_GATE);
    } else {
        tape.keep(flow.query, "query norm input", &[x.n, x.a, x.d], FLOAT, &QUERY_INPUT);
    }
    let [queries, keys] = if x.model().arrangement.norms_over_heads {
        [([x.n, 1], &WHOLE_DEVIATION); 2]
    } else {
        [([x.n, x.a], &QUERY_DEVIATION), ([x.n, x.k], &KEY_DEVIATION)]
    };
    tape.keep(flow.query, "query norm statistics", &queries.0, FLOAT, queries.1);
    tape.keep(flow.query && raised, "query norm mean squares", &[x.n, x.a], FLOAT, &QUERY_SQUARES);
    tape.keep(trains, "normalised queries", &[x.n, x.a, x.d], width, normed[0]);
    let own = flow.key && !x.borrows;
    tape.keep(own && !viewed, "key norm input", &[x.n, x.k, x.d], FLOAT, &KEY_INPUT);
    tape.keep(own, "key norm statistics", &keys.0, FLOAT, keys.1);
    tape.keep(own && raised, "key norm mean squares", &[x.n, x.k], FLOAT, &KEY_SQUARES);
    tape.keep(trains && own, "normalised keys", &[x.n, x.k, x.d], width, normed[1]);
    let [queries, keys] = if x.model().arrangement.norms_over_heads {
        [(x.a * x.d, &WIDE_QUERY_WEIGHT), (x.k * x.d, &WIDE_KEY_WEIGHT)]
    } else {
        [(x.d, &HEAD_SCALE); 2]
    };
    tape.keep(flow.query && scale, "query norm weight plus one", &[queries.0], FLOAT, queries.1);
    tape.keep(own && scale, "key norm weight plus one", &[keys.0], FLOAT, keys.1);
    values(tape, flow);
}

/// The norm of values, which has no weight. In fp32 it reads the keys' projection itself where that gives the values too.
fn values(tape: &mut Tape<'_, '_>, flow: &Flow) {
    let x = tape.x;
    let normed = x.model().arrangement.value_norms && flow.value && !x.borrows;
    let own = x.pair > 1 || x.compute_width < FLOAT;
    tape.keep(normed && own, "value norm input", &[x.n, x.k, x.d], FLOAT, &VALUE_INPUT);
    tape.keep(normed, "value norm statistics", &[2, x.n, x.k], FLOAT, &VALUE_DEVIATIONS);
}

//! Self-attention: projections, norms of heads, the core in one of its implementations, the output projection.

use super::capped_scores;
use super::exchange::dispatches;
use super::flow::Flow;
use super::linear::{Input, KEY, OUTPUT, QKV, QUERY, VALUE};
use super::tape::{Step, Tape};
use super::views::{expands_as_view, is_cast_wide, is_indexed, is_too_wide, is_view_of, rotates};
use super::{joined, manual, norm};
use crate::Symbols;
use shardscope_explain::Formula;
use shardscope_plan::{
    AttentionKernel, AttentionSoftmax, LinearBias, QueryTemperature, Rotation, RotationTables,
};

const EAGER: &str = "transformers: eager_attention_forward";
const SDPA: &str = "aten/src/ATen/native/transformers/attention.cpp:scaled_dot_product_attention";
const QWEN: &str = "torchtune/models/qwen2/_positional_embeddings.py:Qwen2RotaryPositionalEmbeddings.forward";
const GATED: &str = "transformers/models/qwen3_next/modeling_qwen3_next.py:Qwen3NextAttention.forward";
const DROPOUT: &str = "aten/src/ATen/native/cuda/Dropout.cu:native_dropout";
const SINKS: &str = "transformers/models/gpt_oss/modeling_gpt_oss.py:eager_attention_forward";
const FLASH: &str = "flash_attn/flash_attn_interface.py:FlashAttnFunc.forward";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch bool.
const BYTE: u64 = 1;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;
/// Name of the tensor that queries, keys and values are made from.
pub(super) const NORMED: &str = "attention input";
/// Name of the kernel's output.
pub(super) const RESULT: &str = "attention output";

static QUERIES: Formula = Formula::new("n·A·Bc", "The queries.", SDPA);
static KEYS: Formula = Formula::new("n·K·Bc", "The keys.", SDPA);
static VALUES: Formula = Formula::new("n·K·Bc", "The values.", SDPA);
static CLIPPED: Formula = Formula::new(
    "n·(A + 2·K)·Bc",
    "The projections' output before it is clamped.",
    "olmo/model.py:OLMoSequentialBlock.forward; transformers/models/olmo/modeling_olmo.py:OlmoAttention.forward",
);
static BUFFER: Formula =
    Formula::new("n·(A + 2·K)·Bc", "The fused projection's output, of which the values are a view.", SDPA);
static ROTATION: Formula =
    Formula::new("2·s·d·Bc", "RoPE cosines and sines, cast to the heads' dtype.", QWEN);
static REPEATED_TABLES: Formula = Formula::new(
    "2·s·rot·B",
    "RoPE cosines and sines, repeated for pairs of columns in each layer.",
    "transformers/models/glm/modeling_glm.py:apply_rotary_pos_emb",
);
static EACH_TABLES: Formula = Formula::new(
    "4·s·rot·Bc",
    "RoPE cosines and sines, repeated for pairs of columns, once for queries and once for keys.",
    "transformers/models/gptj/modeling_gptj.py:apply_rotary_pos_emb",
);
static OWN_TABLES: Formula = Formula::new(
    "2·n·rot·Bc",
    "RoPE cosines and sines of each sample, cast once for queries and once for keys, a column for each pair.",
    "nemo_automodel/components/models/gpt_oss/rope_utils.py:apply_rotary_emb",
);
static WIDE_TABLES: Formula = Formula::new(
    "8·s·rot",
    "RoPE cosines and sines in fp32, repeated for pairs of columns in each layer.",
    "transformers/models/ernie4_5/modeling_ernie4_5.py:apply_rotary_pos_emb",
);
static TEMPERATURE: Formula = Formula::new(
    "4·s",
    "The scale of the queries at each position, fp32.",
    "transformers/models/llama4/modeling_llama4.py:Llama4TextAttention",
);
static TYPED_TEMPERATURE: Formula = Formula::new(
    "s·B",
    "The scale of the queries at each position.",
    "transformers/models/ministral3/modeling_ministral3.py:Ministral3Attention.forward, Mistral4Attention.forward",
);
static INDICES: Formula = Formula::new(
    "16",
    "The places of keys and of values in a group of heads, an int64 each.",
    "transformers/models/falcon/modeling_falcon.py:FalconAttention._split_heads",
);
static SINK_SOFTMAX: Formula =
    Formula::new("a·s·(s + 1)·b·B", "The attention probabilities, the sink's among them.", SINKS);
static LARGEST: Formula = Formula::new("8·a·s·b", "The index of each row's largest score, int64.", SINKS);
static REPEATED: Formula = Formula::new("n·A·Bc", "Keys or values, repeated for every query head.", EAGER);
static WIDE_OPERAND: Formula = Formula::new(
    "4·n·A",
    "Queries or keys in fp32.",
    "transformers/models/gptj/modeling_gptj.py:GPTJAttention._attn",
);
static OUT: Formula =
    Formula::new("n·A·Bc", "The attention's output, which the output projection reads.", SDPA);
static GATE: Formula = Formula::new("n·A·Bc", "The gate's sigmoid.", GATED);
static UNGATED: Formula =
    Formula::new("n·A·Bc", "A copy of the attention's output, for the gate's gradient.", GATED);
static LSE: Formula = Formula::new("4·n·a", "Log-sum-exp per head and token, fp32.", SDPA);
static RNG: Formula = Formula::new("16", "The random number generator's state, two int64.", FLASH);
static PADDING: Formula = Formula::new(
    "b·s·s·Bc",
    "The mask that padding or a window makes, added to the scores of every head.",
    SDPA,
);
static OWN_MASK: Formula = Formula::new(
    "s·s·Bc",
    "The window's mask, which the layer makes for all samples and adds to the scores of every head.",
    "litgpt/model.py:CausalSelfAttention.forward",
);
static TANH: Formula = Formula::new("a·s·s·b·Bc", "The capped scores.", EAGER);
static SOFTMAX: Formula = Formula::new("4·a·s·s·b", "The attention probabilities in fp32.", EAGER);
static TYPED_SOFTMAX: Formula =
    Formula::new("a·s·s·b·Bc", "The attention probabilities, in the scores' dtype.", EAGER);
static DROPPED_MASK: Formula =
    Formula::new("a·s·s·b", "Dropout mask of the probabilities, one byte each.", DROPOUT);
static DROPPED: Formula =
    Formula::new("a·s·s·b·Bc", "The probabilities after dropout, for the gradient of the values.", DROPOUT);
static MASK: Formula = Formula::new("n·h", "Dropout mask of its output, one byte each.", DROPOUT);
static PROBABILITIES: Formula = Formula::new("a·s·s·b·Bc", "The probabilities in 16 bits.", EAGER);

/// Whether attention saves the norm's output, so that an MLP that also reads it need not.
pub(super) fn keeps_input(x: &Symbols<'_>) -> bool {
    let mut tape = Tape::new(x);
    attention(&mut tape);
    tape.saved.iter().any(|(_, saved)| saved.name == NORMED)
}

pub(super) fn attention(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let flow = Flow::new(x);
    let (wide, narrow) = (x.a * x.d, x.k * x.d);
    let input = Input { shared: Some(NORMED), needed: flow.norm1, cast: false };
    let joins = x.recipe().software.semantics().modules.joins_projections;
    tape.step = Step::First;
    if joins {
        QKV.run_bare(tape, input, [x.h, wide + 2 * narrow]);
        joined::adapters(tape, NORMED, flow.norm1);
    } else if manual::queries(x) {
        let queries = if x.model().mixers.output_gate { 2 * wide } else { wide };
        let parts = [(&QUERY, [x.h, queries]), (&KEY, [x.h, narrow]), (&VALUE, [x.h, narrow])];
        manual::keep_input(tape, NORMED, flow.norm1, &parts);
    } else if x.model().arrangement.fused_qkv {
        QKV.run(tape, input, [x.h, wide + 2 * narrow]);
    } else {
        QUERY.run(tape, input, [x.h, if x.model().mixers.output_gate { 2 * wide } else { wide }]);
        if x.pair > 0 {
            KEY.run(tape, input, [x.h, narrow]);
        }
        if x.pair > 1 {
            VALUE.run(tape, input, [x.h, narrow]);
        }
    }
    tape.step = Step::Core;
    let clipped = x.model().arrangement.clipped_queries && flow.attention;
    let heads = [(flow.query, x.a), (flow.key, x.k), (flow.value, x.k)];
    let heads: u64 = heads.into_iter().filter(|(needed, _)| *needed).map(|(_, heads)| heads).sum();
    tape.keep(clipped, "projection before it is clamped", &[x.n, heads, x.d], x.compute_width, &CLIPPED);
    norm::query_and_key(tape, &flow);
    temperature(tape, &flow);
    tables(tape, &flow);
    let indexed = flow.attention && is_indexed(x);
    tape.keep_several(indexed, "indices of keys and of values", &[2], INDEX, &INDICES);
    core(tape, &flow);
    // Queries from a fused projection, or with only part of each head rotated, come from a concatenation; the
    // kernel's output takes their layout, so that its readers read a copy. Eager attention transposes too.
    let (kernel, arrangement) = (x.recipe().attention_kernel, &x.model().arrangement);
    let modules = &x.recipe().software.semantics().modules;
    let concatenated = arrangement.fused_qkv && rotates(x) && !modules.rotates_in_place && !is_indexed(x);
    let joined = joins || concatenated || (rotates(x) && x.rotated < x.d);
    let copied = kernel == AttentionKernel::Unfused || joined;
    let gated = x.model().mixers.output_gate;
    if gated {
        tape.keep(flow.attention, "output gate", &[x.n, wide], x.compute_width, &GATE);
        tape.keep(
            flow.attention && copied,
            "gated attention output",
            &[x.n, wide],
            x.compute_width,
            &UNGATED,
        );
    }
    let copied = copied || gated;
    let shared = if copied { None } else { Some(RESULT) };
    tape.step = Step::Last;
    if manual::output(x) {
        tape.keep(true, RESULT, &[x.n, wide], x.compute_width, &OUT);
        manual::keep_beside(tape, flow.attention, &[(&OUTPUT, [wide, x.h])], true);
    } else {
        OUTPUT.run(tape, Input { shared, needed: flow.attention, cast: true }, [wide, x.h]);
    }
    tape.step = Step::Core;
    let drops = x.model().arrangement.dropout.residual && flow.projected;
    tape.keep(drops, "mask of attention's dropout", &[x.n, x.h], BYTE, &MASK);
    norm::post(tape, flow.projected);
}

/// What queries are multiplied by at each position.
pub(super) fn temperature(tape: &mut Tape<'_, '_>, flow: &Flow) {
    let x = tape.x;
    let temperature = match x.model().arrangement.query_temperature {
        QueryTemperature::Unwindowed if !x.in_window => Some((FLOAT, &TEMPERATURE)),
        // Rotated queries have the dtype of cosines and sines, which is the weights'.
        QueryTemperature::Typed => Some((x.width, &TYPED_TEMPERATURE)),
        QueryTemperature::Unwindowed | QueryTemperature::None => None,
    };
    if let Some((width, formula)) = temperature {
        tape.keep(flow.query, "temperature of queries", &[x.s], width, formula);
    }
}

fn core(tape: &mut Tape<'_, '_>, flow: &Flow) {
    match tape.x.recipe().attention_kernel {
        AttentionKernel::Unfused if capped_scores::is_region(tape.x) => capped_scores::kept(tape, flow),
        AttentionKernel::Unfused => eager(tape, flow),
        kernel => fused(tape, flow, kernel),
    }
}

fn is_view(tape: &Tape<'_, '_>) -> bool {
    is_view_of(tape.x)
}

fn fused(tape: &mut Tape<'_, '_>, flow: &Flow, kernel: AttentionKernel) {
    let (x, any) = (tape.x, flow.attention);
    let width = x.compute_width;
    let (wide, narrow) = ([x.n, x.a, x.d], [x.n, x.k, x.d]);
    let masked = is_masked(x, kernel);
    let joined = is_view(tape) && !rotates(x) && !(masked && x.k < x.a);
    tape.keep(any && !joined, "query", &wide, width, &QUERIES);
    rotations(tape, flow);
    let modules = &x.recipe().software.semantics().modules;
    let for_sdpa = modules.repeats_for_sdpa && kernel == AttentionKernel::Sdpa;
    let repeats = modules.repeats_groups && !(modules.views_one_group && x.k == 1);
    let repeated = masked || for_sdpa || repeats || is_too_wide(x, kernel) || (is_indexed(x) && x.k > 1);
    // A single head is expanded to all queries as a view, except where all three are laid out together.
    let viewed = x.k == 1 && expands_as_view(x);
    // An earlier layer's keys and values are kept there; a cast of keys is this layer's own.
    let own = any && !x.borrows;
    if repeated && x.k < x.a && viewed {
        let (key, formula) = if is_cast_wide(x) { (&wide, &REPEATED) } else { (&narrow, &KEYS) };
        tape.keep(own || any && is_cast_wide(x), "key", key, width, formula);
        tape.keep(own, "value", &narrow, width, &VALUES);
    } else if repeated && x.k < x.a {
        tape.keep(any, "key", &wide, width, &REPEATED);
        tape.keep(any, "value", &wide, width, &REPEATED);
    } else {
        let key = own || any && is_cast_wide(x);
        tape.keep(key && !joined, "key", &narrow, width, &KEYS);
        if is_view(tape) {
            tape.keep(any, "value", &[x.n, x.a + 2 * x.k, x.d], width, &BUFFER);
        } else {
            tape.keep(own, "value", &narrow, width, &VALUES);
        }
    }
    tape.keep(any, RESULT, &wide, width, &OUT);
    beside(tape, any, kernel);
}

/// Whether SDPA is given a mask: causality alone needs none, but a window does even if it is no shorter than the
/// sequence (`transformers/masking_utils.py:_ignore_causal_mask_sdpa`).
fn is_masked(x: &Symbols<'_>, kernel: AttentionKernel) -> bool {
    // Falcon makes its mask in any case (`modeling_falcon.py:FalconModel.forward`).
    let masked = x.recipe().transformers.padding_mask
        || x.window.is_some()
        || has_own_mask(x)
        || is_indexed(x)
        || x.masks_images();
    masked && kernel == AttentionKernel::Sdpa
}

/// Whether the layer builds its own mask for its window (`litgpt/model.py:CausalSelfAttention.forward`).
fn has_own_mask(x: &Symbols<'_>) -> bool {
    x.in_window && x.recipe().software.semantics().modules.masks_every_window
}

/// What a kernel saves in addition to queries, keys, values and its output, if any of them requires a gradient.
pub(super) fn beside(tape: &mut Tape<'_, '_>, any: bool, kernel: AttentionKernel) {
    let x = tape.x;
    tape.keep(any, "log-sum-exp", &[x.b, x.a, x.s], FLOAT, &LSE);
    tape.keep(any && kernel == AttentionKernel::Flash, "random state", &[2], 2 * FLOAT, &RNG);
    let (samples, formula) = if has_own_mask(x) { (1, &OWN_MASK) } else { (x.b, &PADDING) };
    tape.keep(any && is_masked(x, kernel), "padding mask", &[samples, x.s, x.s], x.compute_width, formula);
}

/// Cosines and sines that each layer repeats for pairs of columns.
fn tables(tape: &mut Tape<'_, '_>, flow: &Flow) {
    let x = tape.x;
    if dispatches(x) {
        // Cosines and sines of both: no adapters stand beside these modules, so that both have gradients in every layer.
        let halves = [4, x.n, x.rotated / 2];
        return tape.keep(flow.query, "rotation of queries and keys", &halves, x.compute_width, &OWN_TABLES);
    }
    let (width, formula) = match x.model().arrangement.rotation_tables {
        RotationTables::Shared | RotationTables::Half | RotationTables::Complex => return,
        RotationTables::Layer => (x.width, &REPEATED_TABLES),
        RotationTables::Fp32Layer => (FLOAT, &WIDE_TABLES),
        RotationTables::Each => {
            let times = 2 * (u64::from(flow.query) + u64::from(flow.key));
            let (shape, formula) = ([times, x.s, x.rotated], &EACH_TABLES);
            return tape.keep(true, "repeated cosines and sines", &shape, x.compute_width, formula);
        }
    };
    tape.keep_several(
        flow.query || flow.key,
        "repeated cosines and sines",
        &[2, x.s, x.rotated],
        width,
        formula,
    );
}

/// Cosines and sines in the heads' dtype, if a model that holds them in fp32 casts them for each use.
fn rotations(tape: &mut Tape<'_, '_>, flow: &Flow) {
    let x = tape.x;
    let model = x.model();
    // torchtune's models with biases or norms on queries and keys are Qwen's; its other models rotate in fp32 and
    // save nothing.
    let casts = model.linear_bias == LinearBias::QkvOnly || model.qk_layernorm;
    let rotation = x.recipe().software.semantics().modules.rotation;
    if rotation == Rotation::Buffers && casts && x.compute_width < FLOAT {
        tape.keep_several(flow.query, "rotation of queries", &[2, x.s, x.d], x.compute_width, &ROTATION);
        tape.keep_several(flow.key, "rotation of keys", &[2, x.s, x.d], x.compute_width, &ROTATION);
    }
}

fn eager(tape: &mut Tape<'_, '_>, flow: &Flow) {
    let x = tape.x;
    let width = x.compute_width;
    let wide = [x.n, x.a, x.d];
    let either = flow.query || flow.key;
    // A single key head is expanded to all queries without a copy, and in a batch of one so are the views of its
    // parts.
    let whole = is_view(tape) && !rotates(x) && x.b == 1 && x.k == 1;
    let one = (is_indexed(x) || expands_as_view(x)) && x.b == 1 && x.k == 1;
    let (repeated, formula) = if one { ([x.n, x.k, x.d], &KEYS) } else { (wide, &REPEATED) };
    // Autocast computes their product in 16 bits regardless.
    if x.model().arrangement.fp32_scores && !x.recipe().autocasts() {
        tape.keep(flow.key, "query", &wide, FLOAT, &WIDE_OPERAND);
        tape.keep(flow.query, "repeated key", &wide, FLOAT, &WIDE_OPERAND);
    } else if !whole {
        tape.keep(flow.key, "query", &wide, width, &QUERIES);
        let (key, formula) =
            if is_cast_wide(x) && !is_indexed(x) { (wide, &REPEATED) } else { (repeated, formula) };
        // A view of an earlier layer's is kept there.
        let own = !(one && x.borrows) || (is_cast_wide(x) && !is_indexed(x));
        tape.keep(flow.query && own, "repeated key", &key, width, formula);
    }
    scores(tape, flow);
    // Without a rotation queries and keys are parts of the fused projection's output too.
    if whole || (is_view(tape) && x.k == x.a && x.b == 1 && rotates(x)) {
        tape.keep(either, "repeated value", &[x.n, x.a + 2 * x.k, x.d], width, &BUFFER);
    } else {
        let formula = if one { &VALUES } else { &REPEATED };
        tape.keep(either && !(one && x.borrows), "repeated value", &repeated, width, formula);
    }
}

/// The scores of eager attention, their softmax and its output after dropout.
pub(super) fn scores(tape: &mut Tape<'_, '_>, flow: &Flow) {
    let x = tape.x;
    let width = x.compute_width;
    let scores = [x.b, x.a, x.s, x.s];
    let either = flow.query || flow.key;
    let capped = x.model().arrangement.attention_softcap;
    tape.keep(either && capped, "capped scores", &scores, width, &TANH);
    if x.model().attention_softmax == AttentionSoftmax::Learnable {
        // The sink's score follows the others, in the weights' dtype; what follows reads a view without it, or casts
        // it.
        let with_sink = [x.b, x.a, x.s, x.s + 1];
        tape.keep(either || flow.value, "softmax", &with_sink, x.width, &SINK_SOFTMAX);
        tape.keep(flow.value && x.casts_weights(), "16-bit probabilities", &scores, width, &PROBABILITIES);
        tape.keep(either, "indices of the largest scores", &[x.b, x.a, x.s], INDEX, &LARGEST);
    } else {
        // In fp32 the probabilities that the values' gradient needs are the softmax itself. Autocast computes every
        // softmax in fp32.
        let typed = x.model().arrangement.typed_softmax && !x.recipe().autocasts();
        let cast = !typed && width < FLOAT;
        let drops = x.model().arrangement.dropout.attention;
        let reread = flow.value && !cast && !drops;
        let (softmax, formula) = if typed { (width, &TYPED_SOFTMAX) } else { (FLOAT, &SOFTMAX) };
        tape.keep(either || reread, "softmax", &scores, softmax, formula);
        tape.keep(either && drops, "mask of dropped probabilities", &scores, BYTE, &DROPPED_MASK);
        tape.keep(flow.value && drops, "probabilities behind dropout", &scores, width, &DROPPED);
        tape.keep(flow.value && cast && !drops, "16-bit probabilities", &scores, width, &PROBABILITIES);
    }
}

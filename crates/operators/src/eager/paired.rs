//! Attention of an encoder-decoder (T5's, `transformers/models/t5/modeling_t5.py`): of a stack to itself with a number per head for
//! each distance added to the scores, and of the decoder to the encoder's output. Matched to the byte with
//! `tests/data/activations/encoder_decoder.jsonl`.

use super::flow::{Flow, is_adapted};
use super::linear::{Input, KEY, OUTPUT, QUERY, SOURCE_KEY, SOURCE_VALUE, VALUE};
use super::tape::{Step, Tape};
use super::{attention, norm};
use crate::Symbols;
use crate::sizes::MASK_ALIGNMENT;
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, LinearModule};

const T5: &str = "transformers/models/t5/modeling_t5.py:T5Attention.forward";
const BIAS: &str = "transformers/integrations/sdpa_attention.py:create_position_bias_mask";
const EFFICIENT: &str = "aten/src/ATen/native/transformers/attention.cpp:scaled_dot_product_attention, preprocess_mask; \
     cuda/sdp_utils.cpp:can_use_flash_attention, which takes no mask";
const SCORES: &str = "transformers/models/t5/modeling_t5.py:eager_attention_forward";
const DROPOUT: &str = "aten/src/ATen/native/cuda/Dropout.cu:native_dropout";
const STACK: &str = "transformers/models/t5/modeling_t5.py:T5Stack.forward";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch bool.
const BYTE: u64 = 1;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;
/// The encoder's output after its norm and dropout, which keys and values of every layer of the decoder are made from.
const SOURCE: &str = "encoder output";
/// What checkpoints of the encoder's layers hold.
const INPUTS: &str = "inputs of encoder layers";

static QUERIES: Formula = Formula::new("n·A·Bc", "The queries.", T5);
/// Of the stack's own sequence, and of the encoder's.
static KEYS: [Formula; 2] = [
    Formula::new("n·K·Bc", "The keys.", T5),
    Formula::new("b·z·K·Bc", "The keys of the encoder's output.", T5),
];
static VALUES: [Formula; 2] = [
    Formula::new("n·K·Bc", "The values.", T5),
    Formula::new("b·z·K·Bc", "The values of the encoder's output.", T5),
];
static OUT: Formula =
    Formula::new("n·A·Bc", "The attention's output, which the output projection reads.", EFFICIENT);
static LSE: Formula = Formula::new("4·n·a", "Log-sum-exp per head and token, fp32.", EFFICIENT);
/// Of all samples where padding differs between them, and of one for all.
static OWN_MASK: [Formula; 2] = [
    Formula::new("b·a·s·zk·Bc", "Distances' numbers and padding, added to the scores of every head.", BIAS),
    Formula::new(
        "a·s·zk·Bc",
        "Distances' numbers, added to the scores of every head, for all samples.",
        BIAS,
    ),
];
static CAUSAL: Formula = Formula::new("s·s", "Which tokens come before, one byte each.", BIAS);
static SOFTMAX: [Formula; 2] = [
    Formula::new("a·s·s·b·Bc", "The attention probabilities, in the scores' dtype.", SCORES),
    Formula::new("a·s·z·b·Bc", "The attention probabilities, in the scores' dtype.", SCORES),
];
static WIDE_SOFTMAX: [Formula; 2] = [
    Formula::new("4·a·s·s·b", "The attention probabilities in fp32.", SCORES),
    Formula::new("4·a·s·z·b", "The attention probabilities in fp32.", SCORES),
];
static DROPPED_MASK: [Formula; 2] = [
    Formula::new("a·s·s·b", "Dropout mask of the probabilities, one byte each.", DROPOUT),
    Formula::new("a·s·z·b", "Dropout mask of the probabilities, one byte each.", DROPOUT),
];
static PROBABILITIES: [Formula; 2] = [
    Formula::new("a·s·s·b·Bc", "The probabilities that values are multiplied by.", SCORES),
    Formula::new("a·s·z·b·Bc", "The probabilities that values are multiplied by.", SCORES),
];
static MASK: Formula = Formula::new("n·h", "Dropout mask of its output, one byte each.", DROPOUT);

static DISTANCES: Formula =
    Formula::new("8·s·s", "The bucket of each distance, int64, for the gradient of the table.", T5);
static BIASES: Formula = Formula::new(
    "a·s·s·B",
    "Distances' numbers for every head, an argument of each recomputed layer but the first.",
    STACK,
);
static PADDED_PAIRS: Formula =
    Formula::new("b·s·s", "Which tokens are no padding, one byte for each pair, for all layers.", BIAS);
static LAYER_INPUTS: Formula =
    Formula::new("Le·n·h·Br", "Inputs of the encoder's layers, all of which are recomputed.", STACK);
static ZEROS: Formula = Formula::new(
    "a·s·zp·Bc",
    "Zeros in place of distances to the encoder's output, which all layers share.",
    T5,
);
static ARGUED_ZEROS: Formula = Formula::new(
    "a·s·z·Bc",
    "Zeros in place of distances to the encoder's output, an argument of each recomputed layer but the first.",
    T5,
);
static CROSSED_PAIRS: Formula = Formula::new(
    "b·s·z",
    "Which tokens of the source are no padding, one byte for each pair, an argument of each recomputed layer.",
    STACK,
);
static SOURCES: Formula =
    Formula::new("b·z·h·B", "The encoder's output, for all layers of the decoder.", STACK);
static FINAL_MASK: Formula =
    Formula::new("n·h", "Dropout mask behind the last norm, one byte each.", DROPOUT);

/// Whether layers add something to the scores that differs between samples: what is padding of the source.
fn is_padded(x: &Symbols<'_>) -> bool {
    x.recipe().transformers.padding_mask && (x.encodes || x.crosses)
}

/// What attention of either kind keeps.
pub(super) fn attention(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let mut flow = Flow::new(x);
    // Something trains in the encoder wherever something trains at all.
    flow.key |= x.crosses;
    flow.value |= x.crosses;
    flow.attention |= x.crosses;
    flow.projected |= x.crosses;
    let wide = x.a * x.d;
    let input = Input { shared: Some(attention::NORMED), needed: flow.norm1, cast: false };
    tape.step = Step::First;
    QUERY.run(tape, input, [x.h, wide]);
    if x.crosses {
        let source = Symbols { n: x.keys * x.b, ..*x };
        let mut of_source = Tape::new(&source);
        of_source.step = Step::First;
        let input = Input { shared: Some(SOURCE), needed: true, cast: false };
        SOURCE_KEY.run(&mut of_source, input, [x.h, wide]);
        SOURCE_VALUE.run(&mut of_source, input, [x.h, wide]);
        // What keys and values of all layers read is held once ([`shared`]).
        tape.saved.extend(of_source.saved.into_iter().filter(|(_, saved)| saved.name != SOURCE));
    } else {
        KEY.run(tape, input, [x.h, wide]);
        VALUE.run(tape, input, [x.h, wide]);
    }
    tape.step = Step::Core;
    let shared = if x.recipe().attention_kernel == AttentionKernel::Unfused {
        eager(tape, &flow);
        None
    } else {
        efficient(tape, flow.attention);
        Some(attention::RESULT)
    };
    tape.step = Step::Last;
    OUTPUT.run(tape, Input { shared, needed: flow.attention, cast: true }, [wide, x.h]);
    tape.step = Step::Core;
    let drops = x.model().arrangement.dropout.residual && flow.projected;
    tape.keep(drops, "mask of attention's dropout", &[x.n, x.h], BYTE, &MASK);
    norm::post(tape, flow.projected);
}

/// The memory-efficient kernel, which is the one that takes a mask with a gradient.
fn efficient(tape: &mut Tape<'_, '_>, any: bool) {
    let x = tape.x;
    let (width, of) = (x.compute_width, usize::from(x.crosses));
    tape.keep(any, "query", &[x.n, x.a, x.d], width, &QUERIES);
    tape.keep(any, "key", &[x.b * x.keys, x.k, x.d], width, &KEYS[of]);
    tape.keep(any, "value", &[x.b * x.keys, x.k, x.d], width, &VALUES[of]);
    tape.keep(any, attention::RESULT, &[x.n, x.a, x.d], width, &OUT);
    tape.keep(any, "log-sum-exp", &[x.b, x.a, x.s], FLOAT, &LSE);
    let (samples, formula) = if is_padded(x) { (x.b, &OWN_MASK[0]) } else { (1, &OWN_MASK[1]) };
    // Without padding, zeros in place of distances to the source are the same for all layers.
    let own = !x.crosses || is_padded(x);
    let row = x.keys.next_multiple_of(MASK_ALIGNMENT);
    tape.keep(any && own, "mask of distances", &[samples * x.a, x.s, row], width, formula);
    let causal = x.trains && !x.encodes && !x.crosses;
    tape.keep(any && causal, "causal mask", &[x.s, x.s], BYTE, &CAUSAL);
}

fn eager(tape: &mut Tape<'_, '_>, flow: &Flow) {
    let x = tape.x;
    let (width, of) = (x.compute_width, usize::from(x.crosses));
    let either = flow.query || flow.key;
    let scores = [x.b, x.a, x.s, x.keys];
    tape.keep(flow.key, "query", &[x.n, x.a, x.d], width, &QUERIES);
    tape.keep(flow.query, "key", &[x.b * x.keys, x.k, x.d], width, &KEYS[of]);
    let wide = x.recipe().autocasts() && width < FLOAT;
    let (softmax, formula) = if wide { (FLOAT, &WIDE_SOFTMAX[of]) } else { (width, &SOFTMAX[of]) };
    let drops = x.model().arrangement.dropout.attention;
    tape.keep(either || (flow.value && !wide && !drops), "softmax", &scores, softmax, formula);
    tape.keep(either && drops, "mask of dropped probabilities", &scores, BYTE, &DROPPED_MASK[of]);
    tape.keep(flow.value && (drops || wide), "probabilities", &scores, width, &PROBABILITIES[of]);
    tape.keep(either, "value", &[x.b * x.keys, x.k, x.d], width, &VALUES[of]);
}

/// What layers of a stack share.
pub(super) fn shared(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let (again, padded) = (x.recomputes_layers(), x.recipe().transformers.padding_mask);
    let fused = x.recipe().attention_kernel != AttentionKernel::Unfused;
    let pairs = [x.s, x.s];
    tape.keep(x.trains && !again, "buckets of distances", &pairs, INDEX, &DISTANCES);
    tape.keep(again, "numbers of distances", &[x.a, x.s, x.s], x.width, &BIASES);
    if x.encodes {
        let kept = padded && (again || (fused && x.trains));
        tape.keep(kept, "padding of the source", &[x.b, x.s, x.s], BYTE, &PADDED_PAIRS);
        let layers = x.model().encoder.map_or(0, |encoder| encoder.layers);
        tape.keep(again, INPUTS, &[layers, x.n, x.h], x.residual_width, &LAYER_INPUTS);
        return;
    }
    let z = x.source();
    let row = z.next_multiple_of(MASK_ALIGNMENT);
    if again {
        tape.keep(true, "zeros for the source", &[x.a, x.s, z], x.compute_width, &ARGUED_ZEROS);
        tape.keep(padded, "padding of the source", &[x.b, x.s, z], BYTE, &CROSSED_PAIRS);
    } else {
        tape.keep(fused && !padded, "zeros for the source", &[x.a, x.s, row], x.compute_width, &ZEROS);
    }
    tape.keep(again || reads_source(x), SOURCE, &[x.b, z, x.h], x.width, &SOURCES);
}

/// Whether a layer keeps the encoder's output itself, rather than a cast or a dropped copy of it.
fn reads_source(x: &Symbols<'_>) -> bool {
    let lora = x.recipe().tuning.lora;
    let adapted = is_adapted(x, LinearModule::Key) || is_adapted(x, LinearModule::Value);
    let plain = lora.is_some_and(|lora| !lora.dropout && x.adapter_width == x.width);
    !x.casts_weights() && (x.trains || (adapted && plain))
}

/// The dropout behind a stack's last norm.
pub(super) fn behind_last_norm(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let drops = x.model().encoder.is_some() && x.model().arrangement.dropout.residual;
    tape.keep(drops, "mask of the last dropout", &[x.n, x.h], BYTE, &FINAL_MASK);
}

//! Backward of an encoder-decoder's attention, and what waits for the rest of its stack's backward.

use super::super::flow::is_adapted;
use super::super::tape::Step;
use super::layers;
use super::shared::{AUTOGRAD, FLOAT, residual, returned};
use crate::{Operator, Parts, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, LinearModule};
use shardscope_units::Bytes;

const T5: &str = "transformers/models/t5/modeling_t5.py:T5Stack.forward, backward";
const EFFICIENT: &str =
    "aten/src/ATen/native/transformers/cuda/attention_backward.cu:_efficient_attention_backward";

/// Of the stack's own sequence, and of the encoder's.
static KEYS: [Formula; 2] = [
    Formula::new("2·n·K·Bc", "Gradients of keys and values.", AUTOGRAD),
    Formula::new("2·b·z·K·Bc", "Gradients of keys and values of the encoder's output.", AUTOGRAD),
];
static QUERIES: Formula = Formula::new("n·A·Bc", "Gradient of the queries.", AUTOGRAD);
static SUMMED: Formula =
    Formula::new("4·n·A", "The gradient of the queries, accumulated in fp32.", EFFICIENT);
static MASK: Formula = Formula::new(
    "2·b·a·s·s·Bc",
    "Gradients of the mask that was added to the scores, and of the distances' numbers in it.",
    EFFICIENT,
);
static SCORES: [Formula; 2] = [
    Formula::new(
        "3·4·a·s·s·b",
        "Gradients of the probabilities, of the softmax and of the scores.",
        AUTOGRAD,
    ),
    Formula::new(
        "3·4·a·s·z·b",
        "Gradients of the probabilities, of the softmax and of the scores.",
        AUTOGRAD,
    ),
];
static NARROW_SCORES: [Formula; 2] = [
    Formula::new(
        "3·a·s·s·b·Bc",
        "Gradients of the probabilities, of the softmax and of the scores.",
        AUTOGRAD,
    ),
    Formula::new(
        "3·a·s·z·b·Bc",
        "Gradients of the probabilities, of the softmax and of the scores.",
        AUTOGRAD,
    ),
];
static INPUTS: [Formula; 2] = [
    Formula::new("2·n·h·Bc", "Gradients of an input, of one reader and of all so far.", AUTOGRAD),
    Formula::new(
        "2·b·z·h·Bc",
        "Gradients of the encoder's output in this layer, of one reader and of all so far.",
        AUTOGRAD,
    ),
];
static SOURCE: Formula =
    Formula::new("b·z·h·B", "The gradient of the encoder's output, of all later layers.", T5);
static DISTANCES: Formula =
    Formula::new("a·s·s·B", "The gradient of the distances' numbers, of all later layers.", T5);
/// Each in the adapter's dtype.
static ADAPTER: [Formula; 2] = [
    Formula::new("n·h·Ba", "Gradient of an adapter's input in its own dtype.", AUTOGRAD),
    Formula::new("b·z·h·Ba", "Gradient of an adapter's input in its own dtype.", AUTOGRAD),
];
static ADAPTER_OUT: Formula =
    Formula::new("n·A·Ba", "Gradient of an adapter's input in its own dtype.", AUTOGRAD);

/// Backward of attention, to the stack's own sequence or to the encoder's.
pub(super) fn attention(x: &Symbols<'_>) -> Vec<Transient> {
    let (of, width, wide) = (usize::from(x.crosses), x.compute_width, x.a * x.d);
    let tokens = x.b * x.keys;
    let operator = Operator::SelfAttention;
    let weight =
        || Saved::new("weight gradient", &[wide, x.h], x.width, &layers::SQUARE).cut(Parts::Gradient);
    let output = Saved::new("gradient of the output", &[x.n, wide], width, &layers::OUTPUT);
    let queries = Saved::new("gradient of the queries", &[x.n, wide], width, &QUERIES);
    let keys = Saved::several("gradients of keys and values", &[2, tokens, x.k * x.d], width, &KEYS[of]);
    let mut projection = vec![residual(x), output];
    projection.extend(x.trains.then(weight));
    let adapted = |module| is_adapted(x, module);
    projection.extend(
        adapted(LinearModule::Output).then(|| {
            Saved::new("gradient of an adapter's input", &[x.n, wide], x.adapter_width, &ADAPTER_OUT)
        }),
    );
    let mut core = vec![residual(x), output, queries, keys];
    if x.recipe().attention_kernel == AttentionKernel::Unfused {
        let wide = x.recipe().autocasts() || width == FLOAT;
        let (each, formula) = if wide { (FLOAT, &SCORES[of]) } else { (width, &NARROW_SCORES[of]) };
        let shape = [3 * x.b, x.a, x.s, x.keys];
        core.push(Saved::new("gradients within the scores", &shape, each, formula).cut(Parts::Equal(3)));
    } else {
        core.push(Saved::new("fp32 query gradient", &[x.n, wide], FLOAT, &SUMMED));
        if x.trains && !x.crosses {
            let shape = [2 * x.b, x.a, x.s, x.s];
            core.push(Saved::new("gradients of the mask", &shape, width, &MASK).cut(Parts::Equal(2)));
        }
    }
    let mut first = vec![residual(x), queries, keys];
    first.push(Saved::several("gradients of the input", &[2, x.n, x.h], width, &INPUTS[0]));
    if x.crosses {
        let source =
            Saved::several("gradients of the encoder's output", &[2, tokens, x.h], width, &INPUTS[1]);
        first.push(source);
    }
    first.extend(x.trains.then(weight));
    if [LinearModule::Query, LinearModule::Key, LinearModule::Value].into_iter().any(adapted) {
        let rows = x.n.max(tokens);
        let formula = &ADAPTER[usize::from(rows > x.n)];
        first.push(Saved::new("gradient of an adapter's input", &[rows, x.h], x.adapter_width, formula));
    }
    vec![
        Transient::new("backward of o_proj", Bytes::ZERO, projection),
        Transient::new("backward of the attention", returned(operator, x, &[Step::Last]), core),
        Transient::new(
            "backward of q_proj, k_proj and v_proj",
            returned(operator, x, &[Step::Last, Step::Core]),
            first,
        ),
    ]
}

/// Gradients that every layer of a stack adds to: of the encoder's output while the decoder runs backward, and of what is looked up of
/// distances.
pub(super) fn waiting(operator: Operator, x: &Symbols<'_>, points: &mut [Transient]) {
    let of_layer = matches!(
        operator,
        Operator::InputNorm | Operator::SelfAttention | Operator::PreMlpNorm | Operator::Mlp
    );
    if x.model().encoder.is_none() || !of_layer {
        return;
    }
    let source = Saved::new("gradient of the encoder's output", &[x.b, x.source(), x.h], x.width, &SOURCE);
    let distances = Saved::new("gradient of distances", &[x.a, x.s, x.s], x.width, &DISTANCES);
    for point in points {
        point.tensors.extend((!x.encodes).then_some(source));
        point.tensors.extend(x.trains.then_some(distances));
    }
}

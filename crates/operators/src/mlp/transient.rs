//! What backward holds at its three steps.

use crate::adapters::{LINEAR_FC1, LINEAR_FC2};
use crate::transient::{gathered, gathered_again, has_weight_gradient, masked, residual, scattered, tensors};
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::{Bytes, Count};

const MLP: &str = "megatron/core/transformer/mlp.py, backward";

static INNER: Formula = Formula::new("n·f·B", "Gradient of the activation's output.", MLP);
static BEFORE: Formula =
    Formula::new("g·n·f·B", "Gradient of the activation's input, both halves of a gated pair.", MLP);
static INPUT: Formula = Formula::new("n·h·B", "Gradient of the first projection's input.", MLP);
static FC1_WEIGHT: Formula = Formula::new("g·f·h·B", "The first projection's weight gradient.", MLP);
static FC2_WEIGHT: Formula = Formula::new("h·f·B", "The second projection's weight gradient.", MLP);

pub(crate) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    let weight = has_weight_gradient(x);
    let inner = Saved::new("gradient of the activation's output", &[x.n, x.f], x.width, &INNER);
    let before = Saved::new("gradient of the activation's input", &[x.n, x.gate * x.f], x.width, &BEFORE);
    let input = Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT);
    let fc1 = Saved::new("linear_fc1 weight gradient", &[x.gate * x.f, x.h], x.width, &FC1_WEIGHT);
    let fc2 = Saved::new("linear_fc2 weight gradient", &[x.h, x.f], x.width, &FC2_WEIGHT);

    let mut second = tensors([residual(x)]);
    second.extend(masked(x));
    // As after attention: a row-parallel layer's output gradient is gathered along the sequence before its GEMMs.
    second.extend(gathered(x, "gathered gradient"));
    second.push(inner);
    second.extend(weight.then_some(fc2));
    second.extend(LINEAR_FC2.gradient(x, Some(x.f)));
    let mut first = tensors([residual(x), before]);
    first.extend(gathered_again(x));
    first.push(input);
    first.extend(scattered(x));
    first.extend(weight.then_some(fc1));
    first.extend(LINEAR_FC1.gradient(x, None));
    // What was saved for a step is freed when the step is over, so later points hold fewer of the layer's own
    // activations.
    let [fc2_input, activation] = own(x);
    vec![
        Transient::new("backward of linear_fc2", Bytes::ZERO, second),
        Transient::new("backward of the activation", fc2_input, vec![residual(x), inner, before]),
        Transient::new("backward of linear_fc1", fc2_input + activation, first),
    ]
}

/// Saved bytes of the second projection's input, and of the activation's input.
fn own(x: &Symbols<'_>) -> [Bytes; 2] {
    let elements = |count: u64, width| Count::new(count).bytes(width);
    [elements(x.n * x.f, x.input_width), elements(x.n * x.f * x.gate, x.width)]
}

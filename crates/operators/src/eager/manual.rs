//! unsloth's projections with adapters and its MLP: one autograd function each, whose backward pass is written by hand. A layer
//! that such a function does not cover (dropout in front of an adapter, a bias, a projection without one) runs PEFT's modules.

use super::flow::is_adapted;
use super::tape::Tape;
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{LinearBias, LinearModule, Quantization};
use shardscope_units::Bytes;

const FUNCTIONS: &str = "unsloth/kernels/fast_lora.py:LoRA_QKV, LoRA_W, LoRA_MLP";
const DEQUANTIZE: &str = "unsloth/kernels/utils.py:fast_dequantize";
const LOSS: &str = "unsloth_zoo/fused_losses/cross_entropy_loss.py:UnslothFusedLoss.forward";
/// Elements of a 4-bit block, which has a constant (bitsandbytes).
const BLOCK: u64 = 64;
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static INPUT: Formula = Formula::new("n·h·Bc", "The input, for the gradients of the adapters.", FUNCTIONS);
static PRODUCT: Formula = Formula::new(
    "n·f·Bc",
    "The product of both halves in the forward pass done again, then its gradient.",
    FUNCTIONS,
);
static WHOLE_MLP: Formula =
    Formula::new("f·h·Bc", "A quantised weight in full, for one product.", DEQUANTIZE);
static WHOLE: Formula = Formula::new("A·h·Bc", "A quantised weight in full, for one product.", DEQUANTIZE);
static SCALES_MLP: Formula = Formula::new("f·h/16", "The constants of its blocks, fp32.", DEQUANTIZE);
static SCALES: Formula = Formula::new("A·h/16", "The constants of its blocks, fp32.", DEQUANTIZE);
static LOGITS: Formula = Formula::new(
    "2·rows·V·B",
    "Logits of a chunk of rows and their gradient, in the type of the weight: torch.compile fuses the casts to fp32.",
    LOSS,
);
static STATES: Formula = Formula::new("n·h·B", "The output layer's input.", LOSS);
static PART: Formula = Formula::new("rows·h·B", "The gradient of a chunk's input before it is copied.", LOSS);

/// Whether `modules` all have adapters and no dropout stands in front of them.
fn covers(x: &Symbols<'_>, modules: &[LinearModule]) -> bool {
    let plain = x.recipe().tuning.lora.is_some_and(|lora| !lora.dropout && !lora.dora);
    x.recipe().software.semantics().modules.fuses_adapters
        && plain
        && modules.iter().all(|module| is_adapted(x, *module))
}

/// Whether queries, keys and values are one function: none has a bias.
pub(super) fn queries(x: &Symbols<'_>) -> bool {
    x.model().linear_bias == LinearBias::None
        && covers(x, &[LinearModule::Query, LinearModule::Key, LinearModule::Value])
}

/// Whether the attention's output projection is one.
pub(super) fn output(x: &Symbols<'_>) -> bool {
    matches!(x.model().linear_bias, LinearBias::None | LinearBias::QkvOnly)
        && covers(x, &[LinearModule::Output])
}

/// Whether the MLP is one.
pub(super) fn mlp(x: &Symbols<'_>) -> bool {
    matches!(x.model().linear_bias, LinearBias::None | LinearBias::QkvOnly)
        && x.model().activation.is_gated()
        && covers(x, &[LinearModule::Gate, LinearModule::Up, LinearModule::Down])
}

/// The input of queries, keys and values, or of the MLP.
pub(super) fn keep_input(tape: &mut Tape<'_, '_>, name: &'static str) {
    let x = tape.x;
    tape.keep(true, name, &[x.n, x.h], x.compute_width, &INPUT);
}

/// What dequantising a weight of the MLP or of the attention takes beside the buffer that stays.
fn whole(x: &Symbols<'_>, of_mlp: bool) -> Vec<Saved> {
    if x.recipe().tuning.quantization == Quantization::None {
        return Vec::new();
    }
    let (inner, formula, scales) =
        if of_mlp { (x.f, &WHOLE_MLP, &SCALES_MLP) } else { (x.a * x.d, &WHOLE, &SCALES) };
    vec![
        Saved::new("weight in full", &[inner, x.h], x.compute_width, formula),
        Saved::new("constants of its blocks", &[inner * x.h / BLOCK], FLOAT, scales),
    ]
}

/// What the attention's projections hold in backward beside the gradients of their outputs: that of the input takes its place.
pub(super) fn projection(x: &Symbols<'_>) -> Vec<Saved> {
    whole(x, false)
}

/// What the MLP's backward holds.
pub(super) fn mlp_backward(x: &Symbols<'_>, residual: Saved) -> Vec<Transient> {
    let mut tensors =
        vec![residual, Saved::new("product or its gradient", &[x.n, x.f], x.compute_width, &PRODUCT)];
    tensors.extend(whole(x, true));
    vec![Transient::new("backward of the MLP", Bytes::ZERO, tensors)]
}

/// What the output layer and the loss hold: a chunk of rows at a time.
pub(super) fn loss(x: &Symbols<'_>) -> Vec<Saved> {
    let rows = x.chunk_rows();
    vec![
        Saved::new("logits of a chunk and their gradient", &[2, rows, x.v], x.width, &LOGITS),
        Saved::new("output layer's input", &[x.n, x.h], x.width, &STATES),
        Saved::new("gradient of a chunk's input", &[rows, x.h], x.width, &PART),
    ]
}

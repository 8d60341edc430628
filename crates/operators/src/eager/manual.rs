//! unsloth's and axolotl's projections with adapters and their MLPs: one autograd function each, with a hand-written
//! backward pass. A layer that such a function does not cover runs PEFT's modules: in unsloth one with adapter
//! dropout or a bias, and in both one with a projection that has no adapter.

use super::flow::is_adapted;
use super::linear::Linear;
use super::tape::Tape;
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{AdapterKernels, LinearBias, LinearModule, Quantization};
use shardscope_units::Bytes;

const FUNCTIONS: &str = "unsloth/kernels/fast_lora.py:LoRA_QKV, LoRA_W, LoRA_MLP";
const AXOLOTL: &str = "axolotl/kernels/lora.py:LoRA_QKV, LoRA_O, LoRA_MLP";
const AUTOMODEL: &str = "nemo_automodel/components/_peft/lora_mlp.py:LoRASwiGLUMLPFunction.backward";
const DEQUANTIZE: &str = "unsloth/kernels/utils.py:fast_dequantize";
const LOSS: &str = "unsloth_zoo/fused_losses/cross_entropy_loss.py:UnslothFusedLoss.forward";
/// Elements of a 4-bit block, which share a constant (bitsandbytes).
const BLOCK: u64 = 64;
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static INPUT: Formula = Formula::new("n·h·Bc", "The input, for the gradients of the adapters.", FUNCTIONS);
static DROPPED: Formula = Formula::new("n·h·Bc", "The input after the adapters' dropout.", AXOLOTL);
static MASK: Formula = Formula::new("n·h", "The mask of this dropout, one byte each.", AXOLOTL);
static DROPPED_HEADS: Formula = Formula::new("n·A·Bc", "The input after the adapter's dropout.", AXOLOTL);
static MASK_HEADS: Formula = Formula::new("n·A", "The mask of this dropout, one byte each.", AXOLOTL);
static INPUT_GRADIENT: Formula = Formula::new("n·h·Bc", "The gradient of an input.", AXOLOTL);
static OUTPUT_GRADIENT: Formula = Formula::new("n·A·Bc", "The gradient of an input.", AXOLOTL);
static PRODUCT: Formula = Formula::new(
    "n·f·Bc",
    "The product of gate and up in the recomputed forward pass, then its gradient.",
    FUNCTIONS,
);
static PRODUCTS: Formula = Formula::new(
    "2·n·f·Bc",
    "The gradient of the product of gate and up, without its adapter's part and with it.",
    AUTOMODEL,
);
static PRODUCT_AGAIN: Formula =
    Formula::new("n·f·Bc", "The product of gate and up, written over its gradient.", AUTOMODEL);
static INPUTS: Formula = Formula::new(
    "2·n·h·Bc",
    "The gradient of the input by one projection, and with its adapter's.",
    AUTOMODEL,
);
static WHOLE_MLP: Formula = Formula::new("f·h·Bc", "A dequantized weight, for one GEMM.", DEQUANTIZE);
static WHOLE: Formula = Formula::new("A·h·Bc", "A dequantized weight, for one GEMM.", DEQUANTIZE);
static SCALES_MLP: Formula = Formula::new("f·h/16", "Its block scales (absmax), fp32.", DEQUANTIZE);
static SCALES: Formula = Formula::new("A·h/16", "Its block scales (absmax), fp32.", DEQUANTIZE);
static LOGITS: Formula = Formula::new(
    "2·rows·V·B",
    "Logits of a chunk of rows and their gradient, in the weight's dtype: torch.compile fuses the casts to fp32.",
    LOSS,
);
static HEAD: Formula =
    Formula::new("V·h·B", "The weight gradient of one chunk, before it is accumulated.", LOSS);
static STATES: Formula = Formula::new("n·h·B", "The output layer's input.", LOSS);
static PART: Formula = Formula::new("rows·h·B", "The gradient of a chunk's input before it is copied.", LOSS);

/// Whether unsloth's functions cover `modules`: all have adapters without dropout, and the layer is one that it
/// implements itself, not one of transformers' that it compiles.
fn unsloth(x: &Symbols<'_>, modules: &[LinearModule]) -> bool {
    let plain = x.recipe().tuning.lora.is_some_and(|lora| !lora.dropout && !lora.dora);
    x.recipe().software.semantics().modules.fuses_adapters
        && !x.recipe().fusions.compiled_layers
        && plain
        && modules.iter().all(|module| is_adapted(x, *module))
}

/// Whether axolotl's functions cover them if enabled; these also support dropout and biases.
fn axolotl(x: &Symbols<'_>, modules: &[LinearModule], on: impl Fn(AdapterKernels) -> bool) -> bool {
    x.recipe().tuning.lora.is_some_and(|lora| on(lora.kernels) && !lora.dora)
        && modules.iter().all(|module| is_adapted(x, *module))
}

/// Whether queries, keys and values are one function: unsloth's has no bias.
pub(super) fn queries(x: &Symbols<'_>) -> bool {
    let modules = [LinearModule::Query, LinearModule::Key, LinearModule::Value];
    (x.model().linear_bias == LinearBias::None && unsloth(x, &modules))
        || (!x.model().arrangement.fused_qkv && axolotl(x, &modules, |kernels| kernels.queries))
}

/// Whether the attention's output projection is one.
pub(super) fn output(x: &Symbols<'_>) -> bool {
    let modules = [LinearModule::Output];
    (matches!(x.model().linear_bias, LinearBias::None | LinearBias::QkvOnly) && unsloth(x, &modules))
        || axolotl(x, &modules, |kernels| kernels.output)
}

/// Whether the MLP is one.
pub(super) fn mlp(x: &Symbols<'_>) -> bool {
    let modules = [LinearModule::Gate, LinearModule::Up, LinearModule::Down];
    let known = matches!(x.model().linear_bias, LinearBias::None | LinearBias::QkvOnly);
    x.model().activation.is_gated()
        && ((known && unsloth(x, &modules))
            || (!x.model().arrangement.fused_gate_up && axolotl(x, &modules, |kernels| kernels.mlp)))
}

/// The input of queries, keys and values, or of the MLP, and what axolotl saves in addition.
pub(super) fn keep_input(tape: &mut Tape<'_, '_>, name: &'static str, needed: bool, parts: &[Part]) {
    let x = tape.x;
    tape.keep(true, name, &[x.n, x.h], x.compute_width, &INPUT);
    keep_beside(tape, needed, parts, false);
}

/// A projection, and its sizes.
pub(super) type Part = (&'static Linear, [u64; 2]);

/// What axolotl saves in addition to the input of `parts`: its dropout output with the mask, once for all readers,
/// and the adapters' matrices cast to the input's dtype. `of_heads`: the input is the attention's output, as wide as
/// its heads; otherwise it is as wide as the residual stream.
pub(super) fn keep_beside(tape: &mut Tape<'_, '_>, needed: bool, parts: &[Part], of_heads: bool) {
    let x = tape.x;
    if x.recipe().software.semantics().modules.fuses_adapters {
        return;
    }
    let (columns, dropped, mask) =
        if of_heads { (x.a * x.d, &DROPPED_HEADS, &MASK_HEADS) } else { (x.h, &DROPPED, &MASK) };
    let dropout = x.recipe().tuning.lora.is_some_and(|lora| lora.dropout);
    if let Some((first, _)) = parts.first().filter(|_| dropout) {
        let [input, bytes] = first.adapter_names();
        tape.keep(true, input, &[x.n, columns], x.compute_width, dropped);
        tape.keep(needed, bytes, &[x.n, columns], 1, mask);
    }
    if x.adapter_width != x.compute_width {
        for (linear, sizes) in parts {
            linear.keep_casts(tape, *sizes);
        }
    }
}

/// What dequantizing a weight of the MLP or of the attention takes in addition to the persistent buffer.
fn whole(x: &Symbols<'_>, of_mlp: bool) -> Vec<Saved> {
    if x.recipe().tuning.quantization == Quantization::None {
        return Vec::new();
    }
    let (inner, formula, scales) =
        if of_mlp { (x.f, &WHOLE_MLP, &SCALES_MLP) } else { (x.a * x.d, &WHOLE, &SCALES) };
    vec![
        Saved::new("dequantized weight", &[inner, x.h], x.compute_width, formula),
        Saved::new("constants of its blocks", &[inner * x.h / BLOCK], FLOAT, scales),
    ]
}

/// What the attention's projections hold in backward in addition to the gradients of their outputs. unsloth writes
/// the input's gradient in place; axolotl allocates it.
pub(super) fn projection(x: &Symbols<'_>, of_output: bool) -> Vec<Saved> {
    let mut out = whole(x, false);
    let (columns, formula) = if of_output { (x.a * x.d, &OUTPUT_GRADIENT) } else { (x.h, &INPUT_GRADIENT) };
    out.extend(input_gradient(x, columns, formula));
    out
}

fn input_gradient(x: &Symbols<'_>, columns: u64, formula: &'static Formula) -> Vec<Saved> {
    if x.recipe().software.semantics().modules.fuses_adapters {
        return Vec::new();
    }
    let gradient = |name| Saved::new(name, &[x.n, columns], x.compute_width, formula);
    let mut out = vec![gradient("gradient of the input")];
    if x.recipe().tuning.lora.is_some_and(|lora| lora.dropout) {
        out.push(gradient("gradient of the dropped input"));
    }
    out
}

/// What the MLP's backward holds.
pub(super) fn mlp_backward(x: &Symbols<'_>, residual: Saved) -> Vec<Transient> {
    if x.recipe().tuning.lora.is_some_and(|lora| lora.kernels.each) {
        return automodels_mlp(x, residual);
    }
    let mut tensors =
        vec![residual, Saved::new("product or its gradient", &[x.n, x.f], x.compute_width, &PRODUCT)];
    tensors.extend(whole(x, true));
    tensors.extend(input_gradient(x, x.h, &INPUT_GRADIENT));
    vec![Transient::new("backward of the MLP", Bytes::ZERO, tensors)]
}

/// Automodel's: the gradient of the product is added to that of the adapter in a tensor of its own, and backward of the activation writes
/// over both halves and the product's gradient; so does that of the input (`LoRASwiGLUMLPFunction.backward`, `torch.addmm`).
fn automodels_mlp(x: &Symbols<'_>, residual: Saved) -> Vec<Transient> {
    let products = Saved::several("gradients of the product", &[2, x.n, x.f], x.compute_width, &PRODUCTS);
    let product = Saved::new("product", &[x.n, x.f], x.compute_width, &PRODUCT_AGAIN);
    let inputs = Saved::several("gradients of the input", &[2, x.n, x.h], x.compute_width, &INPUTS);
    vec![
        Transient::new("backward of down_proj", Bytes::ZERO, vec![residual, products]),
        Transient::new("backward of gate_proj and up_proj", Bytes::ZERO, vec![residual, product, inputs]),
    ]
}

/// What the output layer and the loss hold: one chunk of rows at a time.
pub(super) fn loss(x: &Symbols<'_>) -> Vec<Saved> {
    let rows = x.chunk_rows();
    vec![
        Saved::several("logits of a chunk and their gradient", &[2, rows, x.v], x.width, &LOGITS),
        Saved::new("output layer's input", &[x.n, x.h], x.width, &STATES),
        Saved::new("gradient of a chunk's input", &[rows, x.h], x.width, &PART),
    ]
}

/// What the loss holds in addition if the output layer trains; in backward it is the same amount, since the gradient
/// is scaled into a copy.
pub(super) fn loss_of_head(x: &Symbols<'_>) -> Saved {
    Saved::new("a chunk's weight gradient", &[x.v, x.h], x.width, &HEAD)
}

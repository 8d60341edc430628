//! The dense MLP: with an activation and a product as two operations if it is gated.

use super::flow::{Flow, is_adapted};
use super::linear::{DOWN, FIRST, GATE, GATE_UP, Input, UP};
use super::tape::{Step, Tape};
use super::{attention, manual, norm};
use shardscope_explain::Formula;
use shardscope_plan::{ActivationSteps, LinearModule};

const MLP: &str = "transformers/models/llama/modeling_llama.py:LlamaMLP";
const NEW_GELU: &str = "transformers/activations.py:NewGELUActivation";
const LIGER: &str = "liger_kernel/ops/swiglu.py:LigerSiLUMulFunction";
const POWER: &str = "aten/src/ATen/autocast_mode.h:AT_FORALL_FP32, of which pow is; transformers/activations.py:NewGELUActivation";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch bool.
const BYTE: u64 = 1;
/// Name of a ReLU's output, which the last projection reads.
const ACTIVATION: &str = "activation output";
/// Name of the tensor that the first projections read.
const NORMED: &str = "MLP input";

const INPUT: &str = "The activation's input.";
const OF_GATE: &str = "The activated gate, for the gradient of the up projection.";
const OF_UP: &str = "The up projection's output, for the gradient of the activated gate.";
static GATED: Formula = Formula::new("n·f·Bc", INPUT, MLP);
static ACTIVATED: Formula = Formula::new("n·f·Bc", OF_GATE, MLP);
static OTHER: Formula = Formula::new("n·f·Bc", OF_UP, MLP);
// Of layers whose norms are in fp32: quantized products return their input's format, whatever autocast casts.
static UPCAST_GATED: Formula = Formula::new("4·n·f", INPUT, MLP);
static UPCAST_ACTIVATED: Formula = Formula::new("4·n·f", OF_GATE, MLP);
static UPCAST_OTHER: Formula = Formula::new("4·n·f", OF_UP, MLP);
static RECTIFIED: Formula =
    Formula::new("n·f·Bc", "The ReLU's output, whose zeros mask the gradient.", "torch.nn.functional.relu");
static NEW_GELU_STEPS: Formula =
    Formula::new("3·n·f·Bc", "Half the input, the tanh, and one plus the tanh.", NEW_GELU);
static WIDENED: Formula =
    Formula::new("4·n·f", "The activation's input, which autocast casts to fp32 for its cube.", POWER);
static WIDE_ACTIVATED: Formula =
    Formula::new("4·n·f", "The activated gate in fp32, for the gradient of the up projection.", POWER);
static INNER_MASK: Formula = Formula::new(
    "n·f",
    "Dropout mask of the last projection's input, one byte each.",
    "aten/src/ATen/native/cuda/Dropout.cu:native_dropout",
);
static HALF: Formula = Formula::new("n·f·Bc", "Half of the activation's input.", POWER);
static WIDE_STEPS: Formula =
    Formula::new("8·n·f", "The tanh and one plus it, in fp32 as the cube is.", POWER);
const XIELU: &str = "transformers/activations.py:XIELUActivation._xielu_python";
/// Each in the products' dtype, and in fp32.
static XIELU_SQUARE: [Formula; 2] = [
    Formula::new(
        "n·f·Bc",
        "The input times the weight of its positive side, which is multiplied by the input once more.",
        XIELU,
    ),
    Formula::new(
        "4·n·f",
        "The input times the weight of its positive side, which is multiplied by the input once more.",
        XIELU,
    ),
];
static XIELU_STEPS: [Formula; 2] = [
    Formula::new(
        "n·f·Bc",
        "On the negative side, the exponential less one, or its difference from the input.",
        XIELU,
    ),
    Formula::new(
        "4·n·f",
        "On the negative side, the exponential less one, or its difference from the input.",
        XIELU,
    ),
];
static XIELU_WEIGHTS: [Formula; 2] = [
    Formula::new("2·Bc", "Both weights through their softplus.", XIELU),
    Formula::new("8", "Both weights through their softplus.", XIELU),
];
static XIELU_SIGNS: Formula = Formula::new("n·f", "Which elements are positive, one byte each.", XIELU);
static XIELU_CASTS: Formula = Formula::new("8", "Both weights, which autocast casts to fp32.", XIELU);
static MASK: Formula = Formula::new(
    "n·h",
    "Dropout mask of its output, one byte each.",
    "aten/src/ATen/native/cuda/Dropout.cu:native_dropout",
);
static BOTH: Formula = Formula::new("2·n·f·Bc", "Gate and up in one storage.", MLP);
static KERNEL: Formula = Formula::new("n·f·Bc", "The gate's half; its activation is recomputed.", LIGER);

pub(super) fn mlp(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let flow = Flow::new(x);
    tape.step = Step::First;
    if manual::mlp(x) {
        let (first, last) = ([x.h, x.f], [x.f, x.h]);
        let parts = [(&GATE, first), (&UP, first), (&DOWN, last)];
        manual::keep_input(tape, NORMED, flow.norm2, &parts);
        tape.step = Step::Core;
        tape.keep(true, "gate", &[x.n, x.f], x.compute_width, &GATED);
        tape.keep(true, "up", &[x.n, x.f], x.compute_width, &OTHER);
        norm::post(tape, true);
        return;
    }
    let arranged = &x.model().arrangement;
    let steps = arranged.activation_steps;
    // On a GPU autocast computes the third power, and what follows from it, in fp32 (measured with GPT-2). With a
    // gate it is counted as a CPU's autocast saves it.
    let gated = x.model().activation.is_gated();
    let counted = !gated || x.model().encoder.is_some();
    let widened = steps == ActivationSteps::NewGelu && counted && x.recipe().autocasts();
    let input = Input { shared: Some(NORMED), needed: flow.norm2, cast: false };
    let needed = if !x.model().activation.is_gated() {
        let first = FIRST.run(tape, input, [x.h, x.f]);
        tape.step = Step::Core;
        if steps == ActivationSteps::Relu {
            tape.keep(first, ACTIVATION, &[x.n, x.f], x.projected_width, &RECTIFIED);
        } else if widened {
            tape.keep(first, "activation input in fp32", &[x.n, x.f], FLOAT, &WIDENED);
        } else {
            tape.keep(first, "activation input", &[x.n, x.f], x.projected_width, &GATED);
        }
        first
    } else if x.model().arrangement.fused_gate_up {
        let both = GATE_UP.run(tape, input, [x.h, 2 * x.f]);
        tape.step = Step::Core;
        tape.keep(both, "gate and up", &[x.n, 2 * x.f], x.projected_width, &BOTH);
        tape.keep(
            both && !x.recipe().transformers.liger_gates,
            "activated gate",
            &[x.n, x.f],
            x.projected_width,
            &ACTIVATED,
        );
        both
    } else {
        let gate = GATE.run(tape, input, [x.h, x.f]);
        let up = UP.run(tape, input, [x.h, x.f]);
        tape.step = Step::Core;
        product(tape, gate, up, widened);
        gate || up
    };
    let new = needed && steps == ActivationSteps::NewGelu;
    if new && widened {
        tape.keep(true, "half of the activation's input", &[x.n, x.f], x.compute_width, &HALF);
        tape.keep_several(true, "steps of the activation in fp32", &[2, x.n, x.f], FLOAT, &WIDE_STEPS);
    } else {
        tape.keep_several(new, "steps of the activation", &[3, x.n, x.f], x.projected_width, &NEW_GELU_STEPS);
    }
    if steps == ActivationSteps::Xielu {
        xielu(tape, needed);
    }
    let drops = arranged.dropout.mlp;
    tape.keep(drops && needed, "mask of the dropout within the MLP", &[x.n, x.f], BYTE, &INNER_MASK);
    tape.step = Step::Last;
    let shared = (steps == ActivationSteps::Relu && !drops).then_some(ACTIVATION);
    // xIELU's weights make its output fp32 under autocast.
    let cast =
        x.projected_width == x.compute_width && !(steps == ActivationSteps::Xielu && x.recipe().autocasts());
    let down = DOWN.run(tape, Input { shared, needed, cast }, [x.f, x.h]);
    debug_assert!(down || !is_adapted(x, LinearModule::Down));
    tape.step = Step::Core;
    tape.keep(arranged.dropout.residual && down, "mask of the MLP's dropout", &[x.n, x.h], BYTE, &MASK);
    norm::post(tape, down);
    if arranged.single_norm && attention::keeps_input(x) {
        tape.saved.retain(|(_, saved)| saved.name != NORMED);
    }
}

/// What xIELU saves beside its input if that requires a gradient: its operations are in fp32 under autocast, which takes
/// the softplus of its weights so (`aten/src/ATen/autocast_mode.h:AT_FORALL_FP32`).
fn xielu(tape: &mut Tape<'_, '_>, needed: bool) {
    let x = tape.x;
    let autocasts = x.recipe().autocasts();
    let (width, at) = if autocasts { (FLOAT, 1) } else { (x.projected_width, 0) };
    let wide = [x.n, x.f];
    tape.keep(needed, "input times its weight", &wide, width, &XIELU_SQUARE[at]);
    tape.keep(needed, "exponential of the activation", &wide, width, &XIELU_STEPS[at]);
    tape.keep(needed && x.trains, "exponential less the input", &wide, width, &XIELU_STEPS[at]);
    tape.keep(needed, "signs of the activation's input", &wide, BYTE, &XIELU_SIGNS);
    tape.keep(needed, "weights of the activation", &[2], width, &XIELU_WEIGHTS[at]);
    let casts = x.trains && autocasts && x.width < FLOAT;
    tape.keep(needed && casts, "weights of the activation in fp32", &[2], FLOAT, &XIELU_CASTS);
}

/// The activation of the gate and its product with the other half.
fn product(tape: &mut Tape<'_, '_>, gate: bool, up: bool, widened: bool) {
    let x = tape.x;
    let wide = [x.n, x.f];
    let [gated, activated, other] = if x.projected_width > x.compute_width {
        [&UPCAST_GATED, &UPCAST_ACTIVATED, &UPCAST_OTHER]
    } else {
        [&GATED, &ACTIVATED, &OTHER]
    };
    if x.recipe().transformers.liger_gates {
        tape.keep(gate || up, "gate", &wide, x.projected_width, &KERNEL);
        tape.keep(gate || up, "up", &wide, x.projected_width, other);
        return;
    }
    if widened {
        tape.keep(gate, "activation input in fp32", &wide, FLOAT, &WIDENED);
        tape.keep(up, "activated gate", &wide, FLOAT, &WIDE_ACTIVATED);
        tape.keep(gate, "up", &wide, x.projected_width, other);
        return;
    }
    tape.keep(gate, "gate", &wide, x.projected_width, gated);
    tape.keep(up, "activated gate", &wide, x.projected_width, activated);
    tape.keep(gate, "up", &wide, x.projected_width, other);
}

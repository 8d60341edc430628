//! What backward holds on the way through combination, experts and dispatch.

use crate::anatomy::held::residual;
use crate::anatomy::{Held, Saved, Symbols};
use crate::explain::Formula;
use crate::quantity::Bytes;

const EXPERTS: &str = "megatron/core/transformer/moe/experts.py, backward";

static INNER: Formula = Formula::new("R·fm·B", "Gradient of the experts' activation output.", EXPERTS);
static BEFORE: Formula = Formula::new("g·R·fm·B", "Gradient of the experts' activation input.", EXPERTS);
static INPUT: Formula = Formula::new("R·hm·B", "Gradient of the experts' input.", EXPERTS);
static OUTPUT: Formula = Formula::new("R·hm·B", "Gradient of the experts' output.", EXPERTS);

pub(in crate::anatomy) fn held(x: &Symbols<'_>) -> Vec<Held> {
    let moe = x.moe;
    let inner = [moe.received, moe.ffn];
    let elements = |count: u64, width| Bytes::new(count.saturating_mul(width));
    let fc2_input = elements(moe.received * moe.ffn, x.input_width);
    let activation = elements(moe.received * moe.ffn * x.gate, x.width);
    let wide = [moe.received, moe.hidden];
    let output = Saved::new("gradient of the experts' output", &wide, x.width, &OUTPUT);
    let inner = Saved::new("gradient of the activation's output", &inner, x.width, &INNER);
    let before =
        Saved::new("gradient of the activation's input", &[moe.received, x.gate * moe.ffn], x.width, &BEFORE);
    let input = Saved::new("gradient of the experts' input", &wide, x.width, &INPUT);
    vec![
        Held::new("backward of the experts' linear_fc2", Bytes::ZERO, vec![residual(x), output, inner]),
        Held::new("backward of the experts' activation", fc2_input, vec![residual(x), inner, before]),
        Held::new(
            "backward of the experts' linear_fc1",
            fc2_input + activation,
            vec![residual(x), before, input],
        ),
    ]
}

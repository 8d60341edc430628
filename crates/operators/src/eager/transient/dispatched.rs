//! What experts behind a fused exchange hold in addition: forward's variables while the output is combined, and the
//! gradients of backward, which takes the same way back.

use super::super::tape::Step;
use super::shared::{AUTOGRAD, residual, returned};
use crate::{Operator, Parts, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const MODULE: &str = "nemo_automodel/components/moe/experts.py:GroupedExpertsDeepEP.forward";
const DISPATCHER: &str =
    "nemo_automodel/components/moe/megatron/token_dispatcher.py:MoEFlexTokenDispatcher.token_unpermutation";

static OUTPUT: Formula =
    Formula::new("T·h·B", "The experts' output, which forward's variable holds.", MODULE);
static RESTORED: Formula = Formula::new(
    "n·fan·h·B",
    "The sum of each received token's outputs, before it is sent back.",
    DISPATCHER,
);
static COMBINED: Formula = Formula::new("n·h·B", "The layer's combined output.", DISPATCHER);
static SHARED: Formula =
    Formula::new("n·h·B", "The shared experts' output, waiting for the routed ones'.", MODULE);
static ARRIVED: Formula =
    Formula::new("n·fan·h·B", "Gradient of what was sent back, as it arrives.", DISPATCHER);
static OUTPUT_GRADIENT: Formula = Formula::new("T·h·B", "Gradient of the experts' output.", AUTOGRAD);
static INNER: Formula = Formula::new("T·fm·B", "Gradient of the activation's output.", AUTOGRAD);
static BEFORE: Formula = Formula::new("2·T·fm·B", "Gradients of both halves.", AUTOGRAD);
static INPUT: Formula = Formula::new("T·h·B", "Gradient of the experts' input.", AUTOGRAD);
static SECOND: Formula =
    Formula::new("E/e·fm·h·B", "Gradient of the second weights of the rank's experts.", AUTOGRAD);
static FIRST: Formula =
    Formula::new("2·E/e·fm·h·B", "Gradient of the first weights of the rank's experts.", AUTOGRAD);

/// Every point, in the order of the passes.
pub(super) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    let (moe, width) = (x.moe, x.width);
    let local = moe.experts / x.plan.layout().expert.max(1);
    let (wide, received) = ([moe.sent, x.h], [x.n * moe.fan, x.h]);
    let tensor = |name, shape: &[u64], formula| Saved::new(name, shape, width, formula);
    let mut combining = vec![
        tensor("experts' output", &wide, &OUTPUT),
        tensor("output before it is sent back", &received, &RESTORED),
        tensor("combined output", &[x.n, x.h], &COMBINED),
    ];
    if moe.shared > 0 {
        combining.push(tensor("shared experts' output", &[x.n, x.h], &SHARED));
    }
    let output = tensor("gradient of the experts' output", &wide, &OUTPUT_GRADIENT);
    let arrived = tensor("gradient of what was sent back", &received, &ARRIVED);
    let inner = tensor("gradient of the activation's output", &[moe.sent, moe.ffn], &INNER);
    let before = tensor("gradients of both halves", &[moe.sent, 2 * moe.ffn], &BEFORE);
    let input = tensor("gradient of the experts' input", &wide, &INPUT);
    let second =
        tensor("gradient of the second weights", &[local, moe.ffn, x.h], &SECOND).cut(Parts::Gradient);
    let first =
        tensor("gradient of the first weights", &[2 * local, moe.ffn, x.h], &FIRST).cut(Parts::Gradient);
    let of = |steps: &[Step]| returned(Operator::Experts, x, steps);
    vec![
        Transient::forward("forward of the combination", combining),
        Transient::new("backward of the combination", Bytes::ZERO, vec![residual(x), arrived, output]),
        Transient::new(
            "backward of the experts' second product",
            Bytes::ZERO,
            vec![residual(x), output, inner, second],
        ),
        Transient::new(
            "backward of the experts' activation",
            of(&[Step::Last]),
            vec![residual(x), inner, before, second],
        ),
        Transient::new(
            "backward of the experts' first product",
            of(&[Step::Last, Step::Core]),
            vec![residual(x), before, input, second, first],
        ),
    ]
}

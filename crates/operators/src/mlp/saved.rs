//! Tensors saved for backward.

use crate::adapters::{Alive, LINEAR_FC1, LINEAR_FC2, input_needs_gradient};
use crate::attention::residual_mask;
use crate::{Operator, Saved, Symbols, column, norm};
use shardscope_explain::Formula;
use shardscope_plan::{GatedActivation, RecomputeModule};

const MLP: &str = "megatron/core/transformer/mlp.py";

static INPUT: Formula = Formula::new("S·h·Bi", "The first projection's input: the norm output.", MLP);
static GATHERED: Formula = Formula::new("n·h·Bi", "The first projection's input, gathered.", MLP);
static CHECKPOINTED: Formula = Formula::new("S·h·B", "The recomputed MLP's input: the norm output.", MLP);
static ACTIVATION: Formula =
    Formula::new("g·n·f·B", "The activation's input, both halves of a gated pair.", MLP);
static SILU: Formula = Formula::new("n·f·B", "The activated gate, saved by the unfused multiplication.", MLP);
static LINEAR: Formula = Formula::new(
    "n·f·B",
    "The linear (up) half with its offset added: a copy made by the unfused activation.",
    MLP,
);
static OUTPUT: Formula = Formula::new("n·f·Bi", "The second projection's input: the activation output.", MLP);

pub(crate) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = Vec::with_capacity(6);
    let given_back =
        norm::is_recomputed(Operator::PreMlpNorm, x) || norm::is_in_recomputed_mlp(Operator::PreMlpNorm, x);
    if x.recomputes(RecomputeModule::Mlp) {
        if !given_back {
            out.push(Saved::new("mlp input", &[x.s_local, x.h], x.width, &CHECKPOINTED));
        }
    } else {
        let needed = input_needs_gradient(Operator::Mlp, x);
        let input = column::input(x, "linear_fc1 input", x.input_width, &INPUT, &GATHERED);
        let joined = x.recipe().software.semantics().norm_in_projection;
        out.extend(LINEAR_FC1.column(x, input, [joined, needed], norm::alive(Operator::PreMlpNorm, x)));
        let between = needed || LINEAR_FC1.is_adapted(x);
        // If neither fc1's input needs a gradient nor an adapter on fc1 trains, backward ends at fc2: autograd saves
        // nothing here.
        if between {
            out.push(Saved::new("activation input", &[x.n, x.gate * x.f], x.width, &ACTIVATION));
            out.extend(unfused(x));
        }
        let input = Saved::new("linear_fc2 input", &[x.n, x.f], x.input_width, &OUTPUT);
        out.extend(LINEAR_FC2.row(x, input, [x.n, x.f], Alive::No, between));
    }
    out.extend(residual_mask(x));
    out
}

/// What a gated activation saves in addition to its input if it is not one kernel. Megatron core introduced the
/// offset of the linear half; older code and other trainers multiply the half directly.
fn unfused(x: &Symbols<'_>) -> Vec<Saved> {
    if !x.model().activation.is_gated() || is_fused(x) {
        return Vec::new();
    }
    let mut out = vec![Saved::new("activated half", &[x.n, x.f], x.width, &SILU)];
    if x.recipe().software.semantics().gated_activation == GatedActivation::KernelOrOffset {
        out.push(Saved::new("offset linear half", &[x.n, x.f], x.width, &LINEAR));
    }
    out
}

/// Whether the gated activation is one kernel: only Megatron core has one.
fn is_fused(x: &Symbols<'_>) -> bool {
    x.recipe().fusions.bias_activation
        && x.recipe().software.semantics().gated_activation == GatedActivation::KernelOrOffset
}

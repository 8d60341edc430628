//! Tensors saved for backward: the norm's input, which is the residual stream, and its fp32 statistics. Its output is
//! counted by its readers.

use crate::adapters::{Alive, input_needs_gradient};
use crate::{Operator, Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{Normalization, OffloadModule, RecomputeModule};

const SOURCE: &str = "megatron/core/transformer/transformer_layer.py";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;

static INPUT: Formula = Formula::new("S·h·Br", "The norm's input, which is the residual stream.", SOURCE);
static MEAN: Formula = Formula::new("4·S", "The mean of each token, in fp32 (LayerNorm only).", SOURCE);
static DEVIATION: Formula =
    Formula::new("4·S", "The reciprocal standard deviation of each token, fp32.", SOURCE);

pub(crate) fn saved(operator: Operator, x: &Symbols<'_>) -> Vec<Saved> {
    // A frozen norm over an input without gradient is not a node of autograd's graph.
    if !input_needs_gradient(operator, x) {
        return Vec::new();
    }
    let kept = if is_recomputed(operator, x) || is_in_recomputed_mlp(operator, x) {
        vec![Saved::new("norm input", &[x.s_local, x.h], x.residual_width, &INPUT)]
    } else if matches!(operator, Operator::PreMlpNorm | Operator::PreExpertsNorm) && x.sums_before_reducing()
    {
        // The layer's own input, which the norm before attention saves.
        kept(x).into_iter().skip(usize::from(!x.recipe().fusions.memory_efficient_norm)).collect()
    } else {
        kept(x)
    };
    let savers = savers(operator, x);
    kept.into_iter().map(|saved| saved.by(savers)).collect()
}

/// The module that saves a norm's tensors: itself if it is a separate module, otherwise the projection that it is
/// fused into (`transformer_layer.py:_set_offload_modules`).
fn savers(operator: Operator, x: &Symbols<'_>) -> &'static [OffloadModule] {
    match operator {
        Operator::InputNorm if stands_alone(operator, x) => &[OffloadModule::AttentionNorm],
        Operator::InputNorm => &[OffloadModule::QkvLinear],
        Operator::PreExpertsNorm | Operator::PreMlpNorm if stands_alone(operator, x) => {
            &[OffloadModule::MlpNorm]
        }
        _ => &[],
    }
}

/// Whether a norm of the layers is recomputed (`--recompute-modules layernorm`): only a separate module, which the
/// layer can checkpoint (`transformer_layer.py`: `recompute_input_layernorm` is set if the norm is not an
/// `IdentityOp`).
pub(crate) fn is_recomputed(operator: Operator, x: &Symbols<'_>) -> bool {
    x.recomputes(RecomputeModule::LayerNorm) && stands_alone(operator, x)
}

/// Whether a norm is a separate module of a layer, which `layernorm` can name.
pub(crate) fn stands_alone(operator: Operator, x: &Symbols<'_>) -> bool {
    operator != Operator::FinalNorm && !is_in_projection(operator, x)
}

/// Whether a norm is part of the projection after it, Transformer Engine's `LayerNormLinear`: that of queries, keys
/// and values and the first one of a dense MLP, not what latent attention or experts read (`gpt_layer_specs.py`).
fn is_in_projection(operator: Operator, x: &Symbols<'_>) -> bool {
    let fused = match operator {
        Operator::InputNorm => x.model().latent.is_none(),
        operator => operator == Operator::PreMlpNorm,
    };
    fused && x.recipe().software.semantics().transformer_engine
}

/// Whether a checkpoint of the dense MLP begins before the norm.
pub(crate) fn is_in_recomputed_mlp(operator: Operator, x: &Symbols<'_>) -> bool {
    operator == Operator::PreMlpNorm && is_in_projection(operator, x) && x.recomputes(RecomputeModule::Mlp)
}

/// What happens to a norm's output, whoever reads it.
pub(crate) fn alive(operator: Operator, x: &Symbols<'_>) -> Alive {
    if is_recomputed(operator, x) { Alive::Recomputed } else { Alive::No }
}

/// The part of `deviation_and_mean` that a norm saves for each row: LayerNorm both, RMSNorm the first.
pub(crate) fn statistics<'a, T>(x: &Symbols<'_>, deviation_and_mean: &'a [T; 2]) -> &'a [T] {
    let both = x.model().normalization == Normalization::LayerNorm;
    &deviation_and_mean[..if both { 2 } else { 1 }]
}

/// What a norm of the residual stream saves if it is not recomputed.
pub(crate) fn kept(x: &Symbols<'_>) -> Vec<Saved> {
    let lean = x.recipe().fusions.memory_efficient_norm;
    let mut out = Vec::with_capacity(3);
    if !lean {
        out.push(Saved::new("norm input", &[x.s_local, x.h], x.residual_width, &INPUT));
        if x.model().normalization == Normalization::LayerNorm {
            out.push(Saved::new("norm mean", &[x.s_local], STATISTIC, &MEAN));
        }
    }
    out.push(Saved::new("norm inverse deviation", &[x.s_local], STATISTIC, &DEVIATION));
    out
}

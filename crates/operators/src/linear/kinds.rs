//! The facets of each kind, by the kind.

use super::{gated_delta_net, kimi_delta, mamba, mamba2, short_convolution};
use crate::{Saved, Symbols, Weight, Work};
use shardscope_plan::{LinearKind, Model};
use shardscope_units::{Count, Quantity};

pub(crate) fn weights(kind: LinearKind, x: &Symbols<'_>) -> Vec<Weight> {
    match kind {
        LinearKind::GatedDeltaNet => gated_delta_net::weights(x),
        LinearKind::KimiDelta => kimi_delta::weights(x),
        LinearKind::Mamba2 => mamba2::weights(x),
        LinearKind::Mamba => mamba::weights(x),
        LinearKind::ShortConvolution => short_convolution::weights(x),
    }
}

pub(crate) fn saved(kind: LinearKind, x: &Symbols<'_>) -> Vec<Saved> {
    match kind {
        LinearKind::GatedDeltaNet => gated_delta_net::saved(x),
        LinearKind::KimiDelta => kimi_delta::saved(x),
        LinearKind::Mamba2 => mamba2::saved(x),
        LinearKind::Mamba => mamba::saved(x),
        LinearKind::ShortConvolution => short_convolution::saved(x),
    }
}

pub(crate) fn work(kind: LinearKind, x: &Symbols<'_>) -> Vec<Work> {
    match kind {
        LinearKind::GatedDeltaNet => gated_delta_net::work(x),
        LinearKind::KimiDelta => kimi_delta::work(x),
        LinearKind::Mamba2 => mamba2::work(x),
        LinearKind::Mamba => mamba::work(x),
        LinearKind::ShortConvolution => short_convolution::work(x),
    }
}

/// Multiply-adds of one linear mixer per token as Megatron-LM's throughput counts them: projections and scan, and of a gated delta
/// rule the convolution (`mamba_layer_flops`; the `gated_delta_net` branch of `num_floating_point_operations`). They differ from
/// an operator's work, which is what the kernels compute. Zero for a model without such a mixer.
#[must_use]
pub fn linear_as_megatron_counts(model: &Model) -> f64 {
    let Some(linear) = &model.mixers.linear else { return 0.0 };
    let number = |count| Count::new(count).number();
    let [h, keys, values, heads] =
        [model.hidden_size, linear.keys(), linear.values(), linear.value_heads].map(number);
    let [key, value] = [linear.key_width, linear.value_width].map(number);
    let projections = h * (2.0 * keys + 2.0 * values + heads) + h * values;
    match linear.kind {
        LinearKind::Mamba2 | LinearKind::Mamba => projections + 3.5 * values * key,
        // Megatron has none; counted like the projections and the convolution of its other mixers.
        LinearKind::ShortConvolution => h * (2.0 * keys + 2.0 * values) + number(linear.convolution) * values,
        LinearKind::GatedDeltaNet | LinearKind::KimiDelta => {
            let convolution = number(linear.convolution) * (2.0 * keys + values);
            projections + h * heads + convolution + 4.0 * heads * value * value
        }
    }
}

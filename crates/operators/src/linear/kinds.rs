//! The facets of each kind, by the kind.

use super::{gated_delta_net, kimi_delta, mamba, mamba2, short_convolution};
use crate::{Saved, Symbols, Weight, Work};
use shardscope_plan::LinearKind;

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

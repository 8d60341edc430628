//! Mixers whose work grows with the sequence's length alone: linear attention and state-space layers. Each kind is a
//! file with what it weighs, keeps and computes; what their passes hold and send is the same for all.

mod gated_delta_net;
mod held;
mod kimi_delta;
mod mamba;
mod mamba2;
mod messages;
mod parts;

pub(super) use held::held;
pub(super) use messages::messages;
pub(super) use parts::CHUNK;

use crate::{Saved, Symbols, Weight, Work};
use shardscope_plan::LinearKind;

pub(super) fn weights(kind: LinearKind, x: &Symbols<'_>) -> Vec<Weight> {
    match kind {
        LinearKind::GatedDeltaNet => gated_delta_net::weights(x),
        LinearKind::KimiDelta => kimi_delta::weights(x),
        LinearKind::Mamba2 => mamba2::weights(x),
        LinearKind::Mamba => mamba::weights(x),
    }
}

pub(super) fn saved(kind: LinearKind, x: &Symbols<'_>) -> Vec<Saved> {
    match kind {
        LinearKind::GatedDeltaNet => gated_delta_net::saved(x),
        LinearKind::KimiDelta => kimi_delta::saved(x),
        LinearKind::Mamba2 => mamba2::saved(x),
        LinearKind::Mamba => mamba::saved(x),
    }
}

pub(super) fn work(kind: LinearKind, x: &Symbols<'_>) -> Vec<Work> {
    match kind {
        LinearKind::GatedDeltaNet => gated_delta_net::work(x),
        LinearKind::KimiDelta => kimi_delta::work(x),
        LinearKind::Mamba2 => mamba2::work(x),
        LinearKind::Mamba => mamba::work(x),
    }
}

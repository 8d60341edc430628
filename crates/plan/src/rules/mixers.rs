//! Linear mixers: heads are spread over tensor ranks, and few kinds support a split sequence.

use super::refusals::{Division, Refusals};
use crate::contradiction::Rule;
use crate::{Field, LinearKind, Plan};
use shardscope_source::Code;

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let Some(linear) = plan.model().mixers.linear else { return };
    let layout = plan.layout();
    // Mamba has no heads: its channels are sharded.
    let (heads, channels) = match linear.kind {
        LinearKind::Mamba => (1, linear.values()),
        _ => (linear.key_heads, linear.value_heads),
    };
    let key_heads = Division {
        code: Code::HeadsOverTp,
        what: "{} key heads of the linear mixer",
        number: heads,
        noun: "heads",
        by: "TP",
        divisor: layout.tensor,
        fields: &[Field::TensorModelParallelSize, Field::LinearNumKeyHeads],
    };
    // It has no key heads to shard.
    if linear.kind != LinearKind::Mamba {
        refusals.divides(&key_heads);
    }
    refusals.divides(&Division {
        what: "{} value heads of the linear mixer",
        number: channels,
        fields: &[Field::TensorModelParallelSize, Field::LinearNumValueHeads],
        ..key_heads
    });
    // `megatron/core/transformer/transformer_config.py` (core 0.16) asserts it for gated delta nets; MambaMixer
    // trades sequence for heads, and its groups must divide evenly.
    let rule = &Rule {
        code: Code::CpA2aHeads,
        fields: &[Field::ContextParallelSize, Field::LinearMixer],
        sentence: "of linear mixers only Mamba-2 takes a part of a sequence, with heads that divide by TP x CP = {}",
        hint: "--context-parallel-size 1",
    };
    let ranks = layout.tensor.saturating_mul(layout.context);
    let cut = linear.kind == LinearKind::Mamba2 && linear.value_heads.is_multiple_of(ranks.max(1));
    refusals.unless(layout.context <= 1 || cut, rule, &[ranks]);
}

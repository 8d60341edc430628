//! Weights of adapters on Megatron core's parallel layers: A maps the input to the rank r, B the rank to the output.

use super::linears::{Cut, Linear, linears};
use crate::{Account, Axis, Operator, Shape, Shard, Symbols, Weight, WeightGroup, WeightRole, experts};
use shardscope_plan::{AdapterSemantics, Lora};

pub(super) fn weights(operator: Operator, x: &Symbols<'_>, lora: Lora) -> Vec<Weight> {
    let library = lora.library.semantics();
    let mut out = Vec::new();
    for linear in linears(operator, x, lora) {
        let [first, second] = cuts(&linear, library);
        out.push(matrix(x, &linear, library, "lora_A.weight", [lora.rank, linear.inner], first));
        out.push(matrix(x, &linear, library, "lora_B.weight", [linear.outer, lora.rank], second));
    }
    out
}

/// How A and B are sharded.
pub(super) const fn cuts(linear: &Linear, library: &AdapterSemantics) -> [Axis; 2] {
    // The side along the layer's sharded dimension is sharded with it; the side of rank r depends on the library.
    let shared = if library.cuts_both { Axis::Output } else { Axis::Neither };
    match linear.cut {
        Cut::Column => [shared, Axis::Output],
        Cut::Row => [Axis::Input, shared],
    }
}

/// Rows and columns of a matrix of `[rows, columns]` on one of `ranks` ranks.
pub(super) const fn local([rows, columns]: [u64; 2], axis: Axis, ranks: u64) -> [u64; 2] {
    match axis {
        Axis::Output => [rows / ranks, columns],
        Axis::Input => [rows, columns / ranks],
        Axis::Neither => [rows, columns],
    }
}

fn matrix(
    x: &Symbols<'_>,
    linear: &Linear,
    library: &AdapterSemantics,
    name: &'static str,
    whole: [u64; 2],
    axis: Axis,
) -> Weight {
    let cut = local(whole, axis, linear.ranks(x));
    let own = linear.of_experts && !library.shares_experts;
    let (full, held) = if own {
        let all = x.moe.experts;
        let here = all / x.plan.layout().expert.max(1);
        (Shape::new(&[all, whole[0], whole[1]]), Shape::new(&[here, cut[0], cut[1]]))
    } else {
        (Shape::new(&whole), Shape::new(&cut))
    };
    let shard = match axis {
        _ if own => Shard::Expert(axis),
        Axis::Neither => Shard::Whole,
        _ => Shard::Tensor(axis),
    };
    let group = if linear.of_experts { experts::group(x) } else { WeightGroup::Dense };
    let account: Account = linear.account;
    Weight {
        full,
        local: held,
        shard,
        group,
        role: WeightRole::Adapter,
        ..Weight::replicated(name, account, &whole)
    }
}

//! Arithmetic of adapters on Megatron core's parallel layers: two thin products, and the scaled sum with the layer's
//! own output.

use super::cut::{cuts, local};
use super::linears::{Cut, Linear, linears};
use crate::{Kernel, Matmul, MatmulKind, Operator, Symbols, Work};
use shardscope_plan::Lora;

pub(super) fn products(operator: Operator, x: &Symbols<'_>, lora: Lora) -> Vec<Work> {
    let mut out = Vec::new();
    for linear in linears(operator, x, lora) {
        let mut own = of_linear(x, &linear, lora);
        Work::within(&mut own, linear.modules);
        out.extend(own);
    }
    out
}

fn of_linear(x: &Symbols<'_>, linear: &Linear, lora: Lora) -> Vec<Work> {
    let library = lora.library.semantics();
    let ranks = linear.ranks(x);
    let [first, second] = cuts(linear, library);
    let [middle_out, inner] = local([lora.rank, linear.inner], first, ranks);
    let [outer, middle_in] = local([linear.outer, lora.rank], second, ranks);
    // Each of a rank's experts has its own adapter, or all share one.
    let here = if linear.of_experts && !library.shares_experts {
        (x.moe.experts / x.plan.layout().expert.max(1)).max(1)
    } else {
        1
    };
    let shared = if library.cuts_both { x.n } else { x.s_local };
    let [before, behind] = match linear.cut {
        _ if linear.of_experts => [x.moe.received.div_ceil(here); 2],
        Cut::Column => [shared, x.n],
        Cut::Row => [x.n, shared],
    };
    let copies = if linear.of_experts { x.moe.topk } else { 1 };
    let tokens = x.full_tokens() * copies;
    let product = |name, rows, [n, k]: [u64; 2], full: [u64; 2]| {
        Work::Matmul(Matmul {
            batch: here,
            kind: MatmulKind::PlainLinear,
            ..Matmul::linear(name, [rows, n, k], [tokens, full[0], full[1]])
        })
    };
    // The result is scaled and added to the layer's own; backward scales the gradient.
    let results = behind * here * outer;
    let dropped = if lora.dropout { before * here * inner } else { 0 };
    let drop = x.bytes(2 * dropped) + shardscope_units::Bytes::new(dropped);
    let launches = u64::from(lora.dropout);
    let bytes = [x.bytes(5 * results) + drop, x.bytes(2 * results) + drop];
    vec![
        product("lora_A", before, [middle_out, inner], [lora.rank, linear.inner]),
        product("lora_B", behind, [outer, middle_in], [linear.outer, lora.rank]),
        Work::Kernel(Kernel::new("lora sum", bytes, [2 + launches, 1 + launches])),
    ]
}

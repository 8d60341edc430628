//! What adapters of Megatron's libraries send between tensor ranks: between A and B, tensors with only LoRA-rank
//! columns; if a library shards both matrices of a row-parallel layer's adapter, its full output.

use super::dtensor;
use super::linears::{Cut, Linear, linears};
use crate::message::Call;
use crate::{Collective, Dimension, Message, Operator, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::Lora;

const BRIDGE: &str = "megatron/bridge/peft/utils.py:ParallelLinearAdapter";
const MCORE: &str = "mcore_bridge/tuners/lora.py:LoraParallelLinear";
const TENSOR: Dimension = Dimension::Tensor;

macro_rules! calls {
    ($($name:ident $pass:ident $dimension:ident $collective:ident $tensor:literal $size:literal $source:ident $why:literal;)*) => {
        $(static $name: Call = Call::$pass(
            $dimension,
            Collective::$collective,
            $tensor,
            Formula::new($size, $why, $source),
        );)*
    };
}

calls! {
    GATHER_MIDDLE forward TENSOR AllGather "A's output" "s·b·r·B" BRIDGE "A is sharded by rows, so each rank holds some columns of its output.";
    REDUCE_INPUT backward TENSOR AllReduce "A's input gradient" "s·b·h·B" BRIDGE "Every rank holds a partial sum of the input gradient of A, which is sharded by rows.";
    GATHER_INPUT forward TENSOR AllGather "A's input" "s·b·h·B" BRIDGE "A reads the tokens of all tensor ranks.";
    SCATTER_INPUT backward TENSOR ReduceScatter "A's input gradient" "s·b·h·B" BRIDGE "The backward pass of gathering A's input.";
    REDUCE_MIDDLE forward TENSOR AllReduce "A's output" "s·b·r·B" BRIDGE "Every rank holds a partial sum of the output of A, which is sharded by columns.";
    REDUCE_MIDDLE_GRADIENT backward TENSOR AllReduce "B's input gradient" "s·b·r·B" BRIDGE "Every rank holds a partial sum of the input gradient of B, which is sharded by rows.";
    GATHER_OUTPUT forward TENSOR AllGather "B's output" "s·b·h·B" BRIDGE "B is sharded by rows and its whole output gathered, although only a shard of the sequence is used.";
    GATHER_GRADIENT backward TENSOR AllGather "B's output gradient" "s·b·h·B" BRIDGE "The backward pass of taking this rank's shard of the sequence.";
    SPREAD_MIDDLE forward TENSOR AllGather "B's input" "s·b·r·B" MCORE "B is sharded by rows and reads the tokens of all tensor ranks.";
    SPREAD_MIDDLE_AGAIN backward TENSOR AllGather "B's input again" "s·b·r·B" MCORE "B's weight gradient needs all tokens; only this rank's shard was saved.";
    COLLECT_MIDDLE backward TENSOR ReduceScatter "B's input gradient" "s·b·r·B" MCORE "Every rank holds a partial sum of B's input gradient; it is reduced and scattered along the sequence.";
    SCATTER_MIDDLE forward TENSOR ReduceScatter "A's output" "s·b·r·B" MCORE "Every rank holds a partial sum of A's output; it is reduced and scattered along the sequence.";
    GATHER_MIDDLE_GRADIENT backward TENSOR AllGather "A's output gradient" "s·b·r·B" MCORE "The backward pass of this reduction.";
}

/// What `operator`'s adapters send for one micro-batch.
pub(crate) fn messages(operator: Operator, x: &Symbols<'_>) -> Vec<Message> {
    let Some(lora) = x.recipe().tuning.lora else { return Vec::new() };
    if !lora.library.is_of_megatron() {
        return if dtensor::cuts(x) { dtensor::messages(operator, x, lora) } else { Vec::new() };
    }
    let mut out = Vec::new();
    if x.t <= 1 {
        return out;
    }
    for linear in linears(operator, x, lora) {
        // Experts are sharded over the expert-tensor ranks: ms-swift's library keeps their number at one, and what
        // Megatron-Bridge's sends over more is unknown, which is marked in the verdict.
        if linear.of_experts {
            continue;
        }
        let mut own = of_linear(x, &linear, lora);
        for message in &mut own {
            message.modules = linear.modules;
        }
        out.extend(own);
    }
    out
}

fn of_linear(x: &Symbols<'_>, linear: &Linear, lora: Lora) -> Vec<Message> {
    let thin = [x.s, x.b, lora.rank];
    let wide = [x.s, x.b, x.h];
    let send = |calls: &[&'static Call], shape: &[u64]| Message::each(x, calls, "lora", shape, 1);
    let cut = x.sequence_parallel;
    let mut out = Vec::new();
    if lora.library.semantics().cuts_both {
        match linear.cut {
            Cut::Column => {
                out.extend(send(&[&GATHER_MIDDLE, &REDUCE_MIDDLE_GRADIENT], &thin));
                // Transformer Engine passes on what it has gathered and scatters both gradients together.
                let handed = x.recipe().software.semantics().norm_in_projection;
                if !cut {
                    out.extend(send(&[&REDUCE_INPUT], &wide));
                } else if !handed || linear.site.reads_plain_input() {
                    out.extend(send(&[&GATHER_INPUT, &SCATTER_INPUT], &wide));
                }
            }
            Cut::Row => {
                out.extend(send(&[&REDUCE_MIDDLE, &REDUCE_MIDDLE_GRADIENT], &thin));
                out.extend(send(&[&GATHER_OUTPUT], &wide));
                if cut {
                    out.extend(send(&[&GATHER_GRADIENT], &wide));
                }
            }
        }
        return out;
    }
    match (linear.cut, cut) {
        (Cut::Column, true) => send(&[&SPREAD_MIDDLE, &SPREAD_MIDDLE_AGAIN, &COLLECT_MIDDLE], &thin),
        (Cut::Column, false) => send(&[&REDUCE_MIDDLE_GRADIENT], &thin),
        (Cut::Row, true) => send(&[&SCATTER_MIDDLE, &GATHER_MIDDLE_GRADIENT], &thin),
        (Cut::Row, false) => send(&[&REDUCE_MIDDLE], &thin),
    }
}

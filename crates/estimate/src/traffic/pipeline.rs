//! Between stages: activations forward, gradients backward
//! (`megatron/core/pipeline_parallel/p2p_communication.py`, `schedules.py`).

use super::builder::{Builder, Sent};
use super::ledger::{Parallelism, Place};
use shardscope_explain::Formula;
use shardscope_operators::{Collective, Pass, Shape};
use shardscope_plan::NumberFormat;
use shardscope_schedule as schedule;
use shardscope_topology::GroupKind;

const SOURCE: &str = "megatron/core/pipeline_parallel/schedules.py:get_tensor_shapes";

static ACTIVATION: Formula =
    Formula::new("S·h·Br", "The output of a stage's last layer is sent to the next stage.", SOURCE);
static GRADIENT: Formula =
    Formula::new("S·h·Br", "The gradient of a stage's input is sent back to the previous stage.", SOURCE);

/// Adds the messages between stages, counted at the sender.
pub(super) fn add(builder: &mut Builder<'_>) {
    let x = builder.symbols;
    if x.plan.layout().pipeline <= 1 {
        return;
    }
    let shape = schedule::Shape::from_plan(x.plan);
    let format = if x.recipe().fp32_residual { NumberFormat::Fp32 } else { x.recipe().params_dtype };
    // [s, b, h]; with sequence parallelism each tensor rank sends its part of the sequence.
    let rows = x.s_local / x.b.max(1);
    for &(pass, name, tensor, formula) in &[
        (Pass::Forward, "stage output", "activation", &ACTIVATION),
        (Pass::Backward, "stage input", "gradient", &GRADIENT),
    ] {
        let calls = builder.chunk_calls(&|stage, chunk| u64::from(sends(&shape, pass, stage, chunk)));
        let sent = Sent {
            name,
            tensor,
            collective: Collective::SendRecv,
            place: Place::BetweenStages(pass),
            shape: Shape::new(&[rows, x.b, x.h]),
            width: format.width(),
            dtype: format.name(),
            overlapped: x.recipe().overlap.pipeline,
            formula,
        };
        builder.add(Parallelism::Pipeline, GroupKind::Pipeline, sent, calls);
    }
}

/// Whether `chunk` of `stage` has a result for another stage.
fn sends(shape: &schedule::Shape, pass: Pass, stage: usize, chunk: usize) -> bool {
    let (Ok(stage), Ok(chunk)) = (u32::try_from(stage), u32::try_from(chunk)) else { return false };
    let part = shape.part(stage, chunk);
    let next = match pass {
        Pass::Forward => part.checked_add(1).filter(|next| *next < shape.parts()),
        Pass::Backward => part.checked_sub(1),
    };
    next.is_some_and(|next| shape.holder(next, chunk).0 != stage)
}

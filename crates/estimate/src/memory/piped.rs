//! What PyTorch's pipelines (`torch.distributed.pipelining`) hold besides what backward needs: every micro-batch has
//! its own receive buffers, allocated once, and the last stage's outputs are collected until the next step begins.

use super::moments::ChunkSum;
use super::term::Term;
use shardscope_explain::Formula;
use shardscope_operators::{SectionKind, Symbols};
use shardscope_units::{Bytes, Count, Quantity};

const STAGE: &str = "torch/distributed/pipelining/stage.py:_PipelineStageBase";
const BACKWARD: &str = "torch/distributed/pipelining/_backward.py:stage_backward";

static INPUTS: Formula = Formula::new(
    "i·S·h·Br",
    "Receive buffers for the inputs of i micro-batches, allocated once each; those in flight are counted with the activations.",
    STAGE,
).letters(&[("i", "micro-batches")]);
static INPUT_GRADIENTS: Formula = Formula::new(
    "i·S·h·Br",
    "Gradients of the inputs of i micro-batches whose backward is over: they stay attached to the receive buffers until the next step.",
    BACKWARD,
).letters(&[("i", "micro-batches")]);
static OUTPUT_GRADIENTS: Formula = Formula::new(
    "i·S·h·Br",
    "Receive buffers for the output gradients of i micro-batches, allocated once each.",
    STAGE,
)
.letters(&[("i", "micro-batches")]);
static OUTPUTS: Formula = Formula::new(
    "i·n·V·B",
    "The logits of i micro-batches: the last stage keeps its outputs until the next step begins.",
    STAGE,
)
.letters(&[("i", "micro-batches")]);

/// Whether the plan runs on PyTorch's pipelines.
pub(super) fn is_piped(x: &Symbols<'_>) -> bool {
    x.gathers_pipeline_outputs()
}

/// The terms of a rank with `chunks`, each with this many micro-batches in flight.
pub(super) fn piped(x: &Symbols<'_>, chunks: &[ChunkSum], in_flight: &[u64]) -> Vec<Term> {
    if !is_piped(x) {
        return Vec::new();
    }
    let all = x.recipe().num_micro_batches;
    let stream = Count::of_shape(&[x.s_local, x.h]).bytes(x.residual_width);
    let (mut waiting, mut sending, mut outputs) = (0, 0, 0);
    for (chunk, in_flight) in chunks.iter().zip(in_flight) {
        if SectionKind::count(&chunk.counts, SectionKind::is_before_layers) == 0 {
            waiting += all.saturating_sub(*in_flight);
        }
        if SectionKind::count(&chunk.counts, SectionKind::projects_vocabulary) > 0 {
            outputs += all;
        } else {
            sending += all;
        }
    }
    let term = |name, count: u64, each: Bytes, formula| {
        let given = [("i", Count::new(count).number())];
        (count > 0).then(|| Term::new(name, each * count, formula).given(&given))
    };
    let logits = Count::of_shape(&[x.n, x.v]).bytes(x.width);
    [
        term("buffers of inputs received", waiting, stream, &INPUTS),
        term("gradients of inputs received", waiting, stream, &INPUT_GRADIENTS),
        term("buffers of gradients received", sending, stream, &OUTPUT_GRADIENTS),
        term("outputs of all micro-batches", outputs, logits, &OUTPUTS),
    ]
    .into_iter()
    .flatten()
    .collect()
}

//! Tensors kept for backward.

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::LossKind;

const OUTPUT: &str = "megatron/core/models/gpt/gpt_model.py";
const LOSS: &str = "megatron/core/tensor_parallel/cross_entropy.py";
const FUSED_LOSS: &str = "transformer_engine/pytorch/cross_entropy.py";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static INPUT: Formula = Formula::new("S·h·B", "The output projection's input.", OUTPUT);
static SOFTMAX: Formula = Formula::new("4·n·V", "Softmax over the vocabulary, fp32.", LOSS);
static LOGITS: Formula =
    Formula::new("n·V·B", "The logits, overwritten by their gradient in forward.", FUSED_LOSS);
static MASK: Formula =
    Formula::new("n", "Which targets are in this rank's part of the vocabulary, one byte each.", LOSS);
static TARGETS: Formula = Formula::new("8·n", "Target numbers within this rank's part, int64.", LOSS);

pub(crate) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = vec![Saved::new("output_layer input", &[x.s_local, x.h], x.width, &INPUT)];
    if x.recipe().loss == LossKind::TransformerEngine {
        out.push(Saved::new("logits gradient", &[x.n, x.v], x.width, &LOGITS));
    } else {
        out.push(Saved::new("loss softmax", &[x.n, x.v], FLOAT, &SOFTMAX));
        out.push(Saved::new("target mask", &[x.n], 1, &MASK));
        out.push(Saved::new("masked targets", &[x.n], INDEX, &TARGETS));
    }
    out
}

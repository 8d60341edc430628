//! Forward and backward of log-probabilities whose logits are those of the responses alone (`completions.rs` beside `ends.rs` has what
//! they keep).

use super::super::fused_head::gathered_head;
use super::super::tape::Step;
use super::logits::of_sampled;
use super::shared::{FLOAT, returned};
use crate::{Operator, Parts, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::RlFramework;
use shardscope_units::Bytes;

const KEPT: &str =
    "trl/trainer/grpo_trainer.py:GRPOTrainer._get_per_token_logps_and_entropies, logits_to_keep";
const PICKED: &str = "trl/trainer/utils.py:selective_log_softmax, which autograd takes back";
const AUTOGRAD: &str = "torch autograd: a node's gradients are alive while it runs";

static LOGITS: Formula =
    Formula::new("b·(sampled + 1)·V·Bc", "The logits of the responses as the output layer made them.", KEPT);
static ROWS: Formula =
    Formula::new("b·sampled·V·Bc", "Gradients of the log-probabilities of each sequence.", PICKED);
static SCALED: Formula = Formula::new(
    "2·b·(sampled + 1)·V·Bc",
    "Gradients of the logits over the temperature, which were divided in place, and of the logits.",
    KEPT,
);
static ROWS_FP32: Formula =
    Formula::new("8·b·sampled·V", "Gradients of the picked logits and of each sequence's sum, fp32.", PICKED);
static SCALED_FP32: Formula =
    Formula::new("4·b·(sampled + 1)·V", "Gradient of the logits, which were divided in place, fp32.", KEPT);
static NARROW: Formula = Formula::new("b·(sampled + 1)·V·Bc", "Gradient of the logits in 16 bits.", AUTOGRAD);
static INPUT: Formula =
    Formula::new("b·(sampled + 1)·h·B", "Gradient of the output layer's input.", AUTOGRAD);
static HEAD: Formula = Formula::new("V·h·B", "The output layer's weight gradient.", AUTOGRAD);

/// What is alive beside what is kept.
pub(super) fn transients(x: &Symbols<'_>, trains: bool) -> Vec<Transient> {
    let (narrow, rows) = (x.compute_width, x.logit_rows());
    let (wide, sampled) = ([rows, x.v], x.sampled_tokens());
    let is_fp32 = x.logits_width() == FLOAT;
    // In fp32 the logits are kept as they are.
    let mut forward = Vec::from_iter((!is_fp32).then(|| Saved::new("logits", &wide, narrow, &LOGITS)));
    if x.recipe().rollout.is_some_and(|rollout| rollout.framework == RlFramework::Trl) {
        forward.extend(of_sampled(x));
    }
    let loss = if is_fp32 {
        vec![
            Saved::several("gradients of picked logits", &[2, x.b, sampled, x.v], FLOAT, &ROWS_FP32),
            Saved::new("gradient of the logits", &wide, FLOAT, &SCALED_FP32),
        ]
    } else {
        vec![
            Saved::new("gradients of log-probabilities", &[x.b, sampled, x.v], narrow, &ROWS),
            Saved::several("gradients of the logits", &[2, rows, x.v], narrow, &SCALED),
        ]
    };
    let mut backward = vec![
        Saved::new("logits gradient", &wide, narrow, &NARROW),
        Saved::new("gradient of the input", &[rows, x.h], x.width, &INPUT),
    ];
    backward.extend(trains.then(|| {
        Saved::new("output layer's weight gradient", &[x.v, x.h], x.width, &HEAD).cut(Parts::Gradient)
    }));
    backward.extend(gathered_head(x));
    vec![
        Transient::forward("loss", forward),
        Transient::new("backward of the loss", Bytes::ZERO, loss),
        Transient::new(
            "backward of the output layer",
            returned(Operator::OutputLayer, x, &[Step::Core]),
            backward,
        ),
    ]
}

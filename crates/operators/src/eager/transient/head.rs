//! Forward and backward of a head in place of the output layer.

use super::super::tape::Step;
use super::shared::{AUTOGRAD, INPUT, returned};
use crate::{Operator, Saved, Symbols, Transient};
use shardscope_explain::Formula;

const HEADS: &str = "transformers/modeling_layers.py:GenericForSequenceClassification";

static OUTPUTS: Formula =
    Formula::new("n·labels·Bc", "Outputs of the head for every token, or their gradient.", HEADS);

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
const VALUED: &str = "trl/models/modeling_value_head.py:AutoModelForCausalLMWithValueHead.forward";
static LOGITS: Formula = Formula::new("n·V·Bc", "The logits, which no loss reads.", VALUED);
static COPY: Formula = Formula::new("4·n·V", "The same logits in fp32, which no loss reads either.", VALUED);
static VALUE_GRADIENT: Formula = Formula::new("n·h·Ba", "The gradient of the value head's input.", AUTOGRAD);
static SCORE_GRADIENT: Formula = Formula::new("labels·h·B", "The head's weight gradient.", AUTOGRAD);

/// The moments of a head, if there is one.
pub(super) fn of_heads(x: &Symbols<'_>, trains: bool) -> Option<Vec<Transient>> {
    if x.recipe().tuning.objective.has_value_head() {
        return Some(valued(x));
    }
    x.labels().map(|labels| head(x, labels, trains))
}

/// A value head beside the output layer, whose logits are made and cast to fp32, and gone before the loss.
fn valued(x: &Symbols<'_>) -> Vec<Transient> {
    let wide = [x.n, x.v];
    let mut forward = vec![Saved::new("logits", &wide, x.compute_width, &LOGITS)];
    forward.extend((x.compute_width < FLOAT).then(|| Saved::new("fp32 logits", &wide, FLOAT, &COPY)));
    let input =
        Saved::new("gradient of the value head's input", &[x.n, x.h], x.adapter_width, &VALUE_GRADIENT);
    let gone = returned(Operator::OutputLayer, x, &[Step::Core]);
    let backward = vec![input, Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT)];
    vec![Transient::forward("loss", forward), Transient::new("backward of the output layer", gone, backward)]
}

/// A head for rewards or classes on every token; the loss uses one token per sequence.
fn head(x: &Symbols<'_>, labels: u64, trains: bool) -> Vec<Transient> {
    let outputs = Saved::new("outputs of the head", &[x.n, labels], x.compute_width, &OUTPUTS);
    let input = Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT);
    let weight = Saved::new("head's weight gradient", &[labels, x.h], x.width, &SCORE_GRADIENT);
    let gone = returned(Operator::OutputLayer, x, &[Step::Core]);
    let backward = [outputs, input].into_iter().chain(trains.then_some(weight)).collect();
    vec![
        Transient::forward("loss", vec![outputs]),
        Transient::new("backward of the output layer", gone, backward),
    ]
}

//! Forward and backward of a head in place of the output layer.

use super::super::tape::Step;
use super::shared::{AUTOGRAD, INPUT, returned};
use crate::{Operator, Saved, Symbols, Transient};
use shardscope_explain::Formula;

const HEADS: &str = "transformers/modeling_layers.py:GenericForSequenceClassification";

static OUTPUTS: Formula =
    Formula::new("n·labels·Bc", "Outputs of the head for every token, or their gradient.", HEADS);

static SCORE_GRADIENT: Formula = Formula::new("labels·h·B", "The head's weight gradient.", AUTOGRAD);

/// A head for rewards or classes on every token; the loss uses one token per sequence.
pub(super) fn head(x: &Symbols<'_>, labels: u64, trains: bool) -> Vec<Transient> {
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

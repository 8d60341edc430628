//! Weights (`megatron/core/models/gpt/gpt_model.py`): the output projection, sharded by vocabulary. If tied, it has
//! no weight of its own if the word embedding is on the same stage, and a copy if it is on another.

use crate::{Account, Symbols, Weight, WeightPart};

pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    if let Some(labels) = x.labels() {
        let head = Weight::replicated("score.weight", Account::OutputLayer, &[labels, x.h]);
        return vec![Weight { linear: false, part: WeightPart::OutputProjection, ..head }];
    }
    let shape = [x.model().padded_vocab_size, x.h];
    let weight = Weight::column("output_layer.weight", Account::OutputLayer, shape, x.t);
    let weight = Weight { linear: false, part: WeightPart::OutputProjection, ..weight };
    match (x.tied(), x.plan.layout().pipeline > 1) {
        (false, _) if x.recipe().software.semantics().eager_modules && x.model().arrangement.head_bias => {
            let bias = Weight::column("output_layer.bias", Account::OutputLayer, [x.v, 1], x.t);
            vec![weight, Weight { linear: false, part: WeightPart::OutputProjection, ..bias }]
        }
        (false, _) => vec![weight],
        (true, true) => vec![weight.as_copy()],
        (true, false) => Vec::new(),
    }
}

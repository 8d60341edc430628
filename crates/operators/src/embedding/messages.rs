//! Messages (`megatron/core/models/common/embeddings/language_model_embedding.py`): every tensor rank looks up the
//! words in its own rows and has zeros for the others.

use crate::message::Call;
use crate::{Collective, Dimension, Message, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::PositionEmbedding;

const SOURCE: &str = "megatron/core/tensor_parallel/layers.py:VocabParallelEmbedding";
const SIZE: &str = "s·b·h·B";

static REDUCE: Call = Call::forward(
    Dimension::Tensor,
    Collective::AllReduce,
    "output",
    Formula::new(SIZE, "The vocabulary is sharded over the tensor ranks: what each found is summed.", SOURCE),
);
static SCATTER: Call = Call::forward(
    Dimension::Tensor,
    Collective::ReduceScatter,
    "output",
    Formula::new(SIZE, "What each rank found is reduced and scattered along the sequence.", SOURCE),
);
static GATHER_GRADIENT: Call = Call::backward(
    Dimension::Tensor,
    Collective::AllGather,
    "output gradient",
    Formula::new(SIZE, "Every rank needs the gradient of the whole sequence for its rows.", SOURCE),
);

pub(crate) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    // With the whole vocabulary on the rank there is nothing to sum.
    if x.t <= 1 {
        return Vec::new();
    }
    let message = |calls| Message::outside(Message::each(x, calls, "word_embeddings", &[x.s, x.b, x.h], 1));
    if !x.plan.layout().sequence_parallel {
        return message(&[&REDUCE]);
    }
    // Learned positions are added for the whole sequence before it is split; the 2023 code always did so.
    let whole_first = x.model().position_embedding == PositionEmbedding::LearnedAbsolute
        || x.recipe().software.semantics().positions_before_cut
        // What a tower makes is put between words of the whole sequence.
        || x.model().vision.is_some_and(|tower| tower.modules.is_beside_core());
    message(&[if whole_first { &REDUCE } else { &SCATTER }, &GATHER_GRADIENT])
}

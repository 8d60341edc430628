//! Messages (`megatron/core/models/common/embeddings/language_model_embedding.py`): every tensor rank looks up
//! the words of its own rows and has nothing for the others.

use crate::anatomy::message::Call;
use crate::anatomy::{Collective, Dimension, Message, Pass, Symbols};
use crate::explain::Formula;
use crate::plan::{PositionEmbedding, Software};

const SOURCE: &str = "Megatron-LM megatron/core/tensor_parallel/layers.py:VocabParallelEmbedding";

static REDUCE: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllReduce,
    pass: Pass::Forward,
    tensor: "output",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "The rows of the vocabulary lie on all tensor ranks: what each found is added up.",
        source: SOURCE,
    },
};

static SCATTER: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::ReduceScatter,
    pass: Pass::Forward,
    tensor: "output",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "Sequence parallel: what each rank found is added up and cut by sequence.",
        source: SOURCE,
    },
};

static GATHER_GRADIENT: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllGather,
    pass: Pass::Backward,
    tensor: "output gradient",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "Sequence parallel: every rank needs the gradient of the whole sequence for its rows.",
        source: SOURCE,
    },
};

pub(in crate::anatomy) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    if x.t <= 1 {
        return Vec::new();
    }
    let message = |call| Message::new(x, call, "word_embeddings", &[x.s, x.b, x.h]).outside();
    if !x.plan.layout().sequence_parallel {
        return vec![message(&REDUCE)];
    }
    // Learned positions are added for the whole sequence before it is cut; so did the 2023 code always.
    let whole_first = x.model().position_embedding == PositionEmbedding::LearnedAbsolute
        || x.recipe().software == Software::MegatronLegacy;
    vec![message(if whole_first { &REDUCE } else { &SCATTER }), message(&GATHER_GRADIENT)]
}

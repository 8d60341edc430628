//! Tensors saved for backward.

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{PositionEmbedding, TowerModules};

const EMBEDDING: &str = "megatron/core/models/common/embeddings/language_model_embedding.py";
const VOCABULARY: &str = "megatron/core/tensor_parallel/layers.py:VocabParallelEmbedding";
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static TOKENS: Formula = Formula::new("8·n", "Token ids, int64.", EMBEDDING);
static MASK: Formula =
    Formula::new("n", "Which tokens are in this rank's shard of the vocabulary, one byte each.", VOCABULARY);
static POSITIONS: Formula = Formula::new("8·n", "Position ids, int64.", EMBEDDING);
static DROPOUT: Formula = Formula::new("S·h", "Dropout mask of the embedding, one byte each.", EMBEDDING);

static IMAGES: Formula = Formula::new(
    "n",
    "Which tokens are of an image, one byte each.",
    "mcore_bridge/model/mm_gpts/utils.py:_hf_get_inputs_embeds",
);
static DEEP: Formula = Formula::new(
    "di·n·h·B",
    "Deep-layer features that are added in as many decoder layers, as if every token were an image token; recomputing such a layer needs them.",
    "mcore_bridge/model/mm_gpts/qwen3_vl.py:Qwen3VLTransformerBlock",
);

static DEEP_OF_CORE: Formula = Formula::new(
    "di·tl·h·B",
    "Deep-layer features of the images in this rank's part of the sequence, as many as fit into it: checkpoints of decoder layers refer to them.",
    "megatron/bridge/models/qwen_vl/modelling_qwen3_vl/transformer_block.py:Qwen3VLTransformerBlock._checkpointed_forward",
);
static CUT_MASK: Formula = Formula::new(
    "S",
    "Which tokens of this rank's part of the sequence are of an image, one byte each: a tensor of its own where the sequence is cut.",
    "megatron/bridge/models/qwen_vl/modelling_qwen3_vl/utils.py:split_deepstack_embs",
);

/// What decoder layers keep of what deep layers of a tower of Megatron core's give them: where images are, and the features only
/// where layers are recomputed, as a sum needs neither of its parts.
fn deep_of_core(x: &Symbols<'_>, deep: u64) -> Vec<Saved> {
    let mut out = Vec::with_capacity(2);
    if x.sequence_parallel {
        out.push(Saved::new("image token mask of the part", &[x.s_local], 1, &CUT_MASK));
    }
    if x.recomputes_layers() {
        let shape = [deep, x.local_image_tokens(), x.h];
        out.push(Saved::new("deep-layer features of images", &shape, x.width, &DEEP_OF_CORE));
    }
    out
}

/// What images add where modules beside Megatron core's decoder make them.
fn images(x: &Symbols<'_>, out: &mut Vec<Saved>) {
    let Some(tower) = x.model().vision.filter(|tower| tower.modules.is_beside_core()) else { return };
    let tuning = &x.recipe().tuning;
    if tuning.embedding || tuning.images || tuning.projector {
        out.push(Saved::new("image token mask", &[x.b, x.s], 1, &IMAGES));
    }
    let deep = tower.kept.map_or(0, |kept| kept.deep_mergers);
    if tower.modules == TowerModules::Core && deep > 0 {
        out.extend(deep_of_core(x, deep));
    } else if deep > 0 {
        out.push(Saved::new("deep-layer features of the tower", &[deep, x.n, x.h], x.width, &DEEP));
    }
}

pub(crate) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = Vec::new();
    images(x, &mut out);
    // Only the table's gradient reads the token ids: for a frozen table autograd records nothing.
    if !x.recipe().tuning.embedding {
        return out;
    }
    out.push(Saved::new("token ids", &[x.b, x.s], INDEX, &TOKENS));
    // A rank masks ids outside of its shard of the vocabulary; with the whole table there is no mask (`layers.py:VocabParallelEmbedding.forward`).
    if x.t > 1 {
        out.push(Saved::new("vocabulary mask", &[x.b, x.s], 1, &MASK));
    }
    if x.model().position_embedding == PositionEmbedding::LearnedAbsolute {
        out.push(Saved::new("position ids", &[x.b, x.s], INDEX, &POSITIONS));
    }
    if x.recipe().hidden_dropout {
        out.push(Saved::new("embedding dropout mask", &[x.s_local, x.h], 1, &DROPOUT));
    }
    out
}

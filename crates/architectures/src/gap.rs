//! What an estimate has no layer for yet.

/// A part of a model that its parameters are counted with, and that memory, communication and time are not
/// estimated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// Linear attention of the lightning kind (MiniMax-01).
    LightningAttention,
    /// Nothing but state-space layers of the first kind (Mamba, Falcon-Mamba).
    Mamba,
    /// Nothing but state-space layers of the second kind (Mamba-2).
    Mamba2,
    /// Real-gated recurrent units (RecurrentGemma).
    Recurrent,
    /// Attention to selected tokens, with an indexer (DeepSeek-V3.2, GLM-5, MiniMax-M3).
    SparseAttention,
    /// Attention to compressed tokens (DeepSeek-V4).
    CompressedAttention,
    /// A gate on the attention's output with a weight of its own (AFMoE, Step 3.5).
    GatedAttention,
    /// Attention to another model's tokens (Llama 3.2 Vision).
    CrossAttention,
    /// Two attentions with shared queries, subtracted (DiffLlama).
    DifferentialAttention,
    /// Sizes that differ between layers.
    SizesPerLayer,
    /// Keys and values of another layer (Gemma 3n, Gemma 4).
    SharedKeysAndValues,
    /// Embeddings that every layer reads (Gemma 3n, Gemma 4).
    PerLayerEmbeddings,
    /// Several residual streams (DeepSeek-V4, Gemma 3n).
    HyperConnections,
    /// Experts that do nothing (LongCat).
    ZeroExperts,
    /// Two attentions and two MLPs in one layer (LongCat).
    DoubleLayer,
    /// Norms behind attention and MLP.
    PostNorms,
    /// Attention and MLP side by side behind one norm.
    ParallelBlocks,
    /// Norms at places that the engine has none at.
    OtherNorms,
    /// Query and key norms over all heads together.
    NormsOverHeads,
    /// Query and key norms without weights.
    PlainQueryKeyNorms,
    /// Biases in a combination that Megatron has no flags for.
    Biases,
    /// Value heads of another width than keys.
    ValueWidth,
    /// Embeddings of another width than the layers (OPT-350M).
    EmbeddingWidth,
    /// Attention scores capped by a tanh (Gemma 2).
    Softcap,
    /// Queries, keys and values clamped (`clip_qkv` of `OLMo` and DBRX).
    ClippedQueries,
    /// Parts that differ from what the engine counts, by a little.
    OtherParts,
}

/// Gaps by the words that the rules call them, and what they are in words.
const WORDS: &[(Gap, &str, &str)] = &[
    (Gap::LightningAttention, "lightning_attention", "linear attention (lightning)"),
    (Gap::Mamba, "mamba", "state-space layers (Mamba)"),
    (Gap::Mamba2, "mamba2", "state-space layers (Mamba-2)"),
    (Gap::Recurrent, "recurrent", "recurrent layers (RG-LRU)"),
    (Gap::SparseAttention, "sparse_attention", "sparse attention over tokens selected by an indexer"),
    (Gap::CompressedAttention, "compressed_attention", "attention to compressed tokens"),
    (Gap::GatedAttention, "gated_attention", "a gate on the attention's output"),
    (Gap::CrossAttention, "cross_attention", "cross-attention layers"),
    (Gap::DifferentialAttention, "differential_attention", "differential attention"),
    (Gap::SizesPerLayer, "sizes_per_layer", "sizes that differ between layers"),
    (Gap::SharedKeysAndValues, "shared_keys_and_values", "keys and values shared between layers"),
    (Gap::PerLayerEmbeddings, "per_layer_embeddings", "embeddings for every layer"),
    (Gap::HyperConnections, "hyper_connections", "several residual streams (hyper-connections)"),
    (Gap::ZeroExperts, "zero_experts", "experts that do nothing"),
    (Gap::DoubleLayer, "double_layer", "two attentions and two MLPs in a layer"),
    (Gap::PostNorms, "post_norms", "norms after attention and MLP"),
    (Gap::ParallelBlocks, "parallel_blocks", "attention and MLP in parallel behind one norm"),
    (Gap::OtherNorms, "other_norms", "norms inside attention and MLP"),
    (Gap::NormsOverHeads, "norms_over_heads", "query and key norms over all heads together"),
    (Gap::PlainQueryKeyNorms, "plain_query_key_norms", "query and key norms without weights"),
    (Gap::Biases, "biases", "biases of some linear layers only"),
    (Gap::ValueWidth, "value_width", "value heads of another width than keys"),
    (Gap::EmbeddingWidth, "embedding_width", "embeddings narrower than the layers"),
    (Gap::Softcap, "softcap", "capped attention scores"),
    (Gap::ClippedQueries, "clipped_queries", "clamped queries, keys and values"),
    (Gap::OtherParts, "other_parts", "parts beside Megatron's layers"),
];

impl Gap {
    /// The gap that the rules name by `word`.
    pub(crate) fn called(word: &str) -> Option<Self> {
        WORDS.iter().find(|(_, name, _)| *name == word).map(|(gap, ..)| *gap)
    }

    /// Whether it is a layer of another kind: nothing that is estimated for the engine's layers holds for it.
    #[must_use]
    pub fn is_another_layer(self) -> bool {
        !matches!(
            self,
            Self::Softcap
                | Self::PostNorms
                | Self::ParallelBlocks
                | Self::OtherNorms
                | Self::NormsOverHeads
                | Self::PlainQueryKeyNorms
                | Self::Biases
                | Self::OtherParts
        )
    }

    /// Whether it changes the number of parameters.
    #[must_use]
    pub fn is_counted(self) -> bool {
        !matches!(self, Self::Softcap | Self::ClippedQueries | Self::PlainQueryKeyNorms)
    }

    /// Its name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        WORDS.iter().find(|(gap, ..)| *gap == self).map_or("", |(_, name, _)| *name)
    }

    /// What it is, to stand behind "not modelled:".
    #[must_use]
    pub fn words(self) -> &'static str {
        WORDS.iter().find(|(gap, ..)| *gap == self).map_or("", |(.., words)| *words)
    }
}

#[cfg(test)]
mod tests {
    use super::{Gap, WORDS};

    #[test]
    fn every_gap_has_a_name_of_its_own() {
        for (gap, name, words) in WORDS {
            assert_eq!((Gap::called(name), gap.name(), gap.words()), (Some(*gap), *name, *words));
        }
        assert_eq!(Gap::called("nothing"), None);
    }
}

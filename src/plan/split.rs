//! Which layers, embedding and output layer are on which stage
//! (`megatron/core/transformer/transformer_block.py:get_num_layers_to_build`,
//! `pipeline_parallel_layer_layout.py`).

use std::ops::Range;

/// How layers are spread over stages, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageSplit {
    /// The same number on each, with the embedding or the loss counted as a layer if so asked.
    Even {
        /// `--account-for-embedding-in-pipeline-split`.
        account_for_embedding: bool,
        /// `--account-for-loss-in-pipeline-split`.
        account_for_loss: bool,
    },
    /// `--decoder-first-pipeline-num-layers`, `--decoder-last-pipeline-num-layers`.
    Ends {
        /// Layers of the first stage.
        first: Option<u64>,
        /// Layers of the last stage.
        last: Option<u64>,
    },
    /// `--pipeline-model-parallel-layout`.
    Layout(String),
}

/// One model chunk of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Layers from 0, the end not included; empty when the chunk holds none.
    pub layers: Range<u64>,
    /// Whether the word embedding is here.
    pub embedding: bool,
    /// Whether final norm, output layer and loss are here.
    pub output_layer: bool,
    /// Multi-token-prediction layers here.
    pub mtp_layers: u64,
}

/// The chunks of one pipeline rank, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// One per virtual stage.
    pub chunks: Vec<Chunk>,
}

impl Stage {
    /// Transformer layers of the stage.
    #[must_use]
    pub fn layers(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.layers.end - chunk.layers.start).sum()
    }

    /// Whether the word embedding is on this stage.
    #[must_use]
    pub fn has_embedding(&self) -> bool {
        self.chunks.iter().any(|chunk| chunk.embedding)
    }

    /// Whether the output layer is on this stage.
    #[must_use]
    pub fn has_output_layer(&self) -> bool {
        self.chunks.iter().any(|chunk| chunk.output_layer)
    }
}

/// Every pipeline rank's chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageMap {
    /// By pipeline rank.
    pub stages: Vec<Stage>,
}

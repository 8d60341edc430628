//! Which layers, embedding and output layer are on which stage
//! (`megatron/core/transformer/transformer_block.py:get_num_layers_to_build`,
//! `pipeline_parallel_layer_layout.py`).

use shardscope_source::Code;
use std::ops::Range;

use super::hints::{divisors, listed};
use super::layer_counts::{StageSizes, even, with_ends};
use super::stage_text::{Mark, parse_stages};
use super::{Contradiction, Field};

/// How layers are spread over stages, as requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageSplit {
    /// The same number on each, with the embedding or the loss counted as a layer if requested.
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

impl StageSplit {
    /// The same number of layers on each, nothing else counted.
    pub const EVEN: Self = Self::Even { account_for_embedding: false, account_for_loss: false };
}

/// One model chunk of one rank: what Megatron builds as one `GPTModel`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Layers from 0, end exclusive; empty when the chunk holds none.
    pub layers: Range<u64>,
    /// Whether the word embedding is here.
    pub embedding: bool,
    /// Whether final norm, output layer and loss are here.
    pub output_layer: bool,
    /// Multi-token-prediction layers here.
    pub mtp_layers: u64,
}

/// The chunks of one pipeline rank, the earlier part of the model first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its chunks, one per virtual stage.
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
    /// The stages, by pipeline rank.
    pub stages: Vec<Stage>,
}

impl StageMap {
    /// Spreads the layers as Megatron does.
    ///
    /// # Errors
    /// What Megatron refuses at start.
    pub fn new(sizes: StageSizes, split: &StageSplit) -> Result<Self, Contradiction> {
        match split {
            StageSplit::Layout(text) => written_out(sizes, text),
            StageSplit::Even { account_for_embedding, account_for_loss } => {
                let ends = [u64::from(*account_for_embedding), u64::from(*account_for_loss)];
                Ok(Self::from_counts(sizes, &even(sizes, ends)?))
            }
            StageSplit::Ends { first, last } => {
                Ok(Self::from_counts(sizes, &with_ends(sizes, *first, *last)?))
            }
        }
    }

    /// Chunks per rank.
    #[must_use]
    pub fn virtual_pipeline(&self) -> u64 {
        self.stages.first().map_or(1, |stage| stage.chunks.len() as u64)
    }

    /// The same map folded into a V: chunk 1 of rank r comes from rank p - 1 - r.
    pub(super) fn folded(mut self) -> Self {
        // The second chunks, removed in rank order and reassigned starting from the last rank.
        let mut second = Vec::new();
        for stage in &mut self.stages {
            second.extend(stage.chunks.pop());
        }
        for stage in &mut self.stages {
            stage.chunks.extend(second.pop());
        }
        self
    }

    /// The same map with a second copy in the opposite direction: rank r also holds stage p - 1 - r (DeepSeek-V3,
    /// section 3.2.1).
    pub(super) fn mirrored(mut self) -> Self {
        let own = self.stages.clone();
        for (stage, other) in self.stages.iter_mut().zip(own.iter().rev()) {
            stage.chunks.extend_from_slice(&other.chunks);
        }
        self
    }

    /// Builds the map from the layer count of every virtual stage (chunk · p + rank).
    fn from_counts(sizes: StageSizes, counts: &[u64]) -> Self {
        let last = counts.len().saturating_sub(1);
        let mut next = 0;
        let mut chunks = Vec::with_capacity(counts.len());
        for (index, &count) in counts.iter().enumerate() {
            let first = next;
            next += count;
            let output_layer = index == last;
            // Unless a layout is listed explicitly, multi-token prediction is built with the output layer.
            let mtp_layers = if output_layer { sizes.mtp_num_layers } else { 0 };
            chunks.push(Chunk { layers: first..next, embedding: index == 0, output_layer, mtp_layers });
        }
        Self::from_chunks(sizes.pipeline, chunks)
    }

    /// Assigns virtual stage k to rank k mod p.
    fn from_chunks(pipeline: u64, chunks: Vec<Chunk>) -> Self {
        let mut stages: Vec<Stage> = Vec::new();
        for _ in 0..pipeline {
            stages.push(Stage { chunks: Vec::new() });
        }
        let (mut next, count) = (0, stages.len());
        for chunk in chunks {
            if let Some(stage) = stages.get_mut(next) {
                stage.chunks.push(chunk);
            }
            // Interleaving assigns consecutive virtual stages to consecutive ranks, so that every rank holds an early
            // and a late part.
            next = if next + 1 < count { next + 1 } else { 0 };
        }
        Self { stages }
    }
}

/// Stages listed explicitly by `--pipeline-model-parallel-layout`.
fn written_out(sizes: StageSizes, text: &str) -> Result<StageMap, Contradiction> {
    let refuse = |message: String| {
        Contradiction::new(
            Code::PipelineLayout,
            &[Field::PipelineModelParallelLayout, Field::NumLayers, Field::PipelineModelParallelSize],
            message,
        )
    };
    let stages =
        parse_stages(text).map_err(|why| refuse(why.to_string()).hint("for example Et*3|(tt|)*14tL"))?;
    let StageSizes { num_layers, pipeline, mtp_num_layers, .. } = sizes;
    let count = stages.len() as u64;
    // The listed stages are virtual stages, so there are (stages / PP) chunks per rank.
    if !count.is_multiple_of(pipeline) {
        let sizes_that_work = divisors(count);
        return Err(refuse(format!("the {count} stages of the layout do not divide by PP {pipeline}"))
            .hint(format!("PP {} would do", listed(&sizes_that_work, pipeline))));
    }
    let total = |mark: Mark| stages.iter().map(|stage| stage.count(mark)).sum::<u64>();
    for (mark, expected, what) in [
        (Mark::Layer, num_layers, "layers (t)"),
        (Mark::Mtp, mtp_num_layers, "multi-token-prediction layers (m)"),
        (Mark::Embedding, 1, "embeddings (E)"),
        (Mark::Loss, 1, "losses (L)"),
    ] {
        let found = total(mark);
        if found != expected {
            return Err(refuse(format!("the layout holds {found} {what}, the model {expected}")));
        }
    }
    // Counts alone would allow the embedding in the middle of the model.
    let starts_right = stages.first().is_some_and(|stage| stage.starts_with(Mark::Embedding));
    let ends_right = stages.last().is_some_and(|stage| stage.ends_with(Mark::Loss));
    if !starts_right || !ends_right {
        return Err(refuse("the layout must begin with E and end with L".to_owned()));
    }
    let mut next = 0;
    let mut chunks = Vec::with_capacity(stages.len());
    for stage in &stages {
        let first = next;
        next += stage.count(Mark::Layer);
        chunks.push(Chunk {
            layers: first..next,
            embedding: stage.count(Mark::Embedding) > 0,
            output_layer: stage.count(Mark::Loss) > 0,
            mtp_layers: stage.count(Mark::Mtp),
        });
    }
    Ok(StageMap::from_chunks(pipeline, chunks))
}

#[cfg(test)]
mod tests {
    use super::{StageMap, StageSizes, StageSplit};

    const EVEN: StageSplit = StageSplit::EVEN;

    #[track_caller]
    fn check(sizes: (u64, u64, u64), split: &StageSplit, expected: &[&[(u64, u64)]]) {
        let (num_layers, pipeline, virtual_pipeline) = sizes;
        let sizes = StageSizes { num_layers, pipeline, virtual_pipeline, mtp_num_layers: 0 };
        let map = StageMap::new(sizes, split).map(|map| {
            let of = |stage: &super::Stage| {
                stage.chunks.iter().map(|chunk| (chunk.layers.start, chunk.layers.end)).collect::<Vec<_>>()
            };
            map.stages.iter().map(of).collect::<Vec<_>>()
        });
        assert_eq!(map, Ok(expected.iter().map(|chunks| chunks.to_vec()).collect()));
    }

    #[test]
    fn layers_are_dealt_as_megatron_deals_them() {
        check((8, 2, 1), &EVEN, &[&[(0, 4)], &[(4, 8)]]);
        check((8, 2, 2), &EVEN, &[&[(0, 2), (4, 6)], &[(2, 4), (6, 8)]]);
        let both = StageSplit::Even { account_for_embedding: true, account_for_loss: true };
        check((2, 2, 2), &both, &[&[(0, 0), (1, 2)], &[(0, 1), (2, 2)]]);
        check(
            (10, 3, 1),
            &StageSplit::Ends { first: Some(4), last: None },
            &[&[(0, 4)], &[(4, 7)], &[(7, 10)]],
        );
        check((4, 2, 1), &StageSplit::Layout("Et|(t|)*2tL".into()), &[&[(0, 1), (2, 3)], &[(1, 2), (3, 4)]]);
    }

    #[test]
    fn a_v_ends_where_it_begins() {
        let sizes = StageSizes { num_layers: 8, pipeline: 2, virtual_pipeline: 2, mtp_num_layers: 0 };
        let map = StageMap::new(sizes, &EVEN).map(StageMap::folded);
        let stages = map.map(|map| map.stages).unwrap_or_default();
        let of =
            |stage: &super::Stage| stage.chunks.iter().map(|chunk| chunk.layers.clone()).collect::<Vec<_>>();
        assert_eq!(stages.iter().map(of).collect::<Vec<_>>(), [[0..2, 6..8], [2..4, 4..6]]);
        assert!(stages[0].has_embedding() && stages[0].has_output_layer());
    }

    #[test]
    fn what_does_not_divide_names_what_would() {
        let sizes = StageSizes { num_layers: 30, pipeline: 4, virtual_pipeline: 1, mtp_num_layers: 0 };
        let refusal = StageMap::new(sizes, &EVEN).err();
        assert_eq!(refusal.as_ref().and_then(|refusal| refusal.nearest), Some(3));
        assert_eq!(
            refusal.map(|refusal| refusal.message),
            Some("30 layers cannot be spread evenly over PP 4".into())
        );
    }
}

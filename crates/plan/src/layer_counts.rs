//! How many layers each virtual stage has, as Megatron assigns them
//! (`megatron/core/transformer/transformer_block.py:get_num_layers_to_build`).

use super::contradiction::Rule;
use super::hints::{divisors, listed, nearest_multiple, nearest_of};
use super::{Contradiction, Field};
use shardscope_source::Code;

/// What is to be spread over the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageSizes {
    /// Transformer layers.
    pub num_layers: u64,
    /// Pipeline parallel size.
    pub pipeline: u64,
    /// Chunks per rank; an explicit layout overrides it.
    pub virtual_pipeline: u64,
    /// Multi-token-prediction depths.
    pub mtp_num_layers: u64,
}

/// Layers of each virtual stage when spread evenly; `ends` are counted as layers of the two ends.
pub(super) fn even(sizes: StageSizes, ends: [u64; 2]) -> Result<Vec<u64>, Contradiction> {
    let StageSizes { num_layers, pipeline, virtual_pipeline, .. } = sizes;
    // The ends are counted as layers so that the division comes out even, then subtracted again, so the first and
    // last chunk hold fewer.
    let total = num_layers + ends[0] + ends[1];
    if !total.is_multiple_of(pipeline) {
        return Err(uneven(sizes, total));
    }
    let of_rank = total / pipeline;
    if !of_rank.is_multiple_of(virtual_pipeline) {
        return Err(uneven_chunks(of_rank, virtual_pipeline));
    }
    let mut counts = vec![of_rank / virtual_pipeline; index(pipeline * virtual_pipeline)];
    for (end, slot) in [(ends[0], 0), (ends[1], counts.len() - 1)] {
        if let Some(count) = counts.get_mut(slot) {
            // Both may fall on one chunk, which then needs two.
            *count = count.checked_sub(end).ok_or_else(|| too_few_layers(sizes))?;
        }
    }
    Ok(counts)
}

fn uneven(sizes: StageSizes, total: u64) -> Contradiction {
    let StageSizes { num_layers, pipeline, .. } = sizes;
    let rule = |sentence| Rule {
        code: Code::LayersOverPp,
        fields: &[Field::PipelineModelParallelSize, Field::NumLayers],
        sentence,
        hint: "",
    };
    let mut refused = if total == num_layers {
        Contradiction::from_rule(
            &rule("{} layers cannot be spread evenly over PP {}"),
            &[num_layers, pipeline],
        )
    } else {
        let sentence =
            "{} layers (counted as {} with the embedding and the loss) cannot be spread evenly over PP {}";
        Contradiction::from_rule(&rule(sentence), &[num_layers, total, pipeline])
    };
    let sizes_that_work = divisors(total);
    let extra = total - num_layers;
    let layers = nearest_multiple(total, pipeline).saturating_sub(extra).max(1);
    refused.hint = Some(format!(
        "PP {} would do, or {layers} layers, or uneven stages with --decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers",
        listed(&sizes_that_work, pipeline)
    ));
    refused.nearest(nearest_of(&sizes_that_work, pipeline))
}

fn uneven_chunks(of_rank: u64, virtual_pipeline: u64) -> Contradiction {
    let rule = &Rule {
        code: Code::LayersOverVpp,
        fields: &[
            Field::VirtualPipelineModelParallelSize,
            Field::NumLayers,
            Field::PipelineModelParallelSize,
        ],
        sentence: "the {} layers of a pipeline rank cannot be split into {} equal chunks",
        hint: "chunks per rank that divide {}: ",
    };
    let chunks = divisors(of_rank);
    let mut refused = Contradiction::from_rule(rule, &[of_rank, virtual_pipeline, of_rank]);
    if let Some(hint) = &mut refused.hint {
        hint.push_str(&listed(&chunks, virtual_pipeline));
    }
    refused.nearest(nearest_of(&chunks, virtual_pipeline))
}

fn too_few_layers(sizes: StageSizes) -> Contradiction {
    let rule = &Rule {
        code: Code::TooFewLayers,
        fields: &[Field::NumLayers, Field::PipelineModelParallelSize],
        sentence: "{} layers are too few for PP {} when the embedding and the loss count as layers",
        hint: "",
    };
    Contradiction::from_rule(rule, &[sizes.num_layers, sizes.pipeline])
}

/// Settings at fault where only the first stage has its own size, only the last, or both.
const FIRST: &[Field] =
    &[Field::DecoderFirstPipelineNumLayers, Field::NumLayers, Field::PipelineModelParallelSize];

const LAST: &[Field] =
    &[Field::DecoderLastPipelineNumLayers, Field::NumLayers, Field::PipelineModelParallelSize];

const BOTH: &[Field] = &[
    Field::DecoderFirstPipelineNumLayers,
    Field::DecoderLastPipelineNumLayers,
    Field::NumLayers,
    Field::PipelineModelParallelSize,
];

/// Layers of each virtual stage when the first or the last stage has its own size.
pub(super) fn with_ends(
    sizes: StageSizes,
    first: Option<u64>,
    last: Option<u64>,
) -> Result<Vec<u64>, Contradiction> {
    let StageSizes { num_layers, pipeline, virtual_pipeline, .. } = sizes;
    let given = first.unwrap_or(0) + last.unwrap_or(0);
    // A stage with its own size takes no part in the even split of the rest.
    let stages_left = pipeline.saturating_sub(u64::from(first.is_some()) + u64::from(last.is_some()));
    let rule = |sentence, hint| Rule {
        code: Code::LayersOverEnds,
        fields: match (first, last) {
            (Some(_), None) => FIRST,
            (None, Some(_)) => LAST,
            _ => BOTH,
        },
        sentence,
        hint,
    };
    let layers_left = num_layers.checked_sub(given).filter(|left| *left == 0 || stages_left > 0);
    let Some(layers_left) = layers_left else {
        let sentence = "the first and last of PP {} stages hold {} layers, but the model has {}";
        return Err(Contradiction::from_rule(&rule(sentence, ""), &[pipeline, given, num_layers]));
    };
    if stages_left > 0 && layers_left % stages_left != 0 {
        let rule = rule(
            "the {} layers left for the {} other stages do not divide evenly",
            "give the ends {} layers in all, or another number congruent to {} modulo {}",
        );
        let (all, rest) = (given + layers_left % stages_left, num_layers % stages_left);
        return Err(Contradiction::from_rule(&rule, &[layers_left, stages_left, all, rest, stages_left]));
    }
    let middle = layers_left.checked_div(stages_left).unwrap_or(0);
    let mut of_rank = vec![middle; index(pipeline)];
    if let (Some(first), Some(slot)) = (first, of_rank.first_mut()) {
        *slot = first;
    }
    if let (Some(last), Some(slot)) = (last, of_rank.last_mut()) {
        *slot = last;
    }
    if let Some(bad) = of_rank.iter().find(|layers| *layers % virtual_pipeline != 0) {
        return Err(uneven_chunks(*bad, virtual_pipeline));
    }
    let mut counts = Vec::new();
    // By virtual stage, chunk · p + rank: chunk by chunk over all ranks.
    for _ in 0..virtual_pipeline {
        for layers in &of_rank {
            counts.push(layers / virtual_pipeline);
        }
    }
    Ok(counts)
}

/// A (bounded) stage count as an index.
pub(super) fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

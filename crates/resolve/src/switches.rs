//! Switches that stand for a word of another setting.

use shardscope_plan::Field;

/// Switches that stand for a word of another setting, and the reason.
pub(super) const SWITCHES: [(Field, Field, &str, &str); 7] = [
    (
        Field::EnableCudaGraph,
        Field::CudaGraphImpl,
        "local",
        "--enable-cuda-graph is CUDA graphs of Megatron's own",
    ),
    (
        Field::UseRotaryPositionEmbeddings,
        Field::PositionEmbeddingType,
        "rope",
        "--use-rotary-position-embeddings is --position-embedding-type rope",
    ),
    (Field::CheckpointActivations, Field::RecomputeGranularity, "full", EVERY_LAYER),
    (Field::CheckpointActivations, Field::RecomputeMethod, "uniform", EVERY_LAYER),
    (
        Field::RecomputeActivations,
        Field::RecomputeGranularity,
        "selective",
        "--recompute-activations is --recompute-granularity selective",
    ),
    (Field::MoeLayerRecompute, Field::RecomputeGranularity, "selective", MOE_LAYERS),
    (
        Field::MoeEnableDeepep,
        Field::MoeFlexDispatcherBackend,
        "deepep",
        "--moe-enable-deepep is the flex dispatcher with DeepEP",
    ),
];

/// Whether the user's settings contradict the word for which this switch of the text stands; the switch is then left
/// out.
pub(super) fn is_overruled(switch: Field, overrides: &[(String, String)]) -> bool {
    // Only a switch of the table stands for a word.
    let Some((_, field, word, _)) = SWITCHES.iter().find(|(known, ..)| *known == switch) else {
        return false;
    };
    // An override with the same word contradicts nothing, so the switch stays and is shown as stated.
    overrides.iter().any(|(name, value)| Field::named(name) == Some(*field) && value != word)
}

/// Mutually exclusive ways to give the number of chunks per rank (`arguments.py:validate_args`).
const CHUNKS: [Field; 3] = [
    Field::VirtualPipelineModelParallelSize,
    Field::NumVirtualStagesPerPipelineRank,
    Field::NumLayersPerVirtualPipelineStage,
];

/// Whether the user states this setting of the text in another way: chunks per rank, which written-out stages
/// determine.
pub(super) fn is_displaced(stated: Field, set: &[Field]) -> bool {
    CHUNKS.contains(&stated)
        // Chunks stated in one way and set by hand in another would be rejected as given twice.
        && set.iter().any(|other| {
            *other != stated && (CHUNKS.contains(other) || *other == Field::PipelineModelParallelLayout)
        })
}

const EVERY_LAYER: &str = "--checkpoint-activations recomputes every layer";

pub(super) const MOE_LAYERS: &str =
    "--moe-layer-recompute is --recompute-granularity selective with module moe";

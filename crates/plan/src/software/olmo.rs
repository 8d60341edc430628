//! The rows for OLMo's trainers.

use super::rows::{HF_TRANSFORMERS, TRANSFORMERS_MODULES};
use super::semantics::{AttentionBuild, Modules, NormModule, Rotation, Semantics};

/// OLMo (`olmo/model.py:OLMoSequentialBlock`, `olmo/train.py:Trainer`): one projection for queries, keys and values and one for
/// both halves of the MLP, flash-attn's package, and its own loop over FSDP1.
pub(super) const OLMO: Semantics = Semantics {
    modules: Modules {
        name: "OLMo",
        repeats_for_sdpa: true,
        quantizes: false,
        fp32_layer_norm: true,
        rotates_in_place: true,
        breaks_at_attention: true,
        shifts_logits: true,
        ..TRANSFORMERS_MODULES
    },
    attention_build: AttentionBuild::Native,
    checkpoints_between: true,
    ..HF_TRANSFORMERS
};

/// OLMo-core 2.6 (`olmo_core/nn/transformer/block.py`, `nn/layer_norm.py:RMSNorm`, `nn/lm_head.py:LMHead`): separate
/// projections, norms in fp32 with the weight cast to it, and FSDP2 over fp32 weights. An empty buffer cache counts
/// as no cache (`nn/rope.py:RotaryEmbeddingBase`), so every layer computes its own cosines and sines.
pub(super) const OLMO_CORE: Semantics = Semantics {
    modules: Modules {
        name: "OLMo-core",
        norm: NormModule::Widened,
        rotation: Rotation::EachLayer,
        repeats_for_sdpa: true,
        quantizes: false,
        compiles_whole: true,
        labels_come_moved: true,
        ..TRANSFORMERS_MODULES
    },
    attention_build: AttentionBuild::Native,
    checkpoints_between: true,
    ..HF_TRANSFORMERS
};

//! Unsupported cases of models whose attention to the whole sequence has heads of its own, and what else differs in them
//! (Gemma 4).

use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, RolloutEngine, Software, word};

/// Widest head of flash-attn 2 (`csrc/flash_attn/flash_api.cpp:mha_fwd`).
const WIDEST_FLASH: u64 = 256;

/// What of such a model is only known in transformers' own modules, or not at all.
pub(super) fn lacking(table: &mut Table, software: Software) {
    let modules = software == Software::HfTransformers;
    if table.listed().contains(&word::ModuleVariant::DenseBesideExperts) && !modules {
        let message = "a dense MLP beside the experts (Gemma 4), in this software";
        table.lack(Field::ModuleVariants, "dense_beside_experts", Effect::Memory, message);
    }
    if !table.has(Field::FullAttentionHeads) {
        return;
    }
    let width = table.counts(Field::FullAttentionHeads).last().copied().unwrap_or(0);
    let flash = [
        word::AttnImplementation::FlashAttention2,
        word::AttnImplementation::FlashAttention3,
        word::AttnImplementation::FlashAttention4,
    ];
    let message = if !modules {
        "heads of attention to the whole sequence that differ from those of windowed layers (Gemma 4), in this software"
    } else if table.degree(Field::TensorModelParallelSize) > 1 {
        "tensor parallelism of heads of different widths (Gemma 4)"
    } else if table.on(Field::EvaluationCache) {
        "a KV cache in evaluation, of heads of different widths (Gemma 4)"
    } else if table.is(RolloutEngine::Sglang) {
        "SGLang's cache of heads of different widths (Gemma 4)"
    } else if table.on(Field::CompiledLayers) {
        "compiled layers with heads of different widths (Gemma 4)"
    } else if table.has(Field::LayerInputs) && table.is(word::TrainType::Freeze) {
        "some frozen layers in a model whose layers have embeddings of their own (Gemma 4 E2B and E4B)"
    } else if table.is_any(&flash) && width > WIDEST_FLASH {
        "flash attention of heads wider than 256, which flash-attn does not take; sdpa and eager are modelled"
    } else {
        return;
    };
    let value = table.word(Field::FullAttentionHeads).to_owned();
    table.lack(Field::FullAttentionHeads, &value, Effect::Memory, message);
}

//! The attention, fusions and loss that each software runs.

use super::table::Table;
use crate::SettingValue::Bool;
use shardscope_catalog as catalog;
use shardscope_plan::{
    Activation, AttentionKernel, Field, Fusions, Generation, LossKind, Model, RlFramework, Software,
    TowerModules, Word, word,
};
use shardscope_units::Bytes;

/// The attention kernel that each software runs: the legacy models and Megatron-DeepSpeed run flash attention if
/// requested, core's own layers none, and Transformer Engine what `--attention-backend` says or its own preference.
pub(super) fn attention_kernel(table: &mut Table, software: Software) -> AttentionKernel {
    let (kernel, rule) = match software {
        Software::MegatronLegacy | Software::MegatronDeepspeed if table.on(Field::UseFlashAttn) => {
            (word::AttentionKernel::Flash, "--use-flash-attn")
        }
        Software::MegatronLegacy | Software::MegatronDeepspeed => {
            (word::AttentionKernel::Unfused, "without --use-flash-attn")
        }
        Software::MegatronCoreLocal if table.on(Field::UseFlashAttn) && on_ascend(table) => (
            word::AttentionKernel::Flash,
            "MindSpeed replaces core attention by its fused attention with --use-flash-attn",
        ),
        Software::MegatronCoreLocal => {
            (word::AttentionKernel::Unfused, "core's local layers have no fused attention")
        }
        // All of Hugging Face's modules use `attn_implementation`, whatever Megatron's flags say.
        _ if software.semantics().eager_modules => match table.chosen::<word::AttnImplementation>() {
            Some(word::AttnImplementation::Eager) => (word::AttentionKernel::Unfused, "attn_implementation"),
            Some(word::AttnImplementation::FlashAttention2) => {
                (word::AttentionKernel::Flash, "attn_implementation")
            }
            Some(word::AttnImplementation::FlashAttention3) => {
                (word::AttentionKernel::Flash3, "attn_implementation")
            }
            Some(word::AttnImplementation::FlashAttention4) => {
                (word::AttentionKernel::Flash4, "attn_implementation")
            }
            _ => (word::AttentionKernel::Sdpa, "attn_implementation"),
        },
        _ => match table.chosen::<word::AttentionBackend>() {
            Some(word::AttentionBackend::Unfused | word::AttentionBackend::Local) => {
                (word::AttentionKernel::Unfused, "--attention-backend")
            }
            Some(word::AttentionBackend::Fused) => (word::AttentionKernel::Fused, "--attention-backend"),
            Some(word::AttentionBackend::Flash) => (word::AttentionKernel::Flash, "--attention-backend"),
            _ if software == Software::MegatronCoreTe => engines_choice(table),
            _ => (word::AttentionKernel::Flash, "flash attention, where the software chooses"),
        },
    };
    // Derived, so that a kernel that the user names overrides the result of the flags.
    table.derive(Field::AttentionKernel, kernel.value(), rule);
    match table.chosen::<word::AttentionKernel>() {
        Some(word::AttentionKernel::Unfused) => AttentionKernel::Unfused,
        Some(word::AttentionKernel::Fused) => AttentionKernel::Fused,
        Some(word::AttentionKernel::Sdpa) => AttentionKernel::Sdpa,
        // flash, flash3 and flash4 keep the same tensors; they differ in time (`flash_release`).
        _ => AttentionKernel::Flash,
    }
}

/// Whether the run is on an Ascend accelerator, where MindSpeed replaces core's kernels by its own
/// (`mindspeed/features_manager/transformer/flash_attention`).
fn on_ascend(table: &Table) -> bool {
    let known = catalog::accelerator(table.word(Field::Accelerator));
    known.is_some_and(|found| found.generation == Generation::Ascend910B)
}

/// Bytes of a cuBLAS workspace configured as `:KiB:count`, repeated any number of times; deterministic runs must set
/// `:4096:8` or less (PyTorch, `torch.use_deterministic_algorithms`).
pub(super) fn cublas_workspace(table: &Table) -> Option<Bytes> {
    let asked = table.word(Field::CublasWorkspaceConfig);
    let (mut kib, mut size) = (0_u64, None);
    for part in asked.split(':') {
        // Anything that is not a number, such as the empty part before the first colon, is skipped.
        let Ok(number) = part.trim().parse::<u64>() else { continue };
        match size.take() {
            Some(size) => kib = kib.saturating_add(number.saturating_mul(size)),
            None => size = Some(number),
        }
    }
    match kib {
        // The larger of the two values that determinism allows (`:4096:8`), which PyTorch's documentation lists first.
        0 if table.on(Field::DeterministicMode) => Some(Bytes::mib(32)),
        0 => None,
        kib => Some(Bytes::new(kib.saturating_mul(1024))),
    }
}

/// What Transformer Engine chooses by itself
/// (`transformer_engine/pytorch/attention/dot_product_attention/utils.py:get_attention_backend`).
fn engines_choice(table: &Table) -> (word::AttentionKernel, &'static str) {
    let may = |field| table.switch(field).unwrap_or(true);
    // An accelerator that is not in the catalog is assumed to be older than Hopper.
    let capability = catalog::accelerator(table.word(Field::Accelerator)).and_then(|found| found.capability);
    // Transformer Engine rejects deterministic cuDNN attention from Blackwell on.
    let fixed = table.on(Field::DeterministicMode) || !may(Field::NvteAllowNondeterministicAlgo);
    match (may(Field::NvteFlashAttn), may(Field::NvteFusedAttn), capability) {
        (false, false, _) => (word::AttentionKernel::Unfused, "NVTE_FLASH_ATTN and NVTE_FUSED_ATTN are 0"),
        (false, true, _) => (word::AttentionKernel::Fused, "NVTE_FLASH_ATTN is 0"),
        (true, false, _) => (word::AttentionKernel::Flash, "NVTE_FUSED_ATTN is 0"),
        (_, _, Some(10..)) if fixed => (
            word::AttentionKernel::Flash,
            "Transformer Engine's choice for deterministic runs from Blackwell on",
        ),
        (_, _, Some(9..)) => (
            word::AttentionKernel::Fused,
            "Transformer Engine prefers cuDNN's fused attention from Hopper on",
        ),
        _ => (word::AttentionKernel::Flash, "Transformer Engine prefers flash attention before Hopper"),
    }
}

pub(super) fn fusions(table: &mut Table, software: Software, model: &Model) -> Fusions {
    if table.on(Field::ApplyQueryKeyLayerScaling) {
        let rule = "on with apply_query_key_layer_scaling";
        table.derive(Field::AttentionSoftmaxInFp32, Bool(true), rule);
    }
    table.default(Field::AttentionSoftmaxInFp32, Bool(false), super::defaults::whose(software));
    // `apply_rope_fusion` has no effect without rotary positions, and stays on in Megatron's own arguments.
    if !table.is(word::PositionEmbeddingType::Rope) {
        table.overrule(Field::ApplyRopeFusion, Bool(false), "off for position embeddings other than rope");
    }
    if model.vision.is_some_and(|tower| tower.modules == TowerModules::Core) {
        let rule = "off where positions in images have three dimensions, which Megatron-Bridge and mbridge rotate without a kernel";
        table.overrule(Field::ApplyRopeFusion, Bool(false), rule);
    }
    let bias_activation = match model.activation {
        Activation::Swiglu => table.on(Field::BiasSwigluFusion),
        // validate_args turns it off if there are no biases.
        Activation::Gelu => table.on(Field::BiasGeluFusion) && table.on(Field::AddBiasLinear),
        // The legacy models have no fused GEGLU.
        Activation::Geglu => table.on(Field::BiasGeluFusion) && software != Software::MegatronLegacy,
        // No fused kernel exists for squared ReLU.
        Activation::SquaredRelu => false,
    };
    Fusions {
        bias_activation,
        masked_softmax: table.on(Field::MaskedSoftmaxFusion),
        softmax_in_fp32: table.on(Field::AttentionSoftmaxInFp32),
        gradient_accumulation: table.on(Field::GradientAccumulationFusion),
        bias_dropout_add: table.on(Field::BiasDropoutFusion),
        rope: table.on(Field::ApplyRopeFusion),
        norm: !table.has(Field::NormFusion) || table.on(Field::NormFusion),
        memory_efficient_norm: table.on(Field::MemoryEfficientLayerNorm),
        compiled_layers: table.on(Field::CompiledLayers),
    }
}

/// Tokens per tile of prime-rl's loss by default (`fused_lm_head_token_chunk_size`). Unit: token.
const TILED_TOKENS: u64 = 8192;

pub(super) fn loss(table: &Table, software: Software) -> LossKind {
    // An encoder-decoder's loss takes the logits as they are; autocast makes them fp32 for it
    // (`transformers/models/t5/modeling_t5.py:T5ForConditionalGeneration.forward`).
    let plain = table.is_unset_or(&[word::LossKind::Torch]);
    if super::encoder::is_there(table) && plain {
        let narrow = table.is_unset_or(&[word::Autocast::None]);
        return if narrow { LossKind::TorchNarrow } else { LossKind::Torch };
    }
    match table.chosen::<word::LossKind>() {
        Some(word::LossKind::Legacy) => return LossKind::Legacy,
        Some(word::LossKind::Unfused) => return LossKind::Unfused,
        Some(word::LossKind::Torch) => return LossKind::Torch,
        Some(word::LossKind::TorchNarrow) => return LossKind::TorchNarrow,
        Some(word::LossKind::NativeFused) => return LossKind::NativeFused,
        Some(word::LossKind::TransformerEngine) => return LossKind::TransformerEngine,
        Some(word::LossKind::ChunkedLogits) => return LossKind::ChunkedLogits,
        Some(word::LossKind::FusedLogits) => return LossKind::FusedLogits,
        Some(word::LossKind::InPlaceLogits) => return LossKind::InPlaceLogits,
        Some(word::LossKind::ChunkedRows) => return LossKind::ChunkedRows,
        Some(word::LossKind::Tiled) => {
            return LossKind::Tiled(table.count(Field::LogProbChunk).unwrap_or(TILED_TOKENS));
        }
        Some(word::LossKind::FusedTiles) => return LossKind::FusedTiles,
        Some(word::LossKind::TokenKernel) => return LossKind::TokenKernel,
        Some(word::LossKind::PolicyRows) => return LossKind::PolicyRows,
        Some(word::LossKind::PolicyKernel) => return LossKind::PolicyKernel,
        Some(word::LossKind::ChunkedLinear) => return LossKind::ChunkedLinear,
        Some(word::LossKind::Compiled) => return LossKind::Compiled,
        Some(word::LossKind::Distributed) => return LossKind::Distributed,
        Some(word::LossKind::DistributedCopy) => return LossKind::DistributedCopy,
        Some(word::LossKind::DistributedChunks) => {
            return LossKind::DistributedChunks(table.degree(Field::LogProbChunk));
        }
        Some(word::LossKind::DistributedWideChunks) => {
            return LossKind::DistributedWideChunks(table.degree(Field::LogProbChunk));
        }
        // Patched models fuse the loss if they are given labels: preferences and policies use their logits.
        Some(word::LossKind::Liger | word::LossKind::Cce)
            if !table.is_unset_or(&[word::TrainingObjective::Sft]) =>
        {
            return LossKind::Torch;
        }
        Some(
            word::LossKind::FusedLinear
            | word::LossKind::Liger
            | word::LossKind::Cce
            | word::LossKind::Chunked,
        ) => return LossKind::FusedLinear,
        _ => {}
    }
    // Software with its own loss never reads Megatron's switches below.
    if let Some(loss) = software.semantics().loss {
        return loss;
    }
    // Their losses never reach Megatron's either (`labels=None`).
    if matches!(table.chosen(), Some(RlFramework::Slime | RlFramework::MindSpeedRl)) {
        return LossKind::Unfused;
    }
    match (table.on(Field::CrossEntropyLossFusion), table.chosen()) {
        (false, _) => LossKind::Unfused,
        (true, Some(word::CrossEntropyFusionImpl::TransformerEngine)) => LossKind::TransformerEngine,
        (true, _) => LossKind::NativeFused,
    }
}

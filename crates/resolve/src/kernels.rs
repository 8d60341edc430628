//! The attention, fusions and loss that each software runs.

use super::table::Table;
use crate::SettingValue::Bool;
use shardscope_catalog as catalog;
use shardscope_plan::{
    Activation, AttentionKernel, Field, Fusions, Generation, LossKind, Model, Software, TowerModules,
};
use shardscope_units::Bytes;

/// The attention kernel that each software runs: the legacy models and Megatron-DeepSpeed run flash attention if
/// requested, core's own layers none, and Transformer Engine what `--attention-backend` says or its own preference.
pub(super) fn attention_kernel(table: &mut Table, software: Software) -> AttentionKernel {
    let (name, rule) = match software {
        Software::MegatronLegacy | Software::MegatronDeepspeed if table.on(Field::UseFlashAttn) => {
            ("flash", "--use-flash-attn")
        }
        Software::MegatronLegacy | Software::MegatronDeepspeed => ("unfused", "without --use-flash-attn"),
        Software::MegatronCoreLocal if table.on(Field::UseFlashAttn) && on_ascend(table) => {
            ("flash", "MindSpeed replaces core attention by its fused attention with --use-flash-attn")
        }
        Software::MegatronCoreLocal => ("unfused", "core's local layers have no fused attention"),
        // All of Hugging Face's modules use `attn_implementation`, whatever Megatron's flags say.
        _ if software.semantics().eager_modules => match table.word(Field::AttnImplementation) {
            "eager" => ("unfused", "attn_implementation"),
            "flash_attention_2" => ("flash", "attn_implementation"),
            "flash_attention_3" => ("flash3", "attn_implementation"),
            "flash_attention_4" => ("flash4", "attn_implementation"),
            _ => ("sdpa", "attn_implementation"),
        },
        _ => match table.word(Field::AttentionBackend) {
            "unfused" | "local" => ("unfused", "--attention-backend"),
            "fused" => ("fused", "--attention-backend"),
            "flash" => ("flash", "--attention-backend"),
            _ if software == Software::MegatronCoreTe => engines_choice(table),
            _ => ("flash", "flash attention, where the software chooses"),
        },
    };
    // Derived, so that a kernel that the user names overrides the result of the flags.
    table.derive_word(Field::AttentionKernel, name, rule);
    match table.word(Field::AttentionKernel) {
        "unfused" => AttentionKernel::Unfused,
        "fused" => AttentionKernel::Fused,
        "sdpa" => AttentionKernel::Sdpa,
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
fn engines_choice(table: &Table) -> (&'static str, &'static str) {
    let may = |field| table.switch(field).unwrap_or(true);
    // An accelerator that is not in the catalog is assumed to be older than Hopper.
    let capability = catalog::accelerator(table.word(Field::Accelerator)).and_then(|found| found.capability);
    // Transformer Engine rejects deterministic cuDNN attention from Blackwell on.
    let fixed = table.on(Field::DeterministicMode) || !may(Field::NvteAllowNondeterministicAlgo);
    match (may(Field::NvteFlashAttn), may(Field::NvteFusedAttn), capability) {
        (false, false, _) => ("unfused", "NVTE_FLASH_ATTN and NVTE_FUSED_ATTN are 0"),
        (false, true, _) => ("fused", "NVTE_FLASH_ATTN is 0"),
        (true, false, _) => ("flash", "NVTE_FUSED_ATTN is 0"),
        (_, _, Some(10..)) if fixed => {
            ("flash", "Transformer Engine's choice for deterministic runs from Blackwell on")
        }
        (_, _, Some(9..)) => ("fused", "Transformer Engine prefers cuDNN's fused attention from Hopper on"),
        _ => ("flash", "Transformer Engine prefers flash attention before Hopper"),
    }
}

pub(super) fn fusions(table: &mut Table, software: Software, model: &Model) -> Fusions {
    if table.on(Field::ApplyQueryKeyLayerScaling) {
        let rule = "on with apply_query_key_layer_scaling";
        table.derive(Field::AttentionSoftmaxInFp32, Bool(true), rule);
    }
    table.default(Field::AttentionSoftmaxInFp32, Bool(false), super::defaults::whose(software));
    // `apply_rope_fusion` has no effect without rotary positions, and stays on in Megatron's own arguments.
    if !table.says(Field::PositionEmbeddingType, "rope") {
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
        memory_efficient_norm: table.on(Field::MemoryEfficientLayerNorm),
        compiled_layers: table.on(Field::CompiledLayers),
    }
}

/// Tokens per tile of prime-rl's loss by default (`fused_lm_head_token_chunk_size`). Unit: token.
const TILED_TOKENS: u64 = 8192;

pub(super) fn loss(table: &Table, software: Software) -> LossKind {
    match table.word(Field::LossKind) {
        "legacy" => return LossKind::Legacy,
        "unfused" => return LossKind::Unfused,
        "torch" => return LossKind::Torch,
        "native_fused" => return LossKind::NativeFused,
        "te" => return LossKind::TransformerEngine,
        "chunked_logits" => return LossKind::ChunkedLogits,
        "fused_logits" => return LossKind::FusedLogits,
        "chunked_rows" => return LossKind::ChunkedRows,
        "tiled" => return LossKind::Tiled(table.count(Field::LogProbChunk).unwrap_or(TILED_TOKENS)),
        "fused_tiles" => return LossKind::FusedTiles,
        "token_kernel" => return LossKind::TokenKernel,
        "policy_rows" => return LossKind::PolicyRows,
        "chunked_linear" => return LossKind::ChunkedLinear,
        "compiled" => return LossKind::Compiled,
        "distributed" => return LossKind::Distributed,
        "distributed_copy" => return LossKind::DistributedCopy,
        "distributed_chunks" => return LossKind::DistributedChunks(table.degree(Field::LogProbChunk)),
        "distributed_wide_chunks" => {
            return LossKind::DistributedWideChunks(table.degree(Field::LogProbChunk));
        }
        // Patched models fuse the loss if they are given labels: preferences and policies use their logits.
        "liger" | "cce" if !matches!(table.word(Field::TrainingObjective), "" | "sft") => {
            return LossKind::Torch;
        }
        "fused_linear" | "liger" | "cce" | "chunked" => return LossKind::FusedLinear,
        _ => {}
    }
    // Software with its own loss never reads Megatron's switches below.
    if let Some(loss) = software.semantics().loss {
        return loss;
    }
    match (table.on(Field::CrossEntropyLossFusion), table.word(Field::CrossEntropyFusionImpl)) {
        (false, _) => LossKind::Unfused,
        (true, "te") => LossKind::TransformerEngine,
        (true, _) => LossKind::NativeFused,
    }
}

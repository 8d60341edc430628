//! Each framework's defaults for what the text omits.

use super::parse::parse;
use super::table::Table;
use crate::SettingValue;
use shardscope_plan::{Field, HEADROOM, Software, word};

/// Settings that shape the model: their defaults mean nothing if the model itself is not stated.
pub(super) const OF_MODEL: [Field; 12] = [
    Field::GroupQueryAttention,
    Field::Swiglu,
    Field::QuickGeglu,
    Field::SquaredRelu,
    Field::Normalization,
    Field::PositionEmbeddingType,
    Field::AddBiasLinear,
    Field::AddQkvBias,
    Field::QkLayernorm,
    Field::UntieEmbeddingsAndOutputWeights,
    Field::SoftmaxType,
    Field::MultiLatentAttention,
];

/// Defaults of Megatron-LM's argument parser, the same from 23.04 to core 0.19.
const MEGATRON: &[(Field, &str)] = &[
    (Field::GroupQueryAttention, "false"),
    (Field::MakeVocabSizeDivisibleBy, "128"),
    (Field::PadVocabSize, "true"),
    (Field::Swiglu, "false"),
    (Field::QuickGeglu, "false"),
    (Field::SquaredRelu, "false"),
    (Field::Normalization, "LayerNorm"),
    (Field::PositionEmbeddingType, "learned_absolute"),
    (Field::AddBiasLinear, "true"),
    (Field::QkLayernorm, "false"),
    (Field::UntieEmbeddingsAndOutputWeights, "false"),
    (Field::SoftmaxType, "vanilla"),
    (Field::MultiLatentAttention, "false"),
    (Field::TensorModelParallelSize, "1"),
    (Field::PipelineModelParallelSize, "1"),
    (Field::ContextParallelSize, "1"),
    (Field::ExpertModelParallelSize, "1"),
    (Field::SequenceParallel, "false"),
    (Field::UseTpPpDpMapping, "false"),
    (Field::NumDistributedOptimizerInstances, "1"),
    (Field::AccountForEmbeddingInPipelineSplit, "false"),
    (Field::AccountForLossInPipelineSplit, "false"),
    (Field::Bf16, "false"),
    (Field::Fp16, "false"),
    (Field::GradReduceInBf16, "false"),
    (Field::Fp32ResidualConnection, "false"),
    (Field::Optimizer, "adam"),
    (Field::UseDistributedOptimizer, "false"),
    (Field::UsePrecisionAwareOptimizer, "false"),
    (Field::MainGradsDtype, "fp32"),
    (Field::MainParamsDtype, "fp32"),
    (Field::ExpAvgDtype, "fp32"),
    (Field::ExpAvgSqDtype, "fp32"),
    (Field::OptimizerCpuOffload, "false"),
    (Field::DistributeSavedActivations, "false"),
    (Field::CpuOffloadingNumLayers, "0"),
    (Field::HiddenDropout, "0.1"),
    (Field::AttentionDropout, "0.1"),
    (Field::MaskedSoftmaxFusion, "true"),
    (Field::BiasGeluFusion, "true"),
    (Field::BiasDropoutFusion, "true"),
    (Field::GradientAccumulationFusion, "true"),
    (Field::MemoryEfficientLayerNorm, "false"),
    (Field::CrossEntropyLossFusion, "false"),
    (Field::OverlapGradReduce, "false"),
    (Field::OverlapParamGather, "false"),
    (Field::TpCommOverlap, "false"),
    (Field::AsyncTensorModelParallelAllreduce, "true"),
    (Field::DeterministicMode, "false"),
    (Field::CreateAttentionMaskInDataloader, "true"),
    (Field::CudaGraphImpl, "none"),
];

/// Defaults that only apply to core releases.
const CORE: &[(Field, &str)] = &[
    (Field::BiasSwigluFusion, "true"),
    (Field::ApplyRopeFusion, "true"),
    (Field::OverlapP2pComm, "true"),
    (Field::ApplyQueryKeyLayerScaling, "false"),
    (Field::CrossEntropyFusionImpl, "native"),
];

/// Features that the legacy models lack or have turned on.
const LEGACY: &[(Field, &str)] = &[
    (Field::BiasSwigluFusion, "false"),
    (Field::ApplyRopeFusion, "false"),
    (Field::OverlapP2pComm, "false"),
    (Field::ApplyQueryKeyLayerScaling, "true"),
];

// `megatron/training/arguments.py`, group MoE: only filled in if there are experts, so that dense models show none of
// them.
const MOE: &[(Field, &str)] = &[
    (Field::MoeRouterTopk, "2"),
    (Field::MoeLayerFreq, "1"),
    (Field::MoeSharedExpertGate, "false"),
    (Field::MoeTokenDispatcherType, "allgather"),
    (Field::MoeGroupedGemm, "false"),
    (Field::MoePadExpertInputToCapacity, "false"),
    (Field::MoePermuteFusion, "false"),
    (Field::MoeRouterLoadBalancingType, "aux_loss"),
    (Field::MoeAuxLossCoeff, "0.0"),
    (Field::MoeRouterEnableExpertBias, "false"),
    (Field::MoeRouterPreSoftmax, "false"),
    (Field::MoeSharedExpertOverlap, "false"),
    (Field::OverlapMoeExpertParallelComm, "false"),
];

// `arguments.py`, group MLA.
const LATENT: &[(Field, &str)] = &[
    (Field::KvLoraRank, "32"),
    (Field::QkHeadDim, "128"),
    (Field::QkPosEmbHeadDim, "64"),
    (Field::VHeadDim, "128"),
];

/// Fills in missing values; `software` is already known.
pub(super) fn fill(table: &mut Table, software: Software) {
    let whose = whose(software);
    all(table, MEGATRON, whose);
    let old = matches!(software, Software::MegatronLegacy | Software::MegatronDeepspeed);
    // The tables exclude each other: legacy models have none of core's fusions.
    all(table, if old { LEGACY } else { CORE }, whose);
    if table.number(Field::NumExperts) > 0 {
        // Before `MOE`, whose top-2 would otherwise be used: a default only fills in a missing value. The legacy
        // models' `SwitchMLP` only uses the largest probability, whatever `--moe-router-topk` says
        // (`megatron/legacy/model/transformer.py`).
        if old {
            all(table, &[(Field::MoeRouterTopk, "1")], whose);
        }
        all(table, MOE, whose);
    }
    if table.on(Field::MultiLatentAttention) {
        all(table, LATENT, whose);
    }
    if table.is(word::Optimizer::Sgd) {
        let (momentum, whose) = sgd_momentum(software);
        all(table, &[(Field::SgdMomentum, momentum)], whose);
    }
    if table.has(Field::Fp8) {
        all(table, &[(Field::Fp8Recipe, "delayed"), (Field::Fp8ParamGather, "false")], whose);
    }
    if table.on(Field::UseMegatronFsdp) {
        // no_shard before core 0.18.
        all(table, &[(Field::DataParallelShardingStrategy, "optim_grads_params")], whose);
    }
    if table.on(Field::OptimizerCpuOffload) {
        all(table, &[(Field::OptimizerOffloadFraction, "1.0")], whose);
    }
    // Without context ranks there is no exchange to describe.
    if table.degree(Field::ContextParallelSize) > 1 {
        all(table, &[(Field::CpCommType, "p2p")], whose);
    }
    let why =
        "Shardscope's default: reserved memory was measured 2 to 7% above allocated (SimuMax's runs on B200)";
    table.default(Field::MemoryHeadroom, SettingValue::Real(HEADROOM), why);
}

/// The momentum of SGD if none is stated, and whose default it is.
const fn sgd_momentum(software: Software) -> (&'static str, &'static str) {
    match software {
        // `arguments.py`: --sgd-momentum.
        Software::MegatronLegacy
        | Software::MegatronCoreLocal
        | Software::MegatronCoreTe
        | Software::MegatronDeepspeed => ("0.9", whose(software)),
        // All others create a torch.optim.SGD with a learning rate and weight decay: no state at all.
        _ => ("0.0", "default of torch.optim.SGD"),
    }
}

/// Whose defaults they are.
pub(super) const fn whose(software: Software) -> &'static str {
    match software {
        Software::MegatronLegacy => "default of Megatron-LM 23.06",
        Software::MegatronCoreLocal | Software::MegatronCoreTe => "default of Megatron-LM core 0.19",
        Software::MegatronDeepspeed => "default of Megatron-DeepSpeed",
        // Such trainers have no setting of this kind; the text says that the value is not theirs.
        Software::Torchtitan => "as in Megatron-LM; torchtitan does not say",
        Software::Nanotron => "as in Megatron-LM; nanotron does not say",
        Software::GptNeox => "as in Megatron-LM; GPT-NeoX does not say",
        Software::TorchFsdp => "as in Megatron-LM; the trainer does not say",
        Software::HfTransformers => "default of transformers",
        Software::Torchtune | Software::Torchtune06 => "default of torchtune",
        Software::Litgpt | Software::LitgptPretrain => "default of litgpt",
        Software::Unsloth => "default of unsloth",
        Software::Automodel => "default of NeMo Automodel",
        Software::Olmo => "default of OLMo",
        Software::Xtuner => "default of XTuner",
        Software::OlmoCore => "default of OLMo-core",
        Software::Scaletorch => "default of ScaleTorch",
        Software::MaxText => "default of MaxText",
        Software::Levanter => "default of levanter",
    }
}

fn all(table: &mut Table, defaults: &[(Field, &str)], whose: &str) {
    for (field, text) in defaults {
        // A default that its own setting would not accept is an error in the table, which a test below detects.
        if let Ok(value) = parse(*field, text) {
            table.default(*field, value, whose);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CORE, LATENT, LEGACY, MEGATRON, MOE, parse};

    #[test]
    fn every_default_is_a_value_of_its_setting() {
        for (field, text) in [MEGATRON, CORE, LEGACY, MOE, LATENT].concat() {
            assert!(parse(field, text).is_ok(), "{} {text}", field.name());
        }
    }
}

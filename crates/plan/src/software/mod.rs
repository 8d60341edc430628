//! What differs between training software, as data: operators and estimators ask for these facts and never for the
//! software's name. New software is a new row here.

use serde::{Deserialize, Serialize};

mod automodel;
mod jax;
mod litgpt;
mod offers;
mod olmo;
mod rows;
mod semantics;
mod xtuner;

pub use offers::{HostOptimizer, Offers, RecomputedModules};
pub use semantics::{
    AttentionBuild, BatchMask, EndsGathered, GatedActivation, GradientBuffers, HostIssue, MemoryBuffer,
    Modules, NormModule, Rotation, Semantics,
};

/// Which software runs the plan. What it saves, fuses, overlaps and offers is in [`Software::semantics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Software {
    /// `megatron/model` up to 2023.
    MegatronLegacy,
    /// Megatron core with its own layers (`--transformer-impl local`).
    MegatronCoreLocal,
    /// Megatron core with Transformer Engine, the default since core 0.6.
    MegatronCoreTe,
    /// Megatron-DeepSpeed.
    MegatronDeepspeed,
    /// torchtitan.
    Torchtitan,
    /// nanotron.
    Nanotron,
    /// GPT-NeoX.
    GptNeox,
    /// Plain PyTorch FSDP trainers (llm-foundry and the like).
    TorchFsdp,
    /// Hugging Face transformers and trainers built on its modules: its Trainer, TRL, LLaMA-Factory, axolotl.
    HfTransformers,
    /// torchtune after its release 0.6.1, with its own modules.
    Torchtune,
    /// torchtune 0.5 and 0.6: another norm, and losses over chunks of logits.
    Torchtune06,
    /// litgpt's fine-tuning, with its own modules.
    Litgpt,
    /// litgpt's pre-training, which compiles them.
    LitgptPretrain,
    /// unsloth's `FastLanguageModel`: transformers' models with its own kernels and backward passes.
    Unsloth,
    /// NeMo Automodel's own modules of Llama, Qwen2 and Qwen3.
    Automodel,
    /// OLMo's own trainer and modules (allenai/OLMo).
    Olmo,
    /// XTuner before its version 1: transformers' modules with its own attention.
    Xtuner,
    /// OLMo-core's own modules and trainer (allenai/OLMo-core).
    OlmoCore,
    /// ScaleTorch's own modules and trainer (jianzhnie/ScaleTorch), which published step times.
    Scaletorch,
    /// MaxText in JAX on TPUs, whose steps XLA compiles.
    MaxText,
    /// levanter in JAX on TPUs, whose steps XLA compiles.
    Levanter,
}

impl Software {
    /// Every software, in the order of reports.
    pub const ALL: [Self; 21] = [
        Self::MegatronLegacy,
        Self::MegatronCoreLocal,
        Self::MegatronCoreTe,
        Self::MegatronDeepspeed,
        Self::Torchtitan,
        Self::Nanotron,
        Self::GptNeox,
        Self::TorchFsdp,
        Self::HfTransformers,
        Self::Torchtune,
        Self::Torchtune06,
        Self::Litgpt,
        Self::LitgptPretrain,
        Self::Unsloth,
        Self::Automodel,
        Self::Olmo,
        Self::Xtuner,
        Self::OlmoCore,
        Self::Scaletorch,
        Self::MaxText,
        Self::Levanter,
    ];

    /// The name used in settings and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MegatronLegacy => "megatron_legacy",
            Self::MegatronCoreLocal => "megatron_core_local",
            Self::MegatronCoreTe => "megatron_core_te",
            Self::MegatronDeepspeed => "megatron_deepspeed",
            Self::Torchtitan => "torchtitan",
            Self::Nanotron => "nanotron",
            Self::GptNeox => "gpt_neox",
            Self::TorchFsdp => "torch_fsdp",
            Self::HfTransformers => "hf_transformers",
            Self::Torchtune => "torchtune",
            Self::Torchtune06 => "torchtune_0_6",
            Self::Litgpt => "litgpt",
            Self::LitgptPretrain => "litgpt_pretrain",
            Self::Unsloth => "unsloth",
            Self::Automodel => "automodel",
            Self::Olmo => "olmo",
            Self::Xtuner => "xtuner",
            Self::OlmoCore => "olmo_core",
            Self::Scaletorch => "scaletorch",
            Self::MaxText => "maxtext",
            Self::Levanter => "levanter",
        }
    }

    /// What it saves, fuses and gathers.
    #[must_use]
    pub const fn semantics(self) -> &'static Semantics {
        match self {
            Self::MegatronLegacy => &rows::LEGACY,
            Self::MegatronCoreLocal => &rows::CORE_LOCAL,
            Self::MegatronCoreTe => &rows::CORE_TE,
            Self::Torchtitan => &rows::TORCHTITAN,
            Self::Nanotron => &rows::NANOTRON,
            Self::HfTransformers => &rows::HF_TRANSFORMERS,
            Self::Torchtune => &rows::TORCHTUNE,
            Self::Torchtune06 => &rows::TORCHTUNE_06,
            Self::Litgpt => &litgpt::LITGPT,
            Self::LitgptPretrain => &litgpt::LITGPT_PRETRAIN,
            Self::Unsloth => &rows::UNSLOTH,
            Self::Automodel => &automodel::AUTOMODEL,
            Self::Olmo => &olmo::OLMO,
            Self::Xtuner => &xtuner::XTUNER,
            Self::OlmoCore => &olmo::OLMO_CORE,
            Self::Scaletorch => &rows::SCALETORCH,
            Self::MaxText => &jax::MAXTEXT,
            Self::Levanter => &jax::LEVANTER,
            Self::MegatronDeepspeed => &rows::MEGATRON_DEEPSPEED,
            Self::TorchFsdp => &rows::TORCH_FSDP,
            Self::GptNeox => &rows::NEOX,
        }
    }
}

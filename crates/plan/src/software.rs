//! What differs from software to software, as data: estimators ask these facts and never which software it is.

use super::Software;

/// How a software's layers keep, fuse and gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// Whether layers are modules of plain PyTorch, each operation of which keeps what it needs by itself.
    pub eager_modules: bool,
    /// Whether the optimizer steps the model's own parameters, in their own type, unless an engine says otherwise.
    pub steps_parameters: bool,
}

/// Software with kernels and autograd functions of its own, and main parameters beside 16-bit weights.
const OWN_LAYERS: Semantics = Semantics { eager_modules: false, steps_parameters: false };
const HF_TRANSFORMERS: Semantics = Semantics { eager_modules: true, steps_parameters: true };

impl Software {
    /// What is known of how it keeps, fuses and gathers.
    #[must_use]
    pub const fn semantics(self) -> &'static Semantics {
        match self {
            Self::HfTransformers => &HF_TRANSFORMERS,
            Self::MegatronLegacy
            | Self::MegatronCoreLocal
            | Self::MegatronCoreTe
            | Self::MegatronDeepspeed
            | Self::Torchtitan
            | Self::Nanotron
            | Self::GptNeox
            | Self::TorchFsdp => &OWN_LAYERS,
        }
    }
}

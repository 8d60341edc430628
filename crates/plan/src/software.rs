//! What differs from software to software, as data: estimators ask these facts and never which software it is.

use super::Software;

/// How a software's layers keep, fuse and gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// Whether layers are modules of plain PyTorch, each operation of which keeps what it needs by itself.
    pub eager_modules: bool,
}

/// Software with kernels and autograd functions of its own.
const OWN_LAYERS: Semantics = Semantics { eager_modules: false };

impl Software {
    /// What is known of how it keeps, fuses and gathers.
    #[must_use]
    pub const fn semantics(self) -> &'static Semantics {
        match self {
            Self::HfTransformers => &Semantics { eager_modules: true },
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

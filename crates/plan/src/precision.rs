//! Matrix products in 8 and 4 bits.

use crate::cluster::Accelerator;

/// fp8 training (`--fp8-format`, `--fp8-recipe`, `--fp8-param-gather`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fp8 {
    /// `e4m3` or `hybrid`.
    pub format: String,
    /// How values are scaled.
    pub recipe: Fp8Recipe,
    /// Whether the weights themselves are fp8.
    pub param_gather: bool,
}

/// How values of 8 and 4 bits are scaled (`--fp8-recipe`; `nvfp4` by `--fp4-format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fp8Recipe {
    /// By the largest values of earlier steps, Megatron's default.
    #[default]
    Delayed,
    /// By a tensor's largest value.
    Tensorwise,
    /// In blocks of 32 with powers of two.
    Mxfp8,
    /// In blocks of 128.
    Blockwise,
    /// By a recipe of the user's own.
    Custom,
    /// 4-bit values in blocks of 16.
    Nvfp4,
}

impl Fp8Recipe {
    /// Every recipe with Megatron's name for it.
    pub const NAMED: [(Self, &'static str); 6] = [
        (Self::Delayed, "delayed"),
        (Self::Tensorwise, "tensorwise"),
        (Self::Mxfp8, "mxfp8"),
        (Self::Blockwise, "blockwise"),
        (Self::Custom, "custom"),
        (Self::Nvfp4, "nvfp4"),
    ];

    /// Whether `accelerator` supports it and Transformer Engine uses it there
    /// (`transformer_engine/pytorch/quantization.py`: mxfp8 and nvfp4 from compute capability 10 on, blocks of 128
    /// from 9 on; blocks of 32 not yet on 12).
    #[must_use]
    pub fn runs_on(self, accelerator: &Accelerator) -> bool {
        // 0 for accelerators of other makers, which have no compute capability: only delayed and per-tensor scaling.
        let capability = accelerator.capability.unwrap_or(0);
        accelerator.peaks.fp8.is_some()
            && match self {
                Self::Delayed | Self::Tensorwise => true,
                Self::Blockwise => capability >= 9,
                Self::Mxfp8 => (10..12).contains(&capability),
                Self::Nvfp4 => capability >= 10 && accelerator.peaks.fp4.is_some(),
                // Nothing states what a user's own recipe requires of the hardware, so it is never proposed.
                Self::Custom => false,
            }
    }

    /// The format that Megatron's recipes use with it.
    #[must_use]
    pub const fn usual_format(self) -> &'static str {
        match self {
            Self::Delayed | Self::Tensorwise | Self::Custom => "hybrid",
            Self::Blockwise | Self::Mxfp8 => "e4m3",
            Self::Nvfp4 => "e2m1",
        }
    }

    /// Megatron's name for the recipe, as `--fp8-recipe` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(recipe, _)| *recipe == self).map_or("", |(_, name)| name)
    }
}

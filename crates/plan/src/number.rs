//! Number formats of weights, gradients and states.

/// A number format, as far as its width and name matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFormat {
    /// 32-bit float.
    Fp32,
    /// 16-bit brain float.
    Bf16,
    /// 16-bit IEEE float.
    Fp16,
    /// 8-bit float.
    Fp8,
}

impl NumberFormat {
    /// Bytes of one element.
    #[must_use]
    pub const fn width(self) -> u64 {
        match self {
            Self::Fp32 => 4,
            Self::Bf16 | Self::Fp16 => 2,
            Self::Fp8 => 1,
        }
    }

    /// The name frameworks use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::Fp8 => "fp8",
        }
    }

    /// The format that settings call by this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Fp32, Self::Bf16, Self::Fp16, Self::Fp8].into_iter().find(|format| format.name() == name)
    }
}

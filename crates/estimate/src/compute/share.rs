//! The constants of a set by name, for tools that move them.

use super::Calibration;
use shardscope_units::Seconds;

/// A constant of a [`Calibration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// `matmul.half`.
    Half,
    /// `matmul.fp8`.
    Fp8,
    /// `matmul.fp4`.
    Fp4,
    /// `eager`.
    Eager,
    /// `wave`, in microseconds.
    Wave,
    /// `grouped`.
    Grouped,
    /// `memory`.
    Memory,
    /// `attention_forward`.
    AttentionForward,
    /// `attention_backward`.
    AttentionBackward,
    /// `attention_triton`.
    AttentionTriton,
    /// `attention_pytorch`.
    AttentionPytorch,
    /// `fast_link`.
    FastLink,
    /// `exchange`.
    Exchange,
    /// `network`.
    Network,
    /// `user_buffer_overlap`.
    UserBuffers,
    /// `contention`.
    Contention,
    /// `straggling`.
    Straggling,
}

impl Share {
    /// Every constant that tools move.
    pub const ALL: [Self; 17] = [
        Self::Half,
        Self::Fp8,
        Self::Fp4,
        Self::Eager,
        Self::Wave,
        Self::Grouped,
        Self::Memory,
        Self::AttentionForward,
        Self::AttentionBackward,
        Self::AttentionTriton,
        Self::AttentionPytorch,
        Self::FastLink,
        Self::Exchange,
        Self::Network,
        Self::UserBuffers,
        Self::Contention,
        Self::Straggling,
    ];

    /// The name in [`crate::constants::of_generation`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Half => "matmul.half",
            Self::Fp8 => "matmul.fp8",
            Self::Fp4 => "matmul.fp4",
            Self::Eager => "eager",
            Self::Wave => "wave",
            Self::Grouped => "grouped",
            Self::Memory => "memory",
            Self::AttentionForward => "attention_forward",
            Self::AttentionBackward => "attention_backward",
            Self::AttentionTriton => "attention_triton",
            Self::AttentionPytorch => "attention_pytorch",
            Self::FastLink => "fast_link",
            Self::Exchange => "exchange",
            Self::Network => "network",
            Self::UserBuffers => "user_buffer_overlap",
            Self::Contention => "contention",
            Self::Straggling => "straggling",
        }
    }

    /// The most it can be: shares of a peak reach all of it, waves take 20 µs and a doubling of domains a tenth at most.
    #[must_use]
    pub const fn most(self) -> f64 {
        match self {
            Self::Wave => 20.0,
            Self::Straggling => 0.1,
            Self::Contention => 0.8,
            Self::UserBuffers | Self::Half | Self::Fp8 | Self::Fp4 | Self::Memory => 0.95,
            _ => 1.0,
        }
    }

    /// Its value in `set`.
    #[must_use]
    pub fn value(self, set: &Calibration) -> f64 {
        match self {
            Self::Wave => set.wave.get() * 1e6,
            _ => {
                let mut copy = *set;
                *self.place(&mut copy)
            }
        }
    }

    /// Gives it a value in `set`.
    pub fn set(self, set: &mut Calibration, value: f64) {
        if self == Self::Wave {
            set.wave = Seconds::microseconds(value);
        } else {
            *self.place(set) = value;
        }
    }

    fn place(self, set: &mut Calibration) -> &mut f64 {
        match self {
            Self::Half | Self::Wave => &mut set.matmul.half,
            Self::Fp8 => &mut set.matmul.fp8,
            Self::Fp4 => &mut set.matmul.fp4,
            Self::Eager => &mut set.eager,
            Self::Grouped => &mut set.grouped,
            Self::Memory => &mut set.memory,
            Self::AttentionForward => &mut set.attention_forward,
            Self::AttentionBackward => &mut set.attention_backward,
            Self::AttentionTriton => &mut set.attention_triton,
            Self::AttentionPytorch => &mut set.attention_pytorch,
            Self::FastLink => &mut set.fast_link,
            Self::Exchange => &mut set.exchange,
            Self::Network => &mut set.network,
            Self::UserBuffers => &mut set.user_buffer_overlap,
            Self::Contention => &mut set.contention,
            Self::Straggling => &mut set.straggling,
        }
    }
}

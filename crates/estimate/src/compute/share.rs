//! The constants of a set by name, for tools that vary them.

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
    /// `unaligned`.
    Unaligned,
    /// `launch`, in microseconds.
    Launch,
    /// `attention_fourth`.
    AttentionFourth,
    /// `attention_tail_rows`.
    TailRows,
    /// `fast_start`, in microseconds.
    FastStart,
    /// `network_start`, in microseconds.
    NetworkStart,
    /// `network_hop`, in microseconds.
    NetworkHop,
    /// `iteration`, in milliseconds.
    Iteration,
}

impl Share {
    /// Every constant that the fit adjusts.
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

    /// Constants that the fit leaves at their measured or assumed values.
    pub const FIXED: [Self; 8] = [
        Self::Unaligned,
        Self::Launch,
        Self::AttentionFourth,
        Self::TailRows,
        Self::FastStart,
        Self::NetworkStart,
        Self::NetworkHop,
        Self::Iteration,
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
            Self::Unaligned => "unaligned",
            Self::Launch => "launch",
            Self::AttentionFourth => "attention_fourth",
            Self::TailRows => "attention_tail_rows",
            Self::FastStart => "fast_start",
            Self::NetworkStart => "network_start",
            Self::NetworkHop => "network_hop",
            Self::Iteration => "iteration",
        }
    }

    /// The upper limit of the constant: shares may reach the full peak, a wave takes at most 20 µs and a doubling of
    /// domains at most a tenth.
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

    /// The constant's value in `set`.
    #[must_use]
    pub fn value(self, set: &Calibration) -> f64 {
        let mut copy = *set;
        match self.place(&mut copy) {
            Place::Share(value) => *value,
            Place::Time(time, unit) => time.get() / unit.get(),
        }
    }

    /// Sets the constant's value in `set`.
    pub fn set(self, set: &mut Calibration, value: f64) {
        match self.place(set) {
            Place::Share(place) => *place = value,
            Place::Time(time, unit) => *time = unit * value,
        }
    }

    fn place(self, set: &mut Calibration) -> Place<'_> {
        const MICRO: Seconds = Seconds::microseconds(1.0);
        Place::Share(match self {
            Self::Wave => return Place::Time(&mut set.wave, MICRO),
            Self::Launch => return Place::Time(&mut set.launch, MICRO),
            Self::FastStart => return Place::Time(&mut set.fast_start, MICRO),
            Self::NetworkStart => return Place::Time(&mut set.network_start, MICRO),
            Self::NetworkHop => return Place::Time(&mut set.network_hop, MICRO),
            Self::Iteration => return Place::Time(&mut set.iteration, Seconds::milliseconds(1.0)),
            Self::Half => &mut set.matmul.half,
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
            Self::Unaligned => &mut set.unaligned,
            Self::AttentionFourth => &mut set.attention_fourth,
            Self::TailRows => &mut set.attention_tail_rows,
        })
    }
}

/// Where a set stores a constant.
enum Place<'a> {
    /// A share or a count.
    Share(&'a mut f64),
    /// A time, expressed in this unit.
    Time(&'a mut Seconds, Seconds),
}

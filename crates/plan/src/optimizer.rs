//! The optimizer, its states, and how data-parallel ranks shard them.

use super::low_rank::LowRank;
use super::number::NumberFormat;

/// The optimizer and the formats of its per-parameter states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimizer {
    /// Which optimizer.
    pub kind: OptimizerKind,
    /// `--use-precision-aware-optimizer`.
    pub precision_aware: bool,
    /// Only the half of each fp32 weight that its bf16 weight lacks is stored (MindSpeed's `--reuse-fp32-param`).
    pub shares_weights: bool,
    /// `--main-params-dtype`; under software whose optimizer steps PyTorch FSDP's shards, the format of these
    /// ([`Semantics::fsdp_fp32_shards`](super::software::Semantics)).
    pub main_params: NumberFormat,
    /// `--exp-avg-dtype`.
    pub exp_avg: NumberFormat,
    /// `--exp-avg-sq-dtype`.
    pub exp_avg_sq: NumberFormat,
    /// Fraction of the states held on the host (`--optimizer-cpu-offload` with its fraction), 0 to 1.
    pub cpu_offload_fraction: f64,
    /// How states are held where they have no explicit format.
    pub states: StateFormat,
    /// States are in managed memory outside of PyTorch's, which CUDA moves to the host when the device is full (bitsandbytes'
    /// paged optimizers).
    pub paged: bool,
    /// With 8-bit states, those of the word embedding stay in fp32.
    pub whole_embedding: bool,
    /// How gradients are projected before they are stepped; `None` if they are stepped unprojected.
    pub low_rank: Option<LowRank>,
}

/// How an optimizer holds its states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateFormat {
    /// One number for each element.
    #[default]
    Plain,
    /// One fp32 number for each element, whatever the parameters' format (bitsandbytes' 32-bit optimizers).
    Single,
    /// A byte for each element and an fp32 constant for each block of 256 (bitsandbytes).
    EightBit,
    /// Half a byte for each element and an fp32 constant for each block of 128 (torchao).
    FourBit,
    /// An 8-bit float for each element and an fp32 constant for each block of 256 (torchao).
    Float8,
    /// A byte for each element of a moment and an fp16 scale for each group of 32; beside narrower weights also the bytes that
    /// complete each to `master` (flashoptim).
    Flash {
        /// Bytes of a weight together with its completion (`master_weight_bits`).
        master: u64,
    },
}

/// An optimizer, by the states it holds for each parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptimizerKind {
    /// Adam: two moments.
    Adam,
    /// Adam with two moments and what rounding left out of each weight, all in bf16 (AnyPrecisionAdamW with Kahan summation).
    AdamKahan,
    /// SGD without momentum: none.
    Sgd,
    /// SGD with momentum: one.
    SgdMomentum,
    /// Muon: one momentum for matrices (Adam for the rest).
    Muon,
    /// Lion: one momentum (Chen et al. 2023).
    Lion,
    /// RMSprop: one sum of squares.
    SumOfSquares,
    /// Adagrad: one sum of squares, and one more tensor during its step.
    Adagrad,
    /// Adam with a third moment (AdEMAMix, Pagliardini et al. 2024).
    AdEmaMix,
    /// Sums of squares by row and by column of a matrix (Shazeer and Stern 2018).
    Adafactor,
    /// A momentum, and a mean of squares for each row of a matrix (Zhang et al. 2024).
    AdamMini,
    /// Adam in the eigenbasis of two preconditioners of a matrix (Vyas et al. 2024).
    Soap,
    /// A momentum and two preconditioners of a matrix with their roots (Gupta et al. 2018).
    Shampoo,
}

/// How data-parallel ranks shard what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DpSharding {
    /// Everything replicated; gradients all-reduced.
    Replicated,
    /// Optimizer states sharded: distributed optimizer, ZeRO-1.
    OptimizerStates,
    /// States and gradients: ZeRO-2, `optim_grads`.
    Gradients,
    /// States, gradients and weights: ZeRO-3, FSDP, `optim_grads_params`.
    Parameters,
}

impl DpSharding {
    /// The ZeRO stage (0 to 3) that shards the same.
    #[must_use]
    pub const fn zero_stage(self) -> u64 {
        match self {
            Self::Replicated => 0,
            Self::OptimizerStates => 1,
            Self::Gradients => 2,
            Self::Parameters => 3,
        }
    }
}

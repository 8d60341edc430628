//! Rates that kernels reach when timed one by one, for software in which every kernel is counted.
//!
//! The other constants are shares that the counted bytes and products reach in whole steps, including gaps between
//! kernels and uncounted work. Plain PyTorch modules are counted operation by operation as PyTorch dispatches them
//! (`tests/record/kernels_of_a_layer.py`), so the time of the single kernel is what counts. The values are from
//! `tests/data/measured/kernels.tsv`, one H200; `tests/suite/kernels.rs` checks each against its rows. What depends on
//! the clock that power leaves, and on how tokens fall on experts, is from the single kernels of 40 profiled steps
//! (`kernels_in_steps.tsv`, `tests/suite/kernels_in_steps.rs`): products on end reach 0.67 to 0.72 of the peak at
//! 1,485 MHz and 690 W, among the other kernels of a step 0.84 at 1,730 to 1,980 MHz. No step time was used. An H100 has the same multiprocessors and slower memory, of which kernels that compute between accesses
//! may reach a larger share; that was not measured.

use super::Calibration;
use shardscope_plan::{AttentionKernel, Generation, Recipe};
use shardscope_units::Seconds;

/// Shares of a data sheet's figures that single kernels reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SingleKernels {
    /// Of the 16-bit peak: a large product among other kernels, at the clock that their power allows.
    pub half: f64,
    /// Of the fp8 peak: the same.
    pub fp8: f64,
    /// Of the fp32 peak: a product that does not use tensor cores.
    pub fp32: f64,
    /// The same if products run one after another for seconds on end, under the power limit.
    pub half_alone: f64,
    /// Fixed cost of a wave of output tiles.
    pub wave: Seconds,
    /// Of a product's rate: grouped products of unequal size (`torch._grouped_mm`), besides what their tiles leave
    /// empty.
    pub grouped: f64,
    /// Of the memory's bandwidth: copies, sums and products of tensors.
    pub plain: f64,
    /// The same for kernels that cast and sum over rows: norms, losses, casts.
    pub row_sums: f64,
    /// Of the memory's bandwidth: a product that it bounds, if it mostly reads (a narrow result: `lora_A`, gradients of
    /// adapters) and if it mostly writes (a narrow inner dimension: `lora_B`).
    pub thin: [f64; 2],
    /// Elements per second of one multiprocessor in kernels that compute each element's address.
    pub addressed: f64,
    /// Of the rate of the set's fused attention: `scaled_dot_product_attention`, which uses cuDNN's on Hopper since
    /// PyTorch 2.10 (`aten/src/ATen/native/transformers/cuda/sdp_utils.cpp:check_prefer_cudnn_attention`).
    pub sdpa: f64,
    /// The same for FlashAttention-2.
    pub flash: f64,
    /// Of the rate of `sdpa`: a kernel that is given a mask, which it reads and adds for every pair. All blocks of
    /// queries have as many keys, so none is left to run alone at the end.
    pub masked: f64,
    /// The same for PyTorch's memory-efficient kernel, which alone takes heads wider than 256: as measured with heads of 64 and
    /// 128, as wider ones were not.
    pub efficient: f64,
    /// Of the memory's bandwidth: gradient norm, clipping and fused AdamW, on 16-bit and on fp32 parameters.
    pub optimizer: [f64; 2],
}

/// Hopper, from one H200.
pub const HOPPER: SingleKernels = SingleKernels {
    half: 0.86,
    half_alone: 0.72,
    fp8: 0.66,
    fp32: 0.74,
    wave: Seconds::microseconds(2.0),
    grouped: 0.86,
    plain: 0.88,
    row_sums: 0.59,
    thin: [0.76, 0.60],
    addressed: 2.65e9,
    sdpa: 0.84,
    flash: 0.48,
    masked: 0.43,
    efficient: 0.25,
    optimizer: [0.53, 0.70],
};

/// The rates for `generation` if `recipe`'s software is counted kernel by kernel; none otherwise, or if it was not
/// measured.
pub(super) fn single_kernels(generation: Generation, recipe: &Recipe) -> Option<SingleKernels> {
    let counted = recipe.software.semantics().eager_modules;
    (counted && generation == Generation::H100).then_some(HOPPER)
}

/// Share of the time up to which products run at the clock of short bursts: of 36 profiled steps, those in which they
/// and attention filled up to half took what `half` says, at 0.6 it was 2 to 3 % more.
const COOL: f64 = 0.5;

impl SingleKernels {
    /// How much longer 16-bit products take if they and attention fill `share` of the device's time: nothing up to
    /// half of it, the rest in proportion up to products on end.
    pub(crate) fn heated(&self, share: f64) -> f64 {
        let hot = ((share - COOL) / (1.0 - COOL)).clamp(0.0, 1.0);
        1.0 + hot * (self.half / self.half_alone - 1.0)
    }

    /// Share of the set's attention rate that `kernel` reaches.
    pub(super) const fn attention(&self, kernel: AttentionKernel) -> f64 {
        match kernel {
            AttentionKernel::Flash => self.flash,
            AttentionKernel::Sdpa | AttentionKernel::Fused | AttentionKernel::Unfused => self.sdpa,
        }
    }

    /// `set` with these rates in place of those from whole steps.
    pub(super) fn within(&self, set: Calibration) -> Calibration {
        let (wave, grouped) = (self.wave, self.grouped);
        let mut set = Calibration { wave, grouped, memory: self.plain, eager: 1.0, ..set };
        set.matmul.half = self.half;
        set.matmul.fp8 = self.fp8;
        set
    }
}

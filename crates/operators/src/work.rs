//! The arithmetic facet: matrix products and memory-bound kernels.

use shardscope_plan::RecomputeModule;
use shardscope_units::{Bytes, Flops};

/// Arithmetic of one micro-batch on one rank, forward and backward.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A matrix product.
    Matmul(Matmul),
    /// A memory-bound kernel.
    Kernel(Kernel),
}

impl Work {
    /// A linear layer with sizes `local` on one rank and `full` without sharding.
    #[must_use]
    pub(super) fn linear(name: &'static str, local: [u64; 3], full: [u64; 3]) -> Self {
        Self::Matmul(Matmul::linear(name, local, full))
    }

    /// The same, never in fp8.
    #[must_use]
    pub(super) fn plain_linear(name: &'static str, local: [u64; 3], full: [u64; 3]) -> Self {
        Self::Matmul(Matmul { kind: MatmulKind::PlainLinear, ..Matmul::linear(name, local, full) })
    }

    /// The same without a backward pass.
    #[must_use]
    pub(super) fn forward_linear(name: &'static str, local: [u64; 3], full: [u64; 3]) -> Self {
        Self::Matmul(Matmul { kind: MatmulKind::ForwardLinear, ..Matmul::linear(name, local, full) })
    }

    /// The same as `layers` parallel layers that read one input.
    #[must_use]
    pub(super) fn linears(layers: u64, name: &'static str, local: [u64; 3], full: [u64; 3]) -> Self {
        Self::Matmul(Matmul { layers, ..Matmul::linear(name, local, full) })
    }

    /// Makes all of `work` part of `modules`, which selective recomputation may name.
    pub(super) fn within(work: &mut [Self], modules: &'static [RecomputeModule]) {
        for work in work {
            match work {
                Self::Matmul(matmul) => matmul.modules = modules,
                Self::Kernel(kernel) => kernel.modules = modules,
            }
        }
    }

    /// Says whether a product's backward computes it once more.
    pub(super) fn compute_again(&mut self, again: bool) {
        if let Self::Matmul(matmul) = self {
            matmul.again = again;
        }
    }

    /// Says which share of a product a recomputed layer repeats.
    pub(super) fn repeat(&mut self, share: f64) {
        if let Self::Matmul(matmul) = self {
            matmul.repeated = share;
        }
    }

    /// The modules of `--recompute-modules` it is part of.
    #[must_use]
    pub fn modules(&self) -> &'static [RecomputeModule] {
        match self {
            Self::Matmul(matmul) => matmul.modules,
            Self::Kernel(kernel) => kernel.modules,
        }
    }
}

/// What kind of product it is: decides its number format and what backward computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatmulKind {
    /// A linear layer that runs in fp8 when fp8 is on. Backward: input gradient and weight gradient.
    Linear,
    /// A linear layer that never runs in fp8 (output layer, router). Backward as above.
    PlainLinear,
    /// A linear layer whose output no loss reads: there is no backward.
    ForwardLinear,
    /// Queries times keys. Backward: one product per operand; a fused kernel repeats the forward one.
    Scores,
    /// Probabilities times values. Backward: one product per operand.
    Values,
}

impl MatmulKind {
    /// Whether it is a linear layer with a weight.
    #[must_use]
    pub const fn has_weight(self) -> bool {
        matches!(self, Self::Linear | Self::PlainLinear | Self::ForwardLinear)
    }

    /// Whether backward reaches it.
    #[must_use]
    pub const fn has_backward(self) -> bool {
        !matches!(self, Self::ForwardLinear)
    }

    /// Whether it runs in fp8 when fp8 is on.
    #[must_use]
    pub const fn runs_in_fp8(self) -> bool {
        matches!(self, Self::Linear)
    }

    /// Products of its size in the backward pass of a fused attention kernel: one for each operand, and the scores
    /// again (FlashAttention-2, algorithm 2).
    #[must_use]
    pub const fn fused_backward_products(self) -> f64 {
        match self {
            Self::Scores => 3.0,
            Self::Linear | Self::PlainLinear | Self::ForwardLinear | Self::Values => 2.0,
        }
    }
}

/// A matrix product `[m, k] x [k, n]`, `batch` times.
#[derive(Clone, Debug, PartialEq)]
pub struct Matmul {
    /// Short name, for example `linear_qkv`.
    pub name: &'static str,
    /// Independent problems on this rank (heads, experts); 1 for a linear layer.
    pub batch: u64,
    /// Sizes on one rank: m, n, k.
    pub local: [u64; 3],
    /// Independent problems without sharding.
    pub full_batch: u64,
    /// Sizes without sharding: m, n, k.
    pub full: [u64; 3],
    /// What kind of product.
    pub kind: MatmulKind,
    /// Fraction of the product that is meaningful: 0.5 for causal attention; below 1 if sizes are rounded up.
    pub share: f64,
    /// The modules of `--recompute-modules` it is part of.
    pub modules: &'static [RecomputeModule],
    /// Whether the gradient of its weight is computed; false without a weight.
    pub trains: bool,
    /// Layers that the software runs it as, each with its own products.
    pub layers: u64,
    /// Whether the gradient of its input is computed in fp32, regardless of the others.
    pub fp32_gradient: bool,
    /// Whether a fused kernel is given a mask, which makes it multiply with every key.
    pub masked: bool,
    /// Tokens of the window and of the sequence that a fused kernel goes through, where each query sees a window of keys.
    pub window: Option<[u64; 2]>,
    /// Whether backward computes it once more, whatever is recomputed, because the function that it is part of saves none of
    /// its result.
    pub again: bool,
    /// Share that a recomputed layer repeats: less than all where it keeps some of the result by name, or where no gradient
    /// needs the result and a compiler leaves the product out.
    pub repeated: f64,
}

impl Matmul {
    /// A linear layer with sizes `local` on one rank and `full` without sharding.
    #[must_use]
    pub(super) fn linear(name: &'static str, local: [u64; 3], full: [u64; 3]) -> Self {
        let kind = MatmulKind::Linear;
        Self {
            name,
            batch: 1,
            local,
            full_batch: 1,
            full,
            kind,
            share: 1.0,
            modules: &[],
            trains: true,
            layers: 1,
            fp32_gradient: false,
            masked: false,
            window: None,
            again: false,
            repeated: 1.0,
        }
    }

    /// FLOPs forward on one rank, counting all of the product as meaningful.
    #[must_use]
    pub fn flops(&self) -> Flops {
        product(self.local, self.batch)
    }

    /// FLOPs forward of the unsharded model, counting all of the product as meaningful.
    #[must_use]
    pub fn full_flops(&self) -> Flops {
        product(self.full, self.full_batch)
    }
}

/// 2 m n k of `batch` products.
#[allow(clippy::cast_precision_loss)]
fn product([m, n, k]: [u64; 3], batch: u64) -> Flops {
    Flops::new(2.0 * m as f64 * n as f64 * k as f64 * batch as f64)
}

/// Elements whose addresses kernels compute one by one, forward and backward, and the part of the kernels' bytes that
/// they move: operands that are strided, spread over rows or columns, gathered by index, or of several types. PyTorch
/// then runs a loop that is not vectorized (`aten/src/ATen/native/cuda/CUDALoops.cuh: elementwise_kernel,
/// unrolled_elementwise_kernel`) and that its arithmetic bounds, not the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addressed {
    /// Elements.
    pub elements: [u64; 2],
    /// Bytes.
    pub bytes: [u64; 2],
}

impl std::ops::AddAssign for Addressed {
    fn add_assign(&mut self, other: Self) {
        for pass in 0..2 {
            self.elements[pass] += other.elements[pass];
            self.bytes[pass] += other.bytes[pass];
        }
    }
}

/// Kernels that a GPU runs within operations that PyTorch dispatches as one, forward and backward, in addition to
/// those counted: the copy before a mask is filled in out of place, the passes of a sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// Launches.
    pub launches: [u64; 2],
    /// Bytes.
    pub bytes: [u64; 2],
}

/// A memory-bound kernel, or several of one purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Short name.
    pub name: &'static str,
    /// Bytes read and written forward.
    pub forward: Bytes,
    /// Bytes read and written backward.
    pub backward: Bytes,
    /// Launches forward.
    pub launches_forward: u64,
    /// Launches backward.
    pub launches_backward: u64,
    /// The modules of `--recompute-modules` it is part of.
    pub modules: &'static [RecomputeModule],
    /// Host time of the Python code around its launches, in forward and in backward alike, as a number of additional
    /// launches.
    pub python: u64,
    /// Whether it casts, sums over rows, or reads an operand repeatedly or strided, so that it does not reach the
    /// bandwidth of plain copies and sums of two tensors.
    pub sums_rows: bool,
    /// Whether it is counted as it is dispatched in software whose other kernels are not, so that it reaches what such a kernel
    /// reaches when timed by itself.
    pub alone: bool,
    /// Elements that are addressed one by one.
    pub addressed: Addressed,
    /// What a GPU runs in addition.
    pub within: Within,
}

impl Kernel {
    /// Kernels that move `bytes` in `launches` launches, forward and backward.
    #[must_use]
    pub(super) fn new(name: &'static str, bytes: [Bytes; 2], launches: [u64; 2]) -> Self {
        let [forward, backward] = bytes;
        let [launches_forward, launches_backward] = launches;
        Self {
            name,
            forward,
            backward,
            launches_forward,
            launches_backward,
            modules: &[],
            python: 0,
            sums_rows: false,
            alone: false,
            addressed: Addressed::default(),
            within: Within::default(),
        }
    }
}

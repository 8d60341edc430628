//! One accelerator and its effective rates.

use super::heads::{HeadsAndWindows, heads_and_windows};
use super::single::{HOPPER, single_kernels};
use super::{Calibration, MatmulRates, SingleKernels, calibration};
use shardscope_plan::{
    Accelerator, AttentionBuild, AttentionKernel, Cluster, FlashRelease, Fp8Recipe, Generation, NumberFormat,
    Recipe,
};
use shardscope_units::{BytesPerSecond, FlopsPerSecond, Quantity, Seconds};

/// Share of a network card's bandwidth that all-to-alls reach: every pair of ranks sends at once and nothing is
/// forwarded, so no rank waits for its neighbour as in a ring. DeepEP's normal kernels on H800 with 400 Gb/s cards
/// (`docs/legacy.md`) reach 57 and 58 GB/s over four nodes, 50 and 51 over eight. Those figures count tokens for
/// every node they go to, including their own (`tests/legacy/test_internode.py`: `num_rdma_token_sent`); three
/// quarters and seven eighths of them cross the card: 43 to 45 of its 50 GB/s.
pub(crate) const NETWORK_EXCHANGE: f64 = 0.87;

/// Share of cuDNN's rate that FlashAttention-2 reaches on Blackwell, for which it was not written: 436 and 346 TFLOP/s of 1,419 and
/// 1,109 over 32,768 tokens on B200 (NVIDIA/cudnn-frontend, `benchmark/sdpa_benchmark_training/artifacts`).
const FLASH_2_ON_BLACKWELL: f64 = 0.31;

const fn is_blackwell(generation: Generation) -> bool {
    matches!(generation, Generation::B200 | Generation::GB200 | Generation::GB300)
}

/// Effective rates of one accelerator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// Constants of its generation.
    pub calibration: Calibration,
    /// Large products with 16-bit inputs.
    pub half: FlopsPerSecond,
    /// Large products in the recipe's low precision; equals `half` if it has none.
    pub low: FlopsPerSecond,
    /// Bytes of one input element of a low-precision product.
    pub low_width: f64,
    /// Fused attention in forward, on the causal half.
    pub attention_forward: FlopsPerSecond,
    /// The same in backward.
    pub attention_backward: FlopsPerSecond,
    /// How fused attention slows down with narrow heads and windows.
    pub attention: HeadsAndWindows,
    /// The dense peak of 16-bit products.
    pub peak: FlopsPerSecond,
    /// The dense peak in the recipe's low precision.
    pub low_peak: FlopsPerSecond,
    /// Streaming kernels.
    pub memory: BytesPerSecond,
    /// Copies, sums and products of tensors that are counted as they are dispatched, in software whose other kernels are not: the
    /// share that they reach on an H200 (`single.rs`), assumed of other parts.
    pub alone: BytesPerSecond,
    /// Kernels that cast and sum over rows.
    pub row_sums: BytesPerSecond,
    /// Rates of isolated kernels, if the software's kernels are counted one by one.
    pub single: Option<SingleKernels>,
    /// Products in fp32 outside of tensor cores.
    pub fp32: FlopsPerSecond,
    /// The memory's data-sheet bandwidth.
    pub memory_peak: BytesPerSecond,
    /// Multiprocessors.
    pub multiprocessors: u64,
    /// Ring collectives within the fast-link domain.
    pub fast: BytesPerSecond,
    /// Ring collectives over the network, per accelerator.
    pub network: BytesPerSecond,
    /// All-to-alls over the network, per accelerator.
    pub network_exchange: BytesPerSecond,
}

/// Number format of the products that run below 16 bits.
#[derive(Clone, Copy, PartialEq)]
enum Low {
    None,
    Fp8,
    Fp4,
}

impl Device {
    /// The device of `cluster` under `recipe`, using the cluster's measured rates where given.
    #[must_use]
    pub fn new(cluster: &Cluster, recipe: &Recipe) -> Self {
        Self::with(calibration(&cluster.accelerator), cluster, recipe)
    }

    /// The same with the caller's constants.
    #[must_use]
    pub fn with(calibration: Calibration, cluster: &Cluster, recipe: &Recipe) -> Self {
        let (accelerator, measured) = (&cluster.accelerator, &cluster.measured);
        let peaks = accelerator.peaks;
        let alone = single_kernels(calibration.generation, recipe);
        let calibration = alone.map_or(calibration, |alone| alone.within(calibration));
        let single = recipe.compute_dtype() == NumberFormat::Fp32;
        let peak = if single { peaks.fp32 } else { peaks.half };
        let rates = calibration.matmul;
        // A measured product rate scales every format: it reflects clocks and power, which the formats share.
        let factor = match measured.matmul {
            Some(rate) => rate.get() / (peaks.half.get() * rates.half),
            None if recipe.software.semantics().pytorch_linears => calibration.eager,
            None => 1.0,
        };
        // Products in fp32 are bound by other units and heat less.
        let half = alone.filter(|_| single).map_or(rates.half, |alone| alone.fp32);
        let (low_peak, share, low_width) = low_precision(recipe, accelerator, rates, peak);
        let memory_peak = accelerator.memory_bandwidth;
        let clocks = measured.matmul.map_or(1.0, |_| factor);
        let kernel = match (recipe.flash_release, recipe.software.semantics().attention_build) {
            (FlashRelease::Fourth, _) => calibration.attention_fourth,
            // Transformer Engine runs FlashAttention-3 on Hopper.
            (FlashRelease::Third, _) | (_, AttentionBuild::Native) => 1.0,
            (_, AttentionBuild::Triton) => calibration.attention_triton,
            (_, AttentionBuild::Pytorch)
                if recipe.attention_kernel == AttentionKernel::Flash
                    && is_blackwell(calibration.generation) =>
            {
                FLASH_2_ON_BLACKWELL
            }
            (_, AttentionBuild::Pytorch) => {
                alone.map_or(calibration.attention_pytorch, |alone| alone.attention(recipe.attention_kernel))
            }
        };
        Self {
            calibration,
            half: peak * (half * factor),
            low: low_peak * (share * factor),
            low_width,
            attention_forward: peak * (calibration.attention_forward * kernel * clocks),
            attention_backward: peak * (calibration.attention_backward * kernel * clocks),
            attention: heads_and_windows(calibration.generation, recipe),
            peak,
            low_peak,
            memory: memory_peak * calibration.memory,
            alone: memory_peak * HOPPER.plain,
            row_sums: memory_peak * alone.map_or(calibration.memory, |alone| alone.row_sums),
            fp32: peaks.fp32 * alone.map_or(rates.half, |alone| alone.fp32),
            single: alone,
            memory_peak,
            multiprocessors: accelerator.multiprocessors.max(1),
            fast: measured.fast_bus.unwrap_or(accelerator.fast_link.bandwidth * calibration.fast_link),
            network: measured.network_bus.unwrap_or(accelerator.network.bandwidth * calibration.network),
            network_exchange: measured
                .network_bus
                .unwrap_or(accelerator.network.bandwidth * NETWORK_EXCHANGE),
        }
    }

    /// Elements of a product's inputs in 16 bytes; `low` if they are in the recipe's low precision.
    #[must_use]
    pub fn run(&self, low: bool) -> u64 {
        match self.low_width {
            width if !low || width > 1.0 => 8,
            width if width < 1.0 => 32,
            _ => 16,
        }
    }

    /// Time of memory-bound kernels that move `bytes` in `launches` launches.
    #[must_use]
    pub fn kernel(&self, bytes: f64, launches: u64) -> Seconds {
        self.stream(bytes) + self.calibration.launch * real(launches)
    }

    /// The same for kernels that are counted as they are dispatched, in software whose other kernels are not.
    #[must_use]
    pub fn alone(&self, bytes: f64, launches: u64) -> Seconds {
        Seconds::new(bytes / self.alone.get()) + self.calibration.launch * real(launches)
    }

    /// The same for kernels that cast and sum over rows.
    #[must_use]
    pub fn row_sums(&self, bytes: f64, launches: u64) -> Seconds {
        Seconds::new(bytes / self.row_sums.get()) + self.calibration.launch * real(launches)
    }

    /// Time of kernels that move `bytes` of `elements` whose addresses they compute one by one: bound by the memory or
    /// by that arithmetic. Without rates of single kernels the share of the bandwidth stands for both.
    #[must_use]
    pub fn addressed(&self, bytes: f64, elements: f64) -> Seconds {
        let moving = self.stream(bytes);
        self.single.map_or(moving, |alone| {
            moving.greater(Seconds::new(elements / (alone.addressed * real(self.multiprocessors))))
        })
    }

    /// Time to move `bytes` in gradient norm, clipping and update of parameters that are `width` bytes wide.
    #[must_use]
    pub fn optimizer(&self, bytes: f64, width: u64) -> Seconds {
        let [half, single] = self.single.map_or([self.calibration.memory; 2], |alone| alone.optimizer);
        let share = if width > 2 { single } else { half };
        Seconds::new(bytes / (self.memory_peak.get() * share))
    }

    /// Time to move `bytes` through memory.
    #[must_use]
    pub fn stream(&self, bytes: f64) -> Seconds {
        Seconds::new(bytes / self.memory.get())
    }
}

/// Peak, share reached and input width (bytes) of the products that run in low precision.
fn low_precision(
    recipe: &Recipe,
    accelerator: &Accelerator,
    rates: MatmulRates,
    peak: FlopsPerSecond,
) -> (FlopsPerSecond, f64, f64) {
    let low = match &recipe.fp8 {
        None => Low::None,
        Some(fp8) if fp8.recipe == Fp8Recipe::Nvfp4 => Low::Fp4,
        Some(_) => Low::Fp8,
    };
    let peaks = accelerator.peaks;
    match (low, peaks.fp8, peaks.fp4) {
        (Low::Fp4, _, Some(fp4)) => (fp4, rates.fp4, 0.5),
        (Low::Fp8 | Low::Fp4, Some(fp8), _) => (fp8, rates.fp8, 1.0),
        _ => (peak, rates.half, real(recipe.compute_dtype().width())),
    }
}

#[allow(clippy::cast_precision_loss)]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

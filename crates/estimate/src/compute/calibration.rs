//! What a data sheet does not say: the share of its figures that kernels reach, and fixed costs. There is one set per
//! accelerator generation, and none per model, row or paper. Parts of one silicon share a set except for what
//! physically differs: clocks under their power limits, memory, links.
//!
//! Sources of the figures:
//! - measured elsewhere and adopted: `fast_link` (NCCL all-reduce bus bandwidth: 235 of 300 GB/s on A100, 365 of
//!   450 on H200, 682 of 900 on B200, ml-engineering network chapter; all-gather 0.67 on B200, SimuMax), `fast_start`
//!   (NCCL small messages), `exchange` (NCCL all-to-alls of 256 MiB over eight GPUs: 224 GB/s on A100, 351 on H100,
//!   613 on B200, seven eighths of which leave a GPU, i.e. 0.84, 0.84 and 0.88 of a ring's; over four GPUs 0.77 on
//!   GB200 and 0.81 on GB300; DeepEP's combine from 20 multiprocessors 0.9 on H100: tables of
//!   ai-dynamo/aiconfigurator, `systems/data/*/comm`), `attention_*` on A100 (SimuMax's tables over 4 to 128 heads: time linear in
//!   the work plus a block of `attention_tail_rows` rows) and on Blackwell (cuDNN over 2,048 to 131,072 tokens by the same law,
//!   NVIDIA/cudnn-frontend, `benchmark/sdpa_benchmark_training`: 0.68 of the peak forward and 0.52 backward on B200 by cuDNN 9.10,
//!   0.71 and 0.61 on GB200 by 9.19, of which with B200's the middle is taken, 0.77 and 0.56, 0.82 and 0.65 on GB300 by either, whose
//!   exponentials are twice as fast. The same tables have 0.71 and 0.60 on H200, where whole runs say 0.72 and 0.59), B200's `matmul`
//!   (SimuMax: large products at 0.46 to 0.52 of peak under load, 0.62 in bursts);
//! - fitted to published runs, all rows of a silicon together, never row by row (`cargo run --example fit`):
//!   `matmul`, `wave`, `memory`, `network`, `contention`, `user_buffer_overlap`, `grouped`, `eager`,
//!   `attention_triton`, `attention_pytorch`, `unaligned`, `straggling`;
//! - assumed, because no row determines them: `launch`, `network_start`, `network_hop`, `iteration`.
//!
//! H100's rows only constrain the sum of `matmul`, `wave` and `memory`: both waves and streamed bytes grow with a
//! token's columns. With `memory` at 0.45 or 0.6 and the others fitted again, dense rows come out the same to half a
//! per cent (median 3.4, nine of ten within 10). Products measured in isolation have waves of 1 to 2 µs and reach at
//! most 0.71 of the fp8 peak. With waves fixed there, `memory` becomes 0.55 to 0.62 and fp8 0.64, and sources left
//! out of the fit get worse (nine of ten dense rows within 14 instead of 10 %). So the values are valid as a set, not
//! individually for a kernel. Software whose kernels are counted one by one uses kernel measurements instead:
//! `single.rs`.
//!
//! `unaligned` is known only from BigScience's tuning logs: heads 108 and 150 wide against 104 to 224.

use shardscope_plan::{Accelerator, Generation};
use shardscope_units::Seconds;

/// Shares of the dense peak that a large matrix product reaches in training, by input format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatmulRates {
    /// bf16 and fp16 inputs.
    pub half: f64,
    /// fp8 inputs, any recipe.
    pub fp8: f64,
    /// nvfp4 inputs.
    pub fp4: f64,
}

/// The constants of one generation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Which generation.
    pub generation: Generation,
    /// Share of the dense peak that a large matrix product reaches under a training load, power and
    /// clock limits included.
    pub matmul: MatmulRates,
    /// Share of that rate in plain PyTorch linear layers, without Transformer Engine.
    pub eager: f64,
    /// Fixed cost of one wave of output tiles: prologue, epilogue and the wait for the slowest tile.
    pub wave: Seconds,
    /// Share of the rate that remains if rows of an operand do not start at multiples of 16 bytes.
    pub unaligned: f64,
    /// Share of the rate that remains in grouped products of experts.
    pub grouped: f64,
    /// Share of the memory bandwidth that streaming kernels reach in training, for the bytes that the model counts.
    pub memory: f64,
    /// Cost of a kernel launch that the device sees even when the host runs ahead.
    pub launch: Seconds,
    /// Share of the dense peak that fused attention over a long sequence reaches in forward, on the causal half.
    pub attention_forward: f64,
    /// The same for backward.
    pub attention_backward: f64,
    /// Share of the two rates above that a FlashAttention-1 kernel in Triton reaches (PyTorch trainers of 2023).
    pub attention_triton: f64,
    /// Share of the two rates above that FlashAttention-2 reaches through PyTorch (torchtitan).
    pub attention_pytorch: f64,
    /// Rate of FlashAttention-4 as a multiple of the two rates above.
    pub attention_fourth: f64,
    /// Rows of the query block that runs alone at the end of a fused attention.
    pub attention_tail_rows: f64,
    /// Share of the fast link's bandwidth that ring collectives reach.
    pub fast_link: f64,
    /// Share of a ring's bandwidth that all-to-alls reach inside a fast-link domain.
    pub exchange: f64,
    /// Start-up time of a collective inside a fast-link domain.
    pub fast_start: Seconds,
    /// Share of the network's bandwidth that collectives of large messages reach.
    pub network: f64,
    /// Start-up time of a message that crosses the network.
    pub network_start: Seconds,
    /// Start-up time that each further rank of a ring over the network adds to a collective.
    pub network_hop: Seconds,
    /// Share of tensor-parallel traffic that user-buffer overlap (`--tp-comm-overlap`) hides.
    pub user_buffer_overlap: f64,
    /// How much hidden communication on the fast link slows down concurrent arithmetic, as a share of the
    /// communication's own time; a ring through fewer network cards slows it down less.
    pub contention: f64,
    /// Share by which every doubling of the number of fast-link domains lengthens the step: there are more ranks to
    /// wait for.
    pub straggling: f64,
    /// Fixed time per step: data loading, logging, host synchronisation.
    pub iteration: Seconds,
}

const V100: Calibration = Calibration {
    generation: Generation::V100,
    matmul: MatmulRates { half: 0.723, fp8: 0.0, fp4: 0.0 },
    eager: 1.0,
    wave: Seconds::microseconds(2.0),
    unaligned: 0.15,
    grouped: 0.85,
    memory: 0.714,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.45,
    attention_backward: 0.35,
    attention_triton: 0.6,
    attention_pytorch: 1.0,
    attention_fourth: 1.0,
    attention_tail_rows: 95.0,
    fast_link: 0.77,
    exchange: 0.9,
    fast_start: Seconds::microseconds(30.0),
    network: 0.47,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    user_buffer_overlap: 0.7,
    contention: 0.05,
    straggling: 0.0,
    iteration: Seconds::milliseconds(10.0),
};

const A100: Calibration = Calibration {
    generation: Generation::A100,
    matmul: MatmulRates { half: 0.748, fp8: 0.0, fp4: 0.0 },
    eager: 1.0,
    wave: Seconds::microseconds(4.0),
    unaligned: 0.044,
    grouped: 0.85,
    memory: 0.723,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.587,
    attention_backward: 0.496,
    attention_triton: 0.655,
    attention_pytorch: 1.0,
    attention_fourth: 1.0,
    attention_tail_rows: 95.0,
    fast_link: 0.78,
    exchange: 0.84,
    fast_start: Seconds::microseconds(20.0),
    network: 0.643,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    user_buffer_overlap: 0.7,
    contention: 0.05,
    straggling: 0.0,
    iteration: Seconds::milliseconds(10.0),
};

const H100: Calibration = Calibration {
    generation: Generation::H100,
    matmul: MatmulRates { half: 0.817, fp8: 0.835, fp4: 0.0 },
    eager: 0.889,
    wave: Seconds::microseconds(11.1),
    unaligned: 0.15,
    grouped: 0.813,
    memory: 0.498,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.715,
    attention_backward: 0.59,
    attention_triton: 0.301,
    attention_pytorch: 0.5,
    attention_fourth: 1.0,
    attention_tail_rows: 95.0,
    fast_link: 0.81,
    exchange: 0.84,
    fast_start: Seconds::microseconds(15.0),
    network: 0.612,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    user_buffer_overlap: 0.751,
    contention: 0.411,
    straggling: 0.006,
    iteration: Seconds::milliseconds(10.0),
};

/// Blackwell: one silicon. Its parts differ in clocks under their power limits (1,000 W in an HGX B200, 1,200 in a
/// GB200, 1,400 in a GB300), which the matrix products show, and in data sheet values: memory, domain of the fast
/// link, network.
const BLACKWELL: Calibration = Calibration {
    generation: Generation::B200,
    matmul: MatmulRates { half: 0.467, fp8: 0.584, fp4: 0.613 },
    eager: 1.0,
    wave: Seconds::microseconds(1.534),
    unaligned: 0.15,
    grouped: 0.879,
    memory: 0.617,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.69,
    attention_backward: 0.57,
    attention_triton: 0.6,
    attention_pytorch: 1.0,
    attention_fourth: 1.04,
    attention_tail_rows: 200.0,
    fast_link: 0.68,
    exchange: 0.84,
    fast_start: Seconds::microseconds(25.0),
    network: 0.537,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    user_buffer_overlap: 0.599,
    contention: 0.219,
    straggling: 0.005,
    iteration: Seconds::milliseconds(10.0),
};

const B200: Calibration = Calibration { attention_forward: 0.68, attention_backward: 0.52, ..BLACKWELL };

const GB200: Calibration = Calibration {
    generation: Generation::GB200,
    matmul: MatmulRates { half: 0.538, fp8: 0.514, fp4: 0.613 },
    ..BLACKWELL
};

const ASCEND: Calibration = Calibration {
    generation: Generation::Ascend910B,
    matmul: MatmulRates { half: 0.671, fp8: 0.0, fp4: 0.0 },
    eager: 1.0,
    wave: Seconds::microseconds(4.0),
    // Products go to the cube units in blocks of 16 by 16: an output layer with 12,501 columns (Aquila2 34B, TP 8)
    // cost that run nothing.
    unaligned: 1.0,
    grouped: 0.85,
    memory: 0.656,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.274,
    attention_backward: 0.302,
    attention_triton: 0.62,
    attention_pytorch: 1.0,
    attention_fourth: 1.0,
    attention_tail_rows: 95.0,
    fast_link: 0.543,
    exchange: 0.9,
    fast_start: Seconds::microseconds(20.0),
    network: 0.63,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    user_buffer_overlap: 0.846,
    contention: 0.05,
    straggling: 0.0,
    iteration: Seconds::milliseconds(10.0),
};

const A100_40: Calibration = Calibration { generation: Generation::A100Of40, ..A100 };

const H100_HBM2E: Calibration = Calibration {
    generation: Generation::H100Hbm2e,
    matmul: MatmulRates { half: 0.699, fp8: 0.734, fp4: 0.0 },
    eager: 1.0,
    wave: Seconds::microseconds(10.0),
    unaligned: 0.15,
    grouped: 0.85,
    memory: 0.6,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.72,
    attention_backward: 0.59,
    attention_triton: 0.29,
    attention_pytorch: 0.294,
    attention_fourth: 1.0,
    attention_tail_rows: 95.0,
    fast_link: 0.81,
    exchange: 0.84,
    fast_start: Seconds::microseconds(15.0),
    network: 0.612,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    user_buffer_overlap: 0.287,
    contention: 0.09,
    straggling: 0.005,
    iteration: Seconds::milliseconds(10.0),
};

const GB300: Calibration = Calibration {
    generation: Generation::GB300,
    matmul: MatmulRates { half: 0.501, fp8: 0.687, fp4: 0.613 },
    attention_forward: 0.80,
    attention_backward: 0.60,
    ..BLACKWELL
};

/// AMD's CDNA 3: MI300X and MI325X.
const CDNA3: Calibration = Calibration {
    generation: Generation::MI300X,
    matmul: MatmulRates { half: 0.54, fp8: 0.536, fp4: 0.0 },
    eager: 1.0,
    wave: Seconds::microseconds(4.0),
    unaligned: 0.15,
    grouped: 0.85,
    memory: 0.6,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.55,
    attention_backward: 0.42,
    attention_triton: 0.6,
    attention_pytorch: 1.0,
    attention_fourth: 1.0,
    attention_tail_rows: 95.0,
    fast_link: 0.7,
    exchange: 0.9,
    fast_start: Seconds::microseconds(20.0),
    network: 0.7,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    user_buffer_overlap: 0.7,
    contention: 0.3,
    straggling: 0.005,
    iteration: Seconds::milliseconds(10.0),
};

/// AMD's CDNA 4: MI355X. The shares are those that CDNA 3 reaches in training, times a ratio: the share of the peak
/// that single bf16 products reach on MI355X (1,565 of 2,500 TFLOP/s) over the share they reach on MI325X (785 of
/// 1,307), whose runs the CDNA 3 set was fitted to (ml-engineering, compute/accelerator/README.md).
const CDNA4: Calibration = Calibration {
    generation: Generation::MI355X,
    matmul: MatmulRates { half: 0.563, fp8: 0.559, fp4: 0.559 },
    ..CDNA3
};

/// AMD's CDNA 2: MI250X.
const CDNA2: Calibration = Calibration { generation: Generation::MI250X, ..CDNA3 };

/// Every calibrated generation.
pub const CALIBRATIONS: [Calibration; 12] =
    [ASCEND, V100, A100, A100_40, H100, H100_HBM2E, B200, GB200, GB300, CDNA2, CDNA3, CDNA4];

/// Accelerators whose constants are determined by published runs.
pub const MEASURED: [&str; 15] = [
    "V100-SXM2-16GB",
    "V100-SXM2-32GB",
    "A100-SXM-40GB",
    "A100-SXM-80GB",
    "A800-SXM-80GB",
    "H100-SXM",
    "H100-SXM-96GB-HBM2e",
    "H200-SXM",
    "H800-SXM",
    "B200",
    "GB200",
    "B300",
    "GB300",
    "Ascend-910B",
    "MI325X",
];

/// Accelerators with their own data sheet on the same silicon as a measured one, or one generation apart from the
/// same maker.
const RELATED: [&str; 8] =
    ["V100-SXM3-32GB", "A100-PCIe-80GB", "H100-PCIe", "H100-NVL", "H20", "MI250X", "MI300X", "MI355X"];

/// How well the real speed of an accelerator is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There are published runs on this part.
    Measured,
    /// There are published runs on parts of the same silicon, or of an adjacent generation of the same maker.
    Related,
    /// There are none: the shares of the data sheet are those of another maker's or another kind of part.
    Stranger,
}

impl Standing {
    /// The standing of `accelerator`.
    #[must_use]
    pub fn from_accelerator(accelerator: &Accelerator) -> Self {
        if MEASURED.contains(&accelerator.name.as_str()) {
            Self::Measured
        } else if RELATED.contains(&accelerator.name.as_str()) {
            Self::Related
        } else {
            Self::Stranger
        }
    }

    /// The factor by which a step time may be off, in either direction. H20, known from one run, is off by a quarter,
    /// and MI355X, read after the fit, by a tenth; treated as an A100, MI355X was off by a factor of two.
    #[must_use]
    pub const fn factor(self) -> f64 {
        match self {
            Self::Measured => 1.0,
            Self::Related => 1.35,
            Self::Stranger => 2.0,
        }
    }
}

/// The calibration set of the accelerator's generation; A100's if there is none.
#[must_use]
pub fn calibration(accelerator: &Accelerator) -> Calibration {
    let known = CALIBRATIONS.iter().find(|set| set.generation == accelerator.generation);
    known.copied().unwrap_or(A100)
}

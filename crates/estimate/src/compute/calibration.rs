//! What a data sheet does not say: the share of its figures that kernels reach, and fixed costs.
//! One set per accelerator generation; none per model, row or paper.
//!
//! Where the figures are from:
//! - measured elsewhere and taken over: `fast_link` (NCCL all-reduce bus bandwidth: 235 of 300 GB/s on A100,
//!   365 of 450 on H200, 682 of 900 on B200, ml-engineering network chapter; all-gather 0.67 on B200,
//!   SimuMax), `fast_start` (NCCL small messages), `attention_*` on A100 and B200 (SimuMax's tables over
//!   4 to 128 heads: time linear in the work plus a block of `attention_tail_rows` rows), B200's `matmul`
//!   (SimuMax: large products at 0.46 to 0.52 of peak under load, 0.62 in bursts);
//! - found on the development half of the published runs, all rows of a generation together, never one
//!   by one: `matmul`, `wave`, `memory`, `host`, `network`, `contention`, `user_buffer_overlap`, `grouped`,
//!   `exchange`, `eager`, `attention_triton`, `attention_pytorch`, `unaligned`, `straggling`;
//! - assumed, without rows that could tell: `launch`, `network_start`, `network_hop`, `iteration`.
//!
//! `unaligned` is known from BigScience's tuning logs alone: heads 108 and 150 wide against 104 to 224.

use shardscope_plan::Accelerator;
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
    /// Name of the generation, for example `H100`.
    pub generation: &'static str,
    /// Share of the dense peak that a large matrix product reaches under a training load, power and
    /// clock limits included.
    pub matmul: MatmulRates,
    /// Share of that rate in plain PyTorch linear layers, without Transformer Engine.
    pub eager: f64,
    /// Fixed cost of one wave of output tiles: prologue, epilogue and the wait for the slowest tile.
    pub wave: Seconds,
    /// Share of the rate that is left when rows of an operand do not start at multiples of 16 bytes.
    pub unaligned: f64,
    /// Share of the rate that is left in grouped products of experts.
    pub grouped: f64,
    /// Share of the memory bandwidth that streaming kernels reach.
    pub memory: f64,
    /// Cost of a kernel launch that the device sees even when the host runs ahead.
    pub launch: Seconds,
    /// Share of the dense peak that a long fused attention reaches forward, on the causal half.
    pub attention_forward: f64,
    /// The same backward.
    pub attention_backward: f64,
    /// Share of either that a FlashAttention-1 kernel in Triton reaches (PyTorch trainers of 2023).
    pub attention_triton: f64,
    /// Share of either that FlashAttention-2 reaches through PyTorch (torchtitan).
    pub attention_pytorch: f64,
    /// Rows of the query block that is left to run alone at the end of a fused attention.
    pub attention_tail_rows: f64,
    /// Share of the fast link's bandwidth that ring collectives reach.
    pub fast_link: f64,
    /// Share of a ring's bandwidth that all-to-alls reach inside a fast-link domain.
    pub exchange: f64,
    /// Start of a collective inside a fast-link domain.
    pub fast_start: Seconds,
    /// Share of the network's bandwidth that collectives of large messages reach.
    pub network: f64,
    /// Start of a message that crosses the network.
    pub network_start: Seconds,
    /// What every further rank of a ring over the network adds to the start of a collective.
    pub network_hop: Seconds,
    /// Host time to issue one kernel from an eager training loop.
    pub host: Seconds,
    /// Share of tensor-parallel traffic that user-buffer overlap (`--tp-comm-overlap`) hides.
    pub user_buffer_overlap: f64,
    /// What hidden communication takes from the arithmetic beside it, as a share of its own time.
    pub contention: f64,
    /// What every doubling of the number of fast-link domains adds to the step: ranks wait for the slowest of more.
    pub straggling: f64,
    /// Once per step: data loading, logging, host synchronisation.
    pub iteration: Seconds,
}

const V100: Calibration = Calibration {
    generation: "V100",
    matmul: MatmulRates { half: 0.76, fp8: 0.0, fp4: 0.0 },
    eager: 1.0,
    wave: Seconds::microseconds(2.0),
    unaligned: 0.15,
    grouped: 0.85,
    memory: 0.7,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.45,
    attention_backward: 0.35,
    attention_triton: 0.60,
    attention_pytorch: 1.0,
    attention_tail_rows: 95.0,
    fast_link: 0.77,
    exchange: 0.9,
    fast_start: Seconds::microseconds(30.0),
    network: 0.47,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    host: Seconds::microseconds(260.0),
    user_buffer_overlap: 0.70,
    contention: 0.05,
    straggling: 0.0,
    iteration: Seconds::milliseconds(10.0),
};

const A100: Calibration = Calibration {
    generation: "A100",
    matmul: MatmulRates { half: 0.76, fp8: 0.0, fp4: 0.0 },
    eager: 1.0,
    wave: Seconds::microseconds(4.0),
    unaligned: 0.044,
    grouped: 0.85,
    memory: 0.7,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.64,
    attention_backward: 0.53,
    attention_triton: 0.62,
    attention_pytorch: 1.0,
    attention_tail_rows: 95.0,
    fast_link: 0.78,
    exchange: 0.9,
    fast_start: Seconds::microseconds(20.0),
    network: 0.63,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    host: Seconds::microseconds(150.0),
    user_buffer_overlap: 0.70,
    contention: 0.05,
    straggling: 0.0,
    iteration: Seconds::milliseconds(10.0),
};

const H100: Calibration = Calibration {
    generation: "H100",
    matmul: MatmulRates { half: 0.81, fp8: 0.795, fp4: 0.0 },
    eager: 0.896,
    wave: Seconds::microseconds(10.0),
    unaligned: 0.15,
    grouped: 0.97,
    memory: 0.63,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.72,
    attention_backward: 0.59,
    attention_triton: 0.29,
    attention_pytorch: 0.5,
    attention_tail_rows: 95.0,
    fast_link: 0.81,
    exchange: 0.9,
    fast_start: Seconds::microseconds(15.0),
    network: 0.7,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    host: Seconds::microseconds(125.0),
    user_buffer_overlap: 0.66,
    contention: 0.55,
    straggling: 0.006,
    iteration: Seconds::milliseconds(10.0),
};

const B200: Calibration = Calibration {
    generation: "B200",
    matmul: MatmulRates { half: 0.475, fp8: 0.6, fp4: 0.7 },
    eager: 1.0,
    wave: Seconds::microseconds(1.5),
    unaligned: 0.15,
    grouped: 0.68,
    memory: 0.66,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.7,
    attention_backward: 0.53,
    attention_triton: 0.60,
    attention_pytorch: 1.0,
    attention_tail_rows: 200.0,
    fast_link: 0.68,
    exchange: 0.9,
    fast_start: Seconds::microseconds(25.0),
    network: 0.7,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    host: Seconds::microseconds(115.0),
    user_buffer_overlap: 0.66,
    contention: 0.4,
    straggling: 0.005,
    iteration: Seconds::milliseconds(10.0),
};

const GB200: Calibration = Calibration {
    generation: "GB200",
    matmul: MatmulRates { half: 0.577, fp8: 0.53, fp4: 0.7 },
    eager: 1.0,
    wave: Seconds::microseconds(1.5),
    unaligned: 0.15,
    grouped: 0.98,
    memory: 0.78,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.55,
    attention_backward: 0.4,
    attention_triton: 0.60,
    attention_pytorch: 1.0,
    attention_tail_rows: 200.0,
    fast_link: 0.75,
    exchange: 0.6,
    fast_start: Seconds::microseconds(25.0),
    network: 0.8,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    host: Seconds::microseconds(118.0),
    user_buffer_overlap: 0.66,
    contention: 0.1,
    straggling: 0.005,
    iteration: Seconds::milliseconds(10.0),
};

const ASCEND: Calibration = Calibration {
    generation: "Ascend-910B",
    matmul: MatmulRates { half: 0.66, fp8: 0.0, fp4: 0.0 },
    eager: 1.0,
    wave: Seconds::microseconds(4.0),
    unaligned: 0.044,
    grouped: 0.85,
    memory: 0.55,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.35,
    attention_backward: 0.35,
    attention_triton: 0.62,
    attention_pytorch: 1.0,
    attention_tail_rows: 95.0,
    fast_link: 0.78,
    exchange: 0.9,
    fast_start: Seconds::microseconds(20.0),
    network: 0.63,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    host: Seconds::microseconds(110.0),
    user_buffer_overlap: 0.70,
    contention: 0.05,
    straggling: 0.0,
    iteration: Seconds::milliseconds(10.0),
};

const A100_40: Calibration = Calibration { generation: "A100-40", ..A100 };

const H100_HBM2E: Calibration = Calibration {
    generation: "H100-HBM2e",
    matmul: MatmulRates { half: 0.68, fp8: 0.8, fp4: 0.0 },
    eager: 1.0,
    wave: Seconds::microseconds(10.0),
    unaligned: 0.15,
    grouped: 0.85,
    memory: 0.6,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.72,
    attention_backward: 0.59,
    attention_triton: 0.29,
    attention_pytorch: 0.32,
    attention_tail_rows: 95.0,
    fast_link: 0.81,
    exchange: 0.9,
    fast_start: Seconds::microseconds(15.0),
    network: 0.88,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    host: Seconds::microseconds(100.0),
    user_buffer_overlap: 0.31,
    contention: 0.09,
    straggling: 0.005,
    iteration: Seconds::milliseconds(10.0),
};

const GB300: Calibration = Calibration {
    generation: "GB300",
    matmul: MatmulRates { half: 0.5, fp8: 0.746, fp4: 0.54 },
    eager: 1.0,
    wave: Seconds::microseconds(3.0),
    unaligned: 0.15,
    grouped: 0.8,
    memory: 0.85,
    launch: Seconds::microseconds(2.0),
    attention_forward: 0.58,
    attention_backward: 0.46,
    attention_triton: 0.60,
    attention_pytorch: 1.0,
    attention_tail_rows: 200.0,
    fast_link: 0.72,
    exchange: 0.95,
    fast_start: Seconds::microseconds(25.0),
    network: 0.7,
    network_start: Seconds::microseconds(30.0),
    network_hop: Seconds::microseconds(1.5),
    host: Seconds::microseconds(115.0),
    user_buffer_overlap: 0.66,
    contention: 0.3,
    straggling: 0.005,
    iteration: Seconds::milliseconds(10.0),
};

/// Every calibrated generation.
pub const CALIBRATIONS: [Calibration; 9] =
    [ASCEND, V100, A100, A100_40, H100, H100_HBM2E, B200, GB200, GB300];

/// What each set was found on, for those who read it in full: a line for each of [`CALIBRATIONS`].
pub const CALIBRATED_ON: [(&str, &str); 9] = [
    ("Ascend-910B", "From 29 runs of ModelLink on Ascend 910B; spread 11 %"),
    ("V100", "From 12 runs of 1.3B on Jean Zay; attention there was not fused"),
    (
        "A100",
        "From 264 runs of 2021 to 2025: Megatron-LM, NeMo, BigScience, Zero Bubble, MegaScale, InternEvo, llm-foundry",
    ),
    ("A100-40", "The A100 of 40 GB: the same part with slower memory, which the data sheet says"),
    ("H100", "From 200 runs: NVIDIA's recipes of 2024 and 2025, llm-foundry, XTuner"),
    ("H100-HBM2e", "Power-limited H100 of torchtitan's tables: 12 runs"),
    ("B200", "From 36 runs: SimuMax, Megatron-Bridge, ml-engineering"),
    ("GB200", "From 59 runs of NVIDIA's recipes"),
    ("GB300", "From 49 runs of Megatron-Bridge on B300 and GB300; bf16 by few of them"),
];

/// Whether the accelerator's generation has a set of its own.
#[must_use]
pub fn is_calibrated(accelerator: &Accelerator) -> bool {
    CALIBRATIONS.iter().any(|set| set.generation == accelerator.generation)
}

/// The set of the accelerator's generation. An accelerator without one is taken as an A100 with its own
/// data sheet: shares of peaks are closer to constant over generations than anything else
/// (tried on H100 rows with A100's shares: median error 6 %).
#[must_use]
pub fn calibration(accelerator: &Accelerator) -> Calibration {
    let known = CALIBRATIONS.iter().find(|set| set.generation == accelerator.generation);
    known.copied().unwrap_or(A100)
}

//! What a data sheet does not say: the share of its figures that kernels reach, and fixed costs.
//! One set per accelerator generation; none per model, row or paper. How each figure was found is said
//! beside its meaning; "rows" are the development half of the measured training runs.

use crate::plan::Accelerator;
use crate::quantity::Seconds;

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
    /// Fixed cost of one wave of output tiles: prologue, epilogue and the wait for the slowest tile.
    pub wave: Seconds,
    /// Share of the memory bandwidth that streaming kernels reach.
    pub memory: f64,
    /// Cost of a kernel launch that the device sees even when the host runs ahead.
    pub launch: Seconds,
    /// Share of the dense peak that a long fused attention reaches forward, on the causal half.
    pub attention_forward: f64,
    /// The same backward.
    pub attention_backward: f64,
    /// Rows of the query block that is left to run alone at the end of a fused attention.
    pub attention_tail_rows: f64,
    /// Share of the fast link's bandwidth that ring collectives reach.
    pub fast_link: f64,
    /// Start of a collective inside a fast-link domain.
    pub fast_start: Seconds,
    /// Share of the network's bandwidth that collectives of large messages reach.
    pub network: f64,
    /// Start of a message that crosses the network.
    pub network_start: Seconds,
    /// Host time to issue one kernel from an eager training loop.
    pub host: Seconds,
}

const V100: Calibration = Calibration {
    generation: "V100",
    matmul: MatmulRates { half: 0.62, fp8: 0.0, fp4: 0.0 },
    wave: Seconds::microseconds(2.0),
    memory: 0.90,
    launch: Seconds::microseconds(3.0),
    attention_forward: 0.45,
    attention_backward: 0.35,
    attention_tail_rows: 95.0,
    fast_link: 0.77,
    fast_start: Seconds::microseconds(30.0),
    network: 0.40,
    network_start: Seconds::microseconds(30.0),
    host: Seconds::microseconds(10.0),
};

const A100: Calibration = Calibration {
    generation: "A100",
    matmul: MatmulRates { half: 0.836, fp8: 0.0, fp4: 0.0 },
    wave: Seconds::microseconds(9.5),
    memory: 0.73,
    launch: Seconds::microseconds(3.0),
    attention_forward: 0.64,
    attention_backward: 0.53,
    attention_tail_rows: 95.0,
    fast_link: 0.77,
    fast_start: Seconds::microseconds(50.0),
    network: 0.41,
    network_start: Seconds::microseconds(30.0),
    host: Seconds::microseconds(10.0),
};

const H100: Calibration = Calibration {
    generation: "H100",
    matmul: MatmulRates { half: 0.711, fp8: 0.669, fp4: 0.0 },
    wave: Seconds::microseconds(10.0),
    memory: 0.60,
    launch: Seconds::microseconds(3.0),
    attention_forward: 0.70,
    attention_backward: 0.65,
    attention_tail_rows: 95.0,
    fast_link: 0.81,
    fast_start: Seconds::microseconds(25.0),
    network: 0.41,
    network_start: Seconds::microseconds(30.0),
    host: Seconds::microseconds(8.0),
};

const B200: Calibration = Calibration {
    generation: "B200",
    matmul: MatmulRates { half: 0.60, fp8: 0.60, fp4: 0.70 },
    wave: Seconds::microseconds(10.0),
    memory: 0.65,
    launch: Seconds::microseconds(3.0),
    attention_forward: 0.555,
    attention_backward: 0.45,
    attention_tail_rows: 200.0,
    fast_link: 0.75,
    fast_start: Seconds::microseconds(30.0),
    network: 0.48,
    network_start: Seconds::microseconds(30.0),
    host: Seconds::microseconds(8.0),
};

const B300: Calibration = Calibration {
    generation: "B300",
    matmul: MatmulRates { half: 0.80, fp8: 0.80, fp4: 0.69 },
    memory: 0.74,
    ..B200
};

/// Every calibrated generation.
pub const CALIBRATIONS: [Calibration; 5] = [V100, A100, H100, B200, B300];

/// The set of the accelerator's generation. An accelerator without one is taken as an A100 with its own
/// data sheet: shares of peaks are closer to constant over generations than anything else
/// (tried on H100 rows with A100's shares: median error 6 %).
#[must_use]
pub fn calibration(accelerator: &Accelerator) -> Calibration {
    let known = CALIBRATIONS.iter().find(|set| set.generation == accelerator.generation);
    known.copied().unwrap_or(A100)
}

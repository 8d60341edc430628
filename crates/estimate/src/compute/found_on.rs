//! The runs that each calibration set was fitted to, and how well it is known as a result.

use shardscope_plan::Generation;

/// How many sources a set is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Three or more, or a set of its own next to a well-known one of the same silicon.
    Well,
    /// One or two, or none of its own.
    Barely,
}

/// What a set was fitted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundOn {
    /// Which set.
    pub generation: Generation,
    /// How many sources it is based on.
    pub known: Known,
    /// The sources, in words for readers.
    pub runs: &'static str,
}

const fn found_on(generation: Generation, known: Known, runs: &'static str) -> FoundOn {
    FoundOn { generation, known, runs }
}

/// One entry for each of [`super::CALIBRATIONS`].
pub const CALIBRATED_ON: [FoundOn; 12] = [
    found_on(Generation::Ascend910B, Known::Barely, "From 29 runs of ModelLink on Ascend 910B; spread 4%"),
    found_on(
        Generation::V100,
        Known::Barely,
        "From 12 runs of 1.3B on Jean Zay; attention there was not fused",
    ),
    found_on(
        Generation::A100,
        Known::Well,
        "From 273 runs of 2021 to 2025, those of 40 GB among them: Megatron-LM, NeMo, BigScience, Zero Bubble, MegaScale, InternEvo, llm-foundry",
    ),
    found_on(
        Generation::A100Of40,
        Known::Well,
        "The A100 of 40 GB: the same part with slower memory, which the data sheet says",
    ),
    found_on(
        Generation::H100,
        Known::Well,
        "From 223 runs: NVIDIA's recipes of 2024 and 2025, llm-foundry, XTuner",
    ),
    found_on(Generation::H100Hbm2e, Known::Well, "Power-limited H100 of torchtitan's tables: 14 runs"),
    found_on(
        Generation::B200,
        Known::Well,
        "Blackwell from 157 runs together; its products from 40: SimuMax, Megatron-Bridge, ml-engineering",
    ),
    found_on(Generation::GB200, Known::Well, "Blackwell; its products from 64 runs of NVIDIA's recipes"),
    found_on(
        Generation::GB300,
        Known::Well,
        "Blackwell; its products from 53 runs of Megatron-Bridge on B300 and GB300, few in bf16, five in nvfp4",
    ),
    found_on(
        Generation::MI250X,
        Known::Barely,
        "No run of its own: shares of its data sheet as CDNA 3 reaches them",
    ),
    found_on(
        Generation::MI300X,
        Known::Barely,
        "From three runs of AMD's Primus on 64 MI325X (Llama 3.1 8B in fp8, 70B in fp8 and bf16), single products (ml-engineering: 668 and 785 TFLOP/s in bf16) and all-reduces of eight (313 GB/s); attention, memory and contention assumed",
    ),
    found_on(
        Generation::MI355X,
        Known::Barely,
        "No run of its own among those fitted: shares of its data sheet as CDNA 3 reaches them, times what single products in bf16 reach on it (1,565 of 2,500 TFLOP/s) over what they reach on MI325X (785 of 1,307); MLPerf's two runs of Llama 3.1 8B were read afterwards",
    ),
];

/// How well the set of `generation` is known.
#[must_use]
pub fn known(generation: Generation) -> Known {
    let found = CALIBRATED_ON.iter().find(|on| on.generation == generation);
    found.map_or(Known::Barely, |on| on.known)
}

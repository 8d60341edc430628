//! How long arithmetic takes on one accelerator: matrix products by roofline with tile and wave
//! quantisation, fused attention, memory-bound kernels. Constants are per generation, in `calibration.rs`.

mod attention;
mod calibration;
mod device;
mod issue;
mod matmul;
mod section;
mod share;

pub use calibration::{
    CALIBRATED_ON, CALIBRATIONS, Calibration, FoundOn, Known, MEASURED, MatmulRates, Standing, calibration,
    known,
};
pub use device::Device;
pub use issue::{
    COMPILED, EAGER, GRAPHED, ISSUES, Issue, MEGATRON_CORE, MEGATRON_LEGACY, PROCESSORS, ProcessorSpeed,
};
pub use matmul::{Bound, Product, ProductTime, TILES, Tile};
pub use section::{Cost, Passes, linear_products, passes};
pub use share::Share;

pub(crate) use attention::{FULL_HEAD_WIDTH, HEAD_WIDTH_EXPONENT};
pub(crate) use device::real;
pub(crate) use section::CAST_BYTES;

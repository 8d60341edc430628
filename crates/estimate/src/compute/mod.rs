//! How long arithmetic takes on one accelerator: matrix products by roofline with tile and wave
//! quantization, fused attention, memory-bound kernels. Constants are per generation, in `calibration.rs`.

mod assumed;
mod attention;
mod calibration;
mod device;
mod found_on;
mod heads;
mod issue;
mod matmul;
mod section;
mod share;
mod single;

pub use assumed::{ASSUMED, assumed};
pub use calibration::{CALIBRATIONS, Calibration, MEASURED, MatmulRates, Standing, calibration};
pub use device::Device;
pub use found_on::{CALIBRATED_ON, FoundOn, Known, known};
pub use heads::HeadsAndWindows;
pub use issue::{
    COMPILED, EAGER, EAGER_MODULES, GRAPHED, ISSUES, Issue, MEGATRON_CORE, MEGATRON_LEGACY, PROCESSORS,
    ProcessorSpeed,
};
pub use matmul::{Bound, Product, ProductTime, TILES, Tile};
pub use section::{Cost, Passes, linear_products, passes};
pub use share::Share;
pub use single::{HOPPER, SingleKernels};

pub(crate) use device::{NETWORK_EXCHANGE, real};
pub(crate) use heads::{FULL_HEAD_WIDTH, HEADS_AND_WINDOWS};
pub(crate) use section::CAST_BYTES;

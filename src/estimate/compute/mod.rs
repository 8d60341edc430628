//! How long arithmetic takes on one accelerator: matrix products by roofline with tile and wave
//! quantisation, fused attention, memory-bound kernels. Constants are per generation, in `calibration.rs`.

mod attention;
mod calibration;
mod device;
mod matmul;
mod section;

pub use calibration::{CALIBRATIONS, Calibration, MatmulRates, calibration, is_calibrated};
pub use device::Device;
pub use matmul::{Bound, Product, ProductTime, Tile};
pub use section::{Cost, Passes, linear_products, passes};

pub(in crate::estimate) use device::real;

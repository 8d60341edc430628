//! Fuzz targets: see README.md.

pub mod bodies;
pub mod seeds;

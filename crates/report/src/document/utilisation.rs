//! `report.utilisation`.

use serde::Serialize;

use shardscope_estimate::compute::Bound;
use shardscope_estimate::{self as estimate, Sizes};
use shardscope_units::{Bytes, Flops};

/// A GEMM before and after sharding, and how well it fills the accelerator.
#[derive(Debug, Serialize)]
pub struct Utilisation {
    /// Which product of the model.
    pub name: &'static str,
    /// The first pipeline rank that has it.
    pub stage: u64,
    /// In the unsharded model.
    pub full: Sizes,
    /// On one rank.
    pub sharded: Sizes,
    /// Of the sharded product.
    pub flops: Flops,
    /// Read and written by the sharded product.
    pub bytes: Bytes,
    /// Unit: FLOP per byte.
    pub arithmetic_intensity: f64,
    /// The intensity above which the accelerator is compute-bound. Unit: FLOP per byte.
    pub ridge: f64,
    /// Share of the peak rate that the sharded product reaches.
    pub efficiency: f64,
    /// Share of the peak rate that the full product would reach.
    pub full_efficiency: f64,
    /// Share of the tiles that is filled.
    pub tile_fill: f64,
    /// Fraction of multiprocessors that are busy in the last wave.
    pub wave_fill: f64,
    /// `compute` or `memory`.
    pub bound: &'static str,
    /// How sharding affects it.
    pub note: Option<String>,
}

impl Utilisation {
    pub(super) fn new(product: &estimate::Utilisation) -> Self {
        Self {
            name: product.name,
            stage: product.stage,
            full: product.full,
            sharded: product.sharded,
            flops: product.flops,
            bytes: product.bytes,
            arithmetic_intensity: product.intensity,
            ridge: product.ridge,
            efficiency: product.efficiency,
            full_efficiency: product.full_efficiency,
            tile_fill: product.tile_fill,
            wave_fill: product.wave_fill,
            bound: match product.bound {
                Bound::Compute => "compute",
                Bound::Memory => "memory",
            },
            note: product.note(),
        }
    }
}

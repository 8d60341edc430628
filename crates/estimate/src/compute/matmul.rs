//! A matrix product on one accelerator: roofline with tile and wave quantization.
//!
//! The output is cut into tiles; each multiprocessor works on one tile at a time, so the product takes whole waves of
//! tiles. A tile that extends past the edge costs as much as a full one, and so does a partial wave. If not even one
//! wave is full, the inner dimension may be split over several multiprocessors (split-K) at the price of summing
//! partial results. The library picks the best tile; so does this (NVIDIA, "Matrix Multiplication Background User's
//! Guide").

use super::Device;
use super::device::real;
use shardscope_units::{Flops, FlopsPerSecond, Seconds, product};

/// An output tile and the share of the asymptotic rate it reaches: smaller tiles load more operands per product.
/// Derived from efficiencies of 183 products on A100 published with SimuMax.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tile {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Share of the rate of the best tile.
    pub share: f64,
}

/// Output tiles of the libraries' tensor-core kernels.
pub const TILES: [Tile; 6] = [
    Tile { rows: 256, columns: 128, share: 1.0 },
    Tile { rows: 128, columns: 256, share: 1.0 },
    Tile { rows: 128, columns: 128, share: 0.93 },
    Tile { rows: 256, columns: 64, share: 0.87 },
    Tile { rows: 128, columns: 64, share: 0.80 },
    Tile { rows: 64, columns: 64, share: 0.62 },
];

/// What limits a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Multiplying.
    Compute,
    /// Moving operands and result.
    Memory,
}

/// `batch` products `[m, k] x [k, n]` in one launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    /// Independent problems.
    pub batch: u64,
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// Inner dimension.
    pub k: u64,
    /// Whether the inputs are in the recipe's low precision.
    pub low: bool,
    /// Whether rows of the operands start at multiples of 16 bytes, which tensor cores load at once.
    pub aligned: bool,
    /// Whether the problems differ in size and run as one grouped product.
    pub grouped: bool,
    /// Whether their rows follow a router: on average half a tile of each problem is empty.
    pub uneven: bool,
    /// Bytes per element of the result for reading and writing: 8 for a weight gradient accumulated in fp32.
    pub result_width: f64,
}

/// The time of a product and its breakdown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProductTime {
    /// Total time.
    pub time: Seconds,
    /// 2 m n k.
    pub flops: Flops,
    /// Bytes for moving operands and result once.
    pub bytes: f64,
    /// What limits it.
    pub bound: Bound,
    /// The tile chosen.
    pub tile: Tile,
    /// Tiles of the result, including the parts of a split inner dimension.
    pub tiles: u64,
    /// Waves of tiles.
    pub waves: u64,
    /// Share of the tiles' area that lies inside the result.
    pub tile_fill: f64,
    /// Share of the waves' slots that hold a tile.
    pub wave_fill: f64,
}

impl Product {
    /// 2 m n k, summed over all problems.
    #[must_use]
    pub fn flops(&self) -> Flops {
        Flops::new(2.0 * real(self.m) * real(self.n) * real(self.k) * real(self.batch))
    }

    /// Bytes for moving operands and result once.
    #[must_use]
    pub fn bytes(&self, device: &Device) -> f64 {
        let width = if self.low { device.low_width } else { 2.0 };
        let [m, n, k] = [self.m, self.n, self.k].map(real);
        real(self.batch) * ((m * k + k * n) * width + m * n * self.result_width)
    }

    /// The time on `device`.
    #[must_use]
    pub fn time(&self, device: &Device) -> ProductTime {
        let rate = if self.low { device.low } else { device.half };
        let rate = if self.aligned { rate } else { rate * device.calibration.unaligned };
        let rate = if self.grouped { rate * device.calibration.grouped } else { rate };
        let best = self.best_cut(device, rate);
        let bytes = self.bytes(device);
        let moving = self.moving(device, bytes);
        let bound = if moving > best.time { Bound::Memory } else { Bound::Compute };
        let places = product(best.waves, device.multiprocessors);
        ProductTime {
            time: if bound == Bound::Memory { moving } else { best.time } + device.calibration.launch * 0.5,
            flops: self.flops(),
            bytes,
            bound,
            tile: best.tile,
            tiles: best.tiles,
            waves: best.waves,
            tile_fill: self.tile_fill(best.tile),
            wave_fill: real(best.tiles) / real(places.max(1)),
        }
    }

    /// The time to move `bytes` of operands and result. Where kernels were timed one by one, those of thin products
    /// reach less of the bandwidth than copies, least where the result is most of it.
    fn moving(&self, device: &Device, bytes: f64) -> Seconds {
        let Some(alone) = device.single else { return device.stream(bytes) };
        let [m, n] = [self.m, self.n].map(real);
        let writes = real(self.batch) * m * n * self.result_width > 0.5 * bytes;
        Seconds::new(bytes / (device.memory_peak.get() * alone.thin[usize::from(writes)]))
    }

    /// The share of the tiles' area that lies inside the result.
    fn tile_fill(&self, tile: Tile) -> f64 {
        let area = |size: u64, side: u64| real(size) / real(size.div_ceil(side).max(1) * side);
        area(self.m, tile.rows) * area(self.n, tile.columns)
    }

    fn best_cut(&self, device: &Device, rate: FlopsPerSecond) -> Cut {
        let mut best = Cut { time: Seconds::new(f64::MAX), tile: TILES[0], waves: 1, tiles: 1 };
        for &tile in &TILES {
            let rows = if self.uneven {
                (self.m * self.batch).div_ceil(tile.rows) + self.batch.div_ceil(2)
            } else {
                product(self.m.div_ceil(tile.rows), self.batch)
            };
            let tiles = product(rows, self.n.div_ceil(tile.columns)).max(1);
            // Split-K only pays off if the tiles alone would leave multiprocessors idle.
            let splits: &[u64] = if tiles < device.multiprocessors { &[1, 2, 4] } else { &[1] };
            for &split in splits {
                let cut = self.cut(device, rate, tile, tiles, split);
                if cut.time < best.time {
                    best = cut;
                }
            }
        }
        best
    }

    fn cut(&self, device: &Device, rate: FlopsPerSecond, tile: Tile, tiles: u64, split: u64) -> Cut {
        let each = rate.get() * tile.share / real(device.multiprocessors);
        let tiles = product(tiles, split);
        let waves = tiles.div_ceil(device.multiprocessors);
        let work = 2.0 * real(tile.rows) * real(tile.columns) * real(self.k) / real(split);
        let mut time = Seconds::new(real(waves) * work / each) + device.calibration.wave * real(waves);
        if split > 1 {
            // Partial results are written and read in fp32.
            time += device.stream(8.0 * real(split) * real(self.m) * real(self.n) * real(self.batch));
        }
        Cut { time, tile, waves, tiles }
    }
}

/// One way to cut a product.
struct Cut {
    time: Seconds,
    tile: Tile,
    waves: u64,
    tiles: u64,
}

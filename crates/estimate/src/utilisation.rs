//! Every matrix product of the model before and after sharding: its sizes, arithmetic intensity against the
//! accelerator's ridge, tile and wave quantization, and in plain words where sharding hurts it.

use serde::Serialize;

use super::compute::{Bound, Device, Product, ProductTime, linear_products};
use shardscope_operators::{Matmul, Symbols, Work, sections_of, work_of};
use shardscope_plan::{AttentionKernel, Plan};
use shardscope_units::{Bytes, Flops, decimal};

/// Sharding is blamed if it costs more than this share of the product's own efficiency.
const NOTICEABLE_LOSS: f64 = 0.10;
/// Waves are blamed if less than this share of their slots is filled.
const GOOD_FILL: f64 = 0.85;

/// One forward matrix product of one micro-batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Utilisation {
    /// Short name, for example `linear_fc1`.
    pub name: &'static str,
    /// The first pipeline rank that computes it.
    pub stage: u64,
    /// Without sharding.
    pub full: Sizes,
    /// On one rank.
    pub sharded: Sizes,
    /// FLOPs on one rank.
    pub flops: Flops,
    /// Bytes for moving operands and result once, on one rank.
    pub bytes: Bytes,
    /// FLOPs per byte.
    pub intensity: f64,
    /// FLOPs per byte above which the accelerator's arithmetic, not its memory, is the limit.
    pub ridge: f64,
    /// Share of the dense peak without sharding.
    pub full_efficiency: f64,
    /// Share of the dense peak on one rank.
    pub efficiency: f64,
    /// Share of the output tiles' area that lies inside the result.
    pub tile_fill: f64,
    /// Share of the multiprocessor slots in the waves of tiles that are filled.
    pub wave_fill: f64,
    /// What limits it.
    pub bound: Bound,
    /// What is wrong with it, worst first; empty if nothing is.
    pub remarks: Vec<Remark>,
}

/// Sizes of a product `[m, k] x [k, n]`, `batch` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Rows.
    pub m: u64,
    /// Columns.
    pub n: u64,
    /// Inner dimension.
    pub k: u64,
    /// Independent problems: heads or experts.
    pub batch: u64,
}

/// Why a product is slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remark {
    /// Tensor cores read operands in runs of 16 bytes; `size` of dimension `name` breaks them.
    Misaligned {
        /// `m`, `n` or `k`.
        name: &'static str,
        /// Its size.
        size: u64,
        /// What it should be a multiple of.
        multiple: u64,
    },
    /// It takes longer to move the data than to multiply.
    MemoryBound {
        /// FLOPs per byte.
        intensity: f64,
        /// The intensity that the accelerator needs.
        ridge: f64,
    },
    /// Fewer tiles than multiprocessors, or a nearly empty last wave.
    EmptyWave {
        /// Tiles of the result.
        tiles: u64,
        /// Multiprocessors.
        multiprocessors: u64,
        /// Waves.
        waves: u64,
    },
    /// Tiles that extend past the edge of the result.
    EdgeTiles {
        /// Share of their area that lies inside.
        fill: f64,
    },
    /// Slower because it is sharded.
    Sharding {
        /// Share of peak without sharding.
        before: f64,
        /// Share of peak on one rank.
        after: f64,
    },
}

impl Remark {
    /// The remark as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Misaligned { name, size, multiple } => format!(
                "{name} = {size} is not a multiple of {multiple}: Tensor Cores need 16-byte alignment and fall back to \
                 slower kernels."
            ),
            Self::MemoryBound { intensity, ridge } => format!(
                "Memory-bound: {} FLOPs per byte; the accelerator needs {} to be compute-bound.",
                decimal(*intensity, 0),
                decimal(*ridge, 0)
            ),
            Self::EmptyWave { tiles, multiprocessors, waves: 1 } => format!(
                "Too small: {tiles} output tiles on {multiprocessors} SMs leave {} idle.",
                multiprocessors.saturating_sub(*tiles)
            ),
            Self::EmptyWave { tiles, multiprocessors, waves } => format!(
                "{tiles} output tiles take {waves} waves of {multiprocessors}; the last wave is mostly idle."
            ),
            Self::EdgeTiles { fill } => format!(
                "Tiles overhang the output: {}% of their area is wasted.",
                decimal(100.0 * (1.0 - fill), 0)
            ),
            Self::Sharding { before, after } => format!(
                "Sharding lowers efficiency: {}% of peak unsharded → {}% per rank.",
                decimal(100.0 * before, 0),
                decimal(100.0 * after, 0)
            ),
        }
    }
}

impl Utilisation {
    /// The remarks as one text; none if there are no remarks.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let mut note = String::new();
        for remark in &self.remarks {
            if !note.is_empty() {
                note.push(' ');
            }
            note += &remark.sentence();
        }
        (!note.is_empty()).then_some(note)
    }
}

/// Every distinct matrix product of `plan`, in the order of the model.
#[must_use]
pub fn utilisation(plan: &Plan) -> Vec<Utilisation> {
    let x = Symbols::new(plan);
    let device = Device::new(plan.cluster(), plan.recipe());
    let mut out: Vec<Utilisation> = Vec::new();
    for (stage, held) in (0..).zip(&plan.layout().stages.stages) {
        for section in sections_of(&x, held) {
            for work in work_of(&x, &section.operators) {
                if let Work::Matmul(matmul) = work
                    && !out.iter().any(|known| known.is(&matmul))
                {
                    out.push(judge(&device, &x, &matmul, stage));
                }
            }
        }
    }
    out
}

impl Utilisation {
    fn is(&self, matmul: &Matmul) -> bool {
        let [m, n, k] = matmul.local;
        self.name == matmul.name && self.sharded == (Sizes { batch: matmul.batch, m, n, k })
    }
}

fn judge(device: &Device, x: &Symbols<'_>, matmul: &Matmul, stage: u64) -> Utilisation {
    let [sharded, ..] = linear_products(device, x, matmul);
    let [m, n, k] = matmul.full;
    let full = Product { batch: matmul.full_batch, m, n, k, ..sharded };
    let (cut, unsharded) = (sharded.time(device), full.time(device));
    let peak = if sharded.low { device.low_peak } else { device.peak };
    let fused = !matmul.kind.has_weight() && x.recipe().attention_kernel != AttentionKernel::Unfused;
    let (efficiency, full_efficiency) = if fused {
        // Inside a fused kernel the product has no operands in memory, so its speed is the kernel's.
        let share = |matmul: &Matmul| {
            let useful = matmul.flops().get() * matmul.share;
            useful / device.fused_forward(matmul).get() / device.peak.get()
        };
        let mut uncut = matmul.clone();
        (uncut.batch, uncut.local) = (matmul.full_batch, matmul.full);
        (share(matmul), share(&uncut))
    } else {
        (
            cut.flops.get() / cut.time.get() / peak.get(),
            unsharded.flops.get() / unsharded.time.get() / peak.get(),
        )
    };
    let ridge = peak.get() / device.memory_peak.get();
    let mut known = Utilisation {
        name: matmul.name,
        stage,
        full: sizes(&full),
        sharded: sizes(&sharded),
        flops: cut.flops,
        bytes: whole_bytes(cut.bytes),
        intensity: cut.flops.get() / cut.bytes.max(1.0),
        ridge,
        full_efficiency,
        efficiency,
        tile_fill: cut.tile_fill,
        wave_fill: cut.wave_fill,
        bound: if fused { Bound::Compute } else { cut.bound },
        remarks: Vec::new(),
    };
    known.remarks = remarks(device, &known, &cut, &sharded, fused);
    known
}

fn remarks(
    device: &Device,
    known: &Utilisation,
    cut: &ProductTime,
    product: &Product,
    fused: bool,
) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let multiple = device.run(product.low);
    for (name, size) in [("n", product.n), ("k", product.k)] {
        if !size.is_multiple_of(multiple) {
            remarks.push(Remark::Misaligned { name, size, multiple });
        }
    }
    if !fused {
        if cut.bound == Bound::Memory {
            remarks.push(Remark::MemoryBound { intensity: known.intensity, ridge: known.ridge });
        } else {
            if cut.wave_fill < GOOD_FILL {
                let multiprocessors = device.multiprocessors;
                remarks.push(Remark::EmptyWave { tiles: cut.tiles, multiprocessors, waves: cut.waves });
            }
            if cut.tile_fill < GOOD_FILL {
                remarks.push(Remark::EdgeTiles { fill: cut.tile_fill });
            }
        }
    }
    let (before, after) = (known.full_efficiency, known.efficiency);
    if after < before * (1.0 - NOTICEABLE_LOSS) {
        remarks.push(Remark::Sharding { before, after });
    }
    remarks
}

fn sizes(product: &Product) -> Sizes {
    Sizes { batch: product.batch, m: product.m, n: product.n, k: product.k }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole_bytes(bytes: f64) -> Bytes {
    Bytes::new(bytes.max(0.0) as u64)
}

//! The memory of every rank, as shown in the report.

use super::layers::{LayerNode, SavedActivations, layers, saved_activations};
use super::phases::{RlMemory, phases};
use super::rank::{Rank, Stages};
use super::totals::Totals;
use super::tree::tree;
use super::unit::Units;
use super::verdict::{Needs, Verdict};
use shardscope_explain::Breakdown;
use shardscope_operators::{SectionKind, Symbols};
use shardscope_plan::Plan;
use shardscope_units::Bytes;

/// The memory of `plan`.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// One per pipeline rank. Tensor, expert and data ranks of a stage hold the same amount; rank 0 of each
    /// represents them.
    pub ranks: Vec<RankMemory>,
    /// The rank that holds most.
    pub worst: Worst,
    /// The total memory that the device reports.
    pub capacity: Bytes,
    /// Share of it that should stay free.
    pub headroom: f64,
    /// The most severe verdict on any rank.
    pub verdict: Verdict,
    /// Whether every rank fits.
    pub fits: bool,
    /// The model's layers, in full and on one rank.
    pub layers: LayerNode,
    /// Saved by one layer of each kind for one micro-batch on one rank.
    pub saved_activations: SavedActivations,
    /// The phases of reinforcement learning; none without rollouts. Their verdict counts in `verdict`.
    pub rl: Option<RlMemory>,
}

/// The rank that holds most, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worst {
    /// Pipeline rank.
    pub pipeline_rank: u64,
    /// Its peak as counted by torch.
    pub peak_allocated: Bytes,
    /// Its peak as shown by the device.
    pub peak_reserved: Bytes,
    /// Its peak as stated by the verdict.
    pub needs: Needs,
    /// When, for example `loss`.
    pub at: &'static str,
}

/// One rank's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct RankMemory {
    /// Pipeline rank.
    pub pipeline_rank: u64,
    /// Tensor rank that represents all equal ones.
    pub tensor_rank: u64,
    /// Expert rank that represents all equal ones.
    pub expert_rank: u64,
    /// Bytes by term.
    pub totals: Totals,
    /// Bytes of its trainable weights.
    pub trained: Bytes,
    /// Bytes of its frozen weights, including the constants of quantized ones.
    pub frozen: Bytes,
    /// Whether it fits.
    pub fits: bool,
    /// When the peak is, for example `backward of the activation`.
    pub at: &'static str,
    /// In which part of the stage, for example `dense layer`.
    pub within: Option<&'static str>,
    /// Its chunks.
    pub chunks: Vec<ChunkMemory>,
    /// `peak_reserved` and everything it consists of, each leaf explained.
    pub breakdown: Breakdown<Bytes>,
}

/// What one chunk saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkMemory {
    /// For one micro-batch.
    pub kept: Bytes,
    /// Micro-batches held at the peak.
    pub in_flight: u64,
}

/// The memory of `plan`, explained.
#[must_use]
pub fn memory(plan: &Plan) -> Memory {
    let x = Symbols::new(plan);
    let units = Units::new(&x);
    let stages = Stages::new(&x, &units);
    let capacity = plan.cluster().accelerator.memory;
    let ranks = stages.ranks(&|index, rank| rank_memory(&x, &units, index, rank, capacity));
    let worst = worst(&ranks, capacity);
    let headroom = plan.recipe().headroom;
    let verdicts = ranks.iter().map(|rank| rank.totals.verdict(capacity, headroom));
    let totals: Vec<Totals> = ranks.iter().map(|rank| rank.totals).collect();
    let rl = phases(plan, &totals);
    let verdict = verdicts.chain(rl.as_ref().map(RlMemory::verdict)).max().unwrap_or(Verdict::Fits);
    Memory {
        fits: verdict != Verdict::OutOfMemory,
        verdict,
        headroom,
        worst,
        capacity,
        layers: layers(plan),
        saved_activations: saved_activations(plan),
        rl,
        ranks,
    }
}

fn rank_memory(x: &Symbols<'_>, units: &Units, index: u64, rank: &Rank<'_>, capacity: Bytes) -> RankMemory {
    let (at, within) = rank.at(units);
    let mut chunks = Vec::with_capacity(rank.common.chunks.len());
    for (chunk, &in_flight) in rank.common.chunks.iter().zip(&rank.flight.counts) {
        chunks.push(ChunkMemory { kept: chunk.kept, in_flight });
    }
    RankMemory {
        pipeline_rank: index,
        tensor_rank: 0,
        expert_rank: 0,
        totals: rank.totals,
        trained: rank.totals.parameters.less(rank.common.frozen()),
        frozen: rank.common.frozen(),
        fits: rank.totals.peak_required <= capacity,
        at,
        within: within.map(SectionKind::name),
        chunks,
        breakdown: tree(x, units, rank),
    }
}

/// The rank that decides the verdict: the first with the highest peak, among those out of memory if there are any.
fn worst(ranks: &[RankMemory], capacity: Bytes) -> Worst {
    let mut worst = Worst::default();
    let mut most = (false, Bytes::ZERO);
    for rank in ranks {
        let totals = &rank.totals;
        // A rank that does not fit outweighs any peak: peaks are in reserved bytes, whereas required bytes decide
        // what fits.
        let weight = (!rank.fits, totals.peak_reserved);
        if weight > most {
            most = weight;
            worst = Worst {
                pipeline_rank: rank.pipeline_rank,
                peak_allocated: totals.peak_allocated,
                peak_reserved: totals.peak_reserved,
                needs: Needs::new(totals.peak_reserved, totals.peak_required, capacity),
                at: rank.at,
            };
        }
    }
    worst
}

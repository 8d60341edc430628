//! The smallest number of machines that a layout fits on.

use super::table::Table;
use shardscope_plan::{Field, word};

/// How many multiples of the smallest cluster are tried, to find one that divides the global batch.
const TRIED: u64 = 64;

/// The smallest number of nodes with `per_node` accelerators that all ranks of the layout fill: a multiple of TP x PP x
/// CP and of ETP x EP x PP, whose replicas divide the global batch evenly if there is such a number.
pub(super) fn nodes(table: &Table, per_node: u64) -> u64 {
    let per_node = per_node.max(1);
    // The ranks that share one copy of the weights, if the text states their number.
    let dense = table.ranks_of_one();
    let copy = dense.saturating_mul(table.degree(Field::ShardRanks));
    let tensor = table.degree(Field::TensorModelParallelSize);
    let expert = table.degree(Field::ExpertModelParallelSize);
    let expert_tensor = table.count(Field::ExpertTensorParallelSize).unwrap_or(tensor).max(1);
    let pipeline = table.degree(Field::PipelineModelParallelSize);
    // Dense models have no expert ranks to fill, whatever ETP is; a model that is still asked for has those that are stated.
    let unknown = table.count(Field::NumLayers).is_none();
    let experts = if table.number(Field::NumExperts) > 0 || unknown && expert > 1 {
        expert_tensor.saturating_mul(expert).saturating_mul(pipeline)
    } else {
        1
    };
    let ranks = common(common(copy, experts), per_node);
    let fewest = (ranks / per_node).max(1);
    let slice = table.degree(Field::MicroBatchSize);
    let divides = |times: &u64| {
        // The layout requires the ranks to divide; dividing the batch over its replicas is a preference, dropped if no
        // multiple satisfies it.
        let replicas = ranks.saturating_mul(*times) / dense.max(1);
        let global = table.count(Field::GlobalBatchSize).filter(|global| *global > 0);
        global.is_none_or(|global| global.is_multiple_of(slice.saturating_mul(replicas).max(1)))
    };
    let times = (1..=TRIED).find(divides).unwrap_or(1);
    fewest.saturating_mul(times)
}

/// Whether this many accelerators fit the layout, and its replicas divide the global batch evenly.
pub(super) fn holds(table: &Table, world: u64) -> bool {
    let dense = table.ranks_of_one().max(1);
    let share = table.degree(Field::MicroBatchSize).saturating_mul(world / dense);
    let global = table.count(Field::GlobalBatchSize).filter(|global| *global > 0);
    world > 0 && nodes(table, world) == 1 && global.is_none_or(|global| global.is_multiple_of(share.max(1)))
}

/// Fewer accelerators than `usual`, where a trainer takes no more. For a global batch that is too small for a node, the largest number of accelerators below `usual` that divides it;
/// none if it is large enough.
pub(super) fn fewer(table: &Table, usual: u64) -> Option<u64> {
    // transformers' Trainer updates layer by layer on one accelerator alone.
    let projects = table.is_any(&[
        word::Optimizer::GaLore,
        word::Optimizer::GaLore8Bit,
        word::Optimizer::Apollo,
        word::Optimizer::ApolloSvd,
    ]);
    if projects && table.on(Field::StepInBackward) || super::placed::is_alone(table) {
        return Some(1);
    }
    let global = table.count(Field::GlobalBatchSize).filter(|global| *global > 0)?;
    let slice = table.degree(Field::MicroBatchSize);
    let dense = table.ranks_of_one().max(1);
    let share = |ranks: u64| slice.saturating_mul(ranks / dense);
    if share(usual) <= global {
        return None;
    }
    // From the largest: fewer accelerators than necessary would answer for a smaller run.
    (1..usual).rev().find(|ranks| {
        let divides = ranks.is_multiple_of(dense);
        divides && share(*ranks) > 0 && global.is_multiple_of(share(*ranks))
    })
}

/// The least common multiple; the first number if it would overflow 64 bits.
fn common(a: u64, b: u64) -> u64 {
    let (a, b) = (a.max(1), b.max(1));
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    // Divided first, so that only a result above 64 bits overflows.
    (a / x).checked_mul(b).unwrap_or(a)
}

//! The memory of a plan as sums only, from the same formulas as the report.

use super::gathered::Gathered;
use super::moments::ChunkSum;
use super::offloaded::Groups;
use super::rank::Stages;
use super::totals::Totals;
use super::unit::Units;
use shardscope_operators::Symbols;
use shardscope_plan::{Chunk, Plan};
use shardscope_units::Bytes;

/// The totals of every pipeline rank of `plan`, from the same formulas but without explanations.
#[must_use]
pub fn memory_totals(plan: &Plan) -> Vec<Totals> {
    memory_totals_knowing(plan, &mut KnownUnits::default())
}

/// One computed section of each kind. Plans can share these if they differ only in the number of stages and chunks,
/// in which layers these hold, and in which layers are fully recomputed.
#[derive(Clone, Debug, Default)]
pub struct KnownUnits(Units);

/// [`memory_totals`], reusing and extending the sections in `known`.
#[must_use]
pub fn memory_totals_knowing(plan: &Plan, known: &mut KnownUnits) -> Vec<Totals> {
    let x = Symbols::new(plan);
    known.0.learn(&x);
    Stages::new(&x, &known.0).ranks(&|_, rank| rank.totals)
}

/// Bytes saved between forward and backward by `chunk` for one micro-batch on one rank.
#[must_use]
pub fn kept_by_chunk(plan: &Plan, chunk: &Chunk) -> Bytes {
    let x = Symbols::new(plan);
    let units = Units::new(&x);
    let groups = Groups::new(&x, chunk, &|kind| &units.get(kind).groups);
    let sum = ChunkSum::new(&x, &units, chunk, &Gathered::default(), groups, Bytes::ZERO);
    sum.kept + sum.once
}

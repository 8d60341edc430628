//! What a plan takes in sums alone, from the same formulas as the report.

use super::gathered::Gathered;
use super::moments::ChunkSum;
use super::offloaded::Groups;
use super::rank::Stages;
use super::totals::Totals;
use super::unit::Units;
use shardscope_operators::Symbols;
use shardscope_plan::{Chunk, Plan};
use shardscope_units::Bytes;

/// The totals of every pipeline rank of `plan`, from the same formulas without their reasons.
#[must_use]
pub fn memory_totals(plan: &Plan) -> Vec<Totals> {
    memory_totals_knowing(plan, &mut KnownUnits::default())
}

/// One section of each kind worked out, which plans have in common that differ only in how many stages and chunks there are,
/// in which layers they hold, and in which layers are recomputed whole.
#[derive(Clone, Debug, Default)]
pub struct KnownUnits(Units);

/// [`memory_totals`]; `known` takes and gives what is held of one section of each kind.
#[must_use]
pub fn memory_totals_knowing(plan: &Plan, known: &mut KnownUnits) -> Vec<Totals> {
    let x = Symbols::new(plan);
    known.0.learn(&x);
    Stages::new(&x, &known.0).ranks(&|_, rank| rank.totals)
}

/// Bytes kept from forward to backward by `chunk` for one micro-batch on one rank.
#[must_use]
pub fn kept_by_chunk(plan: &Plan, chunk: &Chunk) -> Bytes {
    let x = Symbols::new(plan);
    let units = Units::new(&x);
    let groups = Groups::new(&x, chunk, &|kind| &units.get(kind).groups);
    let sum = ChunkSum::new(&x, &units, chunk, &Gathered::default(), groups, Bytes::ZERO);
    sum.kept + sum.once
}

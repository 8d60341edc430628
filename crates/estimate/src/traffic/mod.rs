//! Who sends what to whom: every collective with its size, how often each stage's ranks take part, over which link,
//! and the totals per GPU and for the cluster.

mod balance;
mod buffers;
mod builder;
mod data;
mod ddp_buckets;
mod layers;
mod ledger;
mod pipeline;
mod step;
mod warnings;

pub use buffers::{Buffer, all_buffers, buffers};
pub use ledger::{DimensionTraffic, Operation, Parallelism, Place, Totals, Traffic};
pub use warnings::{Detour, TrafficWarning, warnings};

use crate::constant::Constant;
use shardscope_plan::Plan;

/// The constants of buffers and buckets.
pub(crate) fn constants() -> Vec<Constant> {
    let mut all = buffers::constants();
    all.extend(ddp_buckets::constants());
    all
}

/// Everything sent in one iteration of `plan`.
#[must_use]
pub fn traffic(plan: &Plan) -> Traffic {
    let mut builder = builder::Builder::new(plan);
    layers::add(&mut builder);
    pipeline::add(&mut builder);
    data::add(&mut builder);
    step::add(&mut builder);
    balance::add(&mut builder);
    builder.finish()
}

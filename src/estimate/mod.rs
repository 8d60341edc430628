//! What a plan needs and does: parameters, memory. Each estimate folds over the anatomy's operators and none
//! of them matches on layer kinds; each takes a `&Plan` and cannot fail.

mod flops;
mod parameters;

pub use flops::{Convention, FlopCounts, flops};
pub use parameters::{AccountCounts, Parameters, RankParameters, parameters};

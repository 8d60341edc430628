//! The engine's estimates behind one function that both a native program and Node can call and time.
//!
//! `cargo xtask speed` builds this crate twice, for this machine and for WebAssembly, with the page's own profile and pass of
//! wasm-opt, and runs the two alternately.
#![allow(missing_docs)] // what the bridge to JavaScript writes has none

mod workloads;

use std::hint::black_box;

use shardscope::estimate::memory_totals;
use shardscope::estimate::time::{exact_step_seconds, step_seconds};
use shardscope::launch::plan_from_flags;
use shardscope::plan::Plan;
use shardscope::report::report;
use wasm_bindgen::prelude::wasm_bindgen;

pub use workloads::WORKLOADS;

/// A call of the engine that returns a number taken from its result.
pub type Work = fn(&Plan) -> f64;

/// The timed calls: name, and a call that returns a number taken from its result, on which both builds must agree.
pub const WORKS: [(&str, Work); 4] = [
    ("totals", |plan| memory_totals(plan).iter().map(|rank| rank.peak_reserved.get() as f64).sum()),
    ("quick step", |plan| step_seconds(plan).get()),
    ("exact step", |plan| exact_step_seconds(plan).get()),
    ("report", |plan| report(plan).time.step.get()),
];

/// A workload, resolved.
#[wasm_bindgen]
pub struct Workload(Plan);

#[wasm_bindgen]
impl Workload {
    /// The one at this index of [`WORKLOADS`]; `None` if there is none or it is not a valid plan.
    pub fn at(place: usize) -> Option<Workload> {
        let (_, gpus, accelerator, flags) = *WORKLOADS.get(place)?;
        plan_from_flags(flags, gpus, 8, accelerator).ok().map(Workload)
    }

    /// Does the work at this index of [`WORKS`] so many times and returns the number of its last result.
    pub fn turns(&self, work: usize, turns: u32) -> f64 {
        let Some((_, call)) = WORKS.get(work) else { return f64::NAN };
        let mut result = f64::NAN;
        for _ in 0..turns {
            result = black_box(call(black_box(&self.0)));
        }
        result
    }
}

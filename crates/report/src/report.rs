//! Every estimate of one plan as one value.

use super::finding::Finding;
use super::whole;
use shardscope_estimate::time::{Time, Unknown, time, unknowns};
use shardscope_estimate::traffic::{Traffic, TrafficWarning, traffic, warnings};
use shardscope_estimate::{FlopCounts, Parameters, Utilisation};
use shardscope_estimate::{Memory, Totals, memory};
use shardscope_plan::Plan;

/// Every estimate of one plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Parameters of the model and of each rank.
    pub parameters: Parameters,
    /// FLOPs of a step by each convention.
    pub flops: FlopCounts,
    /// What the unsharded model would need on one accelerator, with one micro-batch per step.
    pub whole: Option<Totals>,
    /// Memory of every rank.
    pub memory: Memory,
    /// Every message.
    pub traffic: Traffic,
    /// Groups that cross a slower link than necessary.
    pub detours: Vec<TrafficWarning>,
    /// Time of a step.
    pub time: Time,
    /// Influences on the time that the engine cannot know.
    pub unknowns: Vec<Unknown>,
    /// Every matrix product before and after sharding.
    pub utilisation: Vec<Utilisation>,
    /// Advice; filled in by the advice crate, which reads the other fields.
    pub advice: Vec<Finding>,
}

impl Report {
    /// Whether published runs show how fast the accelerator is. If none do, no step time may be shown without saying
    /// so.
    #[must_use]
    pub fn is_calibrated(&self) -> bool {
        !self.unknowns.iter().any(|unknown| matches!(unknown, Unknown::Accelerator | Unknown::Relative))
    }
}

/// Every estimate of `plan`.
#[must_use]
pub fn report(plan: &Plan) -> Report {
    let traffic = traffic(plan);
    let time = time(plan);
    Report {
        detours: warnings(plan, &traffic),
        traffic,
        whole: whole::whole_model(plan),
        memory: memory(plan),
        parameters: shardscope_estimate::parameters(plan),
        flops: shardscope_estimate::flops(plan),
        unknowns: unknowns(plan, &time),
        time,
        utilisation: shardscope_estimate::utilisation(plan),
        advice: Vec::new(),
    }
}

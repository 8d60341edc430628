//! Physical limits that no estimate may exceed: the last check of every estimate.

use super::Memory;
use super::flops::{FlopCounts, flops};
use super::time::{Time, held_against};
use super::traffic::Traffic;
use shardscope_plan::Plan;
use shardscope_units::{Bytes, BytesPerSecond, Count, Quantity, Seconds, decimal, seconds};

/// An estimate that violates a physical limit of its hardware. It means that the engine is wrong, and the estimate
/// must not be shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Which limit.
    pub law: Law,
    /// How many times over the limit.
    pub times: f64,
    /// The estimated step.
    pub step: Seconds,
}

/// What an accelerator cannot exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// The model's FLOPs, with causal attention halved, at the dense peak.
    ModelFlops,
    /// The same including recomputation.
    HardwareFlops,
    /// Everything resident in memory passes through it once a step.
    MemoryBandwidth,
    /// The bytes sent, over fast link and network together.
    LinkBandwidth,
    /// The step with everything overlapped that can be.
    LowerBound,
}

impl Law {
    /// The limit in words, to continue a sentence that begins "the step ...".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::ModelFlops => {
                "would need more FLOPs per second for the model than the accelerator's dense peak"
            }
            Self::HardwareFlops => {
                "would need more FLOPs per second, recomputation counted, than the accelerator's dense peak"
            }
            Self::MemoryBandwidth => {
                "would read weights and optimizer states faster than the accelerator's memory"
            }
            Self::LinkBandwidth => "would send more than the accelerator's links carry",
            Self::LowerBound => "would be faster than with everything overlapped that can be",
        }
    }
}

impl Fault {
    /// What the reader sees in place of the report.
    #[must_use]
    pub fn message(&self) -> String {
        format!(
            "this plan cannot be estimated: a step of {} {} ({} times)",
            seconds(self.step),
            self.law.words(),
            decimal(self.times, 2)
        )
    }

    /// What the reader can do about it.
    pub const HINT: &str = "this is a fault of the estimate, not of the plan: please report it with the plan's link or \
        settings; measured rates above the data sheet's, where given, are the one other cause";
}

/// Relative tolerance for sums taken in a different order.
const ROUNDING: f64 = 1e-9;
/// A step that is extrapolated from part of its micro-batches, like its lower bound, is within this share of a full
/// simulation.
const CONTINUED: f64 = 0.02;
/// A switch that reduces in flight halves what an all-reduce sends (NVLink SHARP, InfiniBand SHARP).
const REDUCED_ON_THE_WAY: f64 = 2.0;

/// The first limit that the estimate of `plan` violates.
#[must_use]
pub fn fault(plan: &Plan, time: &Time, memory: &Memory, traffic: &Traffic) -> Option<Fault> {
    let accelerator = &plan.cluster().accelerator;
    let resident = memory.ranks.iter().map(|rank| rank.totals.between_steps).max().unwrap_or_default();
    let sent = traffic.stages().into_iter().map(|stage| stage.wire).max().unwrap_or_default();
    let links = accelerator.fast_link.bandwidth.get() + accelerator.network.bandwidth.get();
    let links = BytesPerSecond::new(links * REDUCED_ON_THE_WAY);
    let carried = |bytes: Bytes, rate: BytesPerSecond| {
        bytes.number() / time.step.get().max(f64::MIN_POSITIVE) / rate.get().max(f64::MIN_POSITIVE)
    };
    time_fault(time).or_else(|| {
        let laws = [
            (Law::MemoryBandwidth, carried(resident, accelerator.memory_bandwidth)),
            (Law::LinkBandwidth, carried(sent, links)),
        ];
        broken(time.step, &laws)
    })
}

/// The same check for the time alone.
#[must_use]
pub fn time_fault(time: &Time) -> Option<Fault> {
    let continued = time.schedule.simulated < time.schedule.shape.micro_batches;
    // FLOPs that all accelerators could do at their peak within this step. `max` would hide a NaN utilization.
    let mfu = if time.mfu.is_nan() { f64::NAN } else { time.mfu.max(f64::MIN_POSITIVE) };
    let peak = time.flops.model.get() / mfu;
    of_time(time.step, &time.flops, peak, time.lower_bound, continued)
}

/// The same check for a `step` of `plan` that was computed without the rest of a report.
#[must_use]
pub fn step_fault(plan: &Plan, step: Seconds) -> Option<Fault> {
    let (lower_bound, peak, continued) = held_against(plan);
    let gpus = Count::new(plan.layout().world_size.max(1)).number();
    of_time(step, &flops(plan), peak.get() * gpus * step.get(), lower_bound, continued)
}

/// Checks the limits on time. `peak` is what all accelerators together could do in the step. Unit: FLOP.
fn of_time(
    step: Seconds,
    flops: &FlopCounts,
    peak: f64,
    lower_bound: Seconds,
    continued: bool,
) -> Option<Fault> {
    // Kernels that can skip the part above the diagonal do; recomputing a forward pass adds a third.
    let masked = flops.model.get() - flops.causal.get();
    let share = |count: f64| count / peak.max(f64::MIN_POSITIVE);
    let slack = if continued { CONTINUED } else { ROUNDING };
    let laws = [
        (Law::ModelFlops, share(flops.causal.get())),
        (Law::HardwareFlops, share(flops.hardware.get() - masked * 4.0 / 3.0)),
        (Law::LowerBound, lower_bound.get() / step.get().max(f64::MIN_POSITIVE) / (1.0 + slack)),
    ];
    broken(step, &laws)
}

fn broken(step: Seconds, laws: &[(Law, f64)]) -> Option<Fault> {
    // A NaN counts as violated.
    let holds = |times: f64| times <= 1.0 + ROUNDING;
    laws.iter().find(|(_, times)| !holds(*times)).map(|&(law, times)| Fault { law, times, step })
}

//! What no machine can do: the last check of every estimate.

use super::Memory;
use super::flops::{FlopCounts, flops};
use super::time::{Time, held_against};
use super::traffic::Traffic;
use shardscope_plan::Plan;
use shardscope_units::{Bytes, BytesPerSecond, Count, Quantity, Seconds, decimal, seconds};

/// An estimate that breaks a law of the machine it is for. The engine is wrong then, and what it says of the plan must not
/// be shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Which law.
    pub law: Law,
    /// How many times what is possible.
    pub times: f64,
    /// The step that was estimated.
    pub step: Seconds,
}

/// What an accelerator cannot exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// The model's FLOPs, attention counted as causality leaves it, at the dense peak.
    ModelFlops,
    /// The same with what is recomputed.
    HardwareFlops,
    /// All that stays in memory passes through it once a step.
    MemoryBandwidth,
    /// What is sent, over fast link and network together.
    LinkBandwidth,
    /// The step with everything overlapped that can be.
    LowerBound,
}

impl Law {
    /// In a sentence's middle: "the step ...".
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
    /// What to tell the reader in place of the report.
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

/// Share by which sums in another order may exceed what they are held against.
const ROUNDING: f64 = 1e-9;
/// A step that is continued from a part of it lies within so much of the whole run, and so does its lower bound.
const CONTINUED: f64 = 0.02;
/// A switch that adds up what passes through it halves what an all-reduce sends (NVLink SHARP, InfiniBand SHARP).
const REDUCED_ON_THE_WAY: f64 = 2.0;

/// The first law that the estimate of `plan` breaks.
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

/// The same of the time alone.
#[must_use]
pub fn time_fault(time: &Time) -> Option<Fault> {
    let continued = time.schedule.simulated < time.schedule.shape.micro_batches;
    // FLOPs per second of one accelerator at its peak, in FLOPs of all of them for this step.
    // `max` would hide a utilization that is no number.
    let mfu = if time.mfu.is_nan() { f64::NAN } else { time.mfu.max(f64::MIN_POSITIVE) };
    let peak = time.flops.model.get() / mfu;
    of_time(time.step, &time.flops, peak, time.lower_bound, continued)
}

/// The same of a `step` of `plan` that was worked out without the rest of a report.
#[must_use]
pub fn step_fault(plan: &Plan, step: Seconds) -> Option<Fault> {
    let (lower_bound, peak, continued) = held_against(plan);
    let gpus = Count::new(plan.layout().world_size.max(1)).number();
    of_time(step, &flops(plan), peak.get() * gpus * step.get(), lower_bound, continued)
}

/// `peak` is what all accelerators together could do in the step. Unit: FLOP.
fn of_time(
    step: Seconds,
    flops: &FlopCounts,
    peak: f64,
    lower_bound: Seconds,
    continued: bool,
) -> Option<Fault> {
    // Above the diagonal nothing is multiplied where the kernel can leave it out; a forward pass done again is a third.
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
    // What is no number is no answer either.
    let holds = |times: f64| times <= 1.0 + ROUNDING;
    laws.iter().find(|(_, times)| !holds(*times)).map(|&(law, times)| Fault { law, times, step })
}

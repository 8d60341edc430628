//! `report.time`.

use serde::Serialize;

use super::tree::{Explanations, Object, Tree};
use shardscope_estimate::time::{self, Unknown};
use shardscope_units::{Flops, Seconds};

/// TFLOP/s (10^12) in a FLOP/s.
const TERA: f64 = 1e12;

/// Time of a step.
#[derive(Debug, Serialize)]
pub struct Time<'r> {
    /// The estimate.
    pub step_seconds: Seconds,
    /// The interval that contains nine of ten measured steps of such plans.
    pub interval: Interval<'r>,
    /// Fully overlapped: everything that can overlap does.
    pub lower_bound_seconds: Seconds,
    /// Nothing overlapped.
    pub upper_bound_seconds: Seconds,
    /// Of all GPUs; of an encoder-decoder, target tokens alone.
    pub tokens_per_second: f64,
    /// Of one GPU.
    pub tokens_per_second_per_gpu: f64,
    /// Sequences, of all GPUs.
    pub samples_per_second: f64,
    /// FLOPs of the model itself, without recomputation.
    pub model_flops_per_step: Flops,
    /// What is actually computed, including recomputation.
    pub hardware_flops_per_step: Flops,
    /// Unit: TFLOP/s (10^12) per GPU.
    pub model_tflops_per_gpu: f64,
    /// Unit: TFLOP/s (10^12) per GPU.
    pub hardware_tflops_per_gpu: f64,
    /// The accelerator's peak in the type of the matrix products. Unit: TFLOP/s (10^12).
    pub peak_tflops_per_gpu: f64,
    /// Model FLOPs utilisation, a share of the peak.
    pub mfu: f64,
    /// Hardware FLOPs utilisation, a share of the peak.
    pub hfu: f64,
    /// Fraction of the step that stages spend waiting.
    pub bubble_fraction: f64,
    /// The parts of the step, in exposed seconds.
    pub breakdown: Tree<'r, Seconds>,
    /// The pipeline schedule.
    pub schedule: Schedule<'r>,
    /// FLOPs of a step by each convention; null if one does not apply.
    pub flops_by_convention: Object<&'static str, Option<Flops>>,
    /// The whole training, if the text states its length.
    pub training: Option<Training>,
    /// What the time cannot know, a sentence each.
    pub unknowns: Vec<&'static str>,
}

/// The 90 % interval of the step, from the residuals of published runs.
#[derive(Debug, Serialize)]
pub struct Interval<'r> {
    /// Lower end.
    pub low_seconds: Seconds,
    /// Upper end.
    pub high_seconds: Seconds,
    /// The family of software and hardware whose residuals it is derived from.
    pub family: &'static str,
    /// Published runs that it is based on.
    pub rows: u64,
    /// The number of sources they come from.
    pub sources: u64,
    /// Facts that would narrow it.
    pub narrowed_by: &'r [&'static str],
}

impl<'r> Interval<'r> {
    fn new(interval: &'r time::Interval) -> Self {
        Self {
            low_seconds: interval.low,
            high_seconds: interval.high,
            family: interval.family.name,
            rows: interval.family.rows,
            sources: interval.family.sources,
            narrowed_by: &interval.narrows,
        }
    }
}

/// The pipeline schedule.
#[derive(Debug, Serialize)]
pub struct Schedule<'r> {
    /// `1f1b`, `interleaved` and so on.
    pub name: &'static str,
    /// Micro-batches of the step.
    pub micro_batches: u32,
    /// The micro-batches that are simulated individually; if fewer, the rest is extrapolated, within 1 % of the full
    /// simulation.
    pub simulated_micro_batches: u32,
    /// Micro-batches in flight on each pipeline rank.
    pub in_flight: &'r [u64],
}

/// The whole training at the estimated pace, without failures and checkpoints.
#[derive(Debug, Serialize)]
pub struct Training {
    /// Tokens trained on, with the last step counted in full.
    pub tokens: u64,
    /// Steps.
    pub steps: u64,
    /// Duration.
    pub seconds: Seconds,
    /// Duration. Unit: day.
    pub days: f64,
    /// Accelerators times hours.
    pub gpu_hours: f64,
    /// Energy, if the power of an accelerator is stated. Unit: MWh.
    pub megawatt_hours: Option<f64>,
    /// In the currency of the price, if one is stated.
    pub cost: Option<f64>,
}

impl<'r> Time<'r> {
    pub(super) fn new(time: &'r time::Time, unknowns: &[Unknown], explanations: &mut Explanations) -> Self {
        explanations.add_tree("time/breakdown", &time.breakdown);
        let conventions = time.flops.conventions();
        Self {
            step_seconds: time.step,
            interval: Interval::new(&time.interval),
            lower_bound_seconds: time.lower_bound,
            upper_bound_seconds: time.upper_bound,
            tokens_per_second: time.tokens_per_second,
            tokens_per_second_per_gpu: time.tokens_per_second_per_gpu,
            samples_per_second: time.samples_per_second,
            model_flops_per_step: time.flops.model,
            hardware_flops_per_step: time.flops.hardware,
            model_tflops_per_gpu: time.model_rate.get() / TERA,
            hardware_tflops_per_gpu: time.hardware_rate.get() / TERA,
            peak_tflops_per_gpu: time.peak.get() / TERA,
            mfu: time.mfu,
            hfu: time.hfu,
            bubble_fraction: time.bubble_fraction,
            breakdown: Tree::new(&time.breakdown),
            schedule: Schedule {
                name: time.schedule.name,
                micro_batches: time.schedule.shape.micro_batches,
                simulated_micro_batches: time.schedule.simulated,
                in_flight: &time.schedule.in_flight,
            },
            flops_by_convention: Object(
                conventions.iter().map(|convention| (convention.name, convention.flops)).collect(),
            ),
            training: time.training.as_ref().map(Training::new),
            unknowns: unknowns.iter().map(|unknown| unknown.sentence()).collect(),
        }
    }
}

impl Training {
    fn new(training: &time::Training) -> Self {
        Self {
            tokens: training.tokens,
            steps: training.steps,
            seconds: training.time,
            days: training.days,
            gpu_hours: training.gpu_hours,
            megawatt_hours: training.energy,
            cost: training.cost,
        }
    }
}

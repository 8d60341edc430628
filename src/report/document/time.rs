//! `report.time`.

use serde_json::{Map, Value, json};

use super::super::tree::{explain, tree};
use crate::estimate::time::{Time, Unknown};

pub(super) fn time(time: &Time, unknowns: &[Unknown], explanations: &mut Map<String, Value>) -> Value {
    explain("time/breakdown", &time.breakdown, explanations);
    json!({
        "step_seconds": time.step.get(),
        "lower_bound_seconds": time.lower_bound.get(),
        "upper_bound_seconds": time.upper_bound.get(),
        "tokens_per_second": time.tokens_per_second,
        "tokens_per_second_per_gpu": time.tokens_per_second_per_gpu,
        "samples_per_second": time.samples_per_second,
        "model_flops_per_step": time.flops.model.get(),
        "hardware_flops_per_step": time.flops.hardware.get(),
        "model_tflops_per_gpu": time.model_rate.get() / 1e12,
        "hardware_tflops_per_gpu": time.hardware_rate.get() / 1e12,
        "peak_tflops_per_gpu": time.peak.get() / 1e12,
        "mfu": time.mfu,
        "hfu": time.hfu,
        "bubble_fraction": time.bubble_fraction,
        "breakdown": tree(&time.breakdown),
        "schedule": {
            "name": time.schedule.name,
            "in_flight": time.schedule.in_flight,
        },
        "unknowns": unknowns.iter().map(|unknown| unknown.sentence()).collect::<Vec<_>>(),
    })
}

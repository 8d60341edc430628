//! `report.time`.

use super::super::tree::{Explanations, tree};
use crate::estimate::time::{Time, Training, Unknown};
use crate::json::Writer;

pub(super) fn time(w: &mut Writer, time: &Time, unknowns: &[Unknown], explanations: &mut Explanations) {
    explanations.of("time/breakdown", &time.breakdown);
    w.object("time");
    w.real("step_seconds", time.step.get());
    w.real("lower_bound_seconds", time.lower_bound.get());
    w.real("upper_bound_seconds", time.upper_bound.get());
    w.real("tokens_per_second", time.tokens_per_second);
    w.real("tokens_per_second_per_gpu", time.tokens_per_second_per_gpu);
    w.real("samples_per_second", time.samples_per_second);
    w.real("model_flops_per_step", time.flops.model.get());
    w.real("hardware_flops_per_step", time.flops.hardware.get());
    w.real("model_tflops_per_gpu", time.model_rate.get() / 1e12);
    w.real("hardware_tflops_per_gpu", time.hardware_rate.get() / 1e12);
    w.real("peak_tflops_per_gpu", time.peak.get() / 1e12);
    w.real("mfu", time.mfu);
    w.real("hfu", time.hfu);
    w.real("bubble_fraction", time.bubble_fraction);
    tree(w, "breakdown", &time.breakdown);
    w.object("schedule");
    w.text("name", time.schedule.name);
    w.counts("in_flight", &time.schedule.in_flight);
    w.close();
    w.object("flops_by_convention");
    for convention in &time.flops.conventions() {
        w.some_real(convention.name, convention.flops.map(|flops| flops.get()));
    }
    w.close();
    training(w, time.training.as_ref());
    w.list("unknowns");
    for unknown in unknowns {
        w.text("", unknown.sentence());
    }
    w.close();
    w.close();
}

fn training(w: &mut Writer, training: Option<&Training>) {
    let Some(training) = training else {
        w.null("training");
        return;
    };
    w.object("training");
    w.count("tokens", training.tokens);
    w.count("steps", training.steps);
    w.real("seconds", training.time.get());
    w.real("days", training.days);
    w.real("gpu_hours", training.gpu_hours);
    w.some_real("megawatt_hours", training.energy);
    w.some_real("cost", training.cost);
    w.close();
}

//! Figures that a tool measured, each beside the estimate of the same scope.

use shardscope_estimate::time::{Family, measured_factor};
use shardscope_measured::{Measured, Tool};
use shardscope_plan::Plan;
use shardscope_report::Report;
use shardscope_units::{
    Bytes, Count, FlopsPerSecond, Quantity, Seconds, gib, percent, rounded, seconds, tflops,
};

use super::Shown;
use super::own::OwnRun;

/// One figure, predicted and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Name of the figure.
    pub name: &'static str,
    /// What is compared with what.
    pub about: &'static str,
    /// Unit of the two numbers.
    pub unit: &'static str,
    /// By the estimate.
    pub predicted: f64,
    /// By the tool.
    pub measured: f64,
    /// The two with their unit, in the same order.
    pub words: [String; 2],
}

impl Compared {
    /// The share of the measured figure by which the estimate is above it.
    #[must_use]
    pub fn off(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// The same as a signed percentage.
    #[must_use]
    pub fn off_words(&self) -> String {
        let off = self.off();
        // U+2212, as wide as the plus sign beside it.
        format!("{}{}", if off < 0.0 { "−" } else { "+" }, percent(off.abs()))
    }
}

/// What a tool measured of a run beside what was predicted for it.
#[must_use]
pub fn compared(found: &Measured, plan: &Plan, report: &Report) -> Vec<Compared> {
    let (time, memory) = (&report.time, &report.memory);
    let mut lines = Vec::new();
    let mut line = |name, about, unit, [predicted, measured]: [f64; 2], words| {
        lines.push(Compared { name, about, unit, predicted, measured, words });
    };
    if let Some(step) = found.step {
        let predicted = time.step.get();
        let both = [predicted, step.seconds];
        line("step time", "", "s", both, both.map(|value| seconds(Seconds::new(value))));
        // The plan's own tokens and FLOPs over the measured time: a tool that counts otherwise (padding, another
        // convention) would differ by its count and not by time.
        let slower = predicted / step.seconds;
        let about = "the plan's tokens of a step over the measured time of one";
        let tokens = time.tokens_per_second;
        let both = [tokens, tokens * slower];
        line("tokens per second", about, "1/s", both, both.map(rounded));
        let about = "the plan's model FLOPs of a step over the measured time of one";
        let both = [time.mfu, time.mfu * slower];
        line("MFU", about, "1", both, both.map(percent));
    }
    if let (Some(rate), Some(counted)) = (found.tflops_per_gpu, time.flops.megatron) {
        let gpus = Count::new(plan.layout().world_size.max(1)).number();
        // Logs give TFLOP/s.
        let both = [counted.get() / time.step.get() / gpus, rate * 1e12];
        let words = both.map(|rate| tflops(FlopsPerSecond::new(rate)));
        let about = "by Megatron-LM's own count of FLOPs";
        line("per GPU, as Megatron-LM counts", about, "FLOP/s", both, words);
    }
    // Each tool sees a different part of the device. Every figure is compared with the prediction of the same scope, for
    // the fullest rank: a log reports some ranks and need not state which.
    let totals = || memory.ranks.iter().map(|rank| &rank.totals);
    let scopes = [
        (
            "peak allocated",
            "tensors at the peak of the fullest GPU (torch.cuda.max_memory_allocated)",
            found.allocated,
            totals().map(|rank| rank.peak_allocated).max(),
        ),
        (
            "peak reserved by PyTorch",
            "what PyTorch's allocator holds at the peak of the fullest GPU (torch.cuda.max_memory_reserved)",
            found.reserved,
            // As on this device: what PyTorch would cache on a larger one is released before it runs out.
            totals().map(|rank| rank.cached_on(memory.capacity)).max(),
        ),
        (
            "in use on the device",
            "everything on the fullest GPU, with the CUDA context and NCCL's buffers: the peak of the verdict",
            found.device,
            totals().map(|rank| rank.peak_reserved).max(),
        ),
    ];
    for (name, about, measured, predicted) in scopes {
        // A rank that reports 0 has measured nothing.
        if let (Some(measured), Some(predicted)) = (measured.filter(|bytes| *bytes > 0), predicted) {
            let both = [predicted, Bytes::new(measured)];
            line(name, about, "B", both.map(Quantity::number), both.map(gib));
        }
    }
    lines
}

/// What there is to know of a tool's figures, and what its output does not tell: messages without a point.
#[must_use]
pub fn notes(found: &Measured) -> Vec<String> {
    let mut notes = Vec::new();
    if found.tool == Tool::MegatronLog && found.step.is_some() {
        notes.push("the median of the steps without the first, which warms up".to_owned());
    }
    notes.extend(found.remark.map(|remark| remark.words().to_owned()));
    let of = [
        ("step time", found.step.is_none()),
        ("memory allocated", found.allocated.is_none()),
        ("memory reserved", found.reserved.is_none()),
        ("memory in use on the device", found.device.is_none()),
    ];
    let lacking: Vec<&str> = of.into_iter().filter(|(_, lacks)| *lacks).map(|(name, _)| name).collect();
    // Said, so that nobody looks for a figure that the tool never prints.
    if let Some((last, before)) = lacking.split_last() {
        let before = if before.is_empty() { String::new() } else { before.join(", ") + " or " };
        notes.push(format!("it does not tell {before}{last}"));
    }
    notes
}

/// Whether a step was measured that is shorter than the peak of the GPUs allows for this plan: it is of another run.
#[must_use]
pub fn is_too_fast(found: &Measured, report: &Report) -> bool {
    found.step.is_some_and(|step| beyond_peak(step.seconds, report))
}

/// Whether a step of that many seconds would need more FLOPs per second than the accelerators' dense peak.
fn beyond_peak(seconds: f64, report: &Report) -> bool {
    report.time.mfu * report.time.step.get() / seconds > 1.0
}

/// The measured step over the estimate of the plan shown, as [`shardscope_plan::Field::MeasuredOverEstimated`] takes
/// it; `None` without a tool that times steps undisturbed, and for a step that no accelerator could make.
#[must_use]
pub fn measured_ratio(own: &OwnRun, shown: &Shown) -> Option<f64> {
    let measured = own.step()?.seconds;
    if beyond_peak(measured, &shown.report) {
        return None;
    }
    // The estimate shown may already be corrected by an earlier measurement; divided out, pressing the button twice
    // changes nothing.
    let estimate = shown.report.time.step.get() / measured_factor(&shown.plan);
    Some(measured / estimate.max(f64::MIN_POSITIVE)).filter(|ratio| ratio.is_finite())
}

/// Whether a measured step corrects the estimates of the run's other layouts: only where published runs show that
/// errors are shared between layouts of a run.
#[must_use]
pub fn corrects_others(shown: &Shown) -> bool {
    Family::from_plan(&shown.plan).common > 0.0
}

/// What that step implies for other layouts of the run, in a sentence.
#[must_use]
pub fn measured_sentence(shown: &Shown) -> String {
    let family = Family::from_plan(&shown.plan);
    let (before, after) = if corrects_others(shown) {
        (
            "In published runs (",
            "), most of the error belongs to the run, so estimates of its other layouts are corrected.",
        )
    } else {
        (
            "In published runs (",
            "), the error of one layout says nothing about the next, so estimates of other layouts stay as they are.",
        )
    };
    format!("{before}{}{after}", family.name)
}

#[cfg(test)]
mod tests {
    use super::super::{EXAMPLE, State, UserInput};
    use super::*;

    fn found(text: &str) -> Vec<Measured> {
        shardscope_measured::read(text.as_bytes()).expect("figures")
    }

    #[test]
    fn a_log_is_held_against_the_plan() {
        let shown = State::new(UserInput::from_text(EXAMPLE)).shown.expect("a plan");
        let text = " iteration 1/ 10 | consumed samples: 512 | elapsed time per iteration (ms): 9000.0 | throughput per GPU (TFLOP/s/GPU): 250.0 |\n \
             iteration 2/ 10 | consumed samples: 1024 | elapsed time per iteration (ms): 5000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 |\n\
             iteration 3/ 10 | consumed samples: 1536 | elapsed time per iteration (ms): 4800.0 | throughput per GPU (TFLOP/s/GPU): 416.7 |\n\
             iteration 4/ 10 | consumed samples: 2048 | elapsed time per iteration (ms): 20000.0 | throughput per GPU (TFLOP/s/GPU): 100.0 |\n\
             [Rank 0] (after 1 iterations) memory (MB) | allocated: 11000.0 | max allocated: 31000.0 | reserved: 33000.0 | max reserved: 34000.0\n";
        let all = found(text);
        let lines = compared(&all[0], &shown.plan, &shown.report);
        let names: Vec<&str> = lines.iter().map(|line| line.name).collect();
        let expected = [
            "step time",
            "tokens per second",
            "MFU",
            "per GPU, as Megatron-LM counts",
            "peak allocated",
            "peak reserved by PyTorch",
        ];
        assert_eq!(names, expected);
        assert_eq!(lines[0].words, ["5.03 s", "5.00 s"]);
        assert!(lines[0].off_words().starts_with('+'), "{}", lines[0].off_words());
        let time = &shown.report.time;
        let tokens = time.tokens_per_second * time.step.get();
        assert!((lines[1].measured - tokens / 5.0).abs() < 1e-6 * tokens);
        // A rate is too low by what the time is too high.
        for rate in &lines[1..3] {
            assert!((rate.off() - (1.0 / (1.0 + lines[0].off()) - 1.0)).abs() < 1e-9, "{rate:?}");
        }
        assert_eq!(lines[3].words[1], "400.0 TFLOP/s", "of the step whose time is the median");
        assert_eq!(lines[4].words[1], "30.27 GiB");
        let said = [
            "the median of the steps without the first, which warms up",
            "it does not tell memory in use on the device",
        ];
        assert_eq!(notes(&all[0]), said);
        let own = OwnRun { read: Some(all.into()), ..OwnRun::default() };
        let ratio = measured_ratio(&own, &shown).expect("a step");
        assert!((ratio - 5.0 / time.step.get()).abs() < 1e-9, "{ratio}");
        assert!(measured_sentence(&shown).contains("(dense)"));
    }

    #[test]
    fn each_tool_is_compared_in_its_own_scope() {
        let shown = State::new(UserInput::from_text(EXAMPLE)).shown.expect("a plan");
        let names = |text: &str| -> Vec<&'static str> {
            compared(&found(text)[0], &shown.plan, &shown.report).into_iter().map(|line| line.name).collect()
        };
        assert_eq!(
            names("{'train_runtime': 44.0, 'train_steps_per_second': 6.81}"),
            ["step time", "tokens per second", "MFU"]
        );
        let smi = "| N/A   41C    P0   345W /  700W |   71234MiB /  81559MiB |     98%      Default |\n";
        assert_eq!(names(smi), ["in use on the device"]);
        let said = [
            "of all processes on the device",
            "it does not tell step time, memory allocated or memory reserved",
        ];
        assert_eq!(notes(&found(smi)[0]), said);
        let totals = shown.report.memory.ranks.iter().map(|rank| &rank.totals);
        let peak = totals.map(|rank| rank.peak_reserved).max().map(Quantity::number);
        let line = &compared(&found(smi)[0], &shown.plan, &shown.report)[0];
        assert_eq!((Some(line.predicted), line.measured), (peak, 71_234.0 * 1_048_576.0));
        // Of a model a thousand times smaller.
        let other = &found("{'train_runtime': 44.0, 'train_steps_per_second': 681.0}")[0];
        assert!(is_too_fast(other, &shown.report) && !is_too_fast(&found(smi)[0], &shown.report));
        // Such a step is of another run, so nothing is corrected by it.
        let own = OwnRun { read: Some(vec![other.clone()].into()), ..OwnRun::default() };
        assert_eq!(measured_ratio(&own, &shown), None);
        // 0 bytes are no measurement, and a profiler's steps correct nothing.
        let nothing = "[Rank 0] (after 1 iterations) memory (MB) | allocated: 0.0 | max allocated: 0.0 | reserved: 0.0 | max reserved: 0.0\n";
        assert_eq!(names(nothing), [""; 0]);
        let profile =
            "{\"traceEvents\": [{\"name\": \"ProfilerStep#1\", \"cat\": \"cpu_op\", \"dur\": 2000000}]}";
        let own = OwnRun { read: Some(found(profile).into()), ..OwnRun::default() };
        assert_eq!(measured_ratio(&own, &shown), None);
    }
}

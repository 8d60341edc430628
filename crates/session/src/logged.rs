//! What a training's own log measured, next to the estimate for it.

use super::{File, Shown, UserInput};
use shardscope_estimate::time::{Family, measured_factor};
use shardscope_launch::{is_log, read_log};
use shardscope_units::{Bytes, Count, FlopsPerSecond, Quantity, Seconds, gib, percent, seconds, tflops};

/// The name under which pasted log lines are stored next to the script.
pub const LOG: &str = "training.log";

/// One figure, measured and predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Name of the figure.
    pub name: &'static str,
    /// By the log.
    pub measured: String,
    /// By the estimate.
    pub predicted: String,
    /// The estimate over the measurement, as a signed percentage: `+3.1%` is an estimate that is too high.
    pub off: String,
}

/// The text among the script's additional files that is a log; empty without one.
#[must_use]
pub fn log_text(input: &UserInput) -> &str {
    // Recognised by content, not by name: a log dropped as a file keeps the name that it had.
    input.beside.iter().find(|file| is_log(&file.text)).map_or("", |file| &file.text)
}

/// `input` with `text` as its log lines; without log lines if it is empty.
#[must_use]
pub fn with_log(input: &UserInput, text: &str) -> UserInput {
    let mut input = input.clone();
    // By name as well: what was pasted there before need not have been a log.
    input.beside.retain(|file| !is_log(&file.text) && file.name != LOG);
    if !text.trim().is_empty() {
        input.beside.push(File { name: LOG.to_owned(), text: text.into() });
    }
    input
}

/// The measured step over the estimate of the plan shown, as [`shardscope_plan::Field::MeasuredOverEstimated`] takes
/// it; `None` without a log that states steps.
#[must_use]
pub fn measured_ratio(input: &UserInput, shown: &Shown) -> Option<f64> {
    let measured = read_log(log_text(input)).median_seconds()?;
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

/// What the current log lines show for the plan shown; empty if there are none.
#[must_use]
pub fn logged(input: &UserInput, shown: &Shown) -> Vec<Logged> {
    let log = read_log(log_text(input));
    let (time, memory) = (&shown.report.time, &shown.report.memory);
    let mut out = Vec::new();
    // The median, since the first steps compile, warm up and fill caches, and checkpoints stall single ones.
    if let Some(median) = log.median_seconds() {
        let words = [median, time.step.get()].map(|value| seconds(Seconds::new(value)));
        out.push(Logged::new("step time, median without the first", [median, time.step.get()], words));
    }
    // For the same steps as the time, with Megatron-LM's own FLOP count; otherwise the two would differ by convention
    // and not by time.
    if let Some(rate) = log.median_tflops_per_gpu() {
        let gpus = Count::new(shown.plan.layout().world_size.max(1)).number();
        let rates = [rate * 1e12, time.flops.megatron.get() / time.step.get() / gpus];
        let words = rates.map(|rate| tflops(FlopsPerSecond::new(rate)));
        out.push(Logged::new("per GPU, as Megatron-LM counts, median without the first", rates, words));
    }
    // A log reports some ranks, mostly the first of each stage, and need not state which, so maximum is compared with
    // maximum.
    let mut peaks = [("peak allocated", None, None), ("peak reserved by PyTorch", None, None)];
    for rank in &memory.ranks {
        peaks[0].2 = peaks[0].2.max(Some(rank.totals.peak_allocated));
        // As on this device: what PyTorch would cache on a larger one is released before it runs out.
        peaks[1].2 = peaks[1].2.max(Some(rank.totals.cached_on(memory.capacity)));
    }
    for report in &log.memory {
        // `Option` orders `None` first, so a report without the figure changes nothing.
        peaks[0].1 = peaks[0].1.max(report.max_allocated);
        peaks[1].1 = peaks[1].1.max(report.max_reserved);
    }
    for (name, measured, predicted) in peaks {
        // A rank that reports 0 has measured nothing.
        if let (Some(measured), Some(predicted)) = (measured.filter(|bytes| *bytes > 0), predicted) {
            let sizes = [Bytes::new(measured), predicted];
            out.push(Logged::new(name, sizes.map(Quantity::number), sizes.map(gib)));
        }
    }
    out
}

impl Logged {
    fn new(name: &'static str, [measured, predicted]: [f64; 2], words: [String; 2]) -> Self {
        let off = predicted / measured - 1.0;
        // U+2212, as wide as the plus sign beside it.
        let off = format!("{}{}", if off < 0.0 { "−" } else { "+" }, percent(off.abs()));
        let [measured, predicted] = words;
        Self { name, measured, predicted, off }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EXAMPLE, Event, State, UserInput, apply};
    use super::{LOG, logged, measured_ratio, measured_sentence, with_log};

    #[test]
    fn a_log_is_held_against_the_plan() {
        let state = State::new(UserInput::from_text(EXAMPLE));
        let shown = state.shown.clone().expect("a plan");
        assert_eq!(logged(&state.input, &shown), []);
        let text = " iteration 1/ 10 | consumed samples: 512 | elapsed time per iteration (ms): 9000.0 | throughput per GPU (TFLOP/s/GPU): 250.0 |\n \
             iteration 2/ 10 | consumed samples: 1024 | elapsed time per iteration (ms): 5000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 |\n\
             iteration 3/ 10 | consumed samples: 1536 | elapsed time per iteration (ms): 4800.0 | throughput per GPU (TFLOP/s/GPU): 416.7 |\n\
             iteration 4/ 10 | consumed samples: 2048 | elapsed time per iteration (ms): 20000.0 | throughput per GPU (TFLOP/s/GPU): 100.0 |\n\
             [Rank 0] (after 1 iterations) memory (MB) | allocated: 11000.0 | max allocated: 31000.0 | reserved: 33000.0 | max reserved: 34000.0\n";
        let input = with_log(&state.input, text);
        assert_eq!(input.beside.len(), 1);
        let state = apply(state, Event::Open(Box::new(input)));
        let shown = state.shown.clone().expect("the plan is still there");
        let lines = logged(&state.input, &shown);
        let names: Vec<&str> = lines.iter().map(|line| line.name).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert_eq!((lines[0].measured.as_str(), lines[0].predicted.as_str()), ("5.00 s", "5.03 s"));
        assert!(lines[0].off.starts_with('+'), "{}", lines[0].off);
        assert_eq!(lines[1].measured, "400.0 TFLOP/s", "of the step whose time is the median");
        assert_eq!(lines[2].measured, "30.27 GiB");
        let nothing = with_log(
            &state.input,
            "[Rank 0] (after 1 iterations) memory (MB) | allocated: 0.0 | max allocated: 0.0 | reserved: 0.0 | max reserved: 0.0\n",
        );
        assert_eq!(logged(&nothing, &shown), [], "0 bytes are no measurement");
        let ratio = measured_ratio(&state.input, &shown).expect("a step");
        assert!((ratio - 5.0 / shown.report.time.step.get()).abs() < 1e-9, "{ratio}");
        assert!(measured_sentence(&shown).contains("(dense)"));
        assert_eq!(with_log(&state.input, " ").beside, []);
        assert_eq!(LOG, state.input.beside[0].name);
    }
}

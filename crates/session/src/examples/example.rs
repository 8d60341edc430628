//! One example of the gallery.

use crate::{UserInput, answer};
use shardscope_catalog as catalog;
use shardscope_link::{Shared, decode};
use shardscope_units::{Count, Flops, FlopsPerSecond, Quantity, gib, percent, rounded, seconds, tflops};

/// A run to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Its name.
    pub name: String,
    /// What it runs on and its layout, in one line.
    pub about: String,
    /// What was published about it, if anything.
    pub published: Option<Published>,
    /// The input that opening the example sets.
    pub input: UserInput,
}

/// A figure that people publish of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Seconds of a step.
    Step,
    /// The model's FLOP/s of a GPU, with full attention.
    Rate,
    /// The same, counting only the half of attention that a causal mask leaves.
    CausalRate,
    /// FLOP/s of a GPU by Narayanan's formula, which counts the recomputed forward pass.
    NarayananRate,
    /// Tokens per second of a GPU.
    Tokens,
    /// Peak GiB allocated by torch on a GPU.
    Allocated,
}

/// Published figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The kind of figure.
    pub measure: Measure,
    /// The figure as it was printed, in the measure's unit.
    pub printed: &'static str,
    /// What was printed next to it, including the comma.
    pub beside: &'static str,
    /// Why the estimate differs, if it does by more than a tenth.
    pub reason: &'static str,
}

/// The estimate of a published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimated {
    /// As written next to the published one.
    pub words: String,
    /// What the page shows under a different convention than the published figure's; empty if they are the same.
    pub beside: String,
    /// How far it is from what was printed, as a share of it; zero within the rounding of the last digit.
    pub off: f64,
}

impl Published {
    /// A figure without additions and without a reason to differ.
    #[must_use]
    pub const fn new(measure: Measure, printed: &'static str) -> Self {
        Self { measure, printed, beside: "", reason: "" }
    }

    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        let unit = match self.measure {
            Measure::Step => "s per step",
            Measure::Rate | Measure::NarayananRate => "TFLOP/s per GPU",
            Measure::CausalRate => "TFLOP/s per GPU (causal attention)",
            Measure::Tokens => "tokens/s per GPU",
            Measure::Allocated => "GiB allocated",
        };
        format!("{} {unit}{}", self.printed, self.beside)
    }

    /// How far `value` is from the figure, as a share of it; zero within the rounding of its last digit.
    #[must_use]
    pub fn off(&self, value: f64) -> f64 {
        // Figures keep the spelling of their source, with commas in thousands.
        let digits: String = self.printed.chars().filter(|sign| *sign != ',').collect();
        let figure: f64 = digits.parse().unwrap_or(0.0);
        let places = digits.split_once('.').map_or(0, |(_, places)| places.len());
        // A printed 104.7 stands for anything within half a unit of its last digit, and an estimate within that is
        // not off.
        let rounding = 0.5 * (0..places).fold(1.0, |unit, _| unit / 10.0);
        let beyond = (value - figure).abs() - rounding;
        // The sign survives: an estimate above the figure is positive. `max` guards a figure that does not parse.
        if beyond <= 0.0 { 0.0 } else { beyond.copysign(value - figure) / figure.max(f64::MIN_POSITIVE) }
    }
}

impl Example {
    /// The estimate of the published figure; `None` without one, or if the input does not form a plan. Estimates the
    /// whole plan.
    #[must_use]
    pub fn estimated(&self) -> Option<Estimated> {
        let published = self.published?;
        let shown = answer(&self.input).1?;
        let (time, memory) = (&shown.report.time, &shown.report.memory);
        // Published rates are per GPU, the plan's FLOPs are over all of them.
        let gpus = Count::new(shown.plan.layout().world_size.max(1)).number();
        let rate = |flops: Flops| {
            let rate = FlopsPerSecond::new(flops.get() / time.step.get() / gpus);
            (format!("{} per GPU", tflops(rate)), rate.get() / 1e12)
        };
        let (words, value) = match published.measure {
            Measure::Step => (format!("{} per step", seconds(time.step)), time.step.get()),
            Measure::Rate => rate(time.flops.model),
            Measure::CausalRate => rate(time.flops.causal),
            // Narayanan's formula is for GPTs; for any other model the hardware FLOPs, including recomputation, are
            // closest to it.
            Measure::NarayananRate => rate(time.flops.narayanan.unwrap_or(time.flops.hardware)),
            Measure::Tokens => {
                let tokens = time.tokens_per_second_per_gpu;
                (format!("{} tokens/s per GPU", rounded(tokens)), tokens)
            }
            Measure::Allocated => {
                let peak = memory.worst.peak_allocated;
                (format!("{} allocated", gib(peak)), peak.in_gib())
            }
        };
        let beside = match published.measure {
            Measure::CausalRate => {
                let whole = rate(time.flops.model).0;
                format!("; {whole} and MFU {} counting full attention, as Overview does", percent(time.mfu))
            }
            _ => String::new(),
        };
        Some(Estimated { words, beside, off: published.off(value) })
    }
}

/// A group of related examples.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// Heading of the chapter.
    pub title: &'static str,
    /// Source of its examples, in words.
    pub source: &'static str,
    /// The examples.
    pub examples: Vec<Example>,
}

/// The settings of a model of the catalog and of `link`, which takes precedence.
pub(super) fn settings(model: &str, link: &str) -> Vec<(String, String)> {
    let mut settings: Vec<(String, String)> = Vec::new();
    if let Some((_, known)) = catalog::model(model) {
        for (field, value) in known {
            settings.push((field.name().to_owned(), value));
        }
    }
    if let Ok(Some(Shared::Settings(more))) = decode(link) {
        // The link wins over the catalog, as it does in the page: it states how this run changed the model.
        settings.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        settings.extend(more);
    }
    settings
}

//! One example of the gallery.

use crate::{Hand, answer};
use shardscope_catalog as catalog;
use shardscope_link::{Shared, decode};
use shardscope_units::{gb, rounded, seconds, tflops};

/// A run to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Its name.
    pub name: String,
    /// What it runs on and how it is cut, in a line.
    pub about: String,
    /// What was published of it; empty where nothing was.
    pub published: String,
    /// Which of the plan's figures that is.
    pub measure: Measure,
    /// What the reader gets in hand.
    pub hand: Hand,
}

/// A figure that people publish of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Seconds of a step.
    Step,
    /// The model's FLOP/s of a GPU.
    Rate,
    /// Tokens per second of a GPU.
    Tokens,
    /// Most bytes that torch has allocated on a GPU.
    Allocated,
}

impl Example {
    /// What the page says of the same figure, as it is written beside the published one. Works the whole plan out.
    #[must_use]
    pub fn estimated(&self) -> Option<String> {
        let shown = answer(&self.hand).1?;
        let (time, memory) = (&shown.report.time, &shown.report.memory);
        Some(match self.measure {
            Measure::Step => format!("{} per step", seconds(time.step)),
            Measure::Rate => format!("{} per GPU", tflops(time.model_rate)),
            Measure::Tokens => format!("{} tokens/s per GPU", rounded(time.tokens_per_second_per_gpu)),
            Measure::Allocated => format!("{} allocated", gb(memory.worst.peak_allocated)),
        })
    }
}

/// Examples that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// What they are.
    pub title: &'static str,
    /// Where they come from.
    pub source: &'static str,
    /// The examples.
    pub examples: Vec<Example>,
}

/// The settings of a model of the catalog and of `link`, which counts where both say something.
pub(super) fn settings(model: &str, link: &str) -> Vec<(String, String)> {
    let mut settings: Vec<(String, String)> = Vec::new();
    if let Some((_, known)) = catalog::model(model) {
        for (field, value) in known {
            settings.push((field.name().to_owned(), value));
        }
    }
    if let Ok(Some(Shared::Settings(more))) = decode(link) {
        settings.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        settings.extend(more);
    }
    settings
}

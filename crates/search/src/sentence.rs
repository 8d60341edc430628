//! The answer to a question in one sentence.

use super::question::{Inquiry, Question, Reached};
use shardscope_plan::PositionEmbedding;
use shardscope_units::{Seconds, decimal, grouped, rounded, seconds};

impl Inquiry {
    /// The answer, or that nothing was found.
    #[must_use]
    pub fn answer(&self) -> String {
        let cluster = self.plan().cluster();
        let (gpus, name) = (grouped(cluster.gpus()), &cluster.accelerator.name);
        let Some(one) = self.chosen().and_then(|place| self.reached().get(place)) else {
            return match self.question() {
                Question::Cheapest { days: Some(days), .. } => {
                    format!("No node count tried finishes within {} days", decimal(days, 1))
                }
                _ => format!("Nothing fits on {gpus} {name}"),
            };
        };
        match self.question() {
            Question::Fastest => {
                let step = one.outcome.as_ref().map_or(Seconds::ZERO, |outcome| outcome.step);
                format!("The fastest layout on {gpus} {name} takes {}", seconds(step))
            }
            Question::Fits => format!("A layout fits on {gpus} {name}"),
            Question::FewestGpus => format!(
                "{} {name} {} the run, the fewest of those tried; the layouts shown fit and need not be the fastest",
                grouped(one.gpus),
                if one.gpus == 1 { "holds" } else { "hold" }
            ),
            Question::LongestSequence => {
                let model = self.plan().model();
                let learned = model.position_embedding == PositionEmbedding::LearnedAbsolute;
                if let Some(encoder) = model.encoder {
                    let (target, source) = (grouped(one.size), grouped(encoder.seq_length));
                    return format!("Targets of {target} tokens fit beside sources of {source}");
                }
                let longest = self.reached().iter().all(|other| other.size <= one.size);
                format!(
                    "Sequences of {} tokens fit{}",
                    grouped(one.size),
                    if learned && longest { "; the model has positions for no longer ones" } else { "" }
                )
            }
            Question::LargestMicroBatch => format!("Micro-batches of {} fit", grouped(one.size)),
            Question::Cheapest { .. } => cheapest(name, one),
            Question::Scaling { .. } => format!("From one node to {} {name}", grouped(one.gpus)),
            Question::OneMoreNode => match self.reached() {
                [own, more] => format!(
                    "{} GPUs instead of {} bring {} tokens/s instead of {}",
                    grouped(more.gpus),
                    grouped(own.gpus),
                    rounded(more.tokens_per_second),
                    rounded(own.tokens_per_second)
                ),
                _ => "No node count up to twice the present one divides the batch and the model evenly"
                    .to_owned(),
            },
        }
    }
}

/// States that this many accelerators called `name` cost least.
#[must_use]
pub fn cheapest(name: &str, one: &Reached) -> String {
    format!(
        "{} {name} cost least: {} in {} days",
        grouped(one.gpus),
        rounded(one.cost.unwrap_or_default()),
        decimal(one.days.unwrap_or_default(), 1)
    )
}

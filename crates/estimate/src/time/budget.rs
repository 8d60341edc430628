//! What a complete training takes: days, GPU-hours, energy, cost.

use shardscope_plan::Plan;
use shardscope_units::{Seconds, decimal, grouped, rounded};

/// A training over its full budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Tokens trained on, with the last step counted in full.
    pub tokens: u64,
    /// Steps.
    pub steps: u64,
    /// Time at the estimated pace, excluding failures and checkpoints.
    pub time: Seconds,
    /// The same in days.
    pub days: f64,
    /// Accelerators times hours.
    pub gpu_hours: f64,
    /// Megawatt-hours, if the power of an accelerator is stated.
    pub energy: Option<f64>,
    /// In the currency of the price, if one is stated.
    pub cost: Option<f64>,
}

impl Training {
    /// The duration in days, or in hours or minutes if it is less than one.
    fn length(&self) -> String {
        let (hours, minutes) = (self.days * 24.0, self.days * 1440.0);
        if self.days >= 1.0 {
            decimal(self.days, 1) + " days"
        } else if hours >= 1.0 {
            decimal(hours, 1) + " hours"
        } else {
            decimal(minutes, 1) + " minutes"
        }
    }

    /// GPU-hours with two decimals below 10, so that a fine-tuning of minutes does not round to zero.
    fn hours_of_gpus(&self) -> String {
        if self.gpu_hours < 10.0 { decimal(self.gpu_hours, 2) } else { rounded(self.gpu_hours) }
    }

    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut text = [
            rounded(number(self.tokens)).as_str(),
            " tokens in ",
            &grouped(self.steps),
            " steps take ",
            &self.length(),
            " at this pace, ",
            &self.hours_of_gpus(),
            " GPU-hours",
        ]
        .concat();
        for (figure, before, after) in [(self.energy, ", ", " MWh"), (self.cost, " and cost ", "")] {
            if let Some(figure) = figure {
                for piece in [before, &rounded(figure), after] {
                    text.push_str(piece);
                }
            }
        }
        text.push('.');
        text
    }
}

/// The training of `plan` over its budget at the pace of `step`; none if the plan states no length.
pub(super) fn training(plan: &Plan, step: Seconds) -> Option<Training> {
    let recipe = plan.recipe();
    let budget = &recipe.budget;
    let per_step = recipe.global_batch_size.saturating_mul(plan.model().seq_length).max(1);
    let steps = match budget.tokens {
        Some(tokens) => tokens.div_ceil(per_step),
        None => budget.steps?,
    };
    let seconds = number(steps) * step.get();
    let gpu_hours = seconds / 3600.0 * number(plan.layout().world_size);
    Some(Training {
        tokens: steps.saturating_mul(per_step),
        steps,
        time: Seconds::new(seconds),
        days: seconds / 86_400.0,
        gpu_hours,
        energy: budget.watts_per_gpu.map(|watts| gpu_hours * watts / 1e6),
        cost: budget.price_per_gpu_hour.map(|price| gpu_hours * price),
    })
}

#[allow(clippy::cast_precision_loss)]
fn number(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::Training;
    use shardscope_units::Seconds;

    #[test]
    fn a_short_training_is_stated_in_what_it_takes() {
        let sentence_of = |seconds: f64| {
            let (time, days) = (Seconds::new(seconds), seconds / 86_400.0);
            let gpu_hours = 8.0 * seconds / 3600.0;
            let training =
                Training { tokens: 1_000, steps: 10, time, days, gpu_hours, energy: None, cost: None };
            training.sentence()
        };
        let sentence = |length: &str| format!("1,000 tokens in 10 steps take {length} GPU-hours.");
        assert_eq!(sentence_of(172_800.0), sentence("2.0 days at this pace, 384"));
        assert_eq!(sentence_of(5_400.0), sentence("1.5 hours at this pace, 12"));
        assert_eq!(sentence_of(4_500.0), sentence("1.2 hours at this pace, 10"));
        assert_eq!(sentence_of(90.0), sentence("1.5 minutes at this pace, 0.20"));
    }
}

//! What a whole training takes: days, GPU-hours, energy, cost.

use super::Time;
use crate::plan::Plan;
use crate::quantity::Seconds;

/// What an accelerator costs and draws, as the user states it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Money per accelerator and hour, in any currency.
    pub per_gpu_hour: f64,
    /// Power drawn per accelerator, its share of host, network and cooling included. Unit: watt.
    pub watts_per_gpu: f64,
}

/// A training over a budget of tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Steps, the last one whole.
    pub steps: f64,
    /// Time at the estimated pace, without failures and checkpoints.
    pub time: Seconds,
    /// The same in days.
    pub days: f64,
    /// Accelerators times hours.
    pub gpu_hours: f64,
    /// Megawatt-hours.
    pub energy: f64,
    /// In the price's currency.
    pub cost: f64,
}

/// Training on `tokens` tokens at the pace of `time`.
#[must_use]
pub fn training(plan: &Plan, time: &Time, tokens: f64, price: Price) -> Training {
    let recipe = plan.recipe();
    let per_step = number(recipe.global_batch_size) * number(plan.model().seq_length);
    let steps = (tokens.max(0.0) / per_step.max(1.0)).ceil();
    let seconds = steps * time.step.get();
    let gpu_hours = seconds / 3600.0 * number(plan.layout().world_size);
    Training {
        steps,
        time: Seconds::new(seconds),
        days: seconds / 86_400.0,
        gpu_hours,
        energy: gpu_hours * price.watts_per_gpu / 1e6,
        cost: gpu_hours * price.per_gpu_hour,
    }
}

#[allow(clippy::cast_precision_loss)]
fn number(value: u64) -> f64 {
    value as f64
}

//! Too few micro-batches for the pipeline.

use crate::finding::Advisor;
use shardscope_plan::PipelineSchedule;
use shardscope_report::Finding;
use shardscope_units::percent;

/// Pipeline efficiency below which it is worth mentioning (DeepSpeed notes: gas of 8 PP gives 90 %).
const GOOD_EFFICIENCY: f64 = 0.90;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let layout = advisor.plan.layout();
    let batches = advisor.plan.recipe().num_micro_batches;
    if layout.pipeline < 2 {
        return None;
    }
    let formula =
        matches!(layout.schedule, PipelineSchedule::OneForwardOneBackward | PipelineSchedule::GPipe);
    let efficiency = if formula {
        // Warm-up and cool-down, shorter by the chunks of a rank when stages are interleaved.
        let idle = real(layout.pipeline - 1) / real(layout.virtual_pipeline);
        real(batches) / (real(batches) + idle)
    } else {
        // Other schedules fill the bubble with weight gradients or with a second direction: the remaining bubble
        // shows when they are simulated.
        1.0 / (1.0 + advisor.report.time.bubble_fraction)
    };
    if efficiency >= GOOD_EFFICIENCY {
        return None;
    }
    let source = if formula {
        "m / (m + (p - 1)/v) (Narayanan et al. 2021, section 2.2)".to_owned()
    } else {
        format!("the {} schedule, run with the estimated durations", layout.schedule.name())
    };
    let why = format!(
        "{batches} micro-batches over {} stages keep a stage busy {} of the time: {source}",
        layout.pipeline,
        percent(efficiency)
    );
    let mut variant = advisor.variant();
    // More micro-batches of the same global batch come first: they need no other layout.
    let smaller = variant.micro_batch_size.is_multiple_of(2);
    if smaller {
        variant.micro_batch_size /= 2;
    } else {
        variant.virtual_pipeline *= 2;
    }
    let trial =
        // A larger global batch would change the training, so it is only mentioned and not tried.
        advisor.attempt(&variant).filter(|trial| advisor.gains(trial) && trial.fits(advisor.capacity()))?;
    let what = if smaller { "smaller micro-batch" } else { "more virtual stages (VPP)" };
    let message = format!(
        "{what}, or a larger global batch: the bubble is {}{}",
        percent(1.0 - efficiency),
        trial.pace()
    );
    Some(trial.finding("deep-bubble", message, why))
}

fn real(count: u64) -> f64 {
    use shardscope_units::Quantity;
    shardscope_units::Count::new(count).number()
}

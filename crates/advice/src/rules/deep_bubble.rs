//! Too few micro-batches for the pipeline.

use crate::finding::Advisor;
use shardscope_report::Finding;
use shardscope_units::percent;

/// Pipeline efficiency below which it is worth a word (DeepSpeed notes: gas of 8 PP gives 90 %).
const GOOD_EFFICIENCY: f64 = 0.90;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let layout = advisor.plan.layout();
    let batches = advisor.plan.recipe().num_micro_batches;
    if layout.pipeline < 2 {
        return None;
    }
    // Warm-up and cool-down, shorter by the chunks of a rank when stages are interleaved.
    let idle = real(layout.pipeline - 1) / real(layout.virtual_pipeline);
    let efficiency = real(batches) / (real(batches) + idle);
    if efficiency >= GOOD_EFFICIENCY {
        return None;
    }
    let why = format!(
        "{batches} micro-batches over {} stages keep a stage busy {} of the time: m / (m + (p - 1)/v) \
         (Narayanan et al. 2021, section 2.2)",
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
        // A larger global batch would change the training, so it is told in words and not tried.
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

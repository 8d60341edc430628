//! An evaluation between steps that holds more than a step does.

use crate::finding::{Advisor, Trial};
use shardscope_estimate::device_peak;
use shardscope_plan::{Field, Objective, Plan};
use shardscope_report::Finding;
use shardscope_units::gib;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let plan = advisor.plan;
    let mut recipe = plan.recipe().clone();
    let batch = recipe.micro_batch_size;
    // The batch for a policy's log-probabilities has a different key in every framework.
    if recipe.tuning.objective == Objective::Policy {
        return None;
    }
    if recipe.transformers.evaluation_batch <= batch {
        return None;
    }
    recipe.transformers.evaluation_batch = batch;
    let smaller =
        // A plan by itself: evaluation batches are not among the search's variants.
        Plan::new(plan.model().clone(), plan.cluster().clone(), plan.layout().clone(), recipe).ok()?;
    let peak = device_peak(&smaller).0;
    // If training's own peak is greater, nothing is gained.
    if peak >= advisor.peak() {
        return None;
    }
    // A step takes as long as before.
    let change = vec![(Field::EvaluationBatchSize, batch.to_string())];
    let trial = Trial { change, peak, step: Some(advisor.report.time.step) };
    let message = format!("evaluate in batches of {batch}, as in training: peak {}", gib(peak));
    Some(trial.finding(
        "evaluation-batch",
        message,
        "the loss of an evaluation holds the logits of its whole batch, in 16 bits and twice in fp32",
    ))
}

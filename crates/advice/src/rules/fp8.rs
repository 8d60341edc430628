//! Products in 16 bits where the device and the software have faster ones.

use crate::finding::Advisor;
use crate::rules::WORTH;
use shardscope_plan::{Fp8, Fp8Recipe};
use shardscope_report::Finding;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let plan = advisor.plan;
    let own = advisor.variant();
    // Adapters over frozen weights have few fp8 products, and quantized weights none.
    if own.fp8.is_some() || !plan.recipe().tuning.is_full() {
        return None;
    }
    let offered = plan.recipe().software.semantics().offers.fp8_recipes.iter();
    // 4-bit products change model quality, so they are never proposed unasked.
    let eight = offered.filter(|recipe| **recipe != Fp8Recipe::Nvfp4);
    let trials = eight.filter(|recipe| recipe.runs_on(&plan.cluster().accelerator)).filter_map(|&recipe| {
        // Weights gathered in fp8 would change more than the matrix products.
        let fp8 = Fp8 { format: recipe.usual_format().to_owned(), recipe, param_gather: false };
        let mut variant = own.clone();
        variant.fp8 = Some(fp8);
        advisor.attempt(&variant).map(|trial| (recipe, trial))
    });
    let fit = trials.filter(|(_, trial)| trial.fits(advisor.capacity()));
    let (recipe, trial) = fit.min_by(|(_, one), (_, other)| one.seconds().total_cmp(&other.seconds()))?;
    if trial.seconds() > advisor.report.time.step.get() * (1.0 - WORTH) {
        return None;
    }
    let message = format!("run linear layers in fp8 ({}){}", recipe.name(), trial.pace());
    Some(trial.finding(
        "fp8",
        message,
        "products of 8-bit inputs have twice the peak and half the bytes to read; attention, norms, loss and weights stay as they \
         are. It changes the numbers of the training: watch the loss (Micikevicius et al. 2022)",
    ))
}

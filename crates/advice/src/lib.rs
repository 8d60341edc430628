//! What could be better about a plan, what it costs, and which settings to change. One file per rule.

mod finding;
mod rules;

pub use finding::Advisor;

use shardscope_estimate::{Fault, fault};
use shardscope_plan::Plan;
use shardscope_report::{Finding, Report, report};

/// The report of `plan` with its advice: what the page, the terminal and the JavaScript API give.
///
/// # Errors
/// An estimate that no machine could keep, which must never be shown.
pub fn advised(plan: &Plan) -> Result<Report, Fault> {
    let mut report = reported(plan)?;
    report.advice = advice(plan, &report);
    Ok(report)
}

/// The same without advice, which takes ten times as long: for a page that shows the figures first and calls
/// [`advice`] afterwards.
///
/// # Errors
/// As [`advised`].
pub fn reported(plan: &Plan) -> Result<Report, Fault> {
    let report = report(plan);
    // Checked before anybody sees it: saturated figures look like estimates.
    fault(plan, &report.time, &report.memory, &report.traffic).map_or(Ok(report), Err)
}

/// All findings about `plan`, blocking ones first.
#[must_use]
pub fn advice(plan: &Plan, report: &Report) -> Vec<Finding> {
    let advisor = Advisor::new(plan, report);
    // In this order: what blocks the run, ways out of it, the best change, then the findings of the rules.
    let mut findings: Vec<Finding> = rules::evaluation_batch::finding(&advisor).into_iter().collect();
    findings.extend(rules::out_of_memory::findings(&advisor));
    findings.extend(rules::best_change::finding(&advisor));
    let rest: [fn(&Advisor<'_>) -> Option<Finding>; 11] = [
        rules::unfused_attention::finding,
        rules::optimizer_not_sharded::finding,
        rules::sequence_parallel_off::finding,
        rules::tensor_leaves_domain::finding,
        rules::experts_cross_network::finding,
        rules::pipeline_inside_data_outside::finding,
        rules::recompute_too_much::finding,
        rules::deep_bubble::finding,
        rules::lower_tensor::finding,
        rules::fp8::finding,
        rules::expert_dispatcher::finding,
    ];
    let mut others: Vec<Finding> = rest.iter().filter_map(|rule| rule(&advisor)).collect();
    // The fastest first; findings without a step time come last.
    let seconds = |one: &Finding| one.expected.step.map_or(f64::INFINITY, shardscope_units::Seconds::get);
    others.sort_by(|one, other| seconds(one).total_cmp(&seconds(other)));
    for other in others {
        // A change is reported once, however many rules find it.
        match findings.iter_mut().find(|finding| same_change(finding, &other)) {
            // The rule supplies the reason that the best change lacks.
            Some(reported) => reported.why = format!("{}; {}", reported.why, other.why),
            None => findings.push(other),
        }
    }
    findings
}

/// Whether both set the same values, in whatever order.
fn same_change(one: &Finding, other: &Finding) -> bool {
    // Findings without a change are remarks and always distinct.
    !one.change.is_empty()
        && one.change.len() == other.change.len()
        && one.change.iter().all(|change| other.change.contains(change))
}

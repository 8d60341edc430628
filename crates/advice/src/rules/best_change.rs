//! The single change that saves most.

use crate::finding::Advisor;
use shardscope_report::{Expected, Finding};
use shardscope_search::{effect, one_edit};
use shardscope_units::{gib, seconds};

/// Less than this share of a step is not worth a change.
const WORTH: f64 = 0.01;

const WHY: &str =
    "the fastest of all layouts that fit and differ from this one by a single change; each was estimated";

/// The fastest of all plans that fit and differ by one change, if it saves enough to be worth the change.
pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    if !advisor.report.memory.fits {
        // Ways out of running out of memory are `out_of_memory`'s task.
        return None;
    }
    let now = advisor.report.time.step;
    // Tight ones are left out: a change for speed should not bring the run close to running out of memory.
    let best = one_edit(advisor.plan, 1).into_iter().find(|one| !one.tight)?;
    let saved = now - best.step;
    let share = saved.get() / now.get().max(f64::MIN_POSITIVE);
    if share < WORTH {
        return None;
    }
    Some(Finding {
        code: "best-change",
        message: format!(
            "{}: {} per step, {:.0}% faster; peak {}",
            best.words.join(", and "),
            seconds(best.step),
            (now.get() / best.step.get() - 1.0) * 100.0,
            gib(best.peak)
        ),
        why: match best.variant.apply(advisor.plan).map(|changed| effect(advisor.plan, &changed)) {
            Some(does) if !does.is_empty() => format!("{WHY}; it {does}"),
            _ => WHY.to_owned(),
        },
        change: best.changes,
        expected: Expected { peak_reserved: Some(best.peak), step: Some(best.step) },
    })
}

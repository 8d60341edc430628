//! The plan does not fit: the changes that make it fit, the fewest settings first and the fastest of them first.

use crate::finding::Advisor;
use shardscope_report::{Expected, Finding};
use shardscope_search::{Edited, effect, least_gpus, one_edit, two_edits};
use shardscope_units::{Bytes, gib, grouped, seconds};

/// Maximum number of ways out listed.
const SHOWN: usize = 4;

/// Every single change that makes it fit is tried, then every pair; if none does, the minimum number of accelerators
/// is given.
pub(crate) fn findings(advisor: &Advisor<'_>) -> Vec<Finding> {
    if advisor.report.memory.fits {
        return Vec::new();
    }
    let memory = &advisor.report.memory;
    // With rollouts alongside the training, of the phase that does not fit.
    let failing = memory.rl.iter().flat_map(|rl| rl.failing()).map(|phase| phase.needs.bytes).max();
    let lacking = failing.unwrap_or(memory.worst.needs.bytes).less(advisor.capacity());
    let why = if lacking > Bytes::ZERO {
        format!("currently {} over capacity", gib(lacking))
    } else {
        "the engine's KV cache has no room for a full-length rollout".to_owned()
    };
    // First what no change can help: the model's states alone exceed the devices' memory.
    let (least, gpus) = (least_gpus(advisor.plan), advisor.plan.cluster().gpus());
    if let Some(least) = least.filter(|least| *least > gpus) {
        return vec![Finding {
            code: "more-gpus",
            message: format!("needs at least {} of these GPUs, and there are {}", grouped(least), grouped(gpus)),
            why: "weights, gradients and optimizer states alone, each held once, fill that many; saved activations come on \
                  top"
                .to_owned(),
            change: Vec::new(),
            expected: Expected::default(),
        }];
    }
    let mut ways = one_edit(advisor.plan, SHOWN);
    // Pairs are quadratic in the number of changes, and the fewer settings the better.
    if ways.is_empty() {
        ways = two_edits(advisor.plan, SHOWN);
    }
    // More modules on a list may change nothing: with the same figures the shorter list stands for both.
    ways.dedup_by(|next, kept| next.peak == kept.peak && next.step == kept.step);
    ways.into_iter().map(|way| finding(advisor, way, &why)).collect()
}

fn finding(advisor: &Advisor<'_>, way: Edited, why: &str) -> Finding {
    let does = way.variant.apply(advisor.plan).map(|changed| effect(advisor.plan, &changed));
    let does = does.filter(|does| !does.is_empty()).map_or_else(String::new, |does| format!("; it {does}"));
    let tight = if way.tight { ", leaving less than the headroom" } else { "" };
    Finding {
        code: "out-of-memory",
        message: format!(
            "{}: peak {}, {} per step{tight}",
            way.words.join(", and "),
            gib(way.peak),
            seconds(way.step)
        ),
        why: format!("{why}{does}"),
        change: way.changes,
        expected: Expected { peak_reserved: Some(way.peak), step: Some(way.step) },
    }
}

//! The same question answered the slow way: every layout of a space is estimated, none skipped by a bound. It shares
//! the definition of the space with the search but none of its decisions, and tests compare the two.

use super::known::fit;
use super::outcome::{Outcome, Tally};
use super::space::Space;
use shardscope_estimate::Verdict;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_source::Code;

/// The result of trying every layout.
#[derive(Clone, Debug, Default)]
pub struct Exhausted {
    /// The fastest that leaves the headroom free.
    pub best: Option<Outcome>,
    /// The fastest of those that take part of the headroom.
    pub tight: Option<Outcome>,
    /// How the layouts were decided.
    pub tally: Tally,
}

/// Estimates every layout of `space`.
#[must_use]
pub fn exhaust(space: &Space) -> Exhausted {
    let mut found = Exhausted::default();
    for variant in space.every() {
        let plan = match variant.checked(&space.plan) {
            Ok(plan) => plan,
            Err(reasons) => {
                found.tally.refuse(reasons.first().map_or(Code::Size, |reason| reason.code), 1);
                continue;
            }
        };
        let (peak, verdict) = fit(&plan);
        if verdict == Verdict::OutOfMemory {
            found.tally.too_large += 1;
            continue;
        }
        found.tally.estimated += 1;
        let tight = verdict == Verdict::Tight;
        let step = exact_step_seconds(&plan);
        let best = if tight { &mut found.tight } else { &mut found.best };
        // Of equally fast layouts the first, as in the search.
        if best.as_ref().is_none_or(|best| step < best.step) {
            let changes = space.changes(&variant);
            *best = Some(Outcome { variant, changes, peak, tight, step });
        }
    }
    found
}

//! The same question answered the slow way: every layout of a space worked out, none left out by a bound. It shares with the
//! search what the space is and nothing of how it is decided, and tests hold the two against each other.

use super::known::fit;
use super::outcome::{Outcome, Tally};
use super::space::Space;
use shardscope_estimate::Verdict;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_source::Code;

/// What trying every layout comes to.
#[derive(Clone, Debug, Default)]
pub struct Exhausted {
    /// The fastest that leaves the headroom free.
    pub best: Option<Outcome>,
    /// The fastest of those that take some of it.
    pub tight: Option<Outcome>,
    /// How they were decided.
    pub tally: Tally,
}

/// Works out every layout of `space`.
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
        // Of equally fast ones the first, as the search keeps it.
        if best.as_ref().is_none_or(|best| step < best.step) {
            let changes = space.changes(&variant);
            *best = Some(Outcome { variant, changes, peak, tight, step });
        }
    }
    found
}

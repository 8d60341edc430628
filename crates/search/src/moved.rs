//! How the step and the memory peak change when one setting of a plan is moved: which settings cost time, and which
//! memory.

use shardscope_estimate::Verdict;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_plan::{Plan, Variant};

use super::dimension::Dimension;
use super::known::fit;
use super::outcome::Outcome;
use super::space::{Edit, Space, singles};

/// A plan with one setting moved, estimated as for a report, whether or not it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The dimension that moved.
    pub dimension: Dimension,
    /// The change, in words: `TP 4 → 8`.
    pub words: String,
    /// The plan with the change. Tight means that it takes part of the headroom.
    pub outcome: Outcome,
    /// Whether it fits, tightly or not.
    pub fits: bool,
}

/// The most changes estimated per dimension without sizes: there are far more numbers of recomputed layers, and
/// splits.
const MOST: usize = 16;

/// Each dimension of `plan` moved down and up by as little as its sizes allow; for dimensions without sizes, the
/// fastest change and the one that needs the least memory.
#[must_use]
pub fn moved(plan: &Plan) -> Vec<Moved> {
    let own = Variant::from_plan(plan);
    let edits = singles(&Space::from_plan(plan), &own);
    let mut found = Vec::new();
    for (dimension, _) in Dimension::NAMED {
        let of_it: Vec<&Edit> = edits.iter().filter(|edit| edit.dimension == dimension).collect();
        match size(dimension, &own) {
            Some(now) => {
                let sized = |edit: &&&Edit| size(dimension, &edit.variant).unwrap_or(now);
                let below = of_it.iter().filter(|edit| sized(edit) < now).max_by_key(sized);
                let above = of_it.iter().filter(|edit| sized(edit) > now).min_by_key(sized);
                found.extend([below, above].into_iter().flatten().filter_map(|edit| run(plan, &own, edit)));
            }
            // Spread over all changes: the one that recomputes most comes last.
            None => {
                let count = of_it.len().min(MOST);
                let places = (0..count).map(|place| place * (of_it.len() - 1) / (count - 1).max(1));
                let some = places.filter_map(|place| of_it.get(place));
                found.extend(ends(some.filter_map(|edit| run(plan, &own, edit))));
            }
        }
    }
    found
}

/// The fastest change, and the one that needs the least memory if it is a different one.
fn ends(all: impl Iterator<Item = Moved>) -> impl Iterator<Item = Moved> {
    let all: Vec<Moved> = all.collect();
    let fastest = all.iter().min_by(|one, other| one.outcome.step.get().total_cmp(&other.outcome.step.get()));
    let least = all.iter().min_by_key(|one| one.outcome.peak);
    let other = least.filter(|least| fastest != Some(least)).cloned();
    fastest.cloned().into_iter().chain(other)
}

fn run(plan: &Plan, own: &Variant, edit: &Edit) -> Option<Moved> {
    let outcome = outcome(plan, own, &edit.variant)?;
    Some(Moved { dimension: edit.dimension, words: edit.words(own), fits: outcome.1, outcome: outcome.0 })
}

/// `plan` itself, for comparison, and whether it fits.
#[must_use]
pub fn unmoved(plan: &Plan) -> Option<(Outcome, bool)> {
    let own = Variant::from_plan(plan);
    outcome(plan, &own, &own)
}

/// The estimate of `variant`, and whether it fits; none if the software refuses it.
pub(crate) fn outcome(plan: &Plan, own: &Variant, variant: &Variant) -> Option<(Outcome, bool)> {
    let changed = variant.apply(plan)?;
    let (peak, verdict) = fit(&changed);
    let outcome = Outcome {
        variant: variant.clone(),
        changes: variant.changes_from(own),
        peak,
        tight: verdict == Verdict::Tight,
        step: exact_step_seconds(&changed),
    };
    Some((outcome, verdict != Verdict::OutOfMemory))
}

/// The size of a dimension that has sizes.
const fn size(dimension: Dimension, of: &Variant) -> Option<u64> {
    Some(match dimension {
        Dimension::Tensor => of.tensor,
        Dimension::Pipeline => of.pipeline,
        Dimension::VirtualPipeline => of.virtual_pipeline,
        Dimension::Context => of.context,
        Dimension::Expert => of.expert,
        Dimension::ExpertTensor => of.expert_tensor,
        Dimension::MicroBatch => of.micro_batch_size,
        Dimension::Instances => of.instances,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::plan;

    #[test]
    fn each_knob_moves_to_its_next_sizes_and_has_the_figures_of_that_plan() {
        let plan = plan("llama-3 70b, 128 H100");
        let moved = moved(&plan);
        let of = |dimension| -> Vec<&str> {
            let of_it = moved.iter().filter(|one| one.dimension == dimension);
            of_it.map(|one| one.words.as_str()).collect()
        };
        assert_eq!(of(Dimension::Tensor), ["TP 8 → 4"]);
        assert_eq!(of(Dimension::Pipeline), ["PP 4 → 2", "PP 4 → 8"]);
        assert_eq!(of(Dimension::MicroBatch), ["MBS 1 → 2"]);
        assert!(moved.iter().any(|one| !one.fits) && moved.iter().any(|one| one.fits));
        for one in &moved {
            let changed = one.outcome.variant.apply(&plan).expect("a plan");
            assert_eq!(one.outcome.step, exact_step_seconds(&changed), "{}", one.words);
            assert_eq!(one.outcome.peak, fit(&changed).0, "{}", one.words);
            assert!(!one.words.is_empty());
        }
        // Dimensions without sizes have at most two changes.
        for (dimension, name) in Dimension::NAMED {
            assert!(moved.iter().filter(|one| one.dimension == dimension).count() <= 2, "{name}");
        }
    }
}

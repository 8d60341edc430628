//! The best change of one, two and three settings.

use super::known::Known;
use super::space::{Edit, Space, singles};
use shardscope_estimate::Verdict;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_plan::{DpSharding, Field, Overlap, PipelineSchedule, Plan, Recompute, StageSplit, Variant};
use shardscope_units::{Bytes, Seconds};

/// A plan with a few settings changed, estimated as for a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Edited {
    /// The changes, in words.
    pub words: Vec<String>,
    /// The plan with them.
    pub variant: Variant,
    /// The settings that produce it.
    pub changes: Vec<(Field, String)>,
    /// Peak on the fullest device.
    pub peak: Bytes,
    /// Whether it takes part of the headroom.
    pub tight: bool,
    /// Time of a step.
    pub step: Seconds,
}

/// Number of pairs to which a third change is added.
const BEAM: usize = 6;

/// The `shown` fastest plans that fit and differ from `plan` by one change; those that leave the headroom free come
/// first.
#[must_use]
pub fn one_edit(plan: &Plan, shown: usize) -> Vec<Edited> {
    let own = Variant::from_plan(plan);
    let edits = singles(&Space::from_plan(plan), &own);
    best(plan, edits.into_iter().map(|edit| (vec![edit.words(&own)], edit.variant)), shown)
}

/// The same for two changes of different dimensions.
#[must_use]
pub fn two_edits(plan: &Plan, shown: usize) -> Vec<Edited> {
    let space = Space::from_plan(plan);
    let own = Variant::from_plan(plan);
    let mut pairs: Vec<(Vec<String>, Variant)> = Vec::new();
    for first in singles(&space, &own) {
        for second in singles(&space, &first.variant) {
            // The same two changes in the other order are the same plan, and undoing a change is none.
            if second.dimension > first.dimension && second.variant != own {
                pairs.push((vec![first.words(&own), second.words(&first.variant)], second.variant));
            }
        }
    }
    best(plan, pairs.into_iter(), shown)
}

/// The same for three changes: a third added to each of the fastest pairs. The best triple need not be among them.
#[must_use]
pub fn three_edits(plan: &Plan, shown: usize) -> Vec<Edited> {
    thirds(plan, two_edits(plan, BEAM), shown)
}

fn thirds(plan: &Plan, pairs: Vec<Edited>, shown: usize) -> Vec<Edited> {
    let space = Space::from_plan(plan);
    let own = Variant::from_plan(plan);
    let mut all: Vec<(Vec<String>, Variant)> = Vec::new();
    for pair in pairs {
        for third in singles(&space, &pair.variant) {
            let mut words = pair.words.clone();
            words.push(third.words(&pair.variant));
            if third.variant != own && !all.iter().any(|(_, known)| *known == third.variant) {
                all.push((words, third.variant));
            }
        }
    }
    best(plan, all.into_iter(), shown)
}

/// The best plans by one, two and three changes, each only if it is better than those with fewer. If `plan` fits,
/// they are ordered by the time saved per change, otherwise by the number of changes.
#[must_use]
pub fn best_edits(plan: &Plan) -> Vec<Edited> {
    let key = |one: &Edited| (one.tight, one.step.get());
    let pairs = two_edits(plan, BEAM);
    let two = pairs.first().cloned();
    let each = [one_edit(plan, 1).into_iter().next(), two, thirds(plan, pairs, 1).into_iter().next()];
    let mut found: Vec<Edited> = Vec::new();
    for edited in each.into_iter().flatten() {
        if found.last().is_none_or(|fewer| key(&edited) < key(fewer)) {
            found.push(edited);
        }
    }
    let (_, verdict) = Known::default().fit(plan);
    if verdict != Verdict::OutOfMemory {
        let own = exact_step_seconds(plan).get();
        // A plan that leaves the headroom free is better than one that does not, however slow.
        found.retain(|one| key(one) < (verdict == Verdict::Tight, own));
        let gain = |one: &Edited| (own - one.step.get()) / real(one.words.len());
        found.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
    }
    found
}

#[allow(clippy::cast_precision_loss, reason = "three at most")]
fn real(count: usize) -> f64 {
    count as f64
}

/// The `shown` best of `tried`: all are bounded, and those that may be among the best are estimated in full, fastest
/// first.
fn best(plan: &Plan, tried: impl Iterator<Item = (Vec<String>, Variant)>, shown: usize) -> Vec<Edited> {
    let own = Variant::from_plan(plan);
    let capacity = plan.cluster().accelerator.memory;
    let mut known: Vec<(Variant, Known)> = Vec::new();
    // Only the bound of each is stored, not its plan: few have to be built again below.
    let mut bounded = Vec::new();
    for (words, variant) in tried {
        let Some(changed) = variant.apply(plan) else { continue };
        let place = place_of(&mut known, &variant);
        let Some((_, known)) = known.get_mut(place) else { continue };
        let least = known.draft(&changed).least();
        bounded.push((least, place, words, variant));
    }
    bounded.sort_by(|one, other| one.0.get().total_cmp(&other.0.get()));
    let mut distinct: Vec<Edited> = Vec::new();
    let key = |one: &Edited| (one.tight, one.step.get());
    for (least, place, words, variant) in bounded {
        let last = distinct.last().filter(|_| distinct.len() >= shown);
        if last.is_some_and(|last| key(last) <= (false, least.get())) {
            break;
        }
        let Some(changed) = variant.apply(plan) else { continue };
        let Some((_, known)) = known.get_mut(place) else { continue };
        let (peak, verdict) = known.fit(&changed);
        let tight = verdict == Verdict::Tight;
        // A device shows no more than its capacity: anything reserved beyond that has to be released all the time.
        let too_large = verdict == Verdict::OutOfMemory || peak > capacity;
        if too_large || last.is_some_and(|last| key(last) <= (tight, least.get())) {
            continue;
        }
        let step = known.draft(&changed).exact();
        let changes = variant.changes_from(&own);
        let edited = Edited { words, variant, changes, peak, tight, step };
        let place = distinct.partition_point(|one| key(one) <= key(&edited));
        distinct.insert(place, edited);
        distinct.truncate(shown);
    }
    distinct
}

/// The index of what is known about layouts with the sections of `variant`: those that differ from it only in chunks,
/// layers per stage, order, recomputation and what data-parallel ranks shard.
fn place_of(known: &mut Vec<(Variant, Known)>, variant: &Variant) -> usize {
    let overlap = Overlap { grad_reduce: false, param_gather: false, pipeline: false, ..variant.overlap };
    let key = Variant {
        virtual_pipeline: 1,
        group: None,
        schedule: PipelineSchedule::OneForwardOneBackward,
        split: StageSplit::EVEN,
        recompute: Recompute::None,
        sharding: DpSharding::Replicated,
        overlap,
        ..variant.clone()
    };
    known.iter().position(|(of, _)| *of == key).unwrap_or_else(|| {
        known.push((key, Known::default()));
        known.len() - 1
    })
}

/// All single changes, for tests that try every one.
#[must_use]
pub fn single_edits(plan: &Plan) -> Vec<Edit> {
    singles(&Space::from_plan(plan), &Variant::from_plan(plan))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::fit;
    use crate::pairs::cases::{CASES, case};

    /// The ranking key of changed plans: those that leave the headroom free come first, then the faster.
    type Key = (bool, f64);

    fn key_of(plan: &Plan, variant: &Variant) -> Option<Key> {
        let changed = variant.apply(plan)?;
        let (peak, verdict) = fit(&changed);
        let fits = verdict != Verdict::OutOfMemory && peak <= plan.cluster().accelerator.memory;
        fits.then(|| (verdict == Verdict::Tight, exact_step_seconds(&changed).get()))
    }

    /// The best of all plans that differ from `plan` by this many changes in as many dimensions, made in any order
    /// and each estimated in full; and how many fit.
    fn tried(plan: &Plan, changes: usize) -> (Option<Key>, usize) {
        let (space, own) = (Space::from_plan(plan), Variant::from_plan(plan));
        let (mut best, mut fitting) = (None, 0);
        let mut left = vec![(own.clone(), Vec::new())];
        while let Some((from, made)) = left.pop() {
            for edit in singles(&space, &from) {
                if made.contains(&edit.dimension) || edit.variant == own {
                    continue;
                }
                let made: Vec<_> = made.iter().copied().chain([edit.dimension]).collect();
                if made.len() < changes {
                    left.push((edit.variant, made));
                } else if let Some(key) = key_of(plan, &edit.variant) {
                    fitting += 1;
                    if best.is_none_or(|best| key < best) {
                        best = Some(key);
                    }
                }
            }
        }
        (best, fitting)
    }

    fn first(found: &[Edited]) -> Option<Key> {
        found.first().map(|one| (one.tight, one.step.get()))
    }

    #[test]
    fn the_best_change_and_the_best_two_are_those_that_trying_all_finds() {
        for name in ["8b with nothing", "8b replicated", "8b, deep pipeline"] {
            let plan = case(name);
            let (one, two) = (tried(&plan, 1), tried(&plan, 2));
            println!("{name}: {one:?} {two:?}");
            assert!(two.1 > one.1, "{name}");
            assert_eq!(first(&one_edit(&plan, 1)), one.0, "{name}");
            assert_eq!(first(&two_edits(&plan, 1)), two.0, "{name}");
        }
    }

    #[test]
    fn changes_that_save_most_for_each_of_them_stand_first() {
        let plan = case("8b, deep pipeline");
        let own = exact_step_seconds(&plan).get();
        let found = best_edits(&plan);
        let gain = |one: &Edited| (own - one.step.get()) / real(one.words.len());
        println!("{own} {found:?}");
        assert!(found.len() > 1 && found.windows(2).all(|pair| gain(&pair[0]) >= gain(&pair[1])));
        for one in &found {
            let alone = match one.words.len() {
                1 => one_edit(&plan, 1),
                2 => two_edits(&plan, 1),
                _ => three_edits(&plan, 1),
            };
            assert_eq!(alone.first(), Some(one));
        }
        // If nothing fits, the fewest changes come first.
        let lacking = best_edits(&case("8b replicated"));
        let counts: Vec<usize> = lacking.iter().map(|one| one.words.len()).collect();
        assert!(counts.len() > 1 && counts.windows(2).all(|pair| pair[0] < pair[1]), "{counts:?}");
    }

    /// The same for every case, with three changes: `cargo test --release -p shardscope-search -- --ignored changes`.
    #[test]
    #[ignore = "works out millions of layouts"]
    fn the_best_three_changes_of_every_case_are_those_that_trying_all_finds() {
        for name in CASES {
            let plan = case(name);
            let found = [one_edit(&plan, 1), two_edits(&plan, 1), three_edits(&plan, 1)];
            for (changes, found) in (1..).zip(found) {
                let all = tried(&plan, changes);
                println!("{name}: {changes} {:?} {all:?}", first(&found));
                assert_eq!(first(&found), all.0, "{name}: {changes}");
            }
        }
    }
}

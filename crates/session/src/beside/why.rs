//! Why a layout is not the answer to a search, worked out when the user asks.

use shardscope_launch::resolve;
use shardscope_plan::{Plan, Variant};
use shardscope_search::{typed, why_not};
use shardscope_source::Severity;

use super::layout::Layout;
use crate::{Pinned, UserInput, texts};

/// Changes of settings, by name.
type Changes = [(String, String)];

/// A layout that the reader typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// Its changes from the plan searched.
    pub changes: Vec<(String, String)>,
    /// Why it is not the answer, in a sentence.
    pub why: String,
    /// Whether the software would start it.
    pub starts: bool,
}

/// Why the plan searched with `changes` is not the answer while `best` is: refused, out of memory, or slower and
/// because of what. `None` for the best itself.
#[must_use]
pub fn why_not_best(base: &Pinned, changes: &Changes, best: &Layout) -> Option<String> {
    if best.changes == changes {
        return None;
    }
    let best = planned(&base.input, &best.changes).ok()?;
    Some(match planned(&base.input, changes) {
        Ok(plan) => why_not(&Ok(plan), &best).sentence(),
        Err(why) => why,
    })
}

/// The layout that `text` describes relative to the plan searched, and why it is not the answer while `best` is.
///
/// # Errors
/// The first word that is not understood.
pub fn why_not_typed(base: &Pinned, text: &str, best: Option<&Layout>) -> Result<Tried, String> {
    let plan = &base.shown.plan;
    let layout = typed(plan, text)?;
    let checked = layout.checked(plan);
    let best = best.and_then(|best| planned(&base.input, &best.changes).ok());
    let changes = layout.changes_from(&Variant::from_plan(plan)).into_iter();
    Ok(Tried {
        changes: changes.map(|(field, value)| (field.name().to_owned(), value)).collect(),
        starts: checked.is_ok(),
        // If nothing fits there is no answer to compare with, so state what it lacks itself.
        why: why_not(&checked, best.as_ref().unwrap_or(plan)).sentence(),
    })
}

/// The plan of `input` with `changes`, or why there is none. Nothing is estimated.
pub(super) fn planned(input: &UserInput, changes: &Changes) -> Result<Plan, String> {
    let mut input = input.clone();
    changes.iter().cloned().for_each(|change| input.put(change));
    // The texts were read for the plan searched.
    let readings = texts::readings(&input).ok_or_else(String::new)?;
    let resolution = resolve(&readings, &input.settings);
    let first = resolution.diagnostics.iter().find(|said| said.severity == Severity::Error);
    let why = first.map(|said| said.message.clone()).unwrap_or_default();
    resolution.plan.ok_or(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::{Found, Progress, Task, Working};
    use crate::{EXAMPLE, PtrEq, State, Varied};

    fn searched() -> (Pinned, Found) {
        let input = UserInput::from_text(EXAMPLE);
        let shown = State::new(input.clone()).shown.expect("a plan");
        let mut working =
            Working::begin(&Task::layouts(&input, &Varied::default(), 0, 1).written()).expect("a task");
        while working.step(u64::MAX) {}
        let Progress::Found(found) = working.known() else { panic!("no search") };
        (Pinned { input, shown: PtrEq::clone(&shown) }, *found)
    }

    #[test]
    fn every_layout_of_a_list_but_the_first_says_why_it_is_not_the_answer() {
        let (base, found) = searched();
        let best = &found.best[0];
        assert_eq!(why_not_best(&base, &best.changes, best), None);
        for layout in found.best.iter().skip(1).filter(|layout| !layout.tight) {
            let why = why_not_best(&base, &layout.changes, best).expect("another layout");
            assert!(why.contains("slower"), "{}: {why}", layout.words());
        }
        let refused = [("tensor_model_parallel_size".to_owned(), "3".to_owned())];
        assert!(why_not_best(&base, &refused, best).is_some_and(|why| why.contains('3')));
        // Which changes affect the plan, and who is known to have run another layout of it.
        assert!(!found.around.moves.is_empty() && found.around.published.is_empty());
        for one in &found.around.moves {
            let why = why_not_best(&base, &one.layout.changes, best);
            let says = why.clone().unwrap_or_default();
            assert_eq!(one.fits, !says.contains("out of memory"), "{}: {why:?}", one.about);
        }
    }

    #[test]
    fn a_typed_layout_is_held_against_the_best_and_opens_as_the_plan_that_was_judged() {
        let (base, found) = searched();
        let best = found.best.first();
        let tried = why_not_typed(&base, "TP 4 PP 2 MBS 1", best).expect("understood");
        assert!(tried.starts && tried.why.contains("slower"), "{tried:?}");
        assert_eq!(why_not_best(&base, &tried.changes, best.expect("one")), Some(tried.why));
        let tried = why_not_typed(&base, "TP 16", best).expect("understood");
        assert!(!tried.starts && tried.why.starts_with("refused: "), "{tried:?}");
        assert_eq!(why_not_typed(&base, "TP four", best), Err("tp four".to_owned()));
    }
}

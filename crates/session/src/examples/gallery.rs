//! All examples.

use super::example::Chapter;
use super::{known, scaling, tool};

/// All examples, those most asked for first.
#[must_use]
pub fn gallery() -> Vec<Chapter> {
    vec![known::chapter(), tool::chapter(), scaling::narayanan(), scaling::azure()]
}

#[cfg(test)]
mod tests {
    use super::gallery;
    use crate::{EXAMPLE, State};
    use shardscope_source::Severity;

    #[test]
    fn every_example_is_a_plan_without_a_warning() {
        let mut seen = 0;
        for example in gallery().into_iter().flat_map(|chapter| chapter.examples) {
            let state = State::new(example.input);
            let said: Vec<_> = state.answer.resolution.diagnostics.iter().collect();
            assert!(state.shown.is_some(), "{}: {said:?}", example.name);
            assert!(said.iter().all(|one| one.severity < Severity::Warning), "{}: {said:?}", example.name);
            assert!(!example.about.is_empty());
            seen += 1;
        }
        assert!(seen > 40, "{seen} examples");
    }

    /// A card's estimate is within a fifth of what was published, and a difference above a tenth says why.
    #[test]
    fn cards_are_near_what_was_published() {
        let mut seen = 0;
        for example in gallery().into_iter().flat_map(|chapter| chapter.examples) {
            let Some(published) = example.published else { continue };
            let estimated = example.estimated().expect("an estimate");
            println!(
                "{}: {} against {}, {:+.3}",
                example.name,
                estimated.words,
                published.words(),
                estimated.off
            );
            assert!(estimated.off.abs() <= 0.2, "{}: off by {:+.3}", example.name, estimated.off);
            assert!(
                estimated.off.abs() <= 0.1 || !published.reason.is_empty(),
                "{}: says no reason",
                example.name
            );
            seen += 1;
        }
        assert_eq!(seen, 40, "cards with a published figure");
    }

    /// Opening one of these cards shows a run that works.
    #[test]
    fn popular_models_open_as_runs_that_fit() {
        for example in super::known::chapter().examples {
            let shown = State::new(example.input).shown.expect("a plan");
            assert!(!shown.is_out_of_memory(), "{}", example.name);
        }
    }

    #[test]
    fn no_example_is_there_twice_and_the_first_script_is_among_them() {
        let examples: Vec<_> = gallery().into_iter().flat_map(|chapter| chapter.examples).collect();
        for (index, example) in examples.iter().enumerate() {
            let twin = examples[..index].iter().find(|other| other.input == example.input);
            assert_eq!(twin.map(|twin| &twin.name), None, "{}", example.name);
        }
        assert!(examples.iter().any(|example| &*example.input.text == EXAMPLE));
    }
}

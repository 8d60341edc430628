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
            let state = State::new(example.hand);
            let said: Vec<_> = state.answer.resolution.diagnostics.iter().collect();
            assert!(state.shown.is_some(), "{}: {said:?}", example.name);
            assert!(said.iter().all(|one| one.severity < Severity::Warning), "{}: {said:?}", example.name);
            assert!(!example.about.is_empty());
            seen += 1;
        }
        assert!(seen > 40, "{seen} examples");
    }

    #[test]
    fn no_example_is_there_twice_and_the_first_script_is_among_them() {
        let examples: Vec<_> = gallery().into_iter().flat_map(|chapter| chapter.examples).collect();
        for (index, example) in examples.iter().enumerate() {
            let twin = examples[..index].iter().find(|other| other.hand == example.hand);
            assert_eq!(twin.map(|twin| &twin.name), None, "{}", example.name);
        }
        assert!(examples.iter().any(|example| &*example.hand.text == EXAMPLE));
    }
}

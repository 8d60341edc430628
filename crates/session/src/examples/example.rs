//! One example, and the gallery of all of them.

use super::{known, scaling, tool};
use crate::Hand;
use shardscope_catalog as catalog;
use shardscope_link::{Shared, decode};

/// A run to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Its name.
    pub name: String,
    /// What it runs on and how it is cut, in a line.
    pub about: String,
    /// What was published of it; empty where nothing was.
    pub published: String,
    /// What the reader gets in hand.
    pub hand: Hand,
}

/// Examples that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// What they are.
    pub title: &'static str,
    /// Where they come from.
    pub source: &'static str,
    /// The examples.
    pub examples: Vec<Example>,
}

/// All examples, those most asked for first.
#[must_use]
pub fn gallery() -> Vec<Chapter> {
    vec![known::chapter(), tool::chapter(), scaling::narayanan(), scaling::azure()]
}

/// The settings of a model of the catalog and of `link`, which counts where both say something.
pub(super) fn settings(model: &str, link: &str) -> Vec<(String, String)> {
    let mut settings: Vec<(String, String)> = Vec::new();
    if let Some((_, known)) = catalog::model(model) {
        for (field, value) in known {
            settings.push((field.name().to_owned(), value));
        }
    }
    if let Ok(Some(Shared::Settings(more))) = decode(link) {
        settings.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        settings.extend(more);
    }
    settings
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

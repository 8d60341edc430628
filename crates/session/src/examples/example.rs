//! One example of the gallery.

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

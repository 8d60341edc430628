//! What the reader gave: everything that an answer follows from.

use std::rc::Rc;

use crate::plan::Field;
use crate::share::{Pasted, PastedText, Shared};
use crate::text::Source;

/// Texts, answers and values changed by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hand {
    /// What the box holds.
    pub text: Rc<str>,
    /// The file it came from; empty when pasted.
    pub name: String,
    /// The files beside it: a configuration that the script names, a model's `config.json`.
    pub beside: Vec<File>,
    /// Settings changed by hand, by Megatron's names.
    pub settings: Vec<(String, String)>,
    /// Answers for variables that the script leaves to its environment.
    pub environment: Vec<(String, String)>,
    /// The words after the script in its call.
    pub arguments: String,
}

/// A file given with the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub text: Rc<str>,
}

impl Hand {
    /// A text and nothing changed by hand.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            text: Rc::from(text),
            name: String::new(),
            beside: Vec::new(),
            settings: Vec::new(),
            environment: Vec::new(),
            arguments: String::new(),
        }
    }

    /// No text, only settings.
    #[must_use]
    pub fn of_settings(settings: Vec<(String, String)>) -> Self {
        Self { settings, ..Self::of("") }
    }

    /// Files given at once: a script goes into the box, else the first; the others lie beside it.
    #[must_use]
    pub fn of_files(mut files: Vec<File>) -> Self {
        let is_script = |file: &File| file.name.ends_with(".sh") || file.name.ends_with(".slurm");
        if files.is_empty() {
            return Self::of("");
        }
        let first = files.remove(files.iter().position(is_script).unwrap_or(0));
        Self { text: first.text, name: first.name, beside: files, ..Self::of("") }
    }

    /// What a link carries.
    #[must_use]
    pub fn of_shared(shared: Shared) -> Self {
        match shared {
            Shared::Settings(settings) => Self::of_settings(settings),
            Shared::Pasted(pasted) => Self::of_pasted(pasted),
        }
    }

    /// What was pasted.
    #[must_use]
    pub fn of_pasted(pasted: Pasted) -> Self {
        let mut files = pasted.texts.into_iter().map(|text| File { name: text.name, text: text.text.into() });
        let first = files.next().unwrap_or(File { name: String::new(), text: Rc::from("") });
        Self {
            text: first.text,
            name: first.name,
            beside: files.collect(),
            settings: pasted.settings,
            environment: pasted.environment,
            arguments: pasted.arguments,
        }
    }

    /// All of it, as a link carries it.
    #[must_use]
    pub fn pasted(&self) -> Pasted {
        let text = |name: &str, text: &str| PastedText { name: name.to_owned(), text: text.to_owned() };
        let beside = self.beside.iter().map(|file| text(&file.name, &file.text));
        Pasted {
            texts: std::iter::once(text(&self.name, &self.text)).chain(beside).collect(),
            settings: self.settings.clone(),
            environment: self.environment.clone(),
            arguments: self.arguments.clone(),
        }
    }

    /// The texts, the box's first.
    #[must_use]
    pub fn source(&self) -> Source {
        let beside = self.beside.iter().map(|file| (file.name.as_str(), &*file.text));
        Source::from_files(std::iter::once((self.name.as_str(), &*self.text)).chain(beside))
    }

    fn values(&mut self, name: &str) -> &mut Vec<(String, String)> {
        if Field::named(name).is_some() { &mut self.settings } else { &mut self.environment }
    }

    pub(super) fn unset(&mut self, name: &str) {
        self.values(name).retain(|(other, _)| other != name);
    }

    pub(super) fn set(&mut self, name: String, value: String) {
        self.unset(&name);
        if !value.is_empty() {
            self.values(&name).push((name, value));
        }
    }

    /// Sets a value even when it is empty, which takes back what the text states.
    pub(super) fn put(&mut self, (name, value): (String, String)) {
        self.unset(&name);
        self.values(&name).push((name, value));
    }

    pub(super) fn unset_all(&mut self) {
        self.settings.clear();
        self.environment.clear();
        self.arguments.clear();
    }

    /// Whether anything was changed by hand.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !self.settings.is_empty() || !self.environment.is_empty() || !self.arguments.is_empty()
    }

    /// Whether there is no text, so that settings alone make the plan.
    #[must_use]
    pub fn is_settings_alone(&self) -> bool {
        self.text.trim().is_empty() && self.beside.is_empty() && !self.settings.is_empty()
    }
}

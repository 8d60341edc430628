//! Settings that change figures and are not modelled: they stop the verdict, unless the reader chooses to continue
//! without them.

use super::Field;
use serde::{Deserialize, Serialize};
use shardscope_source::Span;

/// What a setting that is not modelled would change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Architecture, or the set of trained parameters.
    Model,
    /// Device memory.
    Memory,
    /// Communication volume.
    Communication,
    /// Step time.
    Time,
}

impl Effect {
    /// Its name in the document.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Memory => "memory",
            Self::Communication => "communication",
            Self::Time => "time",
        }
    }

    /// The effect with this name; `None` for any other name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Model, Self::Memory, Self::Communication, Self::Time]
            .into_iter()
            .find(|one| one.name() == name)
    }
}

/// What a [`NotModelled`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Subject {
    /// A setting of the text.
    Setting,
    /// The program that the text starts.
    Program,
    /// A program for models of several kinds of layers, which a stated pattern of layers makes up for.
    HybridProgram,
}

/// A setting that changes figures and is not modelled, as a text states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotModelled {
    /// The flag or key as written; the name by which the reader can choose to continue without it.
    pub name: String,
    /// Its value as written; empty for a switch.
    pub value: String,
    /// What it would change.
    pub effect: Effect,
    /// What it is, in a few words that follow "not modelled:".
    pub message: String,
    /// Where it is in the text.
    pub span: Option<Span>,
    /// Whether it is known what it changes; for a fork's own option only the name is known.
    pub is_known: bool,
    /// Whether it is a setting, or the program that is started.
    pub subject: Subject,
    /// A setting that another text may state, and the only value beside which it counts; it always counts without one.
    pub only_at: Option<(Field, String)>,
    /// A setting that another text or an answer may state, and the only value beside which it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless_at: Option<(Field, String)>,
}

impl NotModelled {
    /// A setting that is not modelled, and what it is.
    #[must_use]
    pub fn new(name: &str, value: &str, effect: Effect, message: &str) -> Self {
        Self {
            name: one_word(name),
            value: value.to_owned(),
            effect,
            message: message.to_owned(),
            span: None,
            is_known: true,
            subject: Subject::Setting,
            only_at: None,
            unless_at: None,
        }
    }

    /// A program whose training is not modelled: its file, or the name of its framework; empty where the text has none.
    #[must_use]
    pub fn of_program(file: &str, effect: Effect, message: &str) -> Self {
        Self { subject: Subject::Program, ..Self::new("program", file, effect, message) }
    }

    /// A program that is named after hybrid layers, which a stated pattern of layers describes.
    #[must_use]
    pub fn of_hybrid_program(file: &str, effect: Effect, message: &str) -> Self {
        Self { subject: Subject::HybridProgram, ..Self::new("program", file, effect, message) }
    }

    /// The same, of which it is not known what it changes.
    #[must_use]
    pub fn unknown(mut self) -> Self {
        self.is_known = false;
        self
    }

    /// The same, which only counts where a setting has this value, whichever text states it.
    #[must_use]
    pub fn only_at(mut self, field: Field, value: &str) -> Self {
        self.only_at = Some((field, value.to_owned()));
        self
    }

    /// The same, which counts unless a setting has this value, whichever text or answer states it.
    #[must_use]
    pub fn unless_at(mut self, field: Field, value: &str) -> Self {
        self.unless_at = Some((field, value.to_owned()));
        self
    }

    /// The same setting with its place in the text.
    #[must_use]
    pub fn at_some(mut self, span: Option<Span>) -> Self {
        self.span = span;
        self
    }

    /// The sentence that takes the verdict's place.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("not modelled: {} ({})", self.message, self.stated())
    }

    /// Name and value, as far as a sentence can hold them.
    #[must_use]
    pub fn stated(&self) -> String {
        /// Characters of a value that a sentence can hold.
        const LONGEST: usize = 60;
        let mut stated = self.name.clone();
        if !self.value.is_empty() {
            stated.push(' ');
            stated.extend(self.value.chars().take(LONGEST));
            if self.value.chars().count() > LONGEST {
                stated.push('…');
            }
        }
        stated
    }

    /// Whether the reader means it by `name`: leading dashes may be left out, and `-`, `_` and the like are
    /// equivalent.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        same_name(&self.name, name)
    }
}

/// A name as [`NotModelled::is_called`] compares it: without leading dashes, with one separator for all.
#[must_use]
pub fn bare_name(name: &str) -> String {
    letters(name).collect()
}

fn letters(name: &str) -> impl Iterator<Item = char> + '_ {
    name.trim_start_matches('-').chars().map(|sign| if sign == '-' { '_' } else { sign })
}

/// A name with every character that would separate words in a setting replaced by `_`, so that it stays one word
/// wherever it travels.
fn one_word(name: &str) -> String {
    // Lists of names are joined by blanks or commas in settings and links.
    name.chars().map(|sign| if " ,\t[]()'\"".contains(sign) { '_' } else { sign }).collect()
}

/// Whether two names are equal apart from leading dashes and word separators.
fn same_name(left: &str, right: &str) -> bool {
    letters(left).eq(letters(right))
}

/// An option or key of a training that no reader knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRead {
    /// As written.
    pub name: String,
    /// Where it is in the text.
    pub span: Option<Span>,
}

impl NotRead {
    /// An option or key with its place in the text.
    #[must_use]
    pub fn new(name: &str, span: Option<Span>) -> Self {
        Self { name: one_word(name), span }
    }
}

#[cfg(test)]
mod tests {
    use super::{Effect, NotModelled};

    #[test]
    fn a_setting_is_called_by_its_name() {
        let lora = NotModelled::new("--lora-r", "8", Effect::Model, "LoRA adapters");
        assert_eq!(lora.sentence(), "not modelled: LoRA adapters (--lora-r 8)");
        assert!(["--lora-r", "lora-r", "lora_r"].iter().all(|name| lora.is_called(name)));
        assert!(!lora.is_called("lora-rank") && !lora.is_called(""));
        let long = NotModelled::new("--spec", &"x".repeat(90), Effect::Model, "a layer specification");
        assert!(long.sentence().ends_with("x…)"));
    }
}

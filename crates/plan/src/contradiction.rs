//! Settings that contradict each other, and which of them are at fault.

use super::Field;
use shardscope_source::Code;
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// One reason why the settings do not form a plan, as data: which rule, which settings, what would work instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The rule that is violated.
    pub code: Code,
    /// Settings at fault, with the one to change first at the front.
    pub fields: Vec<Field>,
    /// What is wrong, with which values, and why.
    pub message: String,
    /// What would work, in words; `None` if no value is known to work.
    pub hint: Option<String>,
    /// The nearest value of `fields[0]` that works.
    pub nearest: Option<u64>,
}

/// What is refused, as a sentence with `{}` for each number.
pub(super) struct Rule {
    pub(super) code: Code,
    pub(super) fields: &'static [Field],
    pub(super) sentence: &'static str,
    /// What would work, with placeholders for the numbers that follow; empty if the rule has no suggestion.
    pub(super) hint: &'static str,
}

/// `sentence` with its placeholders filled from `numbers`.
fn filled(sentence: &str, numbers: &mut dyn Iterator<Item = u64>) -> String {
    let mut text = String::new();
    for (place, piece) in sentence.split("{}").enumerate() {
        if place > 0 {
            text.push_str(&numbers.next().unwrap_or_default().to_string());
        }
        text.push_str(piece);
    }
    text
}

impl Contradiction {
    /// A contradiction between `fields`.
    #[must_use]
    pub fn new(code: Code, fields: &[Field], message: String) -> Self {
        Self { code, fields: fields.to_vec(), message, hint: None, nearest: None }
    }

    /// The contradiction that `rule` states for these `numbers`.
    #[must_use]
    pub(super) fn from_rule(rule: &Rule, numbers: &[u64]) -> Self {
        // One iterator for both: the hint takes the numbers that the sentence left over.
        let mut numbers = numbers.iter().copied();
        let message = filled(rule.sentence, &mut numbers);
        let mut contradiction = Self::new(rule.code, rule.fields, message);
        if !rule.hint.is_empty() {
            contradiction.set_hint(filled(rule.hint, &mut numbers));
        }
        contradiction
    }

    /// The same contradiction with a hint of what would work.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.set_hint(hint.into());
        self
    }

    fn set_hint(&mut self, hint: String) {
        self.hint = Some(hint);
    }

    /// The same contradiction with the nearest value of the first field that works.
    #[must_use]
    pub fn nearest(mut self, nearest: Option<u64>) -> Self {
        self.nearest = nearest;
        self
    }
}

impl Display for Contradiction {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for Contradiction {}

//! What cannot hold together, and which settings are at fault.

use super::Field;
use shardscope_source::Code;
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// One reason why the settings make no plan, as data: which rule, which settings, what would work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// What cannot hold.
    pub code: Code,
    /// Settings at fault, the one to change first.
    pub fields: Vec<Field>,
    /// What, with which values, and why.
    pub message: String,
    /// What would work, in words; none where no value is known to.
    pub hint: Option<String>,
    /// The nearest value of `fields[0]` that works.
    pub nearest: Option<u64>,
}

/// Something refused, in a sentence with `{}` for each number.
pub(super) struct Rule {
    pub(super) code: Code,
    pub(super) fields: &'static [Field],
    pub(super) sentence: &'static str,
    /// What would work, with holes for the numbers that follow; empty where the rule does not know.
    pub(super) hint: &'static str,
}

/// `sentence` with its holes filled by the next of `numbers`.
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

    /// What `rule` says of these `numbers`.
    #[must_use]
    pub(super) fn from_rule(rule: &Rule, numbers: &[u64]) -> Self {
        // One row of numbers for both: the hint takes those that the sentence left.
        let mut numbers = numbers.iter().copied();
        let message = filled(rule.sentence, &mut numbers);
        let mut contradiction = Self::new(rule.code, rule.fields, message);
        if !rule.hint.is_empty() {
            contradiction.set_hint(filled(rule.hint, &mut numbers));
        }
        contradiction
    }

    /// The same with what would work.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.set_hint(hint.into());
        self
    }

    fn set_hint(&mut self, hint: String) {
        self.hint = Some(hint);
    }

    /// The same with the nearest value of the first field that works.
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

//! What a reader found, before any default or rule.

use serde::{Deserialize, Serialize};
use shardscope_plan::{Field, NotModelled, NotRead, Origin, Question, Software};
use shardscope_source::{Diagnostic, Span};

/// One value that the text states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Which setting.
    pub field: Field,
    /// Its value as written; when `hole` is there, the text with that variable by name.
    pub value: String,
    /// The variable that the value lacks, when it is not known.
    pub hole: Option<String>,
    /// Origin of the value.
    pub origin: Origin,
    /// The flag or key as written.
    pub flag: Option<String>,
    /// Where the value stands (the flag, when it takes none).
    pub span: Option<Span>,
    /// How it came to be, when it is not simply as written.
    pub note: Option<String>,
}

impl Found {
    /// A value without a place.
    #[must_use]
    pub fn new(field: Field, value: impl Into<String>, origin: Origin) -> Self {
        Self { field, value: value.into(), hole: None, origin, flag: None, span: None, note: None }
    }

    /// The same, said by a flag or key at a place.
    #[must_use]
    pub fn by(self, flag: impl Into<String>, span: Option<Span>) -> Self {
        self.said(flag.into(), span)
    }

    fn said(mut self, flag: String, span: Option<Span>) -> Self {
        self.flag = Some(flag);
        self.span = span;
        self
    }

    /// The same with a remark on how it came to be.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// Everything one text says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The values, at most one for each setting.
    pub found: Vec<Found>,
    /// What there is to say about the text.
    pub diagnostics: Vec<Diagnostic>,
    /// Questions that it leaves open.
    pub questions: Vec<Question>,
    /// Settings that change figures and are not modelled.
    pub not_modelled: Vec<NotModelled>,
    /// Options and keys that are not known.
    pub not_read: Vec<NotRead>,
    /// Which software it is written for, and how that was told.
    pub software: Option<(Software, String)>,
    /// On how many accelerators it was run, as it says beside its settings; what says more comes first.
    pub machines: Vec<Machines>,
    /// What to add where the number of accelerators is open, as its framework states it; empty where the text's framework has no way of
    /// its own.
    pub states_machines: String,
}

/// A number of accelerators that nothing states for the run and something of the text speaks for: what is proposed where the number is
/// asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machines {
    /// All of them, or those of a node.
    pub count: u64,
    /// Whether they are those of one node.
    pub per_node: bool,
    /// How many such nodes, where that is said too.
    pub nodes: Option<u64>,
    /// What the text says.
    pub said: String,
}

impl Reading {
    /// Takes a value; the last one of a setting wins. Returns the one that it replaces.
    pub fn take(&mut self, found: Found) -> Option<Found> {
        // In place: order is that of the text, by which later messages point.
        match self.found.iter_mut().find(|earlier| earlier.field == found.field) {
            Some(earlier) => Some(std::mem::replace(earlier, found)),
            None => {
                self.found.push(found);
                None
            }
        }
    }

    /// The whole number stated for a setting.
    #[must_use]
    pub fn count(&self, field: Field) -> Option<u64> {
        self.value(field)?.parse().ok()
    }

    /// Keeps the values that `keep` wants.
    pub fn keep(&mut self, keep: &dyn Fn(&Found) -> bool) {
        self.found.retain(|found| keep(found));
    }

    /// The value stated for a setting.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<&str> {
        self.found
            .iter()
            // An open value is none: its text still has the variable in it.
            .find(|found| found.field == field && found.hole.is_none())
            .map(|found| found.value.as_str())
    }
}

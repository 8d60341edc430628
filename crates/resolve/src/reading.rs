//! A reader's findings, before any default or rule.

use serde::{Deserialize, Serialize};
use shardscope_plan::{Field, NotModelled, NotRead, Origin, Question, Software};
use shardscope_source::{Diagnostic, Span};

/// One value that the text states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The setting.
    pub field: Field,
    /// Its value as written; if there is a `hole`, the text with that variable by name.
    pub value: String,
    /// The variable on which an unknown value depends.
    pub hole: Option<String>,
    /// Origin of the value.
    pub origin: Origin,
    /// The flag or key as written.
    pub flag: Option<String>,
    /// Where the value is written (or the flag, if it takes none).
    pub span: Option<Span>,
    /// How the value was obtained, if it is not simply as written.
    pub note: Option<String>,
}

impl Found {
    /// Whether it is what a launch that is not among the texts would say of several ranks: neither a value nor a text's variable.
    #[must_use]
    pub fn is_left_to_launch(&self) -> bool {
        self.field == Field::ZeroStage && self.hole.is_some() && self.origin == Origin::Default
    }

    /// A value without a position.
    #[must_use]
    pub fn new(field: Field, value: impl Into<String>, origin: Origin) -> Self {
        Self { field, value: value.into(), hole: None, origin, flag: None, span: None, note: None }
    }

    /// The same value, stated by a flag or key at a position.
    #[must_use]
    pub fn by(self, flag: impl Into<String>, span: Option<Span>) -> Self {
        self.said(flag.into(), span)
    }

    fn said(mut self, flag: String, span: Option<Span>) -> Self {
        self.flag = Some(flag);
        self.span = span;
        self
    }

    /// The same value, with a note on how it was obtained.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// Everything found in one text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The values, at most one for each setting.
    pub found: Vec<Found>,
    /// Diagnostics about the text.
    pub diagnostics: Vec<Diagnostic>,
    /// Questions that it leaves open.
    pub questions: Vec<Question>,
    /// Settings that change figures and are not modelled.
    pub not_modelled: Vec<NotModelled>,
    /// Options and keys that are not known.
    pub not_read: Vec<NotRead>,
    /// The software it is written for, and how this was recognised.
    pub software: Option<(Software, String)>,
    /// Hints outside the settings about the number of accelerators, with the strongest evidence first.
    pub machines: Vec<Machines>,
    /// What to add if the number of accelerators is open, in the syntax of its framework; empty if the framework has
    /// none of its own.
    pub states_machines: String,
    /// The file whose keys were read together with this text; empty if there is none.
    pub covers: String,
}

/// A number of accelerators that is not stated for the run but suggested by something in the text: it is proposed if
/// the number is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machines {
    /// The total, or those of one node; 0 where the words name a kind alone.
    pub count: u64,
    /// Whether it is the number per node.
    pub per_node: bool,
    /// The number of such nodes, if known.
    pub nodes: Option<u64>,
    /// Their kind by its name in the catalog, if the same words name it.
    pub kind: Option<String>,
    /// The text's wording.
    pub said: String,
}

impl Reading {
    /// Adds a value; the last one for a setting wins. Returns the one that it replaces.
    pub fn take(&mut self, found: Found) -> Option<Found> {
        // In place: the order is that of the text, to which later messages refer.
        match self.found.iter_mut().find(|earlier| earlier.field == found.field) {
            Some(earlier) => Some(std::mem::replace(earlier, found)),
            None => {
                self.found.push(found);
                None
            }
        }
    }

    /// The integer stated for a setting.
    #[must_use]
    pub fn count(&self, field: Field) -> Option<u64> {
        self.value(field)?.parse().ok()
    }

    /// Keeps only the values that `keep` accepts.
    pub fn keep(&mut self, keep: &dyn Fn(&Found) -> bool) {
        self.found.retain(|found| keep(found));
    }

    /// The value stated for a setting.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<&str> {
        self.found
            .iter()
            // An open value does not count: its text still contains the variable.
            .find(|found| found.field == field && found.hole.is_none())
            .map(|found| found.value.as_str())
    }
}

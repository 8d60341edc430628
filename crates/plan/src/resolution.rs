//! What came of a reader's texts: settings with their origins, what is open, and a plan where there can be one.

use super::not_modelled::NotModelled;
use super::setting::Setting;
use super::{Field, Plan};
use serde::{Deserialize, Serialize};
use shardscope_source::Diagnostic;

/// Something the text leaves open and the report needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The setting or variable asked for.
    pub name: String,
    /// The question in words.
    pub prompt: String,
    /// What may be answered; empty when anything may.
    pub choices: Vec<String>,
    /// An answer that is likely; none where nothing is.
    pub proposal: Option<String>,
}

/// Everything that pasted texts and the reader's own settings come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolution {
    /// The plan, if there can be one.
    pub plan: Option<Plan>,
    /// Every setting with its value and origin, in the order of [`Field::ALL`].
    pub settings: Vec<Setting>,
    /// What the text leaves open.
    pub questions: Vec<Question>,
    /// What there is to say, errors first.
    pub diagnostics: Vec<Diagnostic>,
    /// Settings that change figures and are not modelled. There is a plan only where the reader goes on without all of them.
    pub not_modelled: Vec<NotModelled>,
}

impl Resolution {
    /// A setting of the resolution; none where nothing was resolved.
    #[must_use]
    pub fn setting(&self, field: Field) -> Option<&Setting> {
        // All fields are there, in their order.
        self.settings.get(field.index())
    }
}

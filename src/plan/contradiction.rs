//! What cannot hold together, and which settings are at fault.

use super::Field;

/// One reason why the settings make no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Short stable name, for example `heads-over-tp`.
    pub code: &'static str,
    /// Settings at fault (Megatron's names), the one to change first.
    pub fields: Vec<&'static str>,
    /// What, with which values, and why.
    pub message: String,
    /// What would work.
    pub hint: Option<String>,
    /// The nearest value of `fields[0]` that works.
    pub nearest: Option<u64>,
}

impl Contradiction {
    /// A contradiction between `fields`.
    #[must_use]
    #[inline(never)]
    pub fn new(code: &'static str, fields: &[Field], message: String) -> Self {
        let fields = fields.iter().map(|field| field.name()).collect();
        Self { code, fields, message, hint: None, nearest: None }
    }

    /// The same with what would work.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.set_hint(hint.into());
        self
    }

    #[inline(never)]
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

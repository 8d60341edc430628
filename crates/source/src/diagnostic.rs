use super::{Code, Span};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// How much a diagnostic matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Something was recognised and is told for information.
    Note,
    /// Something is probably not what its writer meant.
    Warning,
    /// Something cannot be, or cannot be read.
    Error,
}

impl Severity {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One thing to tell the reader about their text: lowercase; what, with which values; the hint says what works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about.
    pub code: Code,
    /// What is the matter, with which values.
    pub message: String,
    /// What works instead.
    pub hint: Option<String>,
    /// Where in the text.
    pub span: Option<Span>,
}

impl Diagnostic {
    /// Something that cannot be.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message.into())
    }

    /// Something that is probably not meant.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message.into())
    }

    /// Something to know.
    pub fn note(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message.into())
    }

    fn new(severity: Severity, code: Code, message: String) -> Self {
        Self { severity, code, message, hint: None, span: None }
    }

    /// The same with what works.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.set_hint(hint.into());
        self
    }

    fn set_hint(&mut self, hint: String) {
        self.hint = Some(hint);
    }

    /// The same, pointing at a place.
    #[must_use]
    pub fn at(self, span: Span) -> Self {
        self.at_some(Some(span))
    }

    /// The same, pointing at a place when there is one.
    #[must_use]
    pub fn at_some(mut self, span: Option<Span>) -> Self {
        self.span = span.or(self.span);
        self
    }
}

impl Display for Diagnostic {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for Diagnostic {}

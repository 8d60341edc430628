use super::{Code, Span};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// How much a diagnostic matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Recognised, and told for information.
    Note,
    /// Probably not what its writer meant; read on with the likeliest meaning.
    Warning,
    /// Cannot be, or cannot be read.
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

/// One finding about a text. The message is lowercase and gives the values; the hint says what would work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: what code asks, as messages are for people.
    pub code: Code,
    /// What is wrong, with the values at hand.
    pub message: String,
    /// What would work instead.
    pub hint: Option<String>,
    /// Where in the text; none for what no single place is to blame for.
    pub span: Option<Span>,
}

impl Diagnostic {
    /// A diagnostic of [`Severity::Error`].
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message.into())
    }

    /// A diagnostic of [`Severity::Warning`].
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message.into())
    }

    /// A diagnostic of [`Severity::Note`].
    pub fn note(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message.into())
    }

    fn new(severity: Severity, code: Code, message: String) -> Self {
        Self { severity, code, message, hint: None, span: None }
    }

    /// The same with a hint of what would work.
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
        // A place that is not known takes back none that is.
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

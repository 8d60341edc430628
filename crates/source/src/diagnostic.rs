use super::{Code, Span};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// How much a diagnostic matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Recognised, and reported for information.
    Note,
    /// Probably not what its writer meant; reading continues with the likeliest meaning.
    Warning,
    /// Impossible or unreadable.
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
    /// What it is about. Programs match on this, since messages are for people.
    pub code: Code,
    /// What is wrong, with the values at hand.
    pub message: String,
    /// What would work instead.
    pub hint: Option<String>,
    /// Where in the text; `None` if no single place is to blame.
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

    /// The same, pointing at a span.
    #[must_use]
    pub fn at(self, span: Span) -> Self {
        self.at_some(Some(span))
    }

    /// The same, pointing at a span if there is one.
    #[must_use]
    pub fn at_some(mut self, span: Option<Span>) -> Self {
        // An unknown span does not overwrite a known one.
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

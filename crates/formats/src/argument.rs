//! The words of a training command.

use shardscope_source::Span;

/// A word of the training command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// The word after all expansions.
    pub text: String,
    /// Its place in the source.
    pub span: Option<Span>,
    /// The variable that the word depends on, if that is not known.
    pub hole: Option<String>,
    /// Whether it contains an answer of the user or a variable of the page's environment.
    pub answered: bool,
}

impl Argument {
    /// The words of a command line, split at blanks, without source positions.
    #[must_use]
    pub fn split(line: &str) -> Vec<Self> {
        line.split_ascii_whitespace().map(Self::from).collect()
    }
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

//! Names of questions that ask for no setting, and what an answer is given as.

use shardscope_plan::{Field, Question};

/// The name of the question for several variables at once; its answer is `NAME=value` words.
pub const VARIABLES: &str = "variables";

/// The name of the question which of several recipes is meant.
pub const RECIPE: &str = "recipe";

/// The name of the question for the line that starts a program; its answer is read as if it were pasted beside the program.
pub const COMMAND_LINE: &str = "command_line";

/// The name of the question for the whole line behind a script.
pub const ARGUMENTS: &str = "arguments";

/// What the answer to a question is given as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// A value of this setting.
    Setting(Field),
    /// A variable of the script, by the question's name.
    Variable,
    /// Several variables, one in each word.
    Variables,
    /// All words behind the script in its call.
    Arguments,
    /// One of these words; its name is `$1` or the like.
    Argument,
}

impl AnswerKind {
    /// The kind of answer that `question` asks for.
    #[must_use]
    pub fn from_question(question: &Question) -> Self {
        match question.name.as_str() {
            VARIABLES => Self::Variables,
            ARGUMENTS => Self::Arguments,
            name if name.starts_with('$') => Self::Argument,
            // What is no setting is a variable of the script.
            name => Field::named(name).map_or(Self::Variable, Self::Setting),
        }
    }
}

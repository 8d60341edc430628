//! Names of questions that ask for no setting.

/// The name of the question for several variables at once; its answer is `NAME=value` words.
pub const VARIABLES: &str = "variables";

/// The name of the question which of several recipes is meant.
pub const RECIPE: &str = "recipe";

/// The name of the question for the line that starts a program; its answer is read as if it were pasted beside the program.
pub const COMMAND_LINE: &str = "command_line";

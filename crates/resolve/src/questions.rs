//! Names of questions that ask for no setting.

/// The name of the question for several variables at once; its answer is `NAME=value` words.
pub const VARIABLES: &str = "variables";

/// The name of the question which of several recipes is meant.
pub const RECIPE: &str = "recipe";

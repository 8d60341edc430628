//! The script in the text box before the user replaces it.

/// A GPT on two nodes of eight GPUs with tensor and pipeline parallel size 2, the example of the analysis tool of
/// 2023.
pub const EXAMPLE: &str = include_str!("example.sh");

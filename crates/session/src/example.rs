//! The script that the box holds before the reader puts their own there.

/// A GPT on two nodes of eight GPUs with tensor and pipeline parallel size 2, as the analysis tool of 2023
/// was shown with.
pub const EXAMPLE: &str = include_str!("example.sh");

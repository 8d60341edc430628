//! Every estimate of one plan as one value, as JSON and as text.

pub mod analysis_tool;
mod tree;

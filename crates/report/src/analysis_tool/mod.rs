//! The figures of the analysis tool proposed for Megatron-LM in 2023, next to ours: what it prints, where it is
//! right, and where it departs and why. For readers who come from that proposal.

mod compare;
mod departures;
mod figures;
mod measured;

pub use compare::{Figure, ToolRow, compare};
pub use departures::{Departure, departures, tables};
pub use figures::{ToolFigures, ToolMemory, ToolTraffic, tool_ffn, tool_figures, tool_gb};
pub use measured::{MEASURED, MeasuredRow};

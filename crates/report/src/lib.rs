//! Every estimate of one plan as one value, as JSON and as text.

pub mod analysis_tool;
pub mod compare;
mod csv;
pub mod document;
mod finding;
mod report;
pub mod text;
mod whole;

pub use csv::{communication_csv, memory_csv, settings_csv};
pub use document::{Document, SCHEMA, document};
pub use finding::{Expected, Finding};
pub use report::{Report, report};
pub use whole::uncut;

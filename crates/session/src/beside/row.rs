//! The run that the reader measured, as a row of evidence.

use serde::{Deserialize, Serialize};
use shardscope_measured::{Contribution, Provenance, read};

use crate::log_text;
use crate::state::State;

/// A row of evidence as a reader sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRow {
    /// The row, a line of JSON; empty where settings alone cannot say the plan, since a row has nothing of the script.
    pub line: String,
    /// What is still lacking, a sentence each.
    pub lacking: Vec<String>,
}

impl EvidenceRow {
    /// The row of what `state` shows, measured by the log beside it.
    pub(super) fn new(state: &State, provenance: &Provenance) -> Self {
        // A log that is cut off or of an unknown tool gives no measurement, and the row then says that it lacks one.
        let measured = read(log_text(&state.input).as_bytes()).unwrap_or_default();
        let measured: Vec<_> = measured.iter().collect();
        match Contribution::from_run(&state.answer.resolution, &measured, provenance) {
            Some(Contribution { row, lacking }) => Self { line: row.line(), lacking },
            None => Self::default(),
        }
    }
}

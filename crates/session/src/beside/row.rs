//! The run that the reader measured, as a row of evidence.

use serde::{Deserialize, Serialize};
use shardscope_measured::{Contribution, Provenance, read};

use crate::log_text;
use crate::state::State;

/// A row of evidence as shown to the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRow {
    /// The row, a line of JSON; empty if settings alone cannot express the plan, since a row contains nothing of the
    /// script.
    pub line: String,
    /// What is still lacking, a sentence each.
    pub lacking: Vec<String>,
}

impl EvidenceRow {
    /// The row of what `state` shows, measured by its log.
    pub(super) fn new(state: &State, provenance: &Provenance) -> Self {
        // A log that is truncated or from an unknown tool gives no measurement, and the row then states that it lacks
        // one.
        let measured = read(log_text(&state.input).as_bytes()).unwrap_or_default();
        let measured: Vec<_> = measured.iter().collect();
        match Contribution::from_run(&state.answer.resolution, &measured, provenance) {
            Some(Contribution { row, lacking }) => Self { line: row.line(), lacking },
            None => Self::default(),
        }
    }
}

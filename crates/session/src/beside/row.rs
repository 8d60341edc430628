//! The run that the reader measured, as a row of evidence.

use serde::{Deserialize, Serialize};
use shardscope_measured::{Contribution, Measured, Provenance, read};

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
        let own = &state.input.own;
        // A log that is truncated or from an unknown tool gives no measurement, and the row then states that it lacks
        // one.
        let log = read(own.log.as_bytes()).unwrap_or_default();
        let files = own.files.iter().flat_map(|file| &file.found);
        let measured: Vec<&Measured> = log.iter().chain(files).collect();
        match Contribution::from_run(&state.answer.resolution, &measured, provenance) {
            Some(Contribution { row, lacking }) => Self { line: row.line(), lacking },
            None => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::beside::{Progress, Provenance, Task, Working};
    use crate::{EXAMPLE, UserInput};

    #[test]
    fn a_measured_run_becomes_a_row() {
        let mut log = String::new();
        for step in 1..=12 {
            log +=
                &format!(" iteration {step}/ 12 | elapsed time per iteration (ms): {}.0 |\n", 5_000 + step);
        }
        let mut input = UserInput::from_text(&format!("# secret\n{EXAMPLE}"));
        input.own = input.own.with_log(&log);
        // There and back as text, as a worker's task.
        let row = |input: &UserInput, provenance: &Provenance| {
            let working = Working::begin(&Task::row(input, provenance).written()).unwrap();
            match Progress::read(&working.progress_text()) {
                Some(Progress::Row(row)) => row,
                other => panic!("{other:?}"),
            }
        };
        let short = row(&input, &Provenance::default());
        let lacks: Vec<&str> = short.lacking.iter().filter_map(|what| what.split(':').next()).collect();
        assert_eq!(lacks, ["source", "date", "versions", "accelerator"]);
        let stated = Provenance {
            source: "https://example.org/log".to_owned(),
            date: "2026-03".to_owned(),
            versions: "core 0.14".to_owned(),
        };
        // A correction by the run's own step time is not a setting of the run: the row is what the estimate is
        // compared with.
        for (name, value) in [("accelerator", "H100-SXM"), ("measured_over_estimated", "1.1")] {
            input.settings.push((name.to_owned(), value.to_owned()));
        }
        let whole = row(&input, &stated);
        assert!(whole.lacking.is_empty(), "{:?}", whole.lacking);
        let read = shardscope_measured::Row::read(whole.line.trim_end()).unwrap();
        assert_eq!((read.steps, read.step_seconds), (12, Some(5.007)));
        // A Trainer's log tells the pace just as well, and a file beside it the memory.
        let mut bars = String::new();
        for step in 1..=24 {
            bars += &format!("  4%|4         | {step}/24 [00:00<00:14,  5.00s/it]\r");
        }
        let memory = "{'allocated_bytes.all.peak': 61234567890, 'reserved_bytes.all.peak': 70345678901}";
        let found = shardscope_measured::read(memory.as_bytes()).unwrap();
        let file = crate::OwnFile { name: "memory.txt".to_owned(), found };
        input.own = input.own.with_log(&bars).with_file(file);
        let of_trainer = row(&input, &stated);
        assert!(of_trainer.lacking.is_empty(), "{:?}", of_trainer.lacking);
        let read = shardscope_measured::Row::read(of_trainer.line.trim_end()).unwrap();
        assert_eq!(
            (read.steps, read.step_seconds, read.max_allocated),
            (23, Some(5.0), Some(61_234_567_890))
        );
        assert!(!whole.line.contains("secret") && !whole.line.contains("measured_over"), "{}", whole.line);
    }
}

//! Work that an answer does not wait for (a search, a question, a file to download, a row of evidence), as a task for
//! web workers. Tasks and their results are JSON texts: page and worker are separate WebAssembly programs and share
//! no memory.

mod around;
mod file;
mod found;
mod layout;
mod measurement;
mod reply;
mod row;
mod why;

use serde::{Deserialize, Serialize};
pub use shardscope_measured::Provenance;
use shardscope_plan::Plan;
use shardscope_search::{Inquiry, Question, Walk};

use super::asked::{Asked, Asking};
use super::keep::{keep_input, restore};
use super::state::State;
use super::user_input::UserInput;
use super::varied::Varied;
pub use around::{Around, BestEdits, Neighbour};
pub use file::PlanFile;
pub use found::Found;
pub use layout::{DEGREES, Layout, Recomputed};
pub use measurement::Measurement;
pub use reply::{Reached, Reply, ReplyLine};
pub use row::EvidenceRow;
pub use why::{Tried, why_not_best, why_not_typed};

/// A task for a worker, with all that it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The reader's input, as [`keep_input`] writes it.
    input: String,
    work: Work,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Work {
    /// The layouts in one of `parts` parts of the search space, counted from 0.
    Layouts { vary: Varied, part: usize, parts: usize },
    /// The answer to a question.
    Question(Asked),
    /// A file of the plan.
    File(PlanFile),
    /// The run as a row of evidence.
    Row(Provenance),
}

/// Result of a task so far; each step's result replaces the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Progress {
    /// Of layouts.
    Found(Box<Found>),
    /// Of a question.
    Reply(Reply),
    /// The file that was asked for.
    File(String),
    /// The run as a row of evidence.
    Row(EvidenceRow),
    /// What a file of the run's own tools has. Its bytes are no task: a worker is handed the file itself.
    Measured(Measurement),
}

impl Task {
    /// Layouts around the plan of `input`, its dimensions varied as `vary` says: one of `parts` parts of the space.
    #[must_use]
    pub fn layouts(input: &UserInput, vary: &Varied, part: usize, parts: usize) -> Self {
        Self { input: keep_input(input), work: Work::Layouts { vary: vary.clone(), part, parts } }
    }

    /// A question about the run of `input`.
    #[must_use]
    pub fn question(input: &UserInput, asked: &Asked) -> Self {
        Self { input: keep_input(input), work: Work::Question(asked.clone()) }
    }

    /// A file of the plan of `input`.
    #[must_use]
    pub fn file(input: &UserInput, file: PlanFile) -> Self {
        Self { input: keep_input(input), work: Work::File(file) }
    }

    /// The run of `input`, measured by its own tools, as a row of evidence.
    #[must_use]
    pub fn row(input: &UserInput, provenance: &Provenance) -> Self {
        Self { input: keep_input(input), work: Work::Row(provenance.clone()) }
    }

    /// As JSON, for [`Working::begin`].
    #[must_use]
    pub fn written(&self) -> String {
        // Writing to memory cannot fail, and all keys are text.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Progress {
    /// Parses what [`Self::written`] wrote; `None` if another version of the program wrote it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        // After an update, a worker of the previous version may still answer, so text that does not parse is ignored
        // rather than a crash.
        serde_json::from_str(text).ok()
    }

    /// As JSON, for [`Self::read`].
    #[must_use]
    pub fn written(&self) -> String {
        // Writing to memory cannot fail, and all keys are text.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A task in progress.
#[derive(Debug)]
pub struct Working(Stage);

#[derive(Debug)]
enum Stage {
    /// A part of the space, with the plan at its centre.
    Layouts { walk: Box<Walk>, plan: Box<Plan>, is_first: bool, around: Box<Around> },
    /// All layouts are decided and none fits: how many accelerators would suffice?
    Enough { walk: Box<Walk>, around: Box<Around>, inquiry: Box<Inquiry>, goes_on: bool },
    /// A question, and whether there is more to evaluate.
    Question(Box<Asking>, bool),
    /// A question that cannot be asked, and why.
    Refused(String),
    /// A file, which is written at once.
    File(String),
    /// A row of evidence, likewise.
    Row(EvidenceRow),
}

impl Working {
    /// Begins what [`Task::written`] describes; `None` if the text is not a task or its input does not form a plan.
    #[must_use]
    pub fn begin(task: &str) -> Option<Self> {
        let task: Task = serde_json::from_str(task).ok()?;
        // A search has no use for the pinned plan, which `restore` would restore too.
        let input = restore(&task.input)?.input;
        Some(Self(match task.work {
            Work::Layouts { vary, part, parts } => {
                // Only the plan: a report, and especially advice, would take longer than the first layouts.
                let plan = why::planned(&input, &[]).ok()?;
                let walk = Box::new(Walk::with(&plan, vary.choices()).part(part, parts));
                // Only part 0 continues with how many accelerators would suffice; otherwise every worker would
                // evaluate the same question.
                Stage::Layouts { walk, plan: Box::new(plan), is_first: part == 0, around: Box::default() }
            }
            Work::Question(asked) => match Asking::new(&input, &asked) {
                Ok(asking) => Stage::Question(Box::new(asking), true),
                // A refusal is a result: the user is told what is missing instead of an answer.
                Err(why) => Stage::Refused(why.to_string()),
            },
            // Written at once: a file is one step, and `step` has nothing left to do.
            Work::File(file) => Stage::File(file.written(&*State::new(input).shown?)),
            Work::Row(provenance) => Stage::Row(EvidenceRow::new(&State::new(input), &provenance)),
        }))
    }

    /// Evaluates up to `count` more candidates; `false` once there are none.
    pub fn step(&mut self, count: u64) -> bool {
        match &mut self.0 {
            Stage::Layouts { walk, plan, is_first, around } => {
                if walk.step(count) {
                    return true;
                }
                // At the end, so that no layout waits for it.
                if *is_first {
                    **around = Around::new(plan);
                }
                // If nothing fits, the next question is how many accelerators would suffice. One part evaluates it;
                // if another part has found something, that answer is dropped.
                let asks = *is_first && walk.ranked().next().is_none();
                if asks {
                    let inquiry =
                        Box::new(Inquiry::new(plan, Question::FewestGpus, walk.space().choices().clone()));
                    // The walk is cloned, because `known` reports its tallies along with the answer and `self.0` is
                    // borrowed here.
                    self.0 =
                        Stage::Enough { walk: walk.clone(), around: around.clone(), inquiry, goes_on: true };
                }
                asks
            }
            Stage::Enough { inquiry, goes_on, .. } => {
                // Stored, not only returned: `known` may be called after the last step, and must then report that
                // nothing more comes.
                *goes_on = inquiry.step(count);
                *goes_on
            }
            Stage::Question(asking, goes_on) => {
                *goes_on = asking.step(count);
                *goes_on
            }
            Stage::Refused(_) | Stage::File(_) | Stage::Row(_) => false,
        }
    }

    /// The answer so far; meaningful after any step.
    #[must_use]
    pub fn known(&self) -> Progress {
        match &self.0 {
            Stage::Layouts { walk, around, .. } => {
                Progress::Found(Box::new(Found { around: around.clone(), ..Found::from_walk(walk) }))
            }
            Stage::Enough { walk, around, inquiry, goes_on } => {
                let found = Found { around: around.clone(), ..Found::from_walk(walk) };
                Progress::Found(Box::new(if *goes_on {
                    // All parts of the walk are done here. Unless one more item is outstanding, the page would end
                    // the search before the answer.
                    found.with_one_more()
                } else {
                    let chosen = inquiry.chosen().and_then(|chosen| inquiry.reached().get(chosen));
                    Found { needs: chosen.map(|reached| reached.gpus), ..found }
                }))
            }
            Stage::Question(asking, goes_on) => Progress::Reply(Reply::new(asking, *goes_on)),
            Stage::Refused(why) => Progress::Reply(Reply::refused(why)),
            Stage::File(text) => Progress::File(text.clone()),
            Stage::Row(row) => Progress::Row(row.clone()),
        }
    }

    /// [`Self::known`] as JSON, for [`Progress::read`].
    #[must_use]
    pub fn progress_text(&self) -> String {
        self.known().written()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EXAMPLE, Topic};
    use shardscope_units::{gib, seconds};

    fn finished(task: &Task) -> Progress {
        let mut working = Working::begin(&task.written()).unwrap();
        while working.step(u64::MAX) {}
        Progress::read(&working.progress_text()).unwrap()
    }

    fn found(input: &UserInput, part: usize, parts: usize) -> Found {
        match finished(&Task::layouts(input, &Varied::default(), part, parts)) {
            Progress::Found(found) => *found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parts_find_together_what_one_search_finds() {
        let input = UserInput::from_text(EXAMPLE);
        let whole = found(&input, 0, 1);
        let parts: Vec<_> = (0..3).map(|part| Some(found(&input, part, 3))).collect();
        let joined = Found::joined(&parts);
        assert!(!whole.goes_on() && !joined.goes_on());
        // Every refused layout has its reason.
        for found in [&whole, &joined] {
            assert_eq!(found.reasons.iter().map(|(_, count)| count).sum::<u64>(), found.refused);
        }
        assert_eq!(whole.refused, joined.refused);
        // Every row of the table has the same number of columns, whatever a change contains.
        let table = joined.markdown();
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), joined.listed().len() + 2);
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{table}");
        let first = &joined.best[0];
        assert!(
            lines[2].contains(&format!("| {} | {} |", seconds(first.step()), gib(first.peak()))),
            "{table}"
        );
        // After it comes whatever else the parts hold.
        let roomy = |found: &Found| found.best.iter().filter(|one| !one.tight).cloned().collect::<Vec<_>>();
        assert!(!roomy(&whole).is_empty() && roomy(&joined).starts_with(&roomy(&whole)));
        let reaches = |one: &Layout, other: &Layout| one.step() <= other.step() && one.peak() <= other.peak();
        assert!(whole.frontier.iter().all(|other| joined.frontier.iter().any(|one| reaches(one, other))));
    }

    #[test]
    fn where_nothing_fits_the_first_part_goes_on_until_it_knows_how_many_would_do() {
        let mut input = UserInput::from_text(EXAMPLE);
        for (name, value) in [("num_layers", "160"), ("hidden_size", "16384"), ("num_attention_heads", "128")]
        {
            input.put((name.to_owned(), value.to_owned()));
        }
        let mut working = Working::begin(&Task::layouts(&input, &Varied::default(), 0, 1).written()).unwrap();
        let known = |working: &Working| match working.known() {
            Progress::Found(found) => found,
            other => panic!("{other:?}"),
        };
        while !matches!(working.0, Stage::Enough { .. }) {
            assert!(working.step(1));
        }
        // The page ends a search that reports that it is done.
        assert!(known(&working).goes_on() && known(&working).needs.is_none());
        while working.step(u64::MAX) {}
        let gpus = State::new(input.clone()).shown.unwrap().plan.cluster().gpus();
        assert!(known(&working).needs.is_some_and(|needs| needs > gpus));
        assert!(!known(&working).goes_on());
        assert!(found(&input, 1, 2).needs.is_none());
    }

    #[test]
    fn a_question_is_answered_or_says_what_is_missing() {
        let asked = |topic| Asked {
            topic,
            trained: None,
            tokens: None,
            days: None,
            price: None,
            most_nodes: None,
            prices: [].into(),
            vary: Varied::default(),
        };
        let input = UserInput::from_text(EXAMPLE);
        let reply = |topic| match finished(&Task::question(&input, &asked(topic))) {
            Progress::Reply(reply) => reply,
            other => panic!("{other:?}"),
        };
        let answer = reply(Topic::LargestMicroBatch);
        assert!(!answer.goes_on && answer.lines.iter().any(|line| line.is_answer && line.reached.is_some()));
        assert_eq!(reply(Topic::Cheapest).sentence, "How many tokens is it trained on?");
    }

    #[test]
    fn files_are_those_of_the_plan_that_is_shown() {
        let input = UserInput::from_text(EXAMPLE);
        let shown = State::new(input.clone()).shown.unwrap();
        for file in PlanFile::ALL {
            let written = file.written(&shown);
            assert!(written.len() > 200, "{file:?}");
            assert_eq!(finished(&Task::file(&input, file)), Progress::File(written), "{file:?}");
        }
    }

    #[test]
    fn what_is_no_task_is_not_begun() {
        for text in ["", "{}", "null", r#"{"input":"","work":{"Layouts":{"part":0,"parts":1}}}"#] {
            assert!(Working::begin(text).is_none(), "{text}");
        }
        assert!(
            Working::begin(&Task::layouts(&UserInput::from_text(""), &Varied::default(), 0, 1).written())
                .is_none()
        );
        assert_eq!(Progress::read(r#"{"Found":{}}"#), None);
    }
}

//! What the engine says to what the reader has in hand.

use super::{Hand, Held, StageMemory, stage_memories};
use crate::estimate::compute::Measured;
use crate::estimate::time::{Time, time};
use crate::intake::shell::Environment;
use crate::intake::{Request, Resolution, read};
use crate::plan::Plan;
use crate::report::{Report, document, report};
use crate::text::Source;

/// The answer to one text.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The text that it answers, for places in it.
    pub source: Source,
    /// Plan, settings, questions and diagnostics.
    pub resolution: Resolution,
}

/// Everything shown of one plan.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What made the plan.
    pub answer: Held<Answer>,
    /// The plan.
    pub plan: Plan,
    /// Every estimate.
    pub report: Report,
    /// The time of a step.
    pub time: Time,
    /// The memory of each stage as it is shown.
    pub stages: Vec<StageMemory>,
}

impl Shown {
    /// The report as a JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        let document = document(&self.answer.source, &self.answer.resolution, Some(&self.report));
        format!("{document:#}\n")
    }

    /// The stage that needs most.
    #[must_use]
    pub fn worst(&self) -> Option<&StageMemory> {
        self.stages.iter().max_by_key(|stage| stage.reserved)
    }
}

/// Reads what is in hand, and estimates what it takes if it is a plan.
#[must_use]
pub fn answer(hand: &Hand) -> (Held<Answer>, Option<Shown>) {
    let source = hand.source();
    let environment = Environment {
        variables: hand.environment.clone(),
        arguments: hand.arguments.split_ascii_whitespace().map(str::to_owned).collect(),
    };
    let request = Request { source: &source, environment: &environment, overrides: &hand.settings };
    let resolution = read(&request);
    let plan = resolution.plan.clone();
    let answer = Held::new(Answer { source, resolution });
    let shown = plan.map(|plan| {
        let report = report(&plan, &Measured::default());
        Shown {
            answer: answer.clone(),
            stages: stage_memories(&plan, &report.memory),
            time: time(&plan, &Measured::default()),
            report,
            plan,
        }
    });
    (answer, shown)
}

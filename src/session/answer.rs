//! What the engine says to what the reader has in hand.

use super::{Hand, StageMemory};
use crate::estimate::compute::Measured;
use crate::estimate::{Parameters, Utilisation, parameters, utilisation};
use crate::intake::shell::Environment;
use crate::intake::{Request, Resolution, read};
use crate::plan::Plan;
use crate::text::Source;

/// The answer to one text.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The text that it answers, for places in it.
    pub source: Source,
    /// Settings, questions and diagnostics; the plan is taken out.
    pub resolution: Resolution,
}

/// Everything shown of one plan.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The plan.
    pub plan: Plan,
    /// The memory of each stage; empty while no engine tells it.
    pub stages: Vec<StageMemory>,
    /// Parameters of the model and of each rank.
    pub parameters: Parameters,
    /// Every matrix product.
    pub utilisation: Vec<Utilisation>,
}

impl Shown {
    /// The stage that needs most.
    #[must_use]
    pub fn worst(&self) -> Option<&StageMemory> {
        self.stages.iter().max_by_key(|stage| stage.reserved)
    }
}

/// Reads what is in hand, and estimates what it takes if it is a plan.
#[must_use]
pub fn answer(hand: &Hand) -> (Answer, Option<Shown>) {
    let source = Source::new(&hand.text);
    let environment = Environment {
        variables: hand.environment.clone(),
        arguments: hand.arguments.split_ascii_whitespace().map(str::to_owned).collect(),
    };
    let request = Request { source: &source, environment: &environment, overrides: &hand.settings };
    let mut resolution = read(&request);
    let shown = resolution.plan.take().map(show);
    (Answer { source, resolution }, shown)
}

fn show(plan: Plan) -> Shown {
    Shown {
        stages: Vec::new(),
        parameters: parameters(&plan),
        utilisation: utilisation(&plan, &Measured::default()),
        plan,
    }
}

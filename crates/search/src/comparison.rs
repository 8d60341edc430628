//! One question asked of several plans: other accelerators, other models. Processed in steps, like an [`Inquiry`].

use super::dimension::Choices;
use super::question::{Inquiry, Question, Reached};
use shardscope_plan::{Field, Plan};

/// An alternative that the reader could choose, as a plan.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// The plan with it, in any layout, to search around.
    pub plan: Plan,
    /// The settings that turn the reader's plan into this one; all settings if it is built from scratch.
    pub before: Vec<(Field, String)>,
    /// Price per accelerator and hour, if it is stated.
    pub price: Option<f64>,
}

/// What ends a comparison, and which answer is preferred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preferred {
    /// The first candidate that has an answer: candidates are given best first.
    First,
    /// The one that needs the fewest accelerators; ties go to the cheaper, then to the faster.
    FewestGpus,
    /// The one that costs the least.
    Cheapest,
}

/// A comparison in progress.
#[derive(Clone, Debug)]
pub struct Comparison {
    preferred: Preferred,
    question: Question,
    choices: Choices,
    candidates: Vec<Candidate>,
    /// Number of candidates asked; the last one may not be finished.
    asked: usize,
    inquiry: Option<Inquiry>,
    answers: Vec<Option<Reached>>,
}

impl Comparison {
    /// Asks `question` of each of `candidates`, with every dimension varied as `choices` say. A
    /// [`Question::Cheapest`] uses each candidate's own price; without one, the question's price.
    #[must_use]
    pub fn new(
        candidates: Vec<Candidate>,
        question: Question,
        choices: Choices,
        preferred: Preferred,
    ) -> Self {
        Self { preferred, question, choices, candidates, asked: 0, inquiry: None, answers: Vec::new() }
    }

    /// Processes up to `count` more items; returns whether there are more.
    pub fn step(&mut self, count: u64) -> bool {
        if let Some(inquiry) = &mut self.inquiry {
            if inquiry.step(count) {
                return true;
            }
            let answer = inquiry.chosen().and_then(|place| inquiry.reached().get(place)).cloned();
            // Candidates come best first, so once one has an answer the rest do not matter.
            let ends = self.preferred == Preferred::First && answer.is_some();
            self.answers.push(answer);
            self.inquiry = None;
            if ends {
                self.asked = self.candidates.len();
            }
        } else if let Some(candidate) = self.candidates.get(self.asked) {
            self.asked += 1;
            let question = match (self.question, candidate.price) {
                (Question::Cheapest { tokens, days, most_nodes, .. }, Some(price)) => {
                    Question::Cheapest { tokens, days, price, most_nodes }
                }
                (question, _) => question,
            };
            let inquiry = Inquiry::new(&candidate.plan, question, self.choices.clone());
            self.inquiry = Some(inquiry.after(candidate.before.clone()));
        }
        self.inquiry.is_some() || self.asked < self.candidates.len()
    }

    /// Every candidate asked so far with its answer, in order; none if nothing fits.
    pub fn answers(&self) -> impl Iterator<Item = (&Candidate, Option<&Reached>)> {
        self.candidates.iter().zip(self.answers.iter().map(Option::as_ref))
    }

    /// The index of the preferred one among the answers.
    #[must_use]
    pub fn chosen(&self) -> Option<usize> {
        let held = self.answers().enumerate().filter_map(|(place, (candidate, answer))| {
            let answer = answer?;
            let hourly = candidate.price.map_or(f64::INFINITY, |price| price * real(answer.gpus));
            let cost = answer.cost.unwrap_or(f64::INFINITY);
            Some((place, real(answer.gpus), hourly, cost, -answer.tokens_per_second))
        });
        let chosen = held.min_by(|one, other| match self.preferred {
            Preferred::First => std::cmp::Ordering::Equal,
            Preferred::FewestGpus => {
                // Counts and prices as floats, compared the same way; ties are decided by the next figure.
                let by = |one: f64, other: f64| one.total_cmp(&other);
                by(one.1, other.1).then(by(one.2, other.2)).then(by(one.4, other.4))
            }
            Preferred::Cheapest => one.3.total_cmp(&other.3),
        });
        chosen.map(|(place, ..)| place)
    }
}

#[allow(clippy::cast_precision_loss)]
fn real(count: u64) -> f64 {
    count as f64
}

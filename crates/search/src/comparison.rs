//! One question asked of several plans: other accelerators, other models. Worked on in steps, as an [`Inquiry`].

use super::dimension::Choices;
use super::question::{Inquiry, Question, Reached};
use shardscope_plan::{Field, Plan};

/// Something else that a reader could take, as a plan.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// The plan with it: any layout, to search around.
    pub plan: Plan,
    /// The settings that turn the reader's plan into this one; all of them where it is made from nothing.
    pub before: Vec<(Field, String)>,
    /// Money per accelerator and hour, where it is stated.
    pub price: Option<f64>,
}

/// What ends a comparison, and what the best of it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preferred {
    /// The first candidate that has an answer: candidates are given the best first.
    First,
    /// The one that needs the fewest accelerators; of equals the cheaper, then the faster.
    FewestGpus,
    /// The one that costs least.
    Cheapest,
}

/// A comparison under way.
#[derive(Clone, Debug)]
pub struct Comparison {
    preferred: Preferred,
    question: Question,
    choices: Choices,
    candidates: Vec<Candidate>,
    /// Candidates asked, the last one perhaps not to the end.
    asked: usize,
    inquiry: Option<Inquiry>,
    answers: Vec<Option<Reached>>,
}

impl Comparison {
    /// `question` asked of each of `candidates`, every dimension varied as `choices` say. A [`Question::Cheapest`] is asked at each
    /// candidate's own price; one without a price is asked at the question's.
    #[must_use]
    pub fn new(
        candidates: Vec<Candidate>,
        question: Question,
        choices: Choices,
        preferred: Preferred,
    ) -> Self {
        Self { preferred, question, choices, candidates, asked: 0, inquiry: None, answers: Vec::new() }
    }

    /// Looks at up to `count` more things; whether there are more.
    pub fn step(&mut self, count: u64) -> bool {
        if let Some(inquiry) = &mut self.inquiry {
            if inquiry.step(count) {
                return true;
            }
            let answer = inquiry.chosen().and_then(|place| inquiry.reached().get(place)).cloned();
            // Candidates come the best first, so that one with an answer makes all behind it uninteresting.
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
            self.inquiry = Some(inquiry.told_behind(candidate.before.clone()));
        }
        self.inquiry.is_some() || self.asked < self.candidates.len()
    }

    /// Every candidate that was asked with its answer, in the order of asking; none where nothing of it fits.
    pub fn answers(&self) -> impl Iterator<Item = (&Candidate, Option<&Reached>)> {
        self.candidates.iter().zip(self.answers.iter().map(Option::as_ref))
    }

    /// The place of the preferred one among the answers.
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
                // Counts and prices as reals, which compare alike; ties go on to the next figure.
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

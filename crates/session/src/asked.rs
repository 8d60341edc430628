//! What people ask about the current run before they launch: other machines, lengths, batches, models.

use std::collections::BTreeMap;

use super::kinds::{AskError, kinds, plan_of};
use super::largest::models_on;
use super::start::{Choice, Objective};
use super::trained::Trained;
use super::user_input::UserInput;
use super::varied::Varied;
use serde::{Deserialize, Serialize};
use shardscope_search::{Candidate, Comparison, Inquiry, Preferred, Question, Reached, cheapest};
use shardscope_units::grouped;

/// A question that a form offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// The fewest accelerators of this kind that hold the run.
    FewestGpus,
    /// The kind of accelerator of which the fewest hold it.
    WhichGpu,
    /// The number of nodes on which the tokens cost least.
    Cheapest,
    /// The fastest layout from one node up to a given number.
    Scaling,
    /// What one more node brings.
    OneMoreNode,
    /// The longest sequence length that fits.
    LongestSequence,
    /// The largest micro-batch that fits.
    LargestMicroBatch,
    /// The largest model of the catalog that fits on these machines.
    LargestModel,
}

impl Topic {
    /// Every topic, in the order in which the list shows them.
    pub const ALL: [Self; 8] = [
        Self::FewestGpus,
        Self::WhichGpu,
        Self::Cheapest,
        Self::Scaling,
        Self::OneMoreNode,
        Self::LongestSequence,
        Self::LargestMicroBatch,
        Self::LargestModel,
    ];

    /// The question in the words of a list.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FewestGpus => "Fewest GPUs that this run fits on",
            Self::WhichGpu => "GPU type that needs the fewest",
            Self::Cheapest => "Cheapest number of nodes",
            Self::Scaling => "Scaling with the number of nodes",
            Self::OneMoreNode => "What one more node brings",
            Self::LongestSequence => "Longest sequence that fits",
            Self::LargestMicroBatch => "Largest micro-batch that fits",
            Self::LargestModel => "Largest model that fits here",
        }
    }

    /// Whether it takes a number of nodes.
    #[must_use]
    pub const fn asks_nodes(self) -> bool {
        matches!(self, Self::Cheapest | Self::Scaling)
    }

    /// Whether it takes tokens, a price and days.
    #[must_use]
    pub const fn asks_budget(self) -> bool {
        matches!(self, Self::Cheapest)
    }
}

/// A question and the values its form asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// What is asked.
    #[serde(rename = "question")]
    pub topic: Topic,
    /// What trains; as in the run if nothing is chosen.
    #[serde(rename = "train")]
    pub trained: Option<Trained>,
    /// Tokens to train on.
    pub tokens: Option<u64>,
    /// Days available.
    pub days: Option<f64>,
    /// Money per accelerator and hour.
    pub price: Option<f64>,
    /// Nodes available.
    pub most_nodes: Option<u64>,
    /// For [`Topic::WhichGpu`]: money per accelerator and hour by kind. These kinds are compared, by what the tokens cost.
    #[serde(default)]
    pub prices: BTreeMap<String, f64>,
    /// How far each dimension is varied in every search for the answer.
    #[serde(default)]
    pub vary: Varied,
}

impl Asked {
    /// Checks that the question supports all of its values: an answer that ignored one would answer a different
    /// question.
    ///
    /// # Errors
    /// The first value that it does not support, or that is not a valid amount.
    pub fn checked(&self) -> Result<(), AskError> {
        let (budget, nodes) = (self.topic.asks_budget(), self.topic.asks_nodes());
        // Kinds are compared by what tokens cost where they have prices.
        let by_kind = self.topic == Topic::WhichGpu;
        let priced = by_kind && !self.prices.is_empty();
        let is_amount = |amount: f64| amount > 0.0 && amount.is_finite();
        let prices = (!self.prices.is_empty()).then(|| self.prices.values().all(|price| is_amount(*price)));
        let values = [
            ("tokens", self.tokens.map(|tokens| tokens > 0), budget || priced),
            ("days", self.days.map(is_amount), budget || priced),
            ("price", self.price.map(is_amount), budget),
            ("prices", prices, by_kind),
            ("most_nodes", self.most_nodes.map(|nodes| nodes > 0), nodes || priced),
        ];
        for (name, amount, taken) in values {
            match amount {
                Some(_) if !taken => return Err(AskError::Misplaced { name, topic: self.topic.name() }),
                Some(false) => return Err(AskError::NotPositive(name)),
                Some(true) | None => {}
            }
        }
        Ok(())
    }

    /// The input to which the changes of an answer are applied: a catalog model is a separate plan.
    #[must_use]
    pub fn changed(&self, input: &UserInput) -> UserInput {
        // Changes of such an answer state the whole plan (see `models_on`): applied to the input, its texts would
        // contradict them.
        if self.topic == Topic::LargestModel { UserInput::from_text("") } else { input.clone() }
    }
}

/// A question in progress.
#[derive(Debug)]
pub enum Asking {
    /// Varies the sizes of one run.
    Sizes(Box<Inquiry>),
    /// The kinds of accelerators, each with the number in a node.
    Kinds(Comparison, u64),
    /// The models of the catalog on the run's machines.
    Models(Comparison, Choice),
}

/// One line of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedLine {
    /// What was asked about: a number of accelerators, a length, a batch, a kind or a model.
    pub name: String,
    /// What was found; `None` if nothing fits.
    pub reached: Option<Reached>,
    /// Whether it is the answer.
    pub chosen: bool,
}

impl Asking {
    /// Starts `asked` for the user's input.
    ///
    /// # Errors
    /// What is missing to ask it.
    pub fn new(input: &UserInput, asked: &Asked) -> Result<Self, AskError> {
        let mut input = input.clone();
        let mut before = Vec::new();
        // A model of the catalog has its own plan for what trains.
        if let Some(trained) = asked.trained.filter(|_| asked.topic != Topic::LargestModel) {
            // Put into the input as well as into `before`: the plan searched around must already train so, and an
            // answer that is applied must include the change.
            before = trained.settings(&input);
            before.iter().for_each(|(field, value)| input.put((field.name().to_owned(), value.clone())));
        }
        let plan = plan_of(&input)?;
        // At least one node, since an empty range has no layout to fall back on.
        let most_nodes = asked.most_nodes.unwrap_or(plan.cluster().num_nodes).clamp(1, MOST_NODES);
        let choices = asked.vary.choices();
        let question = match asked.topic {
            Topic::FewestGpus => Question::FewestGpus,
            Topic::LongestSequence => Question::LongestSequence,
            Topic::LargestMicroBatch => Question::LargestMicroBatch,
            Topic::Scaling => Question::Scaling { most_nodes },
            Topic::OneMoreNode => Question::OneMoreNode,
            Topic::Cheapest => {
                let budget = &plan.recipe().budget;
                let tokens = asked.tokens.or(budget.tokens).ok_or(AskError::Tokens)?;
                let price = asked.price.or(budget.price_per_gpu_hour).ok_or(AskError::Price)?;
                Question::Cheapest { tokens, days: asked.days, price, most_nodes }
            }
            Topic::WhichGpu => {
                let candidates = kinds(&input, &plan, &before, &asked.prices)?;
                let (question, preferred) = if asked.prices.is_empty() {
                    (Question::FewestGpus, Preferred::FewestGpus)
                } else {
                    let tokens = asked.tokens.or(plan.recipe().budget.tokens).ok_or(AskError::Tokens)?;
                    // Each kind has its own price, so the question's price is not used.
                    let question = Question::Cheapest { tokens, days: asked.days, price: 0.0, most_nodes };
                    (question, Preferred::Cheapest)
                };
                let compared = Comparison::new(candidates, question, choices, preferred);
                return Ok(Self::Kinds(compared, plan.cluster().gpus_per_node));
            }
            Topic::LargestModel => {
                let cluster = plan.cluster();
                let choice = Choice {
                    model: String::new(),
                    objective: asked.trained.map_or(Objective::PreTrain, Trained::objective),
                    accelerator: cluster.accelerator.name.clone(),
                    gpus: cluster.gpus(),
                    sequence: plan.model().seq_length,
                };
                let compared = Comparison::new(models_on(&choice), Question::Fits, choices, Preferred::First);
                return Ok(Self::Models(compared, choice));
            }
        };
        // `after`: the change of what trains is part of every answer; otherwise opening one would restore the
        // old training.
        Ok(Self::Sizes(Box::new(Inquiry::new(&plan, question, choices).after(before))))
    }

    /// Evaluates up to `count` more candidates; returns whether there are more.
    pub fn step(&mut self, count: u64) -> bool {
        match self {
            Self::Sizes(inquiry) => inquiry.step(count),
            Self::Kinds(compared, _) | Self::Models(compared, _) => compared.step(count),
        }
    }

    /// The answer so far in one sentence.
    #[must_use]
    pub fn answer(&self) -> String {
        match self {
            Self::Sizes(inquiry) => inquiry.answer(),
            Self::Kinds(compared, per_node) => match best(compared) {
                Some((name, one)) if one.cost.is_some() => cheapest(name, one),
                Some((name, one)) => {
                    format!(
                        "{} {name} are enough; no other GPU type asked about needs fewer",
                        grouped(one.gpus)
                    )
                }
                None => format!("None of these accelerators answers it with {} per node", grouped(*per_node)),
            },
            Self::Models(compared, choice) => {
                let how = choice.objective.name();
                let machines = format!("{} {}", grouped(choice.gpus), choice.accelerator);
                match best(compared) {
                    Some((name, _)) => {
                        format!("{how}: {name} is the largest model of the catalog that fits on {machines}")
                    }
                    None => format!("{how}: no model of the catalog fits on {machines}"),
                }
            }
        }
    }

    /// What was evaluated, in order.
    #[must_use]
    pub fn lines(&self) -> Vec<AskedLine> {
        match self {
            Self::Sizes(inquiry) => {
                let chosen = inquiry.chosen();
                let line = |(place, one): (usize, &Reached)| AskedLine {
                    name: grouped(one.size),
                    reached: Some(one.clone()).filter(|one| one.outcome.is_some()),
                    chosen: chosen == Some(place),
                };
                inquiry.reached().iter().enumerate().map(line).collect()
            }
            Self::Kinds(compared, _) | Self::Models(compared, _) => {
                let chosen = compared.chosen();
                let line = |(place, (candidate, one)): (usize, (&Candidate, Option<&Reached>))| AskedLine {
                    name: candidate.name.clone(),
                    reached: one.cloned(),
                    chosen: chosen == Some(place),
                };
                compared.answers().enumerate().map(line).collect()
            }
        }
    }
}

/// Most nodes that a row goes up to, as many as the search for the fewest accelerators.
const MOST_NODES: u64 = 1 << 12;

fn best(compared: &Comparison) -> Option<(&str, &Reached)> {
    let (candidate, answer) = compared.answers().nth(compared.chosen()?)?;
    Some((&candidate.name, answer?))
}

#[cfg(test)]
mod tests;

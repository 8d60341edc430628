//! The run on other kinds of accelerators, and why a question about it cannot be asked.

use std::collections::BTreeMap;
use std::fmt;

use super::state::State;
use super::user_input::UserInput;
use shardscope_catalog::accelerator;
use shardscope_plan::{Field, Plan};
use shardscope_search::Candidate;

/// Reason why a question cannot be asked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// The input does not form a plan; carries the first reason.
    NoPlan(String),
    /// The number of tokens is missing.
    Tokens,
    /// The price of an accelerator is missing.
    Price,
    /// A kind of accelerator that the catalog does not have.
    Kind(String),
    /// A value that belongs to other questions.
    Misplaced {
        /// The value's name in a call.
        name: &'static str,
        /// The name of what is asked.
        topic: &'static str,
    },
    /// A value by its name in a call that is not above zero.
    NotPositive(&'static str),
}

impl fmt::Display for AskError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlan(reason) => write!(out, "This run cannot be planned: {reason}"),
            Self::Tokens => out.write_str("How many tokens is it trained on?"),
            Self::Price => out.write_str("What does a GPU-hour cost?"),
            Self::Kind(name) => write!(out, "The catalog has no accelerator {name}."),
            Self::Misplaced { name, topic } => {
                write!(out, "\"{topic}\" takes no {name}; leave it out")
            }
            Self::NotPositive(name) => write!(out, "{name} is not a positive number"),
        }
    }
}

impl std::error::Error for AskError {}

/// Kinds of accelerators to compare with the run's own.
const KINDS: [&str; 6] = ["A100-SXM-80GB", "H100-SXM", "H200-SXM", "B200", "MI300X", "MI355X"];

/// The plan of `input`.
pub(super) fn plan_of(input: &UserInput) -> Result<Plan, AskError> {
    let state = State::new(input.clone());
    if let Some(shown) = &state.shown {
        return Ok(shown.plan.clone());
    }
    let resolution = &state.answer.resolution;
    let stopped = resolution.not_modelled.first().map(|item| format!("not modelled: {}", item.name));
    let message = resolution.diagnostics.first().map(|first| first.message.clone());
    Err(AskError::NoPlan(stopped.or(message).unwrap_or_default()))
}

/// The run on each kind of accelerators, or on those named in `prices` if it is not empty; kinds on which the run is
/// not a valid plan, for example without fp8, are left out.
pub(super) fn kinds(
    input: &UserInput,
    plan: &Plan,
    before: &[(Field, String)],
    prices: &BTreeMap<String, f64>,
) -> Result<Vec<Candidate>, AskError> {
    let own = plan.cluster().accelerator.name.as_str();
    let priced = prices.iter().map(|(name, price)| {
        // The catalog matches prefixes of names, and an empty one would match anything.
        let known = accelerator(name).filter(|_| !name.is_empty());
        let known = known.ok_or_else(|| AskError::Kind(name.clone()))?;
        if *price > 0.0 { Ok((known.name, Some(*price))) } else { Err(AskError::Price) }
    });
    let mut names: Vec<(String, Option<f64>)> = priced.collect::<Result<_, _>>()?;
    if names.is_empty() {
        // Its own kind first, exactly once: with equal numbers the earlier candidate stays the answer.
        let all = [own].into_iter().chain(KINDS.into_iter().filter(|name| *name != own));
        names.extend(all.map(|name| (name.to_owned(), None)));
    }
    let candidate = |(name, price): (String, Option<f64>)| {
        let mut input = input.clone();
        let mut before = before.to_vec();
        // The run's own kind keeps its setting as it was read, since that may contain figures (memory, rates) that
        // the catalog does not have.
        if name != own {
            before.push((Field::Accelerator, name.clone()));
            input.put((Field::Accelerator.name().to_owned(), name.clone()));
        }
        Some(Candidate { plan: plan_of(&input).ok()?, name, before, price })
    };
    Ok(names.into_iter().filter_map(candidate).collect())
}

//! Questions that compare: kinds of accelerators, models of the catalog.

use std::process::ExitCode;

use serde::Serialize;
use shardscope::link::Pasted;
use shardscope::plan::{Field, Plan};
use shardscope::search::{Candidate, Choices, Comparison, Preferred, Question, Reached, cheapest};
use shardscope::session::{Choice, Objective, models_on};
use shardscope::units::{Bytes, Seconds, decimal, gib, grouped, rounded, seconds};

use crate::input::Input;
use crate::output::{Format, print, print_json, refuse};

/// Layouts tried in one call of `step`. A command has nothing to do in between, so the size matters little.
pub(super) const AT_ONCE: u64 = 256;

/// Options of the call that every comparison needs.
pub(super) struct Terms<'a> {
    /// Kinds of accelerators, with prices for an hour.
    pub(super) kinds: &'a [(String, Option<f64>)],
    /// The price of those without one.
    pub(super) price: Option<f64>,
    /// How far each dimension is varied.
    pub(super) choices: Choices,
    /// Candidates listed.
    pub(super) limit: usize,
    pub(super) format: Format,
}

/// Of which kind of accelerators the fewest hold the run, or the tokens cost least.
pub(super) fn kinds(
    terms: &Terms<'_>,
    (input, pasted): (&Input, &Pasted),
    plan: &Plan,
    question: Question,
) -> ExitCode {
    if terms.kinds.is_empty() {
        return refuse(
            "which kinds of accelerators? add --kinds, for example --kinds H100-SXM,A100-SXM-80GB",
        );
    }
    let mut candidates = Vec::new();
    for (name, price) in terms.kinds {
        let mut pasted = pasted.clone();
        // A kind stated by the call or a link would conflict with the candidate's.
        pasted.settings.retain(|(setting, _)| setting != Field::Accelerator.name());
        pasted.settings.push((Field::Accelerator.name().to_owned(), name.clone()));
        let answer = input.answer_of(pasted);
        let Some(plan) = answer.resolution.plan else {
            return refuse(&format!(
                "the run gives no plan on {name}: `shardscope report --accelerator {name}` says why"
            ));
        };
        // Included in the answer's changes, which start from the run as it was given.
        let before = vec![(Field::Accelerator, name.clone())];
        candidates.push(Candidate { name: name.clone(), plan, before, price: price.or(terms.price) });
    }
    let by_cost = matches!(question, Question::Cheapest { .. });
    let preferred = if by_cost { Preferred::Cheapest } else { Preferred::FewestGpus };
    let comparison = Comparison::new(candidates, question, terms.choices.clone(), preferred);
    write(
        terms,
        comparison,
        &|name, one| match (one.cost, one.days) {
            (Some(_), Some(_)) => cheapest(name, one),
            _ => {
                format!("{} {name} are enough; no other GPU type asked about needs fewer", grouped(one.gpus))
            }
        },
        &format!(
            "Nothing fits on any of these kinds of accelerators with {} per node",
            plan.cluster().gpus_per_node
        ),
    )
}

/// The largest model of the catalog that fits on the machines of `plan`.
pub(super) fn models(terms: &Terms<'_>, objective: Objective, plan: &Plan, question: Question) -> ExitCode {
    let cluster = plan.cluster();
    let choice = Choice {
        // Every model of the catalog is tried: `models_on` sets the name.
        model: String::new(),
        objective,
        accelerator: cluster.accelerator.name.clone(),
        gpus: cluster.gpus(),
        sequence: plan.model().seq_length,
    };
    // The largest model comes first, so the first that fits is the answer.
    let comparison = Comparison::new(models_on(&choice), question, terms.choices.clone(), Preferred::First);
    let machines = format!("{} {}", grouped(choice.gpus), choice.accelerator);
    let how = choice.objective.name();
    write(
        terms,
        comparison,
        &|name, _| format!("{how}: {name} is the largest model of the catalog that fits on {machines}"),
        &format!("{how}: no model of the catalog fits on {machines}"),
    )
}

/// The answer as a document.
#[derive(Serialize)]
struct Document {
    /// In one sentence.
    answer: String,
    /// Whether the question has an answer.
    answered: bool,
    compared: Vec<CandidateLine>,
}

/// One candidate.
#[derive(Serialize)]
struct CandidateLine {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
    fits: bool,
    gpus: Option<u64>,
    /// Unit: second.
    step_seconds: Option<Seconds>,
    /// Unit: byte.
    peak_reserved: Option<Bytes>,
    tokens_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    /// New values by the settings' names.
    change: Vec<(&'static str, String)>,
}

impl CandidateLine {
    fn new(candidate: &Candidate, answer: Option<&Reached>) -> Self {
        let outcome = answer.and_then(|one| one.outcome.as_ref());
        let changes = outcome.map(|one| one.changes.iter());
        Self {
            name: candidate.name.clone(),
            price: candidate.price,
            fits: outcome.is_some(),
            gpus: answer.map(|one| one.gpus),
            step_seconds: outcome.map(|one| one.step),
            peak_reserved: outcome.map(|one| one.peak),
            tokens_per_second: answer.map(|one| one.tokens_per_second),
            days: answer.and_then(|one| one.days),
            cost: answer.and_then(|one| one.cost),
            change: changes
                .into_iter()
                .flatten()
                .map(|(field, value)| (field.name(), value.clone()))
                .collect(),
        }
    }

    fn text(&self) -> String {
        let (Some(gpus), Some(step), Some(peak)) = (self.gpus, self.step_seconds, self.peak_reserved) else {
            return format!("{}: nothing fits", self.name);
        };
        let mut text = format!(
            "{}: {} GPUs, {}, {}, {} tokens/s",
            self.name,
            grouped(gpus),
            seconds(step),
            gib(peak),
            rounded(self.tokens_per_second.unwrap_or_default())
        );
        if let (Some(days), Some(cost)) = (self.days, self.cost) {
            text += &format!(", {} days, cost {}", decimal(days, 1), rounded(cost));
        }
        text
    }
}

fn write(
    terms: &Terms<'_>,
    mut comparison: Comparison,
    said: &dyn Fn(&str, &Reached) -> String,
    otherwise: &str,
) -> ExitCode {
    while comparison.step(AT_ONCE) {}
    let chosen = comparison.chosen().and_then(|place| comparison.answers().nth(place));
    let answer = chosen.and_then(|(candidate, answer)| Some(said(&candidate.name, answer?)));
    let answered = answer.is_some();
    let compared: Vec<CandidateLine> =
        comparison.answers().map(|(candidate, answer)| CandidateLine::new(candidate, answer)).collect();
    let document = Document { answer: answer.unwrap_or_else(|| otherwise.to_owned()), answered, compared };
    // The search ends at the first that fits: of many that do not, those next to it are informative enough.
    let skipped = document.compared.len().saturating_sub(terms.limit);
    let lines = document.compared.iter().skip(skipped).map(CandidateLine::text);
    match terms.format {
        Format::Json => print_json(&document),
        Format::Text => {
            let lines: String = lines.map(|line| format!("  {line}\n")).collect();
            print(&format!("{}\n{lines}", document.answer));
        }
        Format::Markdown => {
            let lines: String = lines.map(|line| format!("- {line}\n")).collect();
            print(&format!("{}\n\n{lines}", document.answer));
        }
    }
    if answered { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

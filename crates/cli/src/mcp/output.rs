//! What agents are handed back. Numbers are bare, in the unit that their description names.

use std::collections::BTreeMap;

use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use serde_json::Value;
use shardscope::launch::{Asked, Origin, Question};
use shardscope::plan::Plan;
use shardscope::report::Report;
use shardscope::search::{Outcome, Tally};
use shardscope::session::AskedLine;
use shardscope::source::{Severity, render};

use crate::explain::Explained;
use crate::gate::Figures;
use crate::input::Answer;

/// Settings that were assumed are listed up to this many.
const ASSUMED: usize = 60;

/// The answer to a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Estimate {
    /// Whether the texts make a plan. Without one there are no figures: do what `to_do` says and call again.
    plan: bool,
    /// What keeps the run from a plan, each with what would help.
    to_do: Vec<String>,
    /// Verdict, memory of the fullest GPU, step time and throughput.
    figures: Option<Figures>,
    /// Memory of each pipeline stage.
    stages: Vec<Stage>,
    /// The step between its bounds.
    step: Option<Step>,
    /// Changes that were re-estimated and help.
    advice: Vec<Advice>,
    /// Settings that nobody stated, with the value that was taken: say them with the verdict, or ask. Empty without a plan.
    assumed: BTreeMap<&'static str, String>,
    /// What the text says that may not be meant so.
    warnings: Vec<String>,
    /// Parts of the whole document, where asked for. Bytes, counts, seconds, FLOPs.
    sections: BTreeMap<String, Value>,
}

/// Memory of a pipeline stage.
#[derive(Debug, Serialize, JsonSchema)]
struct Stage {
    /// Pipeline rank. Unit: index, from 0.
    pipeline_rank: u64,
    /// Unit: byte.
    parameters: u64,
    /// Unit: byte.
    gradients: u64,
    /// Unit: byte.
    optimizer: u64,
    /// Kept for backward. Unit: byte.
    activations: u64,
    /// Alive only at the peak. Unit: byte.
    temporaries: u64,
    /// What torch allocates at the peak. Unit: byte.
    peak_allocated: u64,
    /// What the device holds at the peak, as nvidia-smi shows. Unit: byte.
    peak_reserved: u64,
}

/// The step between its bounds.
#[derive(Debug, Serialize, JsonSchema)]
struct Step {
    /// The estimate. Unit: second.
    seconds: f64,
    /// If everything overlapped that could. Unit: second.
    at_best: f64,
    /// If nothing overlapped. Unit: second.
    at_worst: f64,
    /// Share of the pipeline's time in which its slowest stage waits, 0 to 1.
    bubble: f64,
}

/// A change that helps.
#[derive(Debug, Serialize, JsonSchema)]
struct Advice {
    /// What to do.
    message: String,
    /// Why.
    why: String,
    /// The settings to change, as `settings` takes them.
    change: BTreeMap<&'static str, String>,
}

impl Estimate {
    /// The answer in short, with parts of the document.
    ///
    /// # Errors
    /// A sentence that names the parts that there are.
    pub(super) fn new(
        answer: &Answer,
        found: Option<&(Plan, Report)>,
        document: &str,
        wanted: &[String],
    ) -> Result<Self, String> {
        let resolution = &answer.resolution;
        let mut to_do = Vec::new();
        let mut warnings = Vec::new();
        for said in &resolution.diagnostics {
            match said.severity {
                Severity::Error => to_do.push(render(&answer.source, said)),
                Severity::Warning => warnings.push(render(&answer.source, said)),
                Severity::Note => {}
            }
        }
        for question in &resolution.questions {
            let prompt = &question.prompt;
            // A prompt may end with an address, which a point would become part of.
            let end = if prompt.ends_with(['?', '.']) || prompt.contains("://") { "" } else { "." };
            let mut ask = format!("{prompt}{end} Answer with {}", argument(question));
            if !question.choices.is_empty() {
                ask += &format!(", one of {}", question.choices.join(", "));
            }
            if let Some(proposal) = &question.proposal {
                ask += &format!(", for example {proposal}");
            }
            to_do.push(ask);
        }
        // Defaults alone: what is derived follows from what somebody said. Without a plan an answer may still change them.
        let assumed = resolution.settings.iter().filter(|setting| setting.origin == Origin::Default);
        let assumed = assumed.filter(|_| found.is_some());
        let assumed = assumed.map(|setting| (setting.name(), setting.value.written()));
        Ok(Self {
            plan: found.is_some(),
            to_do: if found.is_some() { Vec::new() } else { to_do },
            figures: found.map(|(plan, report)| Figures::new(plan, report)),
            stages: found.map(|(_, report)| stages(report)).unwrap_or_default(),
            step: found.map(|(_, report)| Step {
                seconds: report.time.step.get(),
                at_best: report.time.lower_bound.get(),
                at_worst: report.time.upper_bound.get(),
                bubble: report.time.bubble_fraction,
            }),
            advice: found.map(|(_, report)| advice(report)).unwrap_or_default(),
            assumed: assumed.filter(|(_, value)| !value.is_empty()).take(ASSUMED).collect(),
            warnings,
            sections: sections(document, wanted)?,
        })
    }
}

/// The argument of the call that answers a question.
fn argument(question: &Question) -> String {
    let name = question.name();
    match &question.asks {
        // `$1` and its like cannot be given one by one.
        Asked::Arguments | Asked::Argument(_) => {
            "arguments: the words after the script in its call".to_owned()
        }
        Asked::Variables => "environment: each word of the answer is a variable and its value".to_owned(),
        Asked::Setting(_) => format!("settings: {{\"{name}\": …}}"),
        Asked::Variable(_) | Asked::Recipe | Asked::CommandLine => format!("environment: {{\"{name}\": …}}"),
    }
}

fn stages(report: &Report) -> Vec<Stage> {
    let of = |rank: &shardscope::estimate::RankMemory| Stage {
        pipeline_rank: rank.pipeline_rank,
        parameters: rank.totals.parameters.get(),
        gradients: rank.totals.gradients.get(),
        optimizer: rank.totals.optimizer.get(),
        activations: rank.totals.activations.get(),
        temporaries: rank.totals.temporaries.get(),
        peak_allocated: rank.totals.peak_allocated.get(),
        peak_reserved: rank.totals.peak_reserved.get(),
    };
    report.memory.ranks.iter().map(of).collect()
}

fn advice(report: &Report) -> Vec<Advice> {
    let of = |finding: &shardscope::report::Finding| Advice {
        message: finding.message.clone(),
        why: finding.why.clone(),
        change: finding.change.iter().map(|(field, value)| (field.name(), value.clone())).collect(),
    };
    report.advice.iter().map(of).collect()
}

fn sections(document: &str, wanted: &[String]) -> Result<BTreeMap<String, Value>, String> {
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    // Taken from the serialised document, so that a section equals that of `report --format json`.
    let document: Value = serde_json::from_str(document).map_err(|error| error.to_string())?;
    let report = document.get("report").and_then(Value::as_object);
    let mut out = BTreeMap::new();
    for name in wanted {
        // `settings` is next to `report` in the document; every other section is in it.
        let part = document.get(name).filter(|_| name == "settings");
        let part = part.or_else(|| report.and_then(|report| report.get(name)));
        match (part, report) {
            (Some(part), _) => out.extend([(name.clone(), part.clone())]),
            // Without a plan the settings are the only part.
            (None, None) => {}
            (None, Some(report)) => {
                let known: Vec<&str> = report.keys().map(String::as_str).collect();
                return Err(format!("there is no section {name}; there are settings, {}", known.join(", ")));
            }
        }
    }
    Ok(out)
}

/// What a search found.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    /// Combinations tried. Unit: combination.
    pub(super) tried: u64,
    /// Combinations that there are. Unit: combination.
    pub(super) of: u64,
    /// Whether all were tried; a search ends after 20 seconds.
    pub(super) complete: bool,
    /// Those that the framework refuses. Unit: combination.
    pub(super) refused: u64,
    /// The same by the code of the reason. Unit: combination.
    pub(super) refused_by_reason: BTreeMap<&'static str, u64>,
    /// Those that do not fit. Unit: combination.
    pub(super) too_large: u64,
    /// The fastest that fit, the fastest first; tight ones last.
    pub(super) best: Vec<Layout>,
    /// Those that none beats in both time and memory.
    pub(super) frontier: Vec<Layout>,
    /// What the figures are of, where the run's own software has no such training; pass it on with them.
    pub(super) note: Option<&'static str>,
}

/// How many layouts are refused, by the code of the reason.
pub(super) fn by_reason(tally: &Tally) -> BTreeMap<&'static str, u64> {
    tally.refused.iter().map(|(code, count)| (code.name(), *count)).collect()
}

/// A layout, by what it changes.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Layout {
    /// The settings to change, as `settings` takes them; empty for the run as it is.
    change: BTreeMap<&'static str, String>,
    /// On the fullest GPU. Unit: byte.
    peak_reserved: u64,
    /// Whether it leaves less than the headroom.
    tight: bool,
    /// Time of a step. Unit: second.
    step_seconds: f64,
}

impl Layout {
    pub(super) fn from_outcome(outcome: &Outcome) -> Self {
        Self {
            change: outcome.changes.iter().map(|(field, value)| (field.name(), value.clone())).collect(),
            peak_reserved: outcome.peak.get(),
            tight: outcome.tight,
            step_seconds: outcome.step.get(),
        }
    }
}

/// The answer to a question.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Answered {
    /// The answer in one sentence.
    pub(super) answer: String,
    /// Whether there is one.
    pub(super) answered: bool,
    /// Whether everything was looked at; a search ends after 20 seconds.
    pub(super) complete: bool,
    /// What was looked at, in order; where there are many, those around the answer.
    pub(super) lines: Vec<Line>,
    /// What the figures are of, where the run's own software has no such training; pass it on with them.
    pub(super) note: Option<&'static str>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Line {
    /// What varies: a number of accelerators, a length, a batch, a kind of accelerator, or a model.
    name: String,
    /// Whether it is the answer.
    chosen: bool,
    /// Accelerators; null where nothing fits. Unit: accelerator.
    gpus: Option<u64>,
    /// The best layout there, with everything that is changed of the run; of largest-model, all settings of a run of its own.
    layout: Option<Layout>,
    /// Over all accelerators. Unit: token per second.
    tokens_per_second: Option<f64>,
    /// For the tokens asked about. Unit: day.
    days: Option<f64>,
    /// For the tokens asked about. Unit: the price's currency.
    cost: Option<f64>,
}

impl Line {
    pub(super) fn new(line: &AskedLine) -> Self {
        let reached = line.reached.as_ref();
        Self {
            name: line.name.clone(),
            chosen: line.chosen,
            gpus: reached.map(|one| one.gpus),
            layout: reached.and_then(|one| one.outcome.as_ref()).map(Layout::from_outcome),
            tokens_per_second: reached.map(|one| one.tokens_per_second),
            days: reached.and_then(|one| one.days),
            cost: reached.and_then(|one| one.cost),
        }
    }
}

/// Figures with their reasons.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Explanations {
    /// Those whose place has all the words.
    pub(super) figures: Vec<Explained>,
    /// How many more there are; more words name fewer. Unit: figure.
    pub(super) more: usize,
}

/// A link.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Link {
    /// The address.
    pub(super) link: String,
}

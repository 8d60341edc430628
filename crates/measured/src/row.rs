//! A measured run as a row of evidence: its settings and measurements, and nothing from its script.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shardscope_launch::{Resolution, minimal_settings, resolve};
use shardscope_plan::{Field, Origin};

use crate::{Measured, Step, Tool};

/// With fewer timed steps than this, a run's steady pace cannot be told from its warm-up.
const LEAST_STEPS: u64 = 10;
/// Tools that time the run at its own pace; a profiler slows it down.
const PACE: [Tool; 2] = [Tool::MegatronLog, Tool::TrainerLog];
/// Tools whose peaks are those of the whole run; a snapshot's history may begin after the peak.
const MEMORY: [Tool; 2] = [Tool::MegatronLog, Tool::MemorySummary];
/// Fields that are not settings of a run: files on the writer's machine (their vocabulary size is a setting of its own), and
/// corrections of the estimate by measurements, with which the row is to be compared.
const LEFT_OUT: [Field; 6] = [
    Field::VocabFile,
    Field::TokenizerModel,
    Field::MeasuredOverEstimated,
    Field::MeasuredMatmulTflops,
    Field::MeasuredFastBusGbps,
    Field::MeasuredNetworkBusGbps,
];

/// The pace of a run by the tools that time it undisturbed; of several ranks' logs, the longest tells it.
#[must_use]
pub fn pace<'m>(found: impl IntoIterator<Item = &'m Measured>) -> Option<Step> {
    let paced = found.into_iter().filter(|one| PACE.contains(&one.tool));
    paced.filter_map(|one| one.step).max_by_key(|step| step.count)
}

/// Facts about a run that no tool reports, so that the user has to state them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Provenance {
    /// Address at which the run can be looked up: a log, an issue, a paper.
    pub source: String,
    /// Year and month of the run, as `YYYY-MM`.
    pub date: String,
    /// Versions of framework, torch and driver.
    pub versions: String,
}

/// A row of evidence.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Address at which the run can be looked up.
    pub source: String,
    /// Year and month of the run, as `YYYY-MM`.
    pub date: String,
    /// Versions of framework, torch and driver.
    pub versions: String,
    /// The plan, by the fewest settings that make it.
    pub settings: BTreeMap<String, String>,
    /// Number of timed steps.
    pub steps: u64,
    /// Median of a step without the first. Unit: second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_seconds: Option<f64>,
    /// As the framework's log counts it. Unit: TFLOP/s per GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tflops_per_gpu: Option<f64>,
    /// Peak memory that torch allocated on a rank. Unit: byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_allocated: Option<u64>,
    /// Peak memory that torch reserved on a rank. Unit: byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_reserved: Option<u64>,
}

/// A row, and what keeps it from being evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// The row.
    pub row: Row,
    /// What is missing, one sentence each; empty if the row is complete.
    pub lacking: Vec<String>,
}

impl Contribution {
    /// The row of the run that `resolution` describes, measured by `found`; `None` if settings alone cannot express its plan.
    #[must_use]
    pub fn from_run(resolution: &Resolution, found: &[&Measured], provenance: &Provenance) -> Option<Self> {
        // Settings instead of the script: a row can be published without anything else that a script reveals about its writer.
        let settings = minimal_settings(resolution)?;
        let left_out = |name: &str| LEFT_OUT.iter().any(|field| field.name() == name);
        let of = |tools: &'static [Tool]| found.iter().filter(|one| tools.contains(&one.tool));
        let step = pace(found.iter().copied());
        let Provenance { source, date, versions } = provenance.clone();
        let row = Row {
            source,
            date,
            versions,
            settings: settings.into_iter().filter(|(name, _)| !left_out(name)).collect(),
            steps: step.map_or(0, |step| step.count),
            step_seconds: step.map(|step| step.seconds),
            tflops_per_gpu: of(&PACE).filter_map(|one| one.tflops_per_gpu).next_back(),
            // The fullest rank is the one that decides whether a run fits.
            max_allocated: of(&MEMORY).filter_map(|one| one.allocated).max(),
            max_reserved: of(&MEMORY).filter_map(|one| one.reserved).max(),
        };
        let mut lacking = row.lacking();
        let accelerator = resolution.setting(Field::Accelerator);
        if accelerator.is_none_or(|setting| setting.origin == Origin::Default) {
            lacking.push("accelerator: the one here was assumed".to_owned());
        }
        Some(Self { row, lacking })
    }
}

impl Row {
    /// Parses a row from a line of JSON.
    ///
    /// # Errors
    /// If it is not JSON, or its fields are not those of a row.
    pub fn read(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// The row as a line of JSON, including the line end.
    #[must_use]
    pub fn line(&self) -> String {
        // Writing to memory cannot fail, and all keys are text.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// What keeps the row from being evidence.
    #[must_use]
    pub fn lacking(&self) -> Vec<String> {
        let mut lacking = Vec::new();
        let mut need = |there: bool, what: &str| {
            if !there {
                lacking.push(what.to_owned());
            }
        };
        need(
            self.source.starts_with("https://"),
            "source: an https address at which the run can be looked up",
        );
        let month =
            self.date.split_once('-').map(|(year, month)| (year.parse::<u32>(), month.parse::<u32>()));
        let dated = matches!(month, Some((Ok(2017..), Ok(1..=12))));
        need(dated, "date: year and month of the run as YYYY-MM");
        need(!self.versions.trim().is_empty(), "versions: those of framework, torch and driver");
        need(
            self.step_seconds.is_some() || self.max_allocated.is_some() || self.max_reserved.is_some(),
            "measurement: the log has neither step times nor memory",
        );
        need(
            self.step_seconds.is_none() || self.steps >= LEAST_STEPS,
            &format!("steps: {} are timed, and {LEAST_STEPS} are needed", self.steps),
        );
        let settings: Vec<(String, String)> = self.settings.clone().into_iter().collect();
        need(resolve(&[], &settings).plan.is_some(), "settings that make a plan");
        lacking
    }
}

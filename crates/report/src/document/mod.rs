//! The report as one JSON document, `shardscope/report/2`: the page's download, the JavaScript API and the
//! terminal give the same one. Bare numbers only: bytes, counts, seconds, FLOPs, bytes per second.
//!
//! The structs of this module define the document's form: a field's name is the key, and its doc comment describes it
//! and its unit. None is renamed without raising [`SCHEMA`]. A key never disappears: unknown values are null, except
//! where a field says that it is omitted.

mod advice;
mod communication;
mod memory;
mod parameters;
mod settings;
mod time;
mod tool;
mod topology;
mod tree;
mod utilisation;

use serde::Serialize;

pub use advice::{Advice, Expected};
pub use communication::{Communication, Dimension, Operation, Totals};
pub use memory::{
    Layer, LayerLoad, Memory, PhaseOfMemory, RankOfMemory, Rollouts, SavedActivations, SavedByChunk,
    ShardedLayer, Worst,
};
pub use parameters::{Parameters, Rank};
pub use settings::{Diagnostic, NotModelled, Position, Question, Setting, Value};
pub use time::{Schedule, Time, Training};
pub use tool::{AnalysisTool, FlopsByConvention, Row};
pub use topology::{Axis, Chunk, GroupsOfKind, LISTED, Labels, Lists, RanksByRule, Rule, Stage, Topology};
pub use tree::{Explained, Number, Object, Tree};
pub use utilisation::Utilisation;

use super::Report;
use shardscope_operators::Symbols;
use shardscope_plan::{Plan, Resolution};
use shardscope_source::{Code, Source};
use tree::Explanations;

/// The name and version of the document's form; raised when a field is renamed.
pub const SCHEMA: &str = "shardscope/report/2";

/// The whole document.
#[derive(Debug, Serialize)]
pub struct Document<'r> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Every setting by Megatron's name in snake case.
    pub settings: Object<&'static str, Setting<'r>>,
    /// What the text leaves open and the report needs.
    pub questions: Vec<Question<'r>>,
    /// What is wrong with the text or worth knowing about it.
    pub diagnostics: Vec<Diagnostic<'r>>,
    /// Settings that change figures and are not modelled. Unless the reader continues without each of them, `report`
    /// is null.
    pub not_modelled: Vec<NotModelled<'r>>,
    /// Every estimate; null if the text does not form a plan.
    pub report: Option<Estimates<'r>>,
}

/// `report`: every estimate of one plan.
#[derive(Debug, Serialize)]
pub struct Estimates<'r> {
    /// Settings that are not modelled and were left out at the reader's request: the figures do not account for them.
    pub without: Vec<String>,
    /// Options and keys of the training that are not known here.
    pub not_read: Vec<String>,
    /// Whether step time and FLOPs leave out the passes of a vision tower.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub images_untimed: bool,
    /// Parameters of the model and of each rank.
    pub parameters: Parameters,
    /// Which ranks work together, and where they are.
    pub topology: Topology,
    /// Memory of every rank.
    pub memory: Memory<'r>,
    /// Every message of an iteration.
    pub communication: Communication<'r>,
    /// The GEMMs before and after sharding.
    pub utilisation: Vec<Utilisation>,
    /// Time of a step.
    pub time: Time<'r>,
    /// What could be better.
    pub advice: Vec<Advice<'r>>,
    /// FLOPs of a step by each convention, with its formula.
    pub flops: Vec<FlopsByConvention>,
    /// The figures of the 2023 analysis tool next to ours.
    pub analysis_tool: AnalysisTool,
    /// Formulas and the values of their symbols, by the path in `report` of the figure that they explain.
    pub explanations: Object<String, Explained>,
}

impl<'r> Document<'r> {
    /// The document for what `source` resolved to, with its report when there is a plan.
    #[must_use]
    pub fn new(source: &'r Source, resolution: &'r Resolution, report: Option<&'r Report>) -> Self {
        Self::with_lists(source, resolution, report, Lists::Short)
    }

    /// The same, with per-rank entries listed according to `lists`.
    #[must_use]
    pub fn with_lists(
        source: &'r Source,
        resolution: &'r Resolution,
        report: Option<&'r Report>,
        lists: Lists,
    ) -> Self {
        Self {
            schema: SCHEMA,
            settings: settings::settings(source, &resolution.settings),
            questions: resolution.questions.iter().map(Question::new).collect(),
            diagnostics: diagnostics(resolution, lists).map(|one| Diagnostic::new(source, one)).collect(),
            not_modelled: resolution.not_modelled.iter().map(|item| NotModelled::new(source, item)).collect(),
            report: resolution
                .plan
                .as_ref()
                .zip(report)
                .map(|(plan, report)| Estimates::new(plan, report, lists)),
        }
    }

    /// A document that only says what is wrong with the call that requested it.
    #[must_use]
    pub fn refusal(problem: &'r str) -> Self {
        let diagnostic = Diagnostic {
            severity: "error",
            code: Code::BadInput.name(),
            message: problem,
            hint: None,
            place: Position::default(),
        };
        Self {
            schema: SCHEMA,
            settings: Object(Vec::new()),
            questions: Vec::new(),
            diagnostics: vec![diagnostic],
            not_modelled: Vec::new(),
            report: None,
        }
    }

    /// The document as text, in one line or indented.
    #[must_use]
    pub fn to_json(&self, indented: bool) -> String {
        // Writing to memory cannot fail, and all keys are text. Indented for people, one line for pipes.
        if indented { serde_json::to_string_pretty(self) } else { serde_json::to_string(self) }
            .unwrap_or_default()
    }
}

impl<'r> Estimates<'r> {
    fn new(plan: &Plan, report: &'r Report, lists: Lists) -> Self {
        let mut explanations = Explanations::default();
        let marks = &plan.recipe().marks;
        Self {
            without: marks.without.clone(),
            not_read: marks.not_read.clone(),
            images_untimed: marks.images_untimed,
            parameters: Parameters::new(&report.parameters),
            topology: Topology::new(plan, lists),
            memory: Memory::new(plan, &report.memory, lists, &mut explanations),
            communication: Communication::new(&Symbols::new(plan), &report.traffic, &mut explanations),
            utilisation: report.utilisation.iter().map(Utilisation::new).collect(),
            time: Time::new(&report.time, &report.unknowns, &mut explanations),
            advice: report.advice.iter().map(Advice::new).collect(),
            flops: report.flops.conventions().iter().map(FlopsByConvention::new).collect(),
            analysis_tool: AnalysisTool::new(plan, report),
            explanations: explanations.into_object(),
        }
    }
}

/// The diagnostics of a document: all of them if every list is full, and then none that counts what is left out.
fn diagnostics(
    resolution: &Resolution,
    lists: Lists,
) -> impl Iterator<Item = &shardscope_source::Diagnostic> {
    let all = lists == Lists::Full;
    let further = if all { resolution.further.as_slice() } else { &[] };
    let listed = resolution.diagnostics.iter().filter(move |said| !all || said.code != Code::AndMore);
    listed.chain(further)
}

/// The document for what `source` resolved to, with its report when there is a plan; in one line, or indented.
#[must_use]
pub fn document(source: &Source, resolution: &Resolution, report: Option<&Report>, indented: bool) -> String {
    Document::new(source, resolution, report).to_json(indented)
}

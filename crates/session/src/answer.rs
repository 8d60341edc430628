//! The engine's answer to the current input.

use super::phases::phase_memories;
use super::{Fit, PhaseMemory, PtrEq, StageMemory, UserInput, stage_memories, texts};
use shardscope_advice::{advice, advised, reported};
use shardscope_estimate::Fault;
use shardscope_launch::{Resolution, resolve};
use shardscope_plan::Plan;
use shardscope_report::text::text;
use shardscope_report::{Report, document};
use shardscope_source::{Code, Diagnostic, Source};
use shardscope_topology::{Groups, Rank};
use shardscope_units::Bytes;

/// The answer to one text.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The text that it answers, to resolve spans.
    pub source: Source,
    /// Plan, settings, questions and diagnostics.
    pub resolution: Resolution,
}

impl Answer {
    /// How many conditions that the text does not decide were resolved by assumption, each reported in a note.
    #[must_use]
    pub fn undecided(&self) -> usize {
        let diagnostics = self.resolution.diagnostics.iter();
        diagnostics.filter(|diagnostic| diagnostic.code == Code::Undecided).count()
    }

    /// The diagnostics that are not listed, one per line with its position, for readers who ask for all of them.
    #[must_use]
    pub fn further(&self) -> String {
        let mut out = String::new();
        for said in &self.resolution.further {
            if let Some(span) = said.span {
                let place = self.source.position(span.start);
                out += &format!("{}:{}: ", place.line, place.column);
            }
            out += &format!("{}: {}\n", said.severity.name(), said.message);
        }
        out
    }
}

/// Everything shown of one plan.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What made the plan.
    pub answer: PtrEq<Answer>,
    /// The plan that was estimated.
    pub plan: Plan,
    /// Every estimate.
    pub report: Report,
    /// The memory of each stage as displayed.
    pub stages: Vec<StageMemory>,
    /// The memory of each phase of reinforcement learning; empty without rollouts.
    pub phases: Vec<PhaseMemory>,
}

impl Shown {
    /// The report as a JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        document(&self.answer.source, &self.answer.resolution, Some(&self.report), true) + "\n"
    }

    /// The report as plain text.
    #[must_use]
    pub fn text(&self) -> String {
        text(&self.plan, &self.report)
    }

    /// The same with its advice.
    #[must_use]
    pub(crate) fn with_advice(&self) -> Self {
        let mut shown = self.clone();
        shown.report.advice = advice(&self.plan, &self.report);
        shown
    }

    // Memory is one figure per stage: all ranks of a stage hold equal shards.
    fn stage_of(&self, rank: Rank) -> Option<usize> {
        usize::try_from(Groups::new(self.plan.layout()).coordinates(rank).pipeline).ok()
    }

    /// Peak of the GPU `rank`, as in the verdict; `None` outside the cluster.
    #[must_use]
    pub fn memory_of(&self, rank: Rank) -> Option<Bytes> {
        self.stages.get(self.stage_of(rank)?).map(|stage| stage.reserved)
    }

    /// The stage that decides the verdict: the one that needs most, among those that run out of memory if any do.
    #[must_use]
    pub fn worst(&self) -> Option<&StageMemory> {
        self.stages
            .iter()
            // `released` counts: a stage that fits only once cached blocks are freed is closer to the limit than its
            // reserved bytes show.
            .max_by_key(|stage| (stage.fit == Fit::DoesNotFit, stage.reserved + stage.needs.released))
    }
}

/// The plan and its report. If the estimate exceeds what any machine could hold, the fault is pushed as a diagnostic
/// and there is no report.
#[must_use]
pub fn estimated(resolution: &mut Resolution) -> Option<(Plan, Report)> {
    estimated_by(advised, resolution)
}

fn estimated_by(
    estimate: fn(&Plan) -> Result<Report, Fault>,
    resolution: &mut Resolution,
) -> Option<(Plan, Report)> {
    // A clone, since the resolution keeps its plan while diagnostics are pushed below.
    let plan = resolution.plan.clone()?;
    match estimate(&plan) {
        Ok(report) => Some((plan, report)),
        Err(fault) => {
            let impossible = Diagnostic::error(Code::ImpossibleEstimate, fault.message());
            resolution.diagnostics.push(impossible.hint(Fault::HINT));
            None
        }
    }
}

/// Reads the input, and estimates it if it is a plan. The answer is empty while the texts are still to be read by
/// another program ([`texts`]).
#[must_use]
pub fn answer(input: &UserInput) -> (PtrEq<Answer>, Option<Shown>) {
    answer_by(advised, input)
}

/// The same without advice, which takes ten times as long: [`Shown::with_advice`] adds it.
#[must_use]
pub(crate) fn figures(input: &UserInput) -> (PtrEq<Answer>, Option<Shown>) {
    answer_by(reported, input)
}

fn answer_by(
    estimate: fn(&Plan) -> Result<Report, Fault>,
    input: &UserInput,
) -> (PtrEq<Answer>, Option<Shown>) {
    let source = input.source();
    let readings = texts::readings(input);
    // Texts that have not been read yet: an empty resolution has neither plan nor diagnostics, so nothing wrong is
    // shown meanwhile.
    let mut resolution =
        readings.map_or_else(Resolution::default, |readings| resolve(&readings, &input.settings));
    let found = estimated_by(estimate, &mut resolution);
    let answer = PtrEq::new(Answer { source, resolution });
    let shown = found.map(|(plan, report)| Shown {
        answer: answer.clone(),
        stages: stage_memories(&plan, &report.memory),
        phases: phase_memories(&report.memory),
        report,
        plan,
    });
    (answer, shown)
}

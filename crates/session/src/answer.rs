//! What the engine says to what the reader has in hand.

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
    /// The text that it answers, for places in it.
    pub source: Source,
    /// Plan, settings, questions and diagnostics.
    pub resolution: Resolution,
}

impl Answer {
    /// How many conditions were read one way that the text does not decide, each said in a note.
    #[must_use]
    pub fn undecided(&self) -> usize {
        let said = self.resolution.diagnostics.iter();
        said.filter(|diagnostic| diagnostic.code == Code::Undecided).count()
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
    /// The memory of each stage as it is shown.
    pub stages: Vec<StageMemory>,
    /// The memory of each phase of reinforcement learning; none without rollouts.
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

    /// Peak of the GPU `rank`, as the verdict tells it; `None` outside the cluster.
    #[must_use]
    pub fn memory_of(&self, rank: Rank) -> Option<Bytes> {
        self.stages.get(self.stage_of(rank)?).map(|stage| stage.reserved)
    }

    /// The stage that decides the verdict: the one that needs most, of those that run out of memory where any does.
    #[must_use]
    pub fn worst(&self) -> Option<&StageMemory> {
        self.stages
            .iter()
            // `released` counts: a stage that fits only once cached blocks are freed is nearer to the edge than its
            // reserved bytes show.
            .max_by_key(|stage| (stage.fit == Fit::DoesNotFit, stage.reserved + stage.needs.released))
    }
}

/// The plan and its report. Where the estimate exceeds what any machine could hold, the fault is pushed as a
/// diagnostic and there is no report.
#[must_use]
pub fn estimated(resolution: &mut Resolution) -> Option<(Plan, Report)> {
    estimated_by(advised, resolution)
}

fn estimated_by(
    estimate: fn(&Plan) -> Result<Report, Fault>,
    resolution: &mut Resolution,
) -> Option<(Plan, Report)> {
    // A clone, since the resolution goes on to own its plan beside the diagnostics pushed below.
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

/// Reads what is in hand, and estimates what it takes if it is a plan. Says nothing where the texts are still to be read by
/// another program ([`texts`]).
#[must_use]
pub fn answer(input: &UserInput) -> (PtrEq<Answer>, Option<Shown>) {
    answer_by(advised, input)
}

/// The same without advice, which takes ten times as long: [`Shown::with_advice`] brings it.
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
    // Texts that nobody has read yet: an empty resolution has neither plan nor diagnostics, so nothing untrue is said
    // meanwhile.
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

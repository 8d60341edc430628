//! The input for an order: kind, stages, chunks, micro-batches.

use shardscope_plan::{PipelineSchedule, Plan};

/// The size of a pipeline's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The kind of schedule.
    pub kind: PipelineSchedule,
    /// Pipeline ranks, p.
    pub stages: u32,
    /// Model chunks per rank, v.
    pub chunks: u32,
    /// Micro-batches that a chunk processes in a row when interleaved, g.
    pub group: u32,
    /// Micro-batches of one step, m.
    pub micro_batches: u32,
    /// One more warm-up step when interleaved (`--overlap-moe-expert-parallel-comm`).
    pub extra_warmup: bool,
    /// Interleaved with m = p runs all forwards first (Megatron up to 2023).
    pub all_warmup_when_few: bool,
}

/// Which part of the model a chunk of a rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Chunk k of rank r is part k·p + r.
    Looped,
    /// Chunk 0 of rank r is part r, chunk 1 is part 2p - 1 - r.
    Folded,
    /// Chunk 0 is part r of one copy of the model, chunk 1 part p - 1 - r of another.
    TwoWay,
}

fn small(value: u64) -> u32 {
    // A plan's bounds are below 2^25 (`shardscope_plan::limits`).
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Shape {
    /// The shape of `plan`'s pipeline.
    #[must_use]
    pub fn from_plan(plan: &Plan) -> Self {
        let (layout, recipe) = (plan.layout(), plan.recipe());
        Self {
            kind: layout.schedule,
            stages: small(layout.pipeline),
            chunks: small(layout.virtual_pipeline),
            group: small(layout.microbatch_group_size),
            micro_batches: small(recipe.num_micro_batches),
            extra_warmup: recipe.overlap.expert,
            all_warmup_when_few: recipe.software.semantics().all_warmup_when_few,
        }
        .settled()
    }

    /// The same shape with sizes that the kind supports: at least one of each, and two chunks for the folded and
    /// two-way kinds, which fall back to 1F1B where they are undefined (one stage, or DualPipe on an odd number).
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.stages = self.stages.max(1);
        self.micro_batches = self.micro_batches.max(1);
        self.chunks = self.chunks.max(1);
        if self.stages == 1 || (self.kind == PipelineSchedule::DualPipe && !self.stages.is_multiple_of(2)) {
            self.kind = match self.kind {
                PipelineSchedule::GPipe => PipelineSchedule::GPipe,
                _ => PipelineSchedule::OneForwardOneBackward,
            };
        }
        // On one rank chunks run one after the other anyway: split or not, the work is the same.
        if self.stages == 1 {
            self.chunks = 1;
        }
        match self.kind {
            PipelineSchedule::OneForwardOneBackward | PipelineSchedule::GPipe => {}
            PipelineSchedule::ZeroBubbleH1 | PipelineSchedule::ZeroBubbleH2 => self.chunks = 1,
            _ => self.chunks = 2,
        }
        if self.group == 0 {
            self.group = self.stages;
        }
        self
    }

    /// How the chunks are placed over the model.
    #[must_use]
    pub fn placement(&self) -> Placement {
        match self.kind {
            PipelineSchedule::DualPipe => Placement::TwoWay,
            PipelineSchedule::ZeroBubbleV
            | PipelineSchedule::VHalf
            | PipelineSchedule::VMin
            | PipelineSchedule::OneForwardOneBackwardV
            | PipelineSchedule::DualPipeV => Placement::Folded,
            PipelineSchedule::OneForwardOneBackward
            | PipelineSchedule::GPipe
            | PipelineSchedule::ZeroBubbleH1
            | PipelineSchedule::ZeroBubbleH2 => Placement::Looped,
        }
    }

    /// Parts a micro-batch goes through.
    #[must_use]
    pub fn parts(&self) -> u32 {
        match self.placement() {
            Placement::TwoWay => self.stages,
            Placement::Looped | Placement::Folded => self.stages.saturating_mul(self.chunks),
        }
    }

    /// The part of the model that `chunk` of `stage` is.
    #[must_use]
    pub fn part(&self, stage: u32, chunk: u32) -> u32 {
        match (self.placement(), chunk) {
            (Placement::Looped, _) => chunk * self.stages + stage,
            // Chunk 0 goes down the ranks, whichever direction the second one has.
            (_, 0) => stage,
            (Placement::Folded, _) => 2 * self.stages - 1 - stage,
            (Placement::TwoWay, _) => self.stages - 1 - stage,
        }
    }

    /// The stage and chunk that hold `part`; `direction` only matters in DualPipe.
    #[must_use]
    pub fn holder(&self, part: u32, direction: u32) -> (u32, u32) {
        match self.placement() {
            Placement::Looped => (part % self.stages, part / self.stages),
            Placement::Folded if part >= self.stages => (2 * self.stages - 1 - part, 1),
            Placement::Folded => (part, 0),
            Placement::TwoWay if direction == 1 => (self.stages - 1 - part, 1),
            Placement::TwoWay => (part, 0),
        }
    }

    /// Whether the backward pass is split in two.
    #[must_use]
    pub fn splits_backward(&self) -> bool {
        !matches!(
            self.kind,
            PipelineSchedule::OneForwardOneBackward
                | PipelineSchedule::GPipe
                | PipelineSchedule::OneForwardOneBackwardV
        )
    }

    /// Forward chunk steps of one stage: m · v.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.micro_batches.saturating_mul(match self.placement() {
            // Each of the two copies takes half of the micro-batches, so that a rank's two chunks see m between them.
            Placement::TwoWay => 1,
            Placement::Looped | Placement::Folded => self.chunks,
        })
    }

    /// Forward steps of `stage` before its first pair of forward and backward, as Megatron counts them
    /// (`megatron/core/pipeline_parallel/schedules.py:get_pp_rank_microbatches`); 1F1B, interleaved or not.
    #[must_use]
    pub fn warmup(&self, stage: u32) -> u32 {
        let behind = (self.stages - 1).saturating_sub(stage);
        let warmup = match self.kind {
            PipelineSchedule::GPipe => self.steps(),
            // Twice 1F1B's: more micro-batches in flight for no bubble (Qi et al. 2023, ZB-H2).
            PipelineSchedule::ZeroBubbleH2 => 2 * behind,
            _ if self.chunks > 1 => {
                if self.all_warmup_when_few && self.micro_batches == self.stages {
                    self.steps()
                } else {
                    // A micro-batch's first backward comes after its group has passed all chunks but the last, plus
                    // twice the distance to the last stage: there and back.
                    let further = (self.chunks - 1).saturating_mul(self.group);
                    (2 * behind).saturating_add(further).saturating_add(u32::from(self.extra_warmup))
                }
            }
            // As many forwards as there are later stages; by then the first micro-batch is on its way back.
            _ => behind,
        };
        warmup.min(self.steps())
    }
}

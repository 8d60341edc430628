//! Assembles the step: the stages under their schedule, then the epilogue.

use super::anchor::measured_factor;
use super::collective::Rings;
use super::epilogue::Epilogue;
use super::overlap::{Bounds, Overlaps};
use super::parts::{ChunkParts, Setting};
use super::sections::Sections;
use super::spent::Parts;
use super::updates::ENDS;
use crate::RankParameters;
use crate::compute::{Calibration, Device, EAGER_MODULES, Issue, real};
use crate::parameters::rank_parameters;
use shardscope_operators::{Collective, Symbols, are_alike};
use shardscope_plan::{Plan, Stage};
use shardscope_schedule::{ChunkTime, Placement, Rehearsal, Shape, StageDurations};
use shardscope_topology::Groups;
use shardscope_units::{Bytes, FlopsPerSecond, Quantity, Seconds};
use std::rc::Rc;

/// The pieces of a step.
pub(super) struct Run {
    /// By stage; equal neighbours share one entry.
    stages: Vec<Rc<StageParts>>,
    pub(super) durations: StageDurations,
    pub(super) shape: Shape,
    pub(super) epilogue: Epilogue,
    /// All passes of one micro-batch over all chunks, without the work around a micro-batch.
    pub(super) passes: Seconds,
    pub(super) tied: Seconds,
    pub(super) iteration: Seconds,
    /// Waiting for the slowest rank, as a share of the rest.
    pub(super) straggler_factor: f64,
    /// The dense peak of the format that the linear layers run in.
    pub(super) peak: FlopsPerSecond,
}

/// The passes of one micro-batch over a stage.
struct StageParts {
    /// By chunk of the schedule.
    chunks: Vec<ChunkParts>,
    /// The sum over its chunks.
    whole: ChunkParts,
    /// Their total time.
    total: Seconds,
}

impl StageParts {
    fn scaled(&self, factor: f64) -> Self {
        Self {
            chunks: self.chunks.iter().map(|chunk| chunk.scaled(factor)).collect(),
            whole: self.whole.scaled(factor),
            total: self.total * factor,
        }
    }
}

impl Run {
    pub(super) fn new(plan: &Plan, calibration: Calibration, bounds: Bounds) -> Self {
        Self::under(plan, calibration, Overlaps::new(plan, bounds))
    }

    /// The same with host costs from `issue`.
    pub(super) fn issued(plan: &Plan, calibration: Calibration, bounds: Bounds, issue: Issue) -> Self {
        Self::under(plan, calibration, Overlaps { issue, ..Overlaps::new(plan, bounds) })
    }

    fn under(plan: &Plan, calibration: Calibration, overlaps: Overlaps) -> Self {
        let x = Symbols::new(plan);
        let device = Device::with(calibration, plan.cluster(), plan.recipe());
        let rings = Rings::new(&Groups::new(plan.layout()), plan.cluster());
        Self::knowing(&Setting { x, device, rings, overlaps }, &mut Sections::default())
    }

    /// The same, reusing and extending the sections in `known`.
    pub(super) fn knowing(setting: &Setting<'_>, known: &mut Sections) -> Self {
        let plan = setting.x.plan;
        let of_plan = &plan.layout().stages.stages;
        let (mut passes, mut of_stage) = (Seconds::ZERO, Seconds::ZERO);
        let mut stages: Vec<Rc<StageParts>> = Vec::with_capacity(of_plan.len());
        let mut epilogues = Epilogues::default();
        let mut before: Option<&Stage> = None;
        for (index, stage) in (0..).zip(of_plan) {
            // Most stages are equal to the previous one.
            if before.is_some_and(|before| are_equal(&setting.x, before, stage))
                && let Some(parts) = stages.last().cloned()
            {
                passes += of_stage;
                // With more time to hide in than the previous stage, its epilogue cannot be longer.
                epilogues.pass(&parts, setting.chunk_share());
                stages.push(parts);
                continue;
            }
            before = Some(stage);
            let rank = rank_parameters(&setting.x, index, stage, &mut known.parameters);
            let mut chunks: Vec<ChunkParts> =
                stage.chunks.iter().map(|chunk| setting.chunk(chunk, &mut known.passes)).collect();
            // Without waiting for the host, which depends on how a plan is partitioned.
            of_stage = chunks.iter().map(ChunkParts::busy).sum::<Seconds>();
            passes += of_stage;
            setting.around_micro_batches(&rank, &mut chunks);
            for (chunk, parts) in stage.chunks.iter().zip(&mut chunks) {
                let [ahead, back] = setting.offloaded(chunk, parts);
                parts.forward.other += ahead;
                parts.backward.other += back;
            }
            let total = chunks.iter().map(ChunkParts::total).sum::<Seconds>();
            let parts = Rc::new(StageParts { whole: ChunkParts::of_all(&chunks), total, chunks });
            epilogues.take(setting.epilogue(&rank, &parts.whole, epilogues.slack));
            epilogues.pass(&parts, setting.chunk_share());
            stages.push(parts);
        }
        let epilogue = epilogues.longest;
        let shape = Shape::from_plan(plan);
        let durations = setting.durations(&stages);
        Self {
            epilogue,
            passes,
            tied: setting.tied(),
            iteration: setting.iteration(),
            straggler_factor: setting.straggler_factor(),
            peak: setting.device.low_peak,
            stages,
            durations,
            shape,
        }
        .calibrated(measured_factor(plan))
    }

    /// The same run, `factor` times as long, with all parts scaled equally so that the overlap does not change.
    fn calibrated(mut self, factor: f64) -> Self {
        if factor == 1.0 {
            return self;
        }
        let mut before: Option<(Rc<StageParts>, Rc<StageParts>)> = None;
        for stage in &mut self.stages {
            let scaled = match &before {
                Some((plain, scaled)) if Rc::ptr_eq(plain, stage) => Rc::clone(scaled),
                _ => Rc::new(stage.scaled(factor)),
            };
            before = Some((std::mem::replace(stage, Rc::clone(&scaled)), scaled));
        }
        for chunk in self.durations.chunks.iter_mut().flatten() {
            // Straggling is not scaled: it is a share of the rest, not a time.
            (chunk.forward, chunk.backward, chunk.weight) =
                (chunk.forward * factor, chunk.backward * factor, chunk.weight * factor);
        }
        for send in &mut self.durations.sends {
            *send = *send * factor;
        }
        self.epilogue =
            Epilogue { data: self.epilogue.data * factor, optimizer: self.epilogue.optimizer * factor };
        self.passes = self.passes * factor;
        self.tied = self.tied * factor;
        self.iteration = self.iteration * factor;
        self
    }

    /// The durations if messages between stages took no time.
    pub(super) fn without_sends(&self) -> StageDurations {
        StageDurations {
            chunks: self.durations.chunks.clone(),
            sends: vec![Seconds::ZERO; self.durations.sends.len()],
            blocking: false,
        }
    }

    /// Micro-batches that go through each chunk of a stage.
    pub(super) fn micro_batches(&self) -> f64 {
        let all = f64::from(self.shape.micro_batches);
        // DualPipe feeds half of the micro-batches from either end (deepseek-ai/DualPipe, dualpipe.py).
        if self.shape.placement() == Placement::TwoWay { all / 2.0 } else { all }
    }

    /// The chunks of the stage with the longest total.
    pub(super) fn slowest(&self) -> &[ChunkParts] {
        let slowest = self.stages.iter().max_by(|one, two| one.total.get().total_cmp(&two.total.get()));
        slowest.map_or(&[], |stage| &stage.chunks)
    }

    /// The step if all ranks were equally fast and all micro-batches took `pipe` through the pipeline.
    pub(super) fn unscaled(&self, pipe: Seconds) -> Seconds {
        pipe + self.epilogue.data + self.epilogue.optimizer + self.tied + self.iteration
    }

    /// The full step.
    pub(super) fn step(&self, pipe: Seconds) -> Seconds {
        self.unscaled(pipe) * (1.0 + self.straggler_factor)
    }

    /// Only the time of the full step, simulated as `rehearsal` says.
    pub(super) fn step_by(&self, rehearsal: Rehearsal) -> Seconds {
        let [line] = rehearsal.totals([&self.durations]);
        self.step(line.total)
    }
}

/// The epilogue while stages are added: the longest of each piece over all stages.
#[derive(Default)]
struct Epilogues {
    longest: Epilogue,
    /// The time that later stages can hide in: the passes of the stages before them.
    slack: [Seconds; 2],
}

impl Epilogues {
    fn take(&mut self, one: Epilogue) {
        self.longest.data = self.longest.data.greater(one.data);
        self.longest.optimizer = self.longest.optimizer.greater(one.optimizer);
    }

    fn pass(&mut self, stage: &StageParts, share: f64) {
        self.slack[0] += stage.whole.forward.total() * share;
        self.slack[1] += stage.whole.behind() * share;
    }
}

impl ChunkParts {
    /// The sum of the passes over all of `chunks`.
    pub(super) fn of_all(chunks: &[Self]) -> Self {
        let mut all = Self::default();
        for chunk in chunks {
            all.forward += chunk.forward;
            all.backward += chunk.backward;
            all.weight += chunk.weight;
            all.again += chunk.again;
        }
        all
    }

    /// The same scaled by `factor`.
    fn scaled(&self, factor: f64) -> Self {
        Self {
            forward: self.forward.scaled(factor),
            backward: self.backward.scaled(factor),
            weight: self.weight.scaled(factor),
            again: self.again.scaled(factor),
        }
    }

    /// Total time without waiting for the host.
    pub(super) fn busy(&self) -> Seconds {
        // Waits in the weight gradients are counted with the backward pass.
        let waits = self.forward.host + self.backward.host + self.again.host;
        self.total() - waits
    }

    /// Total time of the backward pass.
    pub(super) fn behind(&self) -> Seconds {
        self.backward.total() + self.weight.total() + self.again.total()
    }

    /// Everything except recomputation.
    pub(super) fn once(&self) -> Parts {
        let mut once = self.forward;
        once += self.backward;
        once += self.weight;
        once
    }
}

impl Setting<'_> {
    fn durations(&self, stages: &[Rc<StageParts>]) -> StageDurations {
        let time = |chunk: &ChunkParts| ChunkTime {
            forward: chunk.forward.total(),
            // A layer is recomputed right before its own backward and on the same stage, so the schedule sees one
            // longer backward.
            backward: chunk.backward.total() + chunk.again.total(),
            weight: chunk.weight.total(),
        };
        let mut times: Vec<Vec<ChunkTime>> = Vec::with_capacity(stages.len());
        for stage in stages {
            times.push(stage.chunks.iter().map(time).collect());
        }
        StageDurations {
            chunks: times,
            sends: vec![self.send(); stages.len()],
            blocking: match self.overlaps.bounds {
                Bounds::Lower => false,
                // Without --overlap-p2p-communication Megatron waits for each send and receive before it continues
                // (p2p_communication.py: req.wait()).
                Bounds::Estimate => !self.x.recipe().overlap.pipeline,
                Bounds::Upper => true,
            },
        }
    }

    /// Sending one activation to the next stage. Megatron-LM of 2021 and 2022 sent each tensor rank's part and
    /// gathered on arrival (`--no-scatter-gather-tensors-in-pipeline` turned it off).
    fn send(&self) -> Seconds {
        let plan = self.x.plan;
        // The lower bound assumes that every send hides behind compute.
        if plan.layout().pipeline < 2 || self.overlaps.bounds == Bounds::Lower {
            return Seconds::ZERO;
        }
        let whole = Bytes::new(self.x.n * self.x.h * self.x.residual_width);
        let cut = plan.layout().sequence_parallel;
        let scattered = plan.recipe().software.semantics().scatters_between_stages && !cut;
        // Under sequence parallelism a stage's output is sharded over tensor ranks, each of which sends its own
        // shard.
        let part = if cut || scattered { Bytes::new(whole.get() / self.x.t) } else { whole };
        let mut send = self.rings.pipeline.time(&self.device, Collective::SendRecv, part);
        if scattered {
            send += self.rings.tensor.time(&self.device, Collective::AllGather, whole);
        }
        send
    }

    fn iteration(&self) -> Seconds {
        // A single rank waits for nobody, and its next input is already loaded (`torch.utils.data.DataLoader`'s
        // workers).
        let alone =
            self.x.recipe().software.semantics().eager_modules && self.x.plan.layout().world_size == 1;
        if self.overlaps.bounds == Bounds::Lower {
            Seconds::ZERO
        } else if alone {
            let [full, adapted] = ENDS;
            let ends = if self.x.recipe().tuning.lora.is_some() { adapted } else { full };
            ends * (self.overlaps.issue.kernel.get() / EAGER_MODULES.kernel.get())
        } else {
            self.device.calibration.iteration
        }
    }

    fn straggler_factor(&self) -> f64 {
        let cluster = self.x.plan.cluster();
        let domains =
            real(cluster.gpus().div_ceil(cluster.fast_domain.max(cluster.gpus_per_node).max(1)).max(1));
        if self.overlaps.bounds == Bounds::Lower {
            0.0
        } else {
            // Everybody waits for the slowest domain, and the maximum of independent delays grows with the logarithm
            // of their number.
            self.device.calibration.straggling * domains.log2()
        }
    }

    /// The share of a stage that one of its chunks makes up.
    fn chunk_share(&self) -> f64 {
        1.0 / real(self.x.plan.layout().virtual_pipeline.max(1))
    }

    /// Bytes that a micro-batch moves to add its gradients to the accumulated ones (`main_grad.add_(grad)`), for
    /// trainable parameters. If gradients are freed between steps, the first micro-batch adds nothing
    /// (`torch/csrc/autograd/functions/accumulate_grad.h` takes over a gradient that nothing else holds).
    fn added_gradients(&self, rank: &RankParameters) -> f64 {
        let recipe = self.x.recipe();
        let (own, main) = (self.x.width, recipe.grads_dtype.width());
        let each = real(own + 2 * main);
        if !recipe.software.semantics().eager_modules {
            return real(rank.count.get()) * each;
        }
        let batches = real(recipe.num_micro_batches.max(1));
        let trained = real(rank.trained.get());
        if main > recipe.params_dtype.width() {
            // Accumulation into buckets of a wider format, which once per step are divided by the number of replicas,
            // copied back and zeroed (`scaletorch/parallel/data_parallel`).
            return trained * (each + real(4 * main + own) / batches);
        }
        trained * each * (batches - 1.0) / batches
    }

    /// The work around every micro-batch of a stage: sharded weights, and gradients added to the main ones outside
    /// the products. It is split over the chunks by their own time.
    fn around_micro_batches(&self, rank: &RankParameters, chunks: &mut [ChunkParts]) {
        let recipe = self.x.recipe();
        let whole = ChunkParts::of_all(chunks);
        let added = if recipe.fusions.gradient_accumulation {
            Seconds::ZERO
        } else {
            self.device.stream(self.added_gradients(rank))
        };
        let [ahead, back] = self.sharded_weights(rank, &whole);
        let back = back + self.reduced_at_once(rank, &whole);
        let copied = self.copied_to_host();
        let all = whole.total().get().max(f64::MIN_POSITIVE);
        for chunk in chunks {
            // The data-parallel messages are per stage while the schedule needs times per chunk; a chunk with more
            // layers has more of them.
            let share = chunk.total().get() / all;
            chunk.forward.other += copied * share;
            chunk.backward.other += copied * share;
            chunk.forward.data += ahead * share;
            chunk.backward.data += back * share;
            chunk.weight.other += added * share;
        }
    }
}

/// Whether two stages hold the same layers and ends.
fn are_equal(x: &Symbols<'_>, one: &Stage, other: &Stage) -> bool {
    one.chunks.len() == other.chunks.len()
        && one.chunks.iter().zip(&other.chunks).all(|(one, other)| are_alike(x, one, other))
}

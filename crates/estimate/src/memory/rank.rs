//! The memory of one rank: states, micro-batches in flight, the moment of the peak.

use super::buffers::{buffers, previous_gradient};
use super::evaluation::evaluation;
use super::flight::Flight;
use super::framework::{Framework, Load, Outside};
use super::gathered::{Gathered, gathered, wraps_ends};
use super::moments::{ChunkSum, Moment};
use super::offloaded::Groups;
use super::peak::{held, peak};
use super::piped::{is_piped, piped};
use super::stage_sum::Sum;
use super::state::{Kind, Part, State};
use super::states::{kinds, states};
use super::term::Term;
use super::totals::Totals;
use super::unit::{Counts, Point, Units};
use shardscope_explain::Formula;
use shardscope_operators::{SectionKind, Symbols, are_alike, frozen_counts, section_counts};
use shardscope_plan::{DataEngine, Stage};
use shardscope_schedule::Shape;
use shardscope_units::{Bytes, Count, Quantity};

static RECEIVED: Formula = Formula::new(
    "2·chunks·S·h·Br",
    "The last input of every chunk that receives one, and its gradient: the model references them until the next.",
    "megatron/core/transformer/transformer_block.py:set_input_tensor",
).letters(&[("chunks", "chunks of layers that receive an input")]);

/// What all ranks with equal stages share.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) chunks: Vec<ChunkSum>,
    pub(super) states: Vec<State>,
    pub(super) buffers: Vec<Term>,
    gathered: Gathered,
    parts: [Bytes; 4],
    load: Load,
    /// Inputs received and their gradients.
    pub(super) received: Option<Term>,
    /// What an evaluation holds.
    pub(super) evaluation: Vec<Term>,
}

impl Common {
    fn new(x: &Symbols<'_>, units: &Units, kinds: &[Kind], stage: &Stage) -> Self {
        let mut counts = Counts::default();
        for chunk in &stage.chunks {
            for (count, more) in counts.iter_mut().zip(section_counts(x, chunk)) {
                *count += more;
            }
        }
        let mut parameters = Sum::default();
        let mut frozen = Counts::default();
        for chunk in &stage.chunks {
            for (frozen, more) in frozen.iter_mut().zip(frozen_counts(x, chunk)) {
                *frozen += more;
            }
        }
        for (((_, unit), &count), frozen) in units.iter().zip(&counts).zip(frozen) {
            // Most kinds occur in no stage, and this runs for each layout that a search visits.
            if count > 0 {
                parameters.add(unit, count, frozen);
            }
        }
        // If some layers are left unquantized, all layers are of one kind and on one stage.
        let layers = units.iter().zip(&counts).find(|((kind, _), count)| kind.has_layer() && **count > 0);
        if let Some(((kind, _), _)) = layers {
            let tuning = &x.recipe().tuning;
            for (modules, layers) in tuning.unquantized.iter() {
                for shape in kind.linear_layers(x, modules) {
                    parameters.dense.leave_whole(shape, layers, tuning.quantization);
                }
            }
        }
        if let Some(low_rank) = x.recipe().optimizer.low_rank {
            for ((kind, _), &count) in units.iter().zip(&counts).filter(|(_, count)| **count > 0) {
                for one in kind.projected(x, low_rank) {
                    parameters.dense.project(&one, count);
                }
            }
        }
        let trains = parameters.dense.trains() + parameters.expert.trains();
        // Only what FSDP shards waits for its reduction.
        let shared = if x.plan.layout().expert_shards() > 1 { trains } else { parameters.dense.trains() };
        let gathered = gathered(x, units, &counts, shared);
        let mut chunks = Vec::with_capacity(stage.chunks.len());
        let groups: Vec<Groups> =
            stage.chunks.iter().map(|chunk| Groups::new(x, chunk, &|kind| &units.get(kind).groups)).collect();
        let ready = groups.iter().map(Groups::ready).max().unwrap_or_default();
        for (chunk, groups) in stage.chunks.iter().zip(groups) {
            let ready = groups.beside(ready);
            chunks.push(ChunkSum::new(x, units, chunk, &gathered, groups, ready));
        }
        let layout = x.plan.layout();
        let mut held = Vec::with_capacity(2 * kinds.len());
        // Experts may have fewer replicas than dense weights (expert DP), so their states are sharded over different
        // ranks.
        states(x.plan, kinds, parameters.dense, layout.dense_shards(), &mut held);
        states(x.plan, kinds, parameters.expert, layout.expert_shards(), &mut held);
        let mut parts = [Bytes::ZERO; 4];
        for state in &held {
            parts[state.part as usize] += state.bytes();
        }
        let part = parameters.dense.all.get() / layout.dense_shards().max(1)
            + parameters.expert.all.get() / layout.expert_shards().max(1);
        let load = Load {
            parameters: parameters.dense.all + parameters.expert.all,
            part: Count::new(part),
            ..Load::default()
        };
        let evaluation = evaluation(x, &counts, &gathered);
        let received = received(x, &chunks);
        let buffers = buffers(x, units, &counts);
        Self { states: held, parts, buffers, gathered, load, received, chunks, evaluation }
    }

    /// Bytes of frozen weights.
    pub(super) fn frozen(&self) -> Bytes {
        self.states.iter().filter(|state| state.frozen).map(State::bytes).sum()
    }

    /// Bytes of gradients that a step's backward creates anew.
    fn gradients_to_come(&self) -> Bytes {
        self.chunks.iter().map(|chunk| chunk.to_come).sum()
    }

    /// Bytes of the states of `part`.
    fn part(&self, part: Part) -> Bytes {
        self.parts[part as usize]
    }
}

/// The last input of every chunk but the first, with its gradient; the model still refers to them after the step
/// (`megatron/core/transformer/transformer_block.py:set_input_tensor`).
fn received(x: &Symbols<'_>, chunks: &[ChunkSum]) -> Option<Term> {
    let received =
        chunks.iter().filter(|chunk| SectionKind::count(&chunk.counts, SectionKind::is_before_layers) == 0);
    let count = received.map(|_| 1).sum();
    let stream = Count::of_shape(&[x.s_local, x.h]).bytes(x.residual_width);
    let given = [("chunks", Count::new(count).number())];
    (count > 0 && !is_piped(x)).then(|| {
        Term::new("inputs received and their gradients", stream * (2 * count), &RECEIVED).given(&given)
    })
}

/// The stages of a plan, with equal ones computed once.
pub(super) struct Stages<'a> {
    x: &'a Symbols<'a>,
    units: &'a Units,
    commons: Vec<Common>,
    /// For each stage, its index in `commons`.
    own: Vec<usize>,
    /// What every device holds outside of torch's allocator.
    outside: Outside,
    /// The schedule's shape.
    shape: Shape,
}

impl<'a> Stages<'a> {
    /// The stages of `x`'s plan, whose sections are `units`.
    pub(super) fn new(x: &'a Symbols<'a>, units: &'a Units) -> Self {
        let kinds = kinds(x.plan);
        let stages = &x.plan.layout().stages.stages;
        let mut commons: Vec<Common> = Vec::with_capacity(3);
        let mut own: Vec<usize> = Vec::with_capacity(stages.len());
        for (index, stage) in stages.iter().enumerate() {
            let like = |other: &usize| *other < index && are_equal(x, stage, &stages[*other]);
            // Equal stages come in runs, so comparing with the neighbour and the first suffices; comparing with all
            // would be quadratic.
            let known = [index.wrapping_sub(1), 0].into_iter().find(like);
            own.push(known.map_or(commons.len(), |other| own[other]));
            if known.is_none() {
                commons.push(Common::new(x, units, &kinds, stage));
            }
        }
        let (outside, shape) = (Outside::new(x), Shape::from_plan(x.plan));
        Self { x, units, commons, own, outside, shape }
    }

    /// The results of `visit` for every rank, in order.
    pub(super) fn ranks<T>(&self, visit: &dyn Fn(u64, &Rank<'_>) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(self.own.len());
        for (index, &own) in (0..).zip(&self.own) {
            all.push(visit(index, &self.rank(index, own)));
        }
        all
    }

    fn rank(&self, index: u64, own: usize) -> Rank<'_> {
        Rank::new(self, index, &self.commons[own])
    }
}

/// Whether two stages hold the same layers and ends.
fn are_equal(x: &Symbols<'_>, one: &Stage, other: &Stage) -> bool {
    one.chunks.len() == other.chunks.len()
        && one.chunks.iter().zip(&other.chunks).all(|(one, other)| are_alike(x, one, other))
}

/// The numbers of one pipeline rank.
#[derive(Clone, Debug)]
pub(super) struct Rank<'a> {
    pub(super) common: &'a Common,
    /// The gradient sent to the previous rank.
    pub(super) sent: Option<Term>,
    /// What PyTorch's pipelines hold at the peak.
    pub(super) piped: Vec<Term>,
    /// What the device shows beyond what is allocated.
    pub(super) framework: Framework<'a>,
    /// Micro-batches held at the peak.
    pub(super) flight: Flight,
    /// What runs at the peak; none in the optimizer step and if nothing runs.
    pub(super) moment: Option<Moment>,
    /// Whether the peak is in the optimizer step.
    pub(super) in_step: bool,
    /// Whether the peak is in an evaluation between steps.
    pub(super) in_evaluation: bool,
    /// Bytes of gradients that do not exist at the peak because backward creates them anew.
    pub(super) absent: Bytes,
    pub(super) totals: Totals,
}

impl<'a> Rank<'a> {
    fn new(stages: &'a Stages<'_>, rank: u64, common: &'a Common) -> Self {
        let x = stages.x;
        let (flight, moment) = peak(stages.shape, &common.chunks, rank);
        let mut out = Self {
            common,
            sent: previous_gradient(x, rank).filter(|_| !is_piped(x)),
            piped: Vec::new(),
            framework: Framework::nothing_but(&stages.outside),
            flight,
            moment,
            in_step: false,
            in_evaluation: false,
            absent: Bytes::ZERO,
            totals: Totals::default(),
        };
        out.totals = out.add_up(stages);
        out
    }

    /// Everything held besides states and activations, whatever runs.
    pub(super) fn buffers(&self) -> impl Iterator<Item = &Term> {
        self.common.buffers.iter().chain(&self.sent).chain(&self.piped).chain(self.gathered())
    }

    /// Weights that are unsharded at the peak, and gradients being reduced then.
    fn gathered(&self) -> &[Term] {
        match self.moment {
            Some(moment) => self.common.gathered.at(moment.kind),
            // An evaluation counts them among its own tensors.
            None if self.in_evaluation => &[],
            None if self.in_step => self.common.gathered.in_step(),
            None => self.common.gathered.elsewhere(),
        }
    }

    fn add_up(&mut self, stages: &'a Stages<'_>) -> Totals {
        let (x, units, common) = (stages.x, stages.units, self.common);
        let recipe = x.recipe();
        let kept = held(&common.chunks, &self.flight);
        let once: Bytes = common.chunks.iter().map(|chunk| chunk.once).sum();
        let (mut activations, mut running) = (kept + once, Bytes::ZERO);
        if let Some((moment, point)) = self.running(units) {
            let [returned, recomputed] = self.returned_and_recomputed(&moment, point);
            activations = (activations + moment.back.unwrap_or_default() + moment.modules).less(returned);
            running = point.transient.bytes() + recomputed + moment.added;
        }
        let step = common.part(Part::Step);
        // DeepSpeed frees the temporaries of its step (`stage3.py:_release_sub_group`, `stage_1_and_2.py:step`), and
        // Adam its roots.
        let transformers = &x.recipe().transformers;
        let let_go = transformers.engine == DataEngine::DeepSpeed || transformers.foreach_step;
        let stays = if let_go { Bytes::ZERO } else { step };
        let received = common.received.map_or(Bytes::ZERO, |term| term.bytes);
        let mut absent = self.moment.map_or(common.gathered.absent, |moment| moment.absent);
        // Between the passes no micro-batch is in flight, so more of a pipeline's buffers are held in addition to the
        // rest.
        let piped_bytes = |in_flight: &[u64]| -> Bytes {
            piped(x, &common.chunks, in_flight).iter().map(|term| term.bytes).sum()
        };
        let mut more = if is_piped(x) {
            piped_bytes(&vec![0; common.chunks.len()]).less(piped_bytes(&self.flight.counts))
        } else {
            Bytes::ZERO
        };
        let whole: Bytes = self.gathered().iter().map(|term| term.bytes).sum();
        let in_step: Bytes = common.gathered.in_step().iter().map(|term| term.bytes).sum();
        // The optimizer step is a separate candidate for the peak: no activations are alive, but all gradients are
        // (including those `absent` at the other moment), as are the step's own temporaries.
        if step + received + more + absent + in_step > activations + running + whole {
            absent = Bytes::ZERO;
            (self.in_step, self.moment) = (true, None);
            self.flight.counts.fill(0);
            self.flight.waiting.fill(0);
            (activations, running) = (Bytes::ZERO, step + received);
            more = Bytes::ZERO;
        }
        self.in_evaluation = self.is_in_evaluation(activations + running, absent);
        if self.in_evaluation {
            absent = common.gradients_to_come();
            (self.in_step, self.moment) = (false, None);
            self.flight.counts.fill(0);
            self.flight.waiting.fill(0);
            (activations, running) = (Bytes::ZERO, common.evaluation.iter().map(|term| term.bytes).sum());
            more = Bytes::ZERO;
        }
        self.absent = absent;
        self.piped = piped(x, &common.chunks, &self.flight.counts);
        let buffers: Bytes = self.buffers().map(|term| term.bytes).sum();
        let parameters = common.part(Part::Parameters);
        let gradients = common.part(Part::Gradients).less(absent);
        let optimizer = common.part(Part::Optimizer);
        let temporaries = running + buffers;
        let states = parameters + gradients + optimizer;
        let peak_allocated = states + activations + temporaries;
        let reducing = if wraps_ends(x) && !self.in_evaluation { absent } else { Bytes::ZERO };
        let load = Load {
            moving: activations + running,
            allocated: peak_allocated,
            in_step: self.in_step,
            in_evaluation: self.in_evaluation,
            reducing,
            ..common.load
        };
        self.framework = Framework::new(x, &stages.outside, load);
        let framework = self.framework.bytes();
        // Gradients that the trainer frees after the step. If another trainer's rollouts follow, they are assumed to
        // stay.
        let drops = recipe.software.semantics().modules.drops_gradients
            && recipe.transformers.engine != DataEngine::DeepSpeed
            && recipe.rollout.as_ref().is_none_or(|rollout| rollout.framework.runs_in_trainer());
        let dropped = if drops { common.part(Part::Gradients) } else { Bytes::ZERO };
        Totals {
            parameters,
            gradients,
            optimizer,
            activations,
            temporaries,
            peak_allocated,
            peak_cached: peak_allocated + self.framework.cached(),
            framework,
            outside: self.framework.outside(),
            peak_reserved: peak_allocated + framework,
            // What has to fit: cached blocks that the allocator can release do not cause an out-of-memory error.
            peak_required: (peak_allocated + framework).less(self.framework.returnable()),
            // Gradients that backward had yet to create at the peak exist once it has finished.
            gathered_in_forward: common.gathered.in_forward().iter().map(|term| term.bytes).sum(),
            between_steps: (states + absent).less(dropped) + self.lasting() + received + more + stays,
        }
    }

    /// Whether an evaluation holds more than the peak of a step, with `moving` bytes alive besides the states and the
    /// gathered weights, and `absent` bytes of gradients not created yet.
    fn is_in_evaluation(&self, moving: Bytes, absent: Bytes) -> bool {
        let sum = |terms: &[Term]| terms.iter().map(|term| term.bytes).sum::<Bytes>();
        let held = sum(&self.common.evaluation);
        held + absent > moving + sum(self.gathered()) + self.common.gradients_to_come()
    }

    /// At the peak: bytes freed of what the current chunk saved, and bytes recomputed. Anything freed beyond the
    /// saved bytes belongs to what was recomputed.
    pub(super) fn returned_and_recomputed(&self, moment: &Moment, point: &Point) -> [Bytes; 2] {
        let (all, kept) = match moment.back {
            // The saved tensors of an end's later operators are no longer on the device.
            Some(back) if moment.kind.layer().is_none() => (point.transient.returned, back),
            Some(back) => (point.returned, back),
            None => {
                let chunk = self.common.chunks.get(self.flight.backward);
                (moment.returned + point.returned, chunk.map_or(Bytes::ZERO, |chunk| chunk.kept))
            }
        };
        let returned = all.min(kept);
        [returned, (moment.recomputed + point.recomputed).less(all.less(returned))]
    }

    /// Buffers that stay after the step.
    fn lasting(&self) -> Bytes {
        self.buffers().filter(|term| term.lasting).map(|term| term.bytes).sum()
    }

    /// What runs at the peak.
    pub(super) fn running<'u>(&self, units: &'u Units) -> Option<(Moment, &'u Point)> {
        self.moment.and_then(|moment| Some((moment, moment.point(units)?)))
    }

    /// When the peak is.
    pub(super) fn at(&self, units: &Units) -> (&'static str, Option<SectionKind>) {
        match self.running(units) {
            _ if self.in_step => ("optimizer step", None),
            _ if self.in_evaluation => ("evaluation", None),
            Some((moment, point)) => (point.transient.name, Some(moment.kind)),
            None => ("forward of the last micro-batch in flight", None),
        }
    }
}

//! One rank worked out: states, flight, the moment of the peak.

use super::buffers::{buffers, previous_gradient};
use super::evaluation::evaluation;
use super::flight::Flight;
use super::framework::{Framework, Load};
use super::gathered::{Gathered, gathered, wraps_ends};
use super::moments::{ChunkSum, Moment};
use super::offloaded::Groups;
use super::peak::{held, peak};
use super::piped::{is_piped, piped};
use super::state::{Kind, Part, State};
use super::states::{kinds, states};
use super::term::Term;
use super::totals::Totals;
use super::unit::{Counts, Point, Sum, Units};
use shardscope_explain::Formula;
use shardscope_operators::{SectionKind, Symbols, are_alike, frozen_counts, section_counts};
use shardscope_plan::{DataEngine, Stage};
use shardscope_units::{Bytes, Count, Quantity};

static RECEIVED: Formula = Formula::new(
    "2·chunks·S·h·Br",
    "The last input of every chunk that receives one, and its gradient: the model references them until the next.",
    "megatron/core/transformer/transformer_block.py:set_input_tensor",
).letters(&[("chunks", "chunks of layers that receive an input")]);

/// What all ranks with equal stages have in common.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) chunks: Vec<ChunkSum>,
    pub(super) states: Vec<State>,
    pub(super) buffers: Vec<Term>,
    gathered: Gathered,
    parts: [Bytes; 4],
    load: Load,
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
            // Most kinds are in no stage, and this runs for each layout that a search looks at.
            if count > 0 {
                parameters.add(unit, count, frozen);
            }
        }
        // Where some are left whole, all layers are of one kind and on one stage.
        let layers = units.iter().zip(&counts).find(|((kind, _), count)| kind.has_layer() && **count > 0);
        if let Some(((kind, _), _)) = layers {
            let tuning = &x.recipe().tuning;
            for (modules, layers) in tuning.whole.iter() {
                for shape in kind.linear_layers(x, modules) {
                    parameters.dense.leave_whole(shape, layers, tuning.quantization);
                }
            }
        }
        let trains = parameters.dense.trains() + parameters.expert.trains();
        let gathered = gathered(x, units, &counts, trains);
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
        // Experts may have fewer replicas than dense weights (expert DP), so that their states are sharded over other ranks.
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
        Self { states: held, parts, buffers: buffers(x, units, &counts), gathered, load, chunks, evaluation }
    }

    /// Bytes of weights that do not train.
    pub(super) fn frozen(&self) -> Bytes {
        self.states.iter().filter(|state| state.frozen).map(State::bytes).sum()
    }

    /// Bytes of the gradients that a step's backward makes anew.
    fn gradients_to_come(&self) -> Bytes {
        self.chunks.iter().map(|chunk| chunk.to_come).sum()
    }

    /// Bytes of the states of `part`.
    fn part(&self, part: Part) -> Bytes {
        self.parts[part as usize]
    }
}

/// The stages of a plan, equal ones worked out once.
pub(super) struct Stages<'a> {
    x: &'a Symbols<'a>,
    units: &'a Units,
    commons: Vec<Common>,
    /// Of each stage, which of them is its own.
    own: Vec<usize>,
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
            // Equal stages come in runs, so that comparing with the neighbour and the first is enough; with all it would be quadratic.
            let known = [index.wrapping_sub(1), 0].into_iter().find(like);
            own.push(known.map_or(commons.len(), |other| own[other]));
            if known.is_none() {
                commons.push(Common::new(x, units, &kinds, stage));
            }
        }
        Self { x, units, commons, own }
    }

    /// What `visit` makes of every rank, in order.
    pub(super) fn ranks<T>(&self, visit: &dyn Fn(u64, &Rank<'_>) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(self.own.len());
        for (index, &own) in (0..).zip(&self.own) {
            all.push(visit(index, &self.rank(index, own)));
        }
        all
    }

    fn rank(&self, index: u64, own: usize) -> Rank<'_> {
        Rank::new(self.x, self.units, index, &self.commons[own])
    }
}

/// Whether two stages hold the same layers and ends.
fn are_equal(x: &Symbols<'_>, one: &Stage, other: &Stage) -> bool {
    one.chunks.len() == other.chunks.len()
        && one.chunks.iter().zip(&other.chunks).all(|(one, other)| are_alike(x, one, other))
}

/// Everything about one pipeline rank, as numbers.
#[derive(Clone, Debug)]
pub(super) struct Rank<'a> {
    pub(super) common: &'a Common,
    /// The gradient sent to the rank before.
    pub(super) sent: Option<Term>,
    /// What PyTorch's pipelines hold at the moment of the peak.
    pub(super) piped: Vec<Term>,
    /// What the device shows beside what is allocated.
    pub(super) framework: Framework,
    /// Micro-batches held at the peak.
    pub(super) flight: Flight,
    /// What runs at the peak; none in the optimizer step and where nothing runs.
    pub(super) moment: Option<Moment>,
    /// Whether the peak is in the optimizer step.
    pub(super) in_step: bool,
    /// Whether the peak is in an evaluation between steps.
    pub(super) in_evaluation: bool,
    /// Bytes of gradients that are not there at the moment of the peak: backward makes them anew.
    pub(super) absent: Bytes,
    pub(super) totals: Totals,
}

impl<'a> Rank<'a> {
    fn new(x: &Symbols<'_>, units: &Units, rank: u64, common: &'a Common) -> Self {
        let (flight, moment) = peak(x, &common.chunks, rank);
        let mut out = Self {
            common,
            sent: previous_gradient(x, rank).filter(|_| !is_piped(x)),
            piped: Vec::new(),
            framework: Framework::default(),
            flight,
            moment,
            in_step: false,
            in_evaluation: false,
            absent: Bytes::ZERO,
            totals: Totals::default(),
        };
        out.totals = out.add_up(x, units);
        out
    }

    /// All that is held beside states and activations, whatever runs.
    pub(super) fn buffers(&self) -> impl Iterator<Item = &Term> {
        self.common.buffers.iter().chain(&self.sent).chain(&self.piped).chain(self.gathered())
    }

    /// Weights that are whole at the moment of the peak, with what is reduced then.
    fn gathered(&self) -> &[Term] {
        match self.moment {
            Some(moment) => self.common.gathered.at(moment.kind),
            // An evaluation's stand among its own tensors.
            None if self.in_evaluation => &[],
            None if self.in_step => self.common.gathered.in_step(),
            None => self.common.gathered.elsewhere(),
        }
    }

    fn add_up(&mut self, x: &Symbols<'_>, units: &Units) -> Totals {
        let common = self.common;
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
        // DeepSpeed drops what its step made (`stage3.py:_release_sub_group`, `stage_1_and_2.py:step`), and Adam its roots.
        let transformers = &x.recipe().transformers;
        let let_go = transformers.engine == DataEngine::DeepSpeed || transformers.foreach_step;
        let stays = if let_go { Bytes::ZERO } else { step };
        let received = self.received(x).map_or(Bytes::ZERO, |term| term.bytes);
        let mut absent = self.moment.map_or(common.gathered.absent, |moment| moment.absent);
        // Between its passes no micro-batch is in flight, so that more of what a pipeline holds stands beside the rest.
        let piped_bytes = |in_flight: &[u64]| -> Bytes {
            piped(x, &common.chunks, in_flight).iter().map(|term| term.bytes).sum()
        };
        let mut more = piped_bytes(&vec![0; common.chunks.len()]).less(piped_bytes(&self.flight.counts));
        let whole: Bytes = self.gathered().iter().map(|term| term.bytes).sum();
        let in_step: Bytes = common.gathered.in_step().iter().map(|term| term.bytes).sum();
        // The optimizer step is a moment of its own: no activations are alive, but all gradients (those `absent` at the other moment
        // among them) and the step's own temporaries are.
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
        let load = Load { moving: activations + running, in_step: self.in_step, reducing, ..common.load };
        self.framework = Framework::new(x, load);
        let framework = self.framework.bytes();
        // Gradients that the trainer lets go of behind the step. Where another trainer's rollouts follow they are taken to stay.
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
            // What has to fit: cached blocks that the allocator can return do not run a device out of memory.
            peak_required: (peak_allocated + framework).less(self.framework.returnable()),
            // Gradients that backward had yet to make at the peak are there once it is over.
            between_steps: (states + absent).less(dropped) + self.lasting() + received + more + stays,
        }
    }

    /// Whether an evaluation holds more than the fullest moment of a step, at which `moving` bytes are alive beside the states
    /// and the gathered weights, and `absent` bytes of gradients are not there.
    fn is_in_evaluation(&self, moving: Bytes, absent: Bytes) -> bool {
        let sum = |terms: &[Term]| terms.iter().map(|term| term.bytes).sum::<Bytes>();
        let held = sum(&self.common.evaluation);
        held + absent > moving + sum(self.gathered()) + self.common.gradients_to_come()
    }

    /// At the moment of the peak: bytes given back of what the chunk at work has kept, and bytes computed again. What is
    /// given back beyond the kept is of what was computed again.
    pub(super) fn returned_and_recomputed(&self, moment: &Moment, point: &Point) -> [Bytes; 2] {
        let (all, kept) = match moment.back {
            // Of the operators behind, an end's saved tensors are not on the device any more.
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

    /// Buffers that stay when the step is over.
    fn lasting(&self) -> Bytes {
        self.buffers().filter(|term| term.lasting).map(|term| term.bytes).sum()
    }

    /// The last input of every chunk but the first with its gradient, to which the model still refers when the step is
    /// over (`megatron/core/transformer/transformer_block.py:set_input_tensor`).
    pub(super) fn received(&self, x: &Symbols<'_>) -> Option<Term> {
        let chunks = &self.common.chunks;
        let received = chunks
            .iter()
            .filter(|chunk| SectionKind::count(&chunk.counts, SectionKind::is_before_layers) == 0);
        let count = received.map(|_| 1).sum();
        let stream = Count::of_shape(&[x.s_local, x.h]).bytes(x.residual_width);
        let given = [("chunks", Count::new(count).number())];
        (count > 0 && !is_piped(x)).then(|| {
            Term::new("inputs received and their gradients", stream * (2 * count), &RECEIVED).given(&given)
        })
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

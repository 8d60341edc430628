//! Each kind of section worked out once: its parameters, what it keeps, and where its backward holds most.

use std::ops::RangeInclusive;

use super::kept::kept_by;
use super::offloaded::{Group, groups, left_by};
use super::state::ParameterCounts;
use shardscope_operators::{
    Operator, SectionKind, Symbols, Transient, Weight, WeightGroup, WeightPart, Work, section_counts,
    work_of, worked_out_again,
};
use shardscope_plan::{DpSharding, OffloadModules, Plan, Quantization, Recompute};
use shardscope_schedule::Shape;
use shardscope_units::{Bytes, Count};

/// How often each kind of section comes on a stage.
pub(super) type Counts = [u64; SectionKind::ALL.len()];

/// The point of a section's passes at which most is alive.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// Operator that runs.
    pub(super) operator: Operator,
    /// What its pass allocates there beyond the saved activations.
    pub(super) transient: Transient,
    /// Bytes recomputed for the operator's backward.
    pub(super) recomputed: Bytes,
    /// Bytes given back by operators behind it, and by its own earlier steps, of those that stay on the device.
    pub(super) returned: Bytes,
    /// Modules whose backward is over by then; in forward those whose tensors have not gone to the host yet.
    pub(super) modules: OffloadModules,
    /// Whether it is in forward.
    pub(super) forward: bool,
}

impl Point {
    /// Bytes alive beyond, less bytes given back.
    pub(super) fn net(&self) -> i128 {
        i128::from((self.transient.bytes() + self.recomputed).get()) - i128::from(self.returned.get())
    }
}

/// One section of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unit {
    /// Parameters outside of routed experts on one rank.
    pub(super) dense: ParameterCounts,
    /// Parameters of routed experts on one rank.
    pub(super) expert: ParameterCounts,
    /// Bytes kept for one micro-batch on the device.
    pub(super) kept: Bytes,
    /// Bytes kept beside these that leave the device with their modules.
    pub(super) left: Bytes,
    /// Modules whose saved tensors go to the host, in the order in which forward is done with them.
    pub(super) groups: Vec<Group>,
    /// The same in the first layer that trains, whose input requires no gradient.
    pub(super) first: Bytes,
    /// Bytes of its gradients on one rank, where backward makes them anew; else 0.
    pub(super) gradients: Bytes,
    /// Bytes of its gradient shards that stay beside the gradients until backward is over.
    pub(super) added: Bytes,
    /// Bytes left of it between its input gradient and its weight gradient.
    pub(super) waiting: Bytes,
    /// Bytes kept were nothing recomputed.
    pub(super) full: Bytes,
    /// Shapes of its linear weights on one rank, of one expert where there are several.
    pub(super) shapes: Vec<[u64; 2]>,
    /// Each operator's fullest point, the last operator first.
    pub(super) points: Vec<Point>,
    /// Which of them is the fullest.
    pub(super) most: Option<usize>,
}

impl Unit {
    /// Its parameters and the shapes of its weights alone.
    fn weights(x: &Symbols<'_>, kind: SectionKind) -> Self {
        let mut unit = Self::default();
        for weight in kind.weights(x) {
            let counts = match weight.group {
                WeightGroup::Dense => &mut unit.dense,
                WeightGroup::Expert => &mut unit.expert,
            };
            counts.add(&weight, quantization(x, &weight));
            // Only a weight with a gradient gets a dummy of its shape from Transformer Engine.
            if weight.linear && weight.role.trains() {
                unit.add_shape(&weight);
            }
        }
        unit
    }

    fn new(x: &Symbols<'_>, kind: SectionKind) -> Self {
        let operators = kind.operators(x);
        let mut unit = Self::weights(x, kind);
        unit.gradients = gradients_made(x, kind, &unit);
        if is_reduced_alone(x, kind) {
            unit.added = added(x, &unit);
        }
        // Of a step that a compiler lays out, what stands beside the inputs of layers is known as a whole.
        if kind.runs() && !x.recipe().software.semantics().compiled_step {
            let modules = kind.offloaded(x);
            unit.groups = groups(x, kind, &operators);
            unit.left = unit.groups.iter().map(|group| group.left).sum();
            let kept = Kept::new(x, &operators, modules);
            let stay = kind.kept_operators(x);
            // Usually they are all of them, which have been asked already: this runs for each layout that a search looks at.
            let all = if stay == operators { total(&kept.kept) } else { kept_by(x, &stay) };
            unit.kept = all.less(unit.left);
            unit.full = total(&kept.full);
            unit.first = if x.recipe().tuning.reaches_input() {
                unit.kept
            } else {
                kept_by(&x.in_first_trained_layer(), &operators)
            };
            unit.waiting = waiting(x, &operators);
            unit.points = points(x, &operators, &kept);
            if let Some(transient) = worked_out_again(x).filter(|_| kind.layer().is_some())
                && let Some(&operator) = operators.last()
            {
                // One graph holds the whole layer's backward, of which nothing is recomputed before it begins.
                let point = Point {
                    operator,
                    transient,
                    recomputed: Bytes::ZERO,
                    returned: Bytes::ZERO,
                    modules: OffloadModules::default(),
                    forward: false,
                };
                (unit.full, unit.points) = (Bytes::ZERO, vec![point]);
            }
            let mut most = i128::MIN;
            for (index, point) in unit.points.iter().enumerate() {
                if point.net() >= most {
                    (most, unit.most) = (point.net(), Some(index));
                }
            }
        }
        unit
    }

    fn add_shape(&mut self, weight: &Weight) {
        // Routed weights are stored expert by expert: the first dimension counts experts and is no part of a GEMM's shape.
        let sizes = if weight.is_routed() { weight.local.get(1..) } else { weight.local.get(..) };
        if let Some(&[out, inner]) = sizes
            && !self.shapes.contains(&[out, inner])
        {
            self.shapes.push([out, inner]);
        }
    }
}

/// How `weight` would be held where it is frozen: of linear weights outside of layers some software leaves the output layer's as it is.
fn quantization(x: &Symbols<'_>, weight: &Weight) -> Quantization {
    let output = weight.part == WeightPart::OutputProjection;
    let packs = if output { x.recipe().software.semantics().modules.quantizes_output } else { weight.linear };
    if packs { x.recipe().tuning.quantization } else { Quantization::None }
}

/// Bytes of the gradients that `kind`'s backward, whose weights `unit` has, makes where the first micro-batch of a step finds
/// none and each parameter gets its own when backward reaches it (`zero_grad(set_to_none=True)`).
fn gradients_made(x: &Symbols<'_>, kind: SectionKind, unit: &Unit) -> Bytes {
    let Some(widths) = super::own_states::widths_made_anew(x.plan) else { return Bytes::ZERO };
    let of = |made| {
        if made == kind { made_anew(x, unit, widths) } else { made_anew(x, &Unit::weights(x, made), widths) }
    };
    kind.gradients_made(x).into_iter().map(of).sum()
}

/// Bytes of the gradients of `unit`, an element of the model's own weights and one of adapters so wide.
fn made_anew(x: &Symbols<'_>, unit: &Unit, [trained, adapters]: [u64; 2]) -> Bytes {
    let layout = x.plan.layout();
    let bytes = |counts: &ParameterCounts, shards: u64| {
        let whole = counts.trained.bytes(trained) + counts.adapters.bytes(adapters);
        Bytes::new(whole.get() / shards.max(1))
    };
    let spread = matches!(x.recipe().dp_sharding, DpSharding::Gradients | DpSharding::Parameters);
    let shards = |shards| if spread { shards } else { 1 };
    bytes(&unit.dense, shards(layout.dense_shards())) + bytes(&unit.expert, shards(layout.expert_shards()))
}

/// Whether its gradients are reduced while backward still runs: the unit outside of layers is reduced last of all.
fn is_reduced_alone(x: &Symbols<'_>, kind: SectionKind) -> bool {
    let has_head = x.recipe().transformers.ends_apart || !x.recipe().shards_by_fsdp();
    kind.is_gathered_alone() || (has_head && kind.projects_vocabulary())
}

/// Bytes of a unit's gradient shards that are held while they are added up across groups of replicas.
fn added(x: &Symbols<'_>, unit: &Unit) -> Bytes {
    let (layout, width) = (x.plan.layout(), super::own_states::width_added_up(x.plan));
    let bytes = |counts: &ParameterCounts, shards: u64| {
        Bytes::new(counts.trains().bytes(width).get() / shards.max(1))
    };
    bytes(&unit.dense, layout.dense_shards()) + bytes(&unit.expert, layout.expert_shards())
}

fn total(bytes: &[Bytes]) -> Bytes {
    bytes.iter().copied().sum()
}

/// Input and output gradient of every linear layer: what its weight gradient is made from.
fn waiting(x: &Symbols<'_>, operators: &[Operator]) -> Bytes {
    if !Shape::from_plan(x.plan).splits_backward() {
        return Bytes::ZERO;
    }
    let mut bytes = Bytes::ZERO;
    for work in work_of(x, operators) {
        if let Work::Matmul(matmul) = work
            && matmul.kind.has_weight()
        {
            // dW = dYᵀ·X: the output's gradient and the input have to stay until the weight gradient runs, and nothing else
            // does.
            let [rows, outer, inner] = matmul.local;
            bytes += Count::of_shape(&[rows, outer.saturating_add(inner), matmul.batch]).bytes(x.width);
        }
    }
    bytes
}

/// Bytes that each operator of a section keeps, and would keep were nothing recomputed.
struct Kept {
    kept: Vec<Bytes>,
    full: Vec<Bytes>,
    /// Of what it keeps, what leaves the device.
    left: Vec<Bytes>,
    modules: OffloadModules,
}

impl Kept {
    fn new(x: &Symbols<'_>, operators: &[Operator], modules: OffloadModules) -> Self {
        let kept = kept_by_each(x, operators);
        // Under whole-layer recomputation a layer keeps its input alone, which the chunk counts: within the layer nothing differs.
        let selective = matches!(x.recipe().recompute, Recompute::Selective(_));
        let full = if selective { kept_by_each(&x.recomputed(), operators) } else { kept.clone() };
        let left = operators.iter().map(|&operator| left_by(x, operator, modules)).collect();
        Self { kept, full, left, modules }
    }

    /// Bytes recomputed of the operators in `range`.
    fn recomputed(&self, range: RangeInclusive<usize>) -> Bytes {
        range.map(|index| self.full[index].less(self.kept[index])).sum()
    }
}

fn kept_by_each(x: &Symbols<'_>, operators: &[Operator]) -> Vec<Bytes> {
    operators.iter().map(|&operator| kept_by(x, &[operator])).collect()
}

/// Each operator's fullest point, with what the operators behind it have given back by then. While a
/// module that is recomputed runs backward, all of its tensors are alive; where a whole layer is computed
/// again at once, so are those of the operators before it.
fn points(x: &Symbols<'_>, operators: &[Operator], kept: &Kept) -> Vec<Point> {
    let all = x.recomputed();
    let mut behind = Bytes::ZERO;
    let mut passed = OffloadModules::default();
    let mut out = Vec::with_capacity(operators.len());
    for (index, &operator) in operators.iter().enumerate().rev() {
        // Selective recomputation runs a module again just before its own backward; torchtitan's runs the whole layer again
        // at once.
        let first = if x.samples_layers() { 0 } else { index };
        let recomputed = kept.recomputed(first..=index);
        let mut fullest: Option<Point> = None;
        let stays = kept.kept[index].less(kept.left[index]);
        for transient in operator.transients(&all) {
            let modules = transient.modules.iter().fold(passed, |passed, module| passed.with(*module));
            // What a point counts as given back of what is not on the device is not given back there.
            let own = if kept.modules.is_empty() {
                transient.returned
            } else {
                transient.returned.less(kept.left[index]).min(stays)
            };
            let returned = behind + own;
            let point = Point { operator, recomputed, returned, transient, modules, forward: false };
            // Which is the fullest depends on what has come back from the host by then.
            if !kept.modules.is_empty() {
                out.push(point);
            } else if fullest.as_ref().is_none_or(|other| point.net() >= other.net()) {
                fullest = Some(point);
            }
        }
        out.extend(fullest);
        if !kept.modules.is_empty() {
            out.extend(operator.forward_points(&all).into_iter().map(|transient| Point {
                operator,
                recomputed: Bytes::ZERO,
                returned: Bytes::ZERO,
                modules: transient.modules.iter().copied().collect(),
                transient,
                forward: true,
            }));
        }
        behind += stays;
        passed = operator.modules().iter().fold(passed, |passed, module| passed.with(*module));
    }
    out
}

/// Every kind that the plan's stages hold, worked out once.
#[derive(Clone, Debug)]
pub(super) struct Units {
    /// Those worked out; at the first place one that holds nothing, for the others.
    units: Vec<Unit>,
    /// The place of each kind among them.
    places: [u8; SectionKind::ALL.len()],
}

impl Default for Units {
    fn default() -> Self {
        Self { units: vec![Unit::default()], places: [0; SectionKind::ALL.len()] }
    }
}

impl Units {
    /// The units of `plan`.
    pub(super) fn new(x: &Symbols<'_>) -> Self {
        let mut units = Self::default();
        units.learn(x);
        units
    }

    /// Works out what `plan`'s stages hold and is not known yet.
    pub(super) fn learn(&mut self, x: &Symbols<'_>) {
        let mut present = [false; SectionKind::ALL.len()];
        for chunk in chunks(x.plan) {
            for (present, &count) in present.iter_mut().zip(&section_counts(x, chunk)) {
                *present |= count > 0;
            }
        }
        for ((&kind, present), place) in SectionKind::ALL.iter().zip(present).zip(&mut self.places) {
            if present && *place == 0 {
                // There are fewer kinds than a byte counts.
                *place = u8::try_from(self.units.len()).unwrap_or(0);
                self.units.push(Unit::new(x, kind));
            }
        }
    }

    fn at(&self, place: u8) -> &Unit {
        &self.units[usize::from(place)]
    }

    /// The unit of `kind`; empty where no stage holds one.
    pub(super) fn get(&self, kind: SectionKind) -> &Unit {
        self.at(self.places[kind.index()])
    }

    /// Units with their kinds, in the order of a chunk.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (SectionKind, &Unit)> {
        SectionKind::ALL.iter().zip(&self.places).map(|(&kind, &place)| (kind, self.at(place)))
    }
}

fn chunks(plan: &Plan) -> impl Iterator<Item = &shardscope_plan::Chunk> {
    plan.layout().stages.stages.iter().flat_map(|stage| &stage.chunks)
}

/// Parameters of a chunk or stage: dense and expert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// Outside of routed experts.
    pub(super) dense: ParameterCounts,
    /// Of routed experts.
    pub(super) expert: ParameterCounts,
}

impl Sum {
    /// Adds `times` of `unit`, of which `frozen` do not train.
    pub(super) fn add(&mut self, unit: &Unit, times: u64, frozen: u64) {
        let trained = times.saturating_sub(frozen);
        self.dense.add_all(unit.dense, trained);
        if unit.expert.all > Count::ZERO {
            self.expert.add_all(unit.expert, trained);
        }
        if frozen > 0 {
            self.dense.add_all(unit.dense.frozen(), frozen);
            self.expert.add_all(unit.expert.frozen(), frozen);
        }
    }
}

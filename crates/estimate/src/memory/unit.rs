//! The computed sections, one of each kind: parameters, what it saves, and where its backward holds most.

use std::ops::RangeInclusive;

use super::kept::kept_by;
use super::offloaded::{Group, groups, left_by};
use super::state::ParameterCounts;
use super::waiting::waiting;
use shardscope_operators::{
    Operator, Parts, SectionKind, Symbols, Transient, Weight, WeightGroup, WeightPart, of_modules,
    section_counts, worked_out_again,
};
use shardscope_plan::{DpSharding, OffloadModules, OptimizerKind, Plan, Quantization, Recompute};
use shardscope_units::{Bytes, Count};
use smallvec::SmallVec;

/// The number of sections of each kind on a stage.
pub(super) type Counts = [u64; SectionKind::ALL.len()];

/// A point in a section's passes: the most that is alive while an operator runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// The operator that runs.
    pub(super) operator: Operator,
    /// What its pass allocates there beyond saved activations.
    pub(super) transient: Transient,
    /// Bytes recomputed for the operator's backward.
    pub(super) recomputed: Bytes,
    /// Bytes on the device freed by then: by later operators, where backward begins, and by this one's earlier steps.
    pub(super) returned: Bytes,
    /// Modules whose backward has finished by then; in forward, those whose tensors have not left for the host yet.
    pub(super) modules: OffloadModules,
    /// Whether it is in the forward pass.
    pub(super) forward: bool,
    /// Bytes of the section's gradients that backward has created by then, if it creates them anew.
    pub(super) made: Bytes,
}

impl Point {
    /// Bytes alive in addition, minus bytes freed.
    pub(super) fn net(&self) -> i128 {
        i128::from((self.transient.bytes() + self.recomputed + self.made).get())
            - i128::from(self.returned.get())
    }
}

/// One section of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unit {
    /// Parameters outside routed experts on one rank.
    pub(super) dense: ParameterCounts,
    /// Parameters of routed experts on one rank.
    pub(super) expert: ParameterCounts,
    /// Those that are gathered in 8 bits.
    pub(super) in_fp8: Count,
    /// Bytes saved on the device for one micro-batch.
    pub(super) kept: Bytes,
    /// Further saved bytes that leave the device with their modules.
    pub(super) left: Bytes,
    /// Modules whose saved tensors go to the host, in the order in which forward finishes them.
    pub(super) groups: Vec<Group>,
    /// Bytes saved in the first trainable layer, whose input requires no gradient.
    pub(super) first: Bytes,
    /// Bytes of its gradients on one rank, if backward creates them anew; else 0.
    pub(super) gradients: Bytes,
    /// Bytes of its gradient shards that coexist with the gradients until backward ends.
    pub(super) added: Bytes,
    /// Bytes that remain of it between its input gradient and its weight gradient.
    pub(super) waiting: Bytes,
    /// Bytes saved if nothing were recomputed.
    pub(super) full: Bytes,
    /// Shapes of its linear weights on one rank; for several experts, of a single one.
    pub(super) shapes: SmallVec<[[u64; 2]; 4]>,
    /// Each operator's peak, the last operator first; every point if modules are offloaded.
    pub(super) points: Vec<Point>,
    /// The index of the largest of them.
    pub(super) most: Option<usize>,
}

impl Unit {
    /// A unit with only its parameters and the shapes of its weights.
    fn weights(x: &Symbols<'_>, kind: SectionKind) -> Self {
        Self::of_weights(x, kind.weights(x))
    }

    fn of_weights(x: &Symbols<'_>, weights: impl IntoIterator<Item = Weight>) -> Self {
        let mut unit = Self::default();
        // Optimizers that depend on shapes see those of the modules' own weights.
        let shapes = [OptimizerKind::Adafactor, OptimizerKind::Soap, OptimizerKind::Shampoo];
        let recipe = x.recipe();
        let splits = recipe.software.semantics().eager_modules && shapes.contains(&recipe.optimizer.kind);
        for weight in weights {
            let counts = match weight.group {
                WeightGroup::Dense => &mut unit.dense,
                WeightGroup::Expert => &mut unit.expert,
            };
            let quantization = quantization(x, &weight);
            if splits && weight.role.trains() {
                for local in of_modules(x, &weight) {
                    counts.add(&Weight { local, ..weight.clone() }, quantization);
                }
            } else {
                counts.add(&weight, quantization);
            }
            // Transformer Engine only creates a dummy for the shape of a weight with a gradient.
            if weight.linear && weight.role.trains() {
                unit.add_shape(&weight);
            }
        }
        unit
    }

    fn new(x: &Symbols<'_>, kind: SectionKind) -> Self {
        let operators = kind.operators(x);
        let mut unit = Self::weights(x, kind);
        unit.in_fp8 = kind
            .weights(x)
            .filter(|weight| kind.gathers_in_fp8(x, weight))
            .map(|weight| weight.count())
            .sum();
        unit.gradients = gradients_made(x, kind, &unit);
        if is_reduced_alone(x, kind) {
            unit.added = added(x, &unit);
        }
        // For a step laid out by a compiler, the memory besides layer inputs is known in total.
        if kind.runs() && !x.recipe().software.semantics().compiled_step {
            let modules = kind.offloaded(x);
            unit.groups = groups(x, kind, &operators);
            unit.left = unit.groups.iter().map(|group| group.left).sum();
            let kept = Kept::new(x, &operators, modules);
            let stay = kind.kept_operators(x);
            // Usually these are all operators, with results known already: this runs for each layout that a search
            // visits.
            let all = if stay == operators { total(&kept.kept) } else { kept_by(x, &stay) };
            unit.kept = all.less(unit.left);
            unit.full = total(&kept.full);
            unit.first = if x.recipe().tuning.reaches_input() {
                unit.kept
            } else {
                kept_by(&x.in_first_trained_layer(), &operators)
            };
            unit.waiting = waiting(x, &operators);
            unit.points = points(x, kind, &operators, &kept);
            if let Some(transient) = worked_out_again(x).filter(|_| kind.layer().is_some())
                && let Some(&operator) = operators.last()
            {
                // One graph holds the entire layer's backward, and nothing of it is recomputed before it begins.
                let point = Point {
                    operator,
                    transient,
                    recomputed: Bytes::ZERO,
                    returned: Bytes::ZERO,
                    modules: OffloadModules::default(),
                    forward: false,
                    made: Bytes::ZERO,
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
        // Routed weights are stored per expert: the first dimension counts experts and is not part of a GEMM's shape.
        let sizes = if weight.is_routed() { weight.local.get(1..) } else { weight.local.get(..) };
        if let Some(&[out, inner]) = sizes
            && !self.shapes.contains(&[out, inner])
        {
            self.shapes.push([out, inner]);
        }
    }
}

/// How `weight` would be stored if it were frozen. Outside layers, some software leaves the output layer unquantized.
pub(super) fn quantization(x: &Symbols<'_>, weight: &Weight) -> Quantization {
    let output = weight.part == WeightPart::OutputProjection;
    let packs = if output { x.recipe().software.semantics().modules.quantizes_output } else { weight.linear };
    if packs { x.recipe().tuning.quantization } else { Quantization::None }
}

/// Bytes of the gradients that `kind`'s backward creates for the weights of `unit`, if a step's first micro-batch
/// finds none and each parameter gets its own when backward reaches it (`zero_grad(set_to_none=True)`).
fn gradients_made(x: &Symbols<'_>, kind: SectionKind, unit: &Unit) -> Bytes {
    let Some(widths) = super::own_states::widths_made_anew(x.plan) else { return Bytes::ZERO };
    let of = |made| {
        if made == kind { made_anew(x, unit, widths) } else { made_anew(x, &Unit::weights(x, made), widths) }
    };
    // If each weight is stepped immediately, only a tied weight's gradient has to wait.
    let waits = |made: &SectionKind| !x.recipe().transformers.steps_in_backward || *made != kind;
    kind.gradients_made(x).into_iter().filter(waits).map(of).sum()
}

/// Bytes per element of gradients that a layer's backward creates anew and that are not sharded, so they stay alive
/// while the rest of backward runs.
fn gradients_stay(x: &Symbols<'_>, kind: SectionKind) -> Option<[u64; 2]> {
    let unsharded = matches!(x.recipe().dp_sharding, DpSharding::Replicated | DpSharding::OptimizerStates);
    // For experts, the points themselves count the gradient of the first weights.
    let layer = (kind.layer().is_some() && !kind.routes(x)) || kind.is_of_encoders_layers();
    let stays = unsharded && layer && !x.recipe().transformers.steps_in_backward;
    super::own_states::widths_made_anew(x.plan).filter(|_| stays && !super::own_states::defers(x.plan))
}

/// Bytes of the gradients of `unit`, given the bytes per element for the model's own weights and for adapters.
fn made_anew(x: &Symbols<'_>, unit: &Unit, [trained, adapters]: [u64; 2]) -> Bytes {
    let layout = x.plan.layout();
    let bytes = |counts: &ParameterCounts, shards: u64| {
        let unsharded = counts.trained.bytes(trained) + counts.adapters.bytes(adapters);
        Bytes::new(unsharded.get() / shards.max(1))
    };
    let spread = matches!(x.recipe().dp_sharding, DpSharding::Gradients | DpSharding::Parameters);
    let shards = |shards| if spread { shards } else { 1 };
    bytes(&unit.dense, shards(layout.dense_shards())) + bytes(&unit.expert, shards(layout.expert_shards()))
}

/// Whether its gradients are reduced while backward still runs: the unit outside the layers is reduced last of all.
fn is_reduced_alone(x: &Symbols<'_>, kind: SectionKind) -> bool {
    let has_head = x.recipe().transformers.ends_apart || !x.recipe().shards_by_fsdp();
    kind.is_gathered_alone() || (has_head && kind.projects_vocabulary())
}

/// Bytes of a unit's gradient shards held while they are accumulated across replica groups.
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

/// Bytes that each operator of a section saves, and would save if nothing were recomputed.
struct Kept {
    kept: Vec<Bytes>,
    full: Vec<Bytes>,
    /// Saved bytes that leave the device.
    left: Vec<Bytes>,
    modules: OffloadModules,
}

impl Kept {
    fn new(x: &Symbols<'_>, operators: &[Operator], modules: OffloadModules) -> Self {
        let kept = kept_by_each(x, operators);
        // Under full recomputation a layer saves only its input, which the chunk counts: within the layer nothing
        // differs.
        let selective = matches!(x.recipe().recompute, Recompute::Selective(_));
        let full = if selective { kept_by_each(&x.recomputed(), operators) } else { kept.clone() };
        let left = operators.iter().map(|&operator| left_by(x, operator, modules)).collect();
        Self { kept, full, left, modules }
    }

    /// Bytes recomputed by the operators in `range`.
    fn recomputed(&self, range: RangeInclusive<usize>) -> Bytes {
        range.map(|index| self.full[index].less(self.kept[index])).sum()
    }
}

fn kept_by_each(x: &Symbols<'_>, operators: &[Operator]) -> Vec<Bytes> {
    operators.iter().map(|&operator| kept_by(x, &[operator])).collect()
}

/// Each operator's peak, including what later operators have freed by then. While a recomputed module runs backward,
/// all of its tensors are alive; if an entire layer is recomputed at once, so are those of the operators before it.
fn points(x: &Symbols<'_>, kind: SectionKind, operators: &[Operator], kept: &Kept) -> Vec<Point> {
    let all = x.recomputed();
    let mut behind = Bytes::ZERO;
    let widths = gradients_stay(x, kind);
    let mut behind_made = Bytes::ZERO;
    let mut passed = OffloadModules::default();
    let mut out = Vec::with_capacity(operators.len());
    for (index, &operator) in operators.iter().enumerate().rev() {
        // Selective recomputation reruns a module just before its own backward; torchtitan's reruns the entire layer
        // at once.
        let first = if x.samples_layers() { 0 } else { index };
        let recomputed = kept.recomputed(first..=index);
        let mut fullest: Option<Point> = None;
        let stays = kept.kept[index].less(kept.left[index]);
        let mut made = behind_made;
        for transient in operator.transients(&all) {
            let modules = transient.modules.iter().fold(passed, |passed, module| passed.with(*module));
            // A point's freed bytes do not include tensors that are not on the device.
            let own = if kept.modules.is_empty() {
                transient.returned
            } else {
                transient.returned.less(kept.left[index]).min(stays)
            };
            let returned = behind + own;
            let of_point = transient.tensors.iter().filter(|tensor| tensor.parts == Parts::Gradient);
            let own_made = of_point.map(|tensor| tensor.bytes).sum();
            let point = Point { operator, recomputed, returned, transient, modules, forward: false, made };
            made += if widths.is_some() { own_made } else { Bytes::ZERO };
            // Which one is the peak depends on what has come back from the host by then.
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
                made: Bytes::ZERO,
            }));
        }
        behind += stays;
        behind_made += widths
            .map_or(Bytes::ZERO, |widths| made_anew(x, &Unit::of_weights(x, operator.weights(x)), widths));
        passed = operator.modules().iter().fold(passed, |passed, module| passed.with(*module));
    }
    out
}

/// One unit for every kind of section that the plan's stages hold.
#[derive(Clone, Debug)]
pub(super) struct Units {
    /// The computed units, preceded by an empty one for kinds that no stage holds.
    units: Vec<Unit>,
    /// The index of each kind's unit.
    places: [u8; SectionKind::ALL.len()],
}

impl Default for Units {
    fn default() -> Self {
        // Units are large to move, and few plans have more kinds.
        let mut units = Vec::with_capacity(8);
        units.extend([Unit::default()]);
        Self { units, places: [0; SectionKind::ALL.len()] }
    }
}

impl Units {
    /// The units of `plan`.
    pub(super) fn new(x: &Symbols<'_>) -> Self {
        let mut units = Self::default();
        units.learn(x);
        units
    }

    /// Computes the units that `plan`'s stages hold and that are not known yet.
    pub(super) fn learn(&mut self, x: &Symbols<'_>) {
        let mut present = [false; SectionKind::ALL.len()];
        for chunk in chunks(x.plan) {
            for (present, &count) in present.iter_mut().zip(&section_counts(x, chunk)) {
                *present |= count > 0;
            }
        }
        for ((&kind, present), place) in SectionKind::ALL.iter().zip(present).zip(&mut self.places) {
            if present && *place == 0 {
                // The number of kinds fits into a byte.
                *place = u8::try_from(self.units.len()).unwrap_or(0);
                self.units.push(Unit::new(x, kind));
            }
        }
    }

    fn at(&self, place: u8) -> &Unit {
        &self.units[usize::from(place)]
    }

    /// The unit of `kind`; empty if no stage holds one.
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

//! The layer tree of the full model, with what one rank holds of each part.

use super::kept::layers_kept;
use shardscope_operators::{Operator, Saved, SectionKind, Shape, Symbols, Weight, sections};
use shardscope_plan::{LayerKind, Plan};
use shardscope_units::{Bytes, Count};

/// The load of a part: parameters, their bytes, and what it saves for one micro-batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Parameters.
    pub parameters: Count,
    /// Their bytes as weights.
    pub parameter_bytes: Bytes,
    /// Bytes saved for backward for one micro-batch, disregarding full recomputation.
    pub activation_bytes: Bytes,
}

impl Load {
    fn add(&mut self, other: Self, times: u64) {
        self.parameters += other.parameters * times;
        self.parameter_bytes += other.parameter_bytes * times;
        self.activation_bytes += other.activation_bytes * times;
    }
}

/// A part of the model. Its figures are for a single instance, of which its parent has `times`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerNode {
    /// Its name.
    pub name: &'static str,
    /// Number of instances in its parent.
    pub times: u64,
    /// For leaves, the shape of the tensor in the full model.
    pub shape: Option<Shape>,
    /// For leaves, the shape of the tensor on one rank.
    pub sharded_shape: Option<Shape>,
    /// Load in the full model.
    pub full: Load,
    /// Load on one rank that holds it.
    pub sharded: Load,
    /// Its parts.
    pub children: Vec<LayerNode>,
}

impl LayerNode {
    fn parent(name: &'static str, times: u64, children: Vec<Self>) -> Self {
        let (mut full, mut sharded) = (Load::default(), Load::default());
        for child in &children {
            full.add(child.full, child.times);
            sharded.add(child.sharded, child.times);
        }
        Self { name, times, shape: None, sharded_shape: None, full, sharded, children }
    }

    fn weight(weight: &Weight, width: u64) -> Self {
        let load = |count: Count| Load {
            parameters: count,
            parameter_bytes: count.bytes(width),
            activation_bytes: Bytes::ZERO,
        };
        Self {
            name: weight.name,
            times: 1,
            shape: Some(weight.full),
            sharded_shape: Some(weight.local),
            full: load(weight.full_count()),
            sharded: load(weight.count()),
            children: Vec::new(),
        }
    }

    fn kept(full: Option<&Saved>, sharded: Option<&Saved>) -> Self {
        let load = |saved: Option<&Saved>| Load {
            activation_bytes: saved.map_or(Bytes::ZERO, |saved| saved.bytes),
            ..Load::default()
        };
        Self {
            name: full.or(sharded).map_or("", |saved| saved.name),
            times: 1,
            shape: full.map(|saved| saved.shape),
            sharded_shape: sharded.map(|saved| saved.shape),
            full: load(full),
            sharded: load(sharded),
            children: Vec::new(),
        }
    }
}

/// The layers of `plan`'s model: each kind once, with its count.
#[must_use]
pub fn layers(plan: &Plan) -> LayerNode {
    let x = Symbols::new(plan);
    let unsharded = x.unsharded();
    let mut times = [0_u64; SectionKind::ALL.len()];
    for chunk in plan.layout().model_chunks() {
        for section in sections(&x, chunk) {
            times[section.kind.index()] += section.times;
        }
    }
    let mut children = Vec::new();
    for (&kind, &times) in SectionKind::ALL.iter().zip(&times) {
        if times > 0 {
            children.push(section(&x, &unsharded, kind, times));
        }
    }
    LayerNode::parent("model", 1, children)
}

fn section(x: &Symbols<'_>, unsharded: &Symbols<'_>, kind: SectionKind, times: u64) -> LayerNode {
    let mut children = Vec::new();
    for operator in kind.operators(x) {
        let mut parts = Vec::new();
        if kind.runs() {
            for weight in &operator.weights(x) {
                if !weight.copy {
                    parts.push(LayerNode::weight(weight, x.width));
                }
            }
            parts.extend(kept(x, unsharded, operator));
        }
        children.push(LayerNode::parent(operator.name(), 1, parts));
    }
    LayerNode::parent(kind.name(), times, children)
}

/// The tensors that an operator saves, in the full model and on one rank. A tensor may exist on only one side.
fn kept(x: &Symbols<'_>, unsharded: &Symbols<'_>, operator: Operator) -> Vec<LayerNode> {
    let full = operator.saved(unsharded);
    let sharded = operator.saved(x);
    let mut taken = vec![false; full.len()];
    let mut out = Vec::with_capacity(sharded.len());
    for saved in &sharded {
        let twin = (0..full.len()).find(|&index| !taken[index] && full[index].name == saved.name);
        if let Some(index) = twin {
            taken[index] = true;
        }
        out.push(LayerNode::kept(twin.map(|index| &full[index]), Some(saved)));
    }
    for (saved, taken) in full.iter().zip(taken) {
        if !taken {
            out.push(LayerNode::kept(Some(saved), None));
        }
    }
    out
}

/// Bytes saved by one layer of each kind for one micro-batch on one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedActivations {
    /// The largest layer with a dense MLP; none if the model has none.
    pub dense: Option<Bytes>,
    /// The largest layer with experts; none if the model has none.
    pub moe: Option<Bytes>,
    /// Each kind that the model has.
    pub kinds: Vec<(LayerKind, Bytes)>,
}

impl SavedActivations {
    /// Each kind with its name, if any kind is something other than attention with a dense MLP or with experts.
    pub fn other_kinds(&self) -> impl Iterator<Item = (&'static str, Bytes)> + '_ {
        let others = self.kinds.iter().any(|(kind, _)| ![LayerKind::DENSE, LayerKind::MOE].contains(kind));
        self.kinds
            .iter()
            .filter(move |_| others)
            .map(|(kind, bytes)| (SectionKind::Layer(*kind).name(), *bytes))
    }
}

/// What one layer of each kind saves under `plan`; for a recomputed layer, its share of the saved input.
#[must_use]
pub fn saved_activations(plan: &Plan) -> SavedActivations {
    let x = Symbols::new(plan);
    let first = plan.layout().stages.stages.first().and_then(|stage| stage.chunks.first());
    let runs = first.map(|chunk| layers_kept(&x, chunk));
    let kept = |kind| {
        let full = super::kept::section_kept(&x, SectionKind::Layer(kind));
        match runs {
            Some(kept) if kept.runs > 0 && x.recipe().offload.every_input => Bytes::ZERO,
            Some(kept) if kept.runs > 0 && kept.layers == [0; LayerKind::ALL.len()] => {
                Bytes::new(super::kept::run_bytes(&x).get() / kept.run.max(1))
            }
            _ => full,
        }
    };
    let model = plan.model();
    let mut saved = SavedActivations::default();
    for kind in LayerKind::ALL.into_iter().filter(|kind| model.count_layers(|layer| layer == *kind) > 0) {
        let bytes = kept(kind);
        saved.kinds.push((kind, bytes));
        if kind.feed_forward.is_dense() {
            saved.dense = saved.dense.max(Some(bytes));
        }
        if kind.feed_forward.is_routed() {
            saved.moe = saved.moe.max(Some(bytes));
        }
    }
    saved
}

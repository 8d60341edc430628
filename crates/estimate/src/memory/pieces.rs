//! Splits a section into tensors: the bytes of each tensor's own storage, and when it is alive.

use super::state::{Kind, ParameterCounts, Part};
use super::states::{kinds, pages_states};
use super::unit::quantization;
use shardscope_operators::{Operator, Parts, Saved, SectionKind, Symbols, Weight, of_modules};
use shardscope_units::Bytes;

/// The most tensors that are counted as one.
pub(super) const MOST_PARTS: usize = 4;

/// The tensors of a weight, in bytes each.
#[derive(Clone, Debug, Default)]
pub(super) struct Tensors {
    /// The weight as stored.
    pub(super) parameters: Vec<Bytes>,
    /// Its gradient, when backward creates it.
    pub(super) gradients: Vec<Bytes>,
    /// Its optimizer states, from the first step on.
    pub(super) states: Vec<Bytes>,
    /// Tensors that exist only in the optimizer step.
    pub(super) step: Vec<Bytes>,
}

/// A tensor of a point, or several counted as one.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    name: &'static str,
    /// Total bytes.
    pub(super) bytes: Bytes,
    /// Bytes of each tensor.
    pub(super) parts: Vec<Bytes>,
    /// Whether it is a weight's gradient.
    pub(super) is_gradient: bool,
    /// Whether it replaces an existing gradient.
    pub(super) is_sum: bool,
    /// Its index at the previous point, if it is already alive there.
    pub(super) stays: Option<usize>,
}

/// A point in a pass.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) tensors: Vec<Piece>,
    /// Bytes of the operator's saved tensors that are freed before this point.
    pub(super) returned: Bytes,
}

/// An operator split into tensors.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    /// Bytes of each saved tensor, in the order of forward.
    pub(super) saved: Vec<Bytes>,
    /// Points of forward, in order.
    pub(super) forward: Vec<Moment>,
    /// Points of backward, in order.
    pub(super) backward: Vec<Moment>,
    pub(super) weights: Vec<Tensors>,
    pub(super) reads_stream: bool,
    pub(super) adds_to_stream: bool,
}

/// A section split into tensors.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) kind: SectionKind,
    /// Whether it is the first trainable layer; whether it does not train at all.
    stance: [bool; 2],
    pub(super) operators: Vec<Pass>,
}

/// Sections split into tensors, with equal sections stored once.
pub(super) struct Pieces<'a> {
    x: &'a Symbols<'a>,
    kinds: Vec<Kind>,
    pub(super) sections: Vec<Section>,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(x: &'a Symbols<'a>) -> Self {
        Self { x, kinds: kinds(x.plan), sections: Vec::with_capacity(6) }
    }

    /// The index of the section of `kind` with this stance: whether it is the `first` trainable layer, and whether it
    /// is `frozen`.
    pub(super) fn section(&mut self, kind: SectionKind, first: bool, frozen: bool) -> usize {
        let first = first && !self.x.recipe().tuning.reaches_input();
        let stance = [first, frozen];
        let known = self.sections.iter().position(|other| other.kind == kind && other.stance == stance);
        known.unwrap_or_else(|| {
            let operators =
                kind.operators(self.x).into_iter().map(|operator| self.pass(kind, operator, stance));
            let section = Section { kind, stance, operators: operators.collect() };
            self.sections.push(section);
            self.sections.len() - 1
        })
    }

    fn pass(&self, kind: SectionKind, operator: Operator, [first, frozen]: [bool; 2]) -> Pass {
        let all = self.x.recomputed();
        let x = if first { all.in_first_trained_layer() } else { all };
        let mut pass = Pass {
            saved: operator.saved(&x).iter().flat_map(|saved| saved.tensors()).collect(),
            forward: Vec::new(),
            backward: Vec::new(),
            weights: Vec::new(),
            reads_stream: operator.reads_stream(),
            adds_to_stream: operator.adds_to_stream(),
        };
        let passing: Vec<Piece> = operator.passing(&x).iter().map(piece).collect();
        if !passing.is_empty() {
            pass.forward.push(Moment { tensors: passing, returned: Bytes::ZERO });
        }
        for point in operator.transients(&x) {
            let tensors: Vec<Piece> = point.tensors.iter().map(piece).collect();
            let moments = if point.in_forward { &mut pass.forward } else { &mut pass.backward };
            let tensors = staying(tensors, moments.last());
            moments.push(Moment { tensors, returned: point.returned });
        }
        let made = kind.gradients_made(&x);
        for weight in operator.weights(&x).iter().filter(|weight| !weight.copy) {
            for mut tensors in self.of_weight(weight, frozen) {
                if !made.contains(&kind) {
                    tensors.gradients.clear();
                }
                pass.weights.push(tensors);
            }
        }
        // A tied weight's gradient exists as soon as the output layer has added its part.
        for other in made.into_iter().filter(|other| *other != kind) {
            for weight in other.weights(&x).filter(|weight| !weight.copy) {
                let gradients =
                    self.of_weight(&weight, frozen).into_iter().flat_map(|tensors| tensors.gradients);
                pass.weights.push(Tensors { gradients: gradients.collect(), ..Tensors::default() });
            }
        }
        pass
    }

    /// The tensors of each module that has a part of `weight`.
    fn of_weight(&self, weight: &Weight, frozen: bool) -> Vec<Tensors> {
        let quantization = quantization(self.x, weight);
        let mut out = Vec::with_capacity(3);
        for local in of_modules(self.x, weight) {
            let mut counts = ParameterCounts::default();
            counts.add(&Weight { local, ..weight.clone() }, quantization);
            let counts = if frozen { counts.frozen() } else { counts };
            let mut tensors = Tensors::default();
            let paged = pages_states(self.x.recipe());
            for kind in self.kinds.iter().filter(|kind| !paged || kind.part != Part::Optimizer) {
                let bytes = kind.of.count(&counts).bytes(kind.width);
                let list = match kind.part {
                    Part::Parameters => &mut tensors.parameters,
                    Part::Gradients => &mut tensors.gradients,
                    Part::Optimizer => &mut tensors.states,
                    Part::Step => &mut tensors.step,
                };
                list.extend((bytes > Bytes::ZERO).then_some(bytes));
            }
            out.push(tensors);
        }
        out
    }
}

fn piece(saved: &Saved) -> Piece {
    let mut parts: Vec<Bytes> = saved.tensors().collect();
    if parts.len() > MOST_PARTS {
        parts = vec![saved.bytes];
    }
    Piece {
        name: saved.name,
        bytes: saved.bytes,
        parts,
        is_gradient: saved.parts == Parts::Gradient,
        is_sum: saved.parts == Parts::SummedGradient,
        stays: None,
    }
}

/// The tensors of a point, each with its index at the previous point if it exists there too.
fn staying(mut tensors: Vec<Piece>, before: Option<&Moment>) -> Vec<Piece> {
    let mut taken = Vec::new();
    for tensor in &mut tensors {
        let same = |(at, other): &(usize, &Piece)| {
            other.name == tensor.name && other.bytes == tensor.bytes && !taken.contains(at)
        };
        let found = before.and_then(|before| before.tensors.iter().enumerate().find(same));
        tensor.stays = found.map(|(at, _)| at);
        taken.extend(tensor.stays);
    }
    tensors
}

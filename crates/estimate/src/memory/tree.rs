//! A rank's bytes as an explained tree.

use super::kept::{named, rotary_table, run_input};
use super::moments::ChunkSum;
use super::own_states::width_added_up;
use super::rank::Rank;
use super::state::Part;
use super::term::Term;
use super::unit::Units;
use shardscope_explain::{Breakdown, Formula};
use shardscope_operators::{Saved, SectionKind, Symbols};
use shardscope_plan::LayerKind;
use shardscope_units::{Bytes, Count, Quantity};

type Tree = Breakdown<Bytes>;

static FROM_HOST: Formula = Formula::new(
    "S·h·Br",
    "Saved tensors are offloaded to the host; those of the running operator are back: a recomputed layer's input, or what the \
     embedding or the output layer saved.",
    "torch/autograd/graph.py:save_on_cpu",
);

static ADDED_UP: Formula = Formula::new(
    "P·w",
    "Shards of the gradients that backward has made, P elements: FSDP2 adds them up across groups of replicas in the format of \
     reduction, and holds them until backward is over.",
    "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py:_all_reduce_state",
).letters(&[("P", "parameters of the rank that train"), ("w", "bytes per element")]);

/// What torch counts: the sum of the parts that have names of their own.
pub const PEAK_ALLOCATED: &str = "peak_allocated";

/// The entire rank: what is allocated, and what the device shows beyond that.
pub(super) fn tree(x: &Symbols<'_>, units: &Units, rank: &Rank<'_>) -> Tree {
    let activations = activations(x, units, rank);
    let temporaries = temporaries(x, units, rank);
    let allocated = Breakdown::sum(
        PEAK_ALLOCATED,
        vec![
            part(rank, "parameters", Part::Parameters),
            gradients(rank),
            part(rank, "optimizer", Part::Optimizer),
            activations,
            temporaries,
        ],
    );
    let mut framework = Vec::with_capacity(4);
    for term in rank.framework.terms() {
        framework.push(term.leaf(x));
    }
    let framework = Breakdown::sum("framework", framework);
    Breakdown::sum("peak_reserved", vec![allocated, framework])
}

fn part(rank: &Rank<'_>, label: &'static str, part: Part) -> Tree {
    let mut states = Vec::new();
    for state in &rank.common.states {
        if state.part == part {
            states.push(Breakdown::leaf(state.name, state.bytes()).because(state.why()));
        }
    }
    Breakdown::sum(label, states)
}

/// Gradients: all of them, or those that backward has created by the time of the peak.
fn gradients(rank: &Rank<'_>) -> Tree {
    let all = part(rank, "gradients", Part::Gradients);
    if rank.absent == Bytes::ZERO {
        return all;
    }
    let made = Breakdown::leaf("gradients that backward has made", rank.totals.gradients);
    Breakdown::sum("gradients", vec![made])
}

/// Saved tensors: in full for waiting micro-batches, and what remains of the one that runs backward.
fn activations(x: &Symbols<'_>, units: &Units, rank: &Rank<'_>) -> Tree {
    let mut children = Vec::new();
    let running = rank.running(units);
    let from_host = running.and_then(|(moment, point)| Some((moment, point, moment.back?)));
    if let Some((moment, point, back)) = from_host {
        let [returned, _] = rank.returned_and_recomputed(&moment, point);
        let name = "saved tensors copied back from the host for the running section";
        children.push(Breakdown::leaf(name, back.less(returned)).because(x.explain(&FROM_HOST)));
    }
    if let Some((moment, _)) = running
        && moment.modules > Bytes::ZERO
    {
        let name = "of offloaded modules on the device, most of it back from the host";
        children.push(Breakdown::leaf(name, moment.modules));
    }
    for (index, (chunk, &count)) in rank.common.chunks.iter().zip(&rank.flight.counts).enumerate() {
        let returned = match running {
            Some((moment, point)) if index == rank.flight.backward && moment.back.is_none() => {
                let [returned, _] = rank.returned_and_recomputed(&moment, point);
                returned
            }
            _ => Bytes::ZERO,
        };
        // The micro-batch in its backward pass has freed part of what it saved, so it is shown separately; the others
        // are equal.
        let waiting = if returned > Bytes::ZERO { count.saturating_sub(1) } else { count };
        if waiting > 0 && x.recipe().offload.saved_tensors {
            let before = units.iter().zip(&chunk.counts).filter(|((kind, _), _)| kind.is_before_layers());
            let before = before.filter(|((_, unit), times)| **times > 0 && unit.kept > Bytes::ZERO);
            children.extend(before.map(|((kind, _), &times)| section(x, kind).times(times * waiting)));
        } else if waiting > 0 {
            children.push(micro_batch(x, units, chunk).times(waiting));
        }
        if waiting < count {
            let left = chunk.kept.less(returned);
            children.push(Breakdown::leaf("micro-batch in its backward pass", left));
        }
        if let Some(&waiting) = rank.flight.waiting.get(index)
            && waiting > 0
        {
            children
                .push(Breakdown::leaf("held for deferred weight gradients", chunk.waiting).times(waiting));
        }
        if chunk.once > Bytes::ZERO && !rank.in_step && !rank.in_evaluation {
            children.extend(rotary_table(x).iter().map(|table| leaf(x, table)));
        }
    }
    Breakdown::sum("activations", children)
}

/// What a chunk saves for one micro-batch.
fn micro_batch(x: &Symbols<'_>, units: &Units, chunk: &ChunkSum) -> Tree {
    let mut children = Vec::with_capacity(6);
    for ((kind, unit), &times) in units.iter().zip(&chunk.counts) {
        let mut times = chunk.layers.kept_of(kind, times);
        if chunk.layers.has_first(kind) {
            times = times.saturating_sub(1);
            children.push(section(&x.in_first_trained_layer(), kind));
        }
        if times > 0 && unit.kept > Bytes::ZERO {
            children.push(section(x, kind).times(times));
        }
        // After the last kind of layer.
        if kind.layer().is_some_and(|layer| LayerKind::ALL.ends_with(&[layer])) && chunk.keeps_input {
            children.push(leaf(x, &run_input(x)));
        }
        // Also after the last kind of layer.
        if kind.layer().is_some_and(|layer| LayerKind::ALL.ends_with(&[layer])) && chunk.layers.inputs > 0 {
            children.push(leaf(x, &run_input(x)).times(chunk.layers.inputs));
            let named = named(x);
            children.extend(named.iter().map(|saved| leaf(x, saved).times(chunk.layers.inputs)));
        }
    }
    Breakdown::sum("micro-batch in flight", children)
}

/// What one section saves, by operator and tensor.
pub(super) fn section(x: &Symbols<'_>, kind: SectionKind) -> Tree {
    let mut by_operator = Vec::new();
    let (modules, least) = (kind.offloaded(x), x.recipe().offload.least);
    for operator in kind.kept_operators(x) {
        let mut saved = operator.saved(x);
        saved.retain(|saved| !saved.leaves(modules, least));
        let tensors = leaves(&x.of(operator), &saved);
        if !tensors.is_empty() {
            by_operator.push(Breakdown::sum(operator.name(), tensors));
        }
    }
    Breakdown::sum(kind.name(), by_operator)
}

fn leaves(x: &Symbols<'_>, saved: &[Saved]) -> Vec<Tree> {
    saved.iter().map(|saved| leaf(x, saved)).collect()
}

fn leaf(x: &Symbols<'_>, saved: &Saved) -> Tree {
    Breakdown::leaf(saved.name, saved.bytes).because(x.explain(saved.formula))
}

/// What is alive at the peak besides saved tensors.
fn temporaries(x: &Symbols<'_>, units: &Units, rank: &Rank<'_>) -> Tree {
    let mut children = Vec::with_capacity(4);
    if let Some((moment, point)) = rank.running(units) {
        let mut tensors = leaves(x, &point.transient.tensors);
        let [_, recomputed] = rank.returned_and_recomputed(&moment, point);
        if recomputed > Bytes::ZERO {
            tensors.push(Breakdown::leaf("recomputed for this backward", recomputed));
        }
        children.push(Breakdown::sum(point.transient.name, tensors));
        if moment.added > Bytes::ZERO {
            let width = width_added_up(x.plan);
            let elements = Count::new(moment.added.get() / width.max(1)).number();
            let given = [("P", elements), ("w", Count::new(width).number())];
            let term = Term::new("gradient shards added up across groups", moment.added, &ADDED_UP);
            children.push(term.given(&given).leaf(x));
        }
    }
    if rank.in_step {
        children.push(part(rank, "optimizer step", Part::Step));
        children.extend(rank.common.received.map(|term| term.leaf(x)));
    }
    if rank.in_evaluation {
        let terms = rank.common.evaluation.iter();
        children.push(Breakdown::sum("evaluation", terms.map(|term| term.leaf(x)).collect()));
    }
    children.extend(rank.buffers().map(|term| term.leaf(x)));
    Breakdown::sum("temporaries", children)
}

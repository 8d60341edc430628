//! All figures of a plan, section by section.

use shardscope::estimate::collective::{Algorithm, explain_wire};
use shardscope::estimate::compute::{Device, Share, calibration, passes};
use shardscope::estimate::constants::{general, of_generation};
use shardscope::estimate::time::{
    Draft, FAMILIES, Sections, Time, exact_step_seconds, measured_factor, step_seconds, time, unknowns,
};
use shardscope::estimate::traffic::{Buffer, Traffic, all_buffers, traffic, warnings};
use shardscope::estimate::{
    Constant, KnownUnits, Utilisation, cached_token, fault, flops, kept_by_chunk, memory, memory_doubts,
    memory_totals, memory_totals_knowing, parameters, sent_by_modules, sent_to_host, step_fault, time_fault,
    utilisation,
};
use shardscope::operators::{
    Creation, LETTERS, Order, SectionKind, Symbols, Weight, Work, are_alike, frozen_counts, layers_backward,
    messages_of, section_counts, sections, work_of,
};
use shardscope::plan::{Chunk, OffloadModule, Plan};
use shardscope::topology::{Groups, Rank, notation};
use shardscope::units::Seconds;

use super::numbers::Numbers;
use super::schedules;

/// Adds one section's figures of a plan.
type Section = fn(&mut Numbers, &Plan);

/// The sections, in the order of the table's columns.
pub(super) const SECTIONS: [(&str, Section); 8] = [
    ("params", params),
    ("operators", operators),
    ("memory", of_memory),
    ("traffic", of_traffic),
    ("groups", groups),
    ("flops", of_flops),
    ("schedule", schedules::schedule),
    ("time", of_time),
];

/// One hash per section.
pub(super) fn hashes(plan: &Plan) -> Vec<u32> {
    let hash = |(_, section): (&str, Section)| {
        let mut numbers = Numbers::new(false);
        section(&mut numbers, plan);
        numbers.hash()
    };
    SECTIONS.into_iter().map(hash).collect()
}

/// Everything that is hashed, in readable form.
pub(super) fn listed(plan: &Plan) -> String {
    let mut all = String::new();
    for (name, section) in SECTIONS {
        let mut numbers = Numbers::new(true);
        section(&mut numbers, plan);
        all = format!("{all}\n\n{name}{}", numbers.listing());
    }
    all
}

fn params(to: &mut Numbers, plan: &Plan) {
    let counted = parameters(plan);
    to.add("parameters", &counted);
    for rank in &counted.ranks {
        to.add("of a rank", &(rank.dense_count(), rank.frozen(), rank.dense_trained()));
    }
}

/// The operators of each kind of section: weights, what is kept, allocated, computed and sent.
fn operators(to: &mut Numbers, plan: &Plan) {
    let x = Symbols::new(plan);
    let variants = [x, x.unsharded(), x.recomputed(), x.in_first_trained_layer()];
    let chunks: Vec<&Chunk> = plan.layout().stages.stages.iter().flat_map(|stage| &stage.chunks).collect();
    let alike = |pair: &[&Chunk]| are_alike(&x, pair[0], pair[1]);
    to.add("alike", &chunks.windows(2).map(alike).collect::<Vec<_>>());
    let mut seen = Vec::new();
    for stage in &plan.layout().stages.stages {
        for chunk in &stage.chunks {
            to.add(
                "counts",
                &(section_counts(&x, chunk), frozen_counts(&x, chunk), layers_backward(&x, chunk).len()),
            );
            let created = Creation::new(&x, chunk, Order::Megatron);
            to.add("backwards", &created.backwards().map(|weight| weight.count()).collect::<Vec<_>>());
            for section in sections(&x, chunk) {
                if !seen.contains(&section.kind) {
                    seen.push(section.kind);
                }
            }
        }
    }
    for (name, _) in LETTERS {
        to.add("letter", &x.value(name));
    }
    for kind in seen {
        of_kind(to, &x, kind);
        for x in &variants {
            for operator in kind.operators(x) {
                weights(to, &operator.weights(x));
                let kept = operator.saved(x);
                for saved in &kept {
                    to.text(saved.name);
                    to.add(
                        "sent",
                        &OffloadModule::BEGUN
                            .map(|module| (saved.sent(module, 0), saved.sent(module, LEAST))),
                    );
                }
                to.add("saved", &kept);
                to.add("beside", &operator.sent_beside(x));
                to.add("forward", &operator.forward_points(x));
                to.add("allocated", &operator.transients(x));
            }
        }
    }
}

/// Minimum number of elements of a tensor that is offloaded to the host.
const LEAST: u64 = 1 << 20;

fn weights(to: &mut Numbers, weights: &[Weight]) {
    weights.iter().for_each(|weight| to.text(weight.name));
    to.add("weights", &weights);
}

fn of_kind(to: &mut Numbers, x: &Symbols<'_>, kind: SectionKind) {
    let operators = kind.operators(x);
    to.add(kind.in_pass(shardscope::operators::Pass::Forward), &operators);
    to.add("asked", &(kind.has_no_backward(x), kind.routes(x), kind.offloaded(x), kind.kept_operators(x)));
    to.add("gradients", &kind.gradients_made(x));
    weights(to, &kind.weights(x).collect::<Vec<_>>());
    let work = work_of(x, &operators);
    let flops: Vec<_> = work
        .iter()
        .filter_map(|work| match work {
            Work::Matmul(of) => Some((of.flops(), of.full_flops())),
            Work::Kernel(_) => None,
        })
        .collect();
    to.add("work", &(work, flops));
    let messages = messages_of(x, &operators);
    messages.iter().for_each(|message| to.text(message.dtype));
    let bytes: Vec<_> = messages.iter().map(|message| message.bytes()).collect();
    to.add("messages", &(messages, bytes));
    let device = Device::with(calibration(&x.plan.cluster().accelerator), x.plan.cluster(), x.recipe());
    to.add("passes", &passes(&device, x, kind, &operators));
}

fn of_memory(to: &mut Numbers, plan: &Plan) {
    let of = memory(plan);
    to.add("memory", &of);
    for rank in &of.ranks {
        // The time of the peak is only given in words.
        to.text(rank.at);
        to.text(rank.within.unwrap_or_default());
        let totals = &rank.totals;
        to.add("shown", &(totals.shown_on(of.capacity), totals.cached_on(of.capacity), totals.columns()));
    }
    to.text(of.worst.at);
    to.text(&of.worst.needs.condition());
    let mut known = KnownUnits::default();
    to.add("totals", &memory_totals(plan));
    to.add("knowing", &memory_totals_knowing(plan, &mut known));
    to.add("again", &memory_totals_knowing(plan, &mut known));
    to.add("others", &of.saved_activations.other_kinds().map(|(_, bytes)| bytes).collect::<Vec<_>>());
    to.add("doubts", &memory_doubts(plan).len());
    to.add("host", &sent_to_host(plan));
    to.add("a token", &cached_token(plan.model(), plan.layout().tensor));
    for stage in &plan.layout().stages.stages {
        for chunk in &stage.chunks {
            to.add("kept", &(kept_by_chunk(plan, chunk), sent_by_modules(plan, chunk)));
        }
    }
    if let Some(rl) = &of.rl {
        to.add("phases", &(rl.verdict(), rl.failing().count()));
    }
}

fn of_traffic(to: &mut Numbers, plan: &Plan) {
    let of = traffic(plan);
    to.add("traffic", &of);
    let buffers = all_buffers(plan);
    to.add("elements", &buffers.iter().flatten().flatten().map(Buffer::elements).collect::<Vec<_>>());
    to.add("buffers", &buffers);
    to.add("warnings", &warnings(plan, &of));
    to.add("cluster", &(of.cluster(), of.stages()));
    wires(to, plan, &of);
}

fn wires(to: &mut Numbers, plan: &Plan, of: &Traffic) {
    let x = Symbols::new(plan);
    for dimension in &of.dimensions {
        to.add("dimension", &(dimension.busiest(), dimension.per_gpu()));
        for operation in &dimension.operations {
            let wires = Algorithm::ALL.map(|algorithm| operation.wire(algorithm));
            let stages = 0..plan.layout().stages.stages.len();
            let calls: Vec<_> = stages.map(|stage| operation.calls(stage)).collect();
            let most = (operation.most_calls(), operation.most_calls_per_micro_batch());
            for word in [operation.name, operation.tensor, operation.dtype, operation.formula.expression] {
                to.text(word);
            }
            for algorithm in Algorithm::ALL {
                let why = explain_wire(algorithm, operation.collective, operation.ranks, operation.bytes());
                to.text(why.formula.expression);
            }
            to.add("operation", &(operation.bytes(), wires, calls, most));
            let why = operation.explain(&x);
            to.add("why", &why.symbols.iter().map(|symbol| symbol.value).collect::<Vec<_>>());
        }
    }
}

/// Number of groups of a kind and ranks that are examined one by one: the first ones, and the last.
const LOOKED_AT: usize = 6;

fn groups(to: &mut Numbers, plan: &Plan) {
    let (layout, cluster) = (plan.layout(), plan.cluster());
    let groups = Groups::new(layout);
    let world = groups.world();
    let ranks = (0..world.min(LOOKED_AT as u64)).chain([world / 2, world - 1]).map(Rank::new);
    let ranks: Vec<Rank> = ranks.collect();
    for rank in &ranks {
        to.add("coordinates", &groups.coordinates(*rank));
        let per = cluster.gpus_per_node;
        let label = rank.label(per);
        let read = Rank::from_label(&label, per);
        to.add("label", &(rank.node(per), rank.place(per), label.len(), read));
    }
    for kind in groups.kinds() {
        to.add(
            "kind",
            &(kind, groups.count(kind), groups.size(kind), groups.link(kind, cluster), groups.rule(kind)),
        );
        to.add("slowest", &groups.slowest(kind, cluster).map(|group| group.spread(cluster)));
        let all: Vec<_> = groups.all(kind).take(LOOKED_AT).collect();
        for group in &all {
            to.add(
                "members",
                &(group.index(), group.size(), group.ranks().collect::<Vec<_>>(), group.spread(cluster)),
            );
            let line: String = notation(group.ranks(), cluster.gpus_per_node);
            to.add("notation", &line.bytes().filter(u8::is_ascii_digit).collect::<Vec<_>>());
        }
        for rank in &ranks {
            to.add("of a rank", &groups.group_of(kind, *rank));
        }
        if let Some(rule) = groups.rule(kind) {
            to.add("by rule", &(0..4).map(|place| rule.rank(0, place)).collect::<Vec<_>>());
        }
    }
}

fn of_flops(to: &mut Numbers, plan: &Plan) {
    let of = flops(plan);
    to.add("flops", &of);
    to.add("conventions", &of.conventions());
    let products = utilisation(plan);
    let notes = products.iter().filter_map(Utilisation::note).map(|note| note.len()).sum::<usize>();
    to.add("utilisation", &(products, notes));
}

fn of_time(to: &mut Numbers, plan: &Plan) {
    let of = time(plan);
    to.add("time", &of);
    to.add("waits", &of.breakdown.children().iter().map(|part| of.waits(part.label())).collect::<Vec<_>>());
    to.text(of.schedule.name);
    of.interval.narrows.iter().for_each(|narrows| to.text(narrows));
    to.add("families", &FAMILIES.map(|family| family.is_of_few_sources()));
    to.add("steps", &(exact_step_seconds(plan), step_seconds(plan), measured_factor(plan)));
    to.add("unknown", &unknowns(plan, &of));
    let mut known = Sections::default();
    let draft = Draft::new(plan, &mut known);
    // The second time, known results of the plan's sections are reused.
    let draft_again = Draft::new(plan, &mut known);
    to.add("again", &(draft_again.least(), draft_again.exact()));
    let least = [draft.least(), draft.least_before_reduction(), draft.least_over(24, 3), draft.exact()];
    to.add("draft", &least);
    constants(to, plan);
    faults(to, plan, of);
}

fn constants(to: &mut Numbers, plan: &Plan) {
    let set = calibration(&plan.cluster().accelerator);
    let values = |of: Vec<Constant>| of.iter().map(|one| one.value).collect::<Vec<_>>();
    to.add("of the generation", &values(of_generation(&set)));
    for (_, constants) in general() {
        to.add("general", &values(constants));
    }
    for share in Share::ALL {
        let mut changed = set;
        share.set(&mut changed, 0.37);
        to.add("share", &(share.value(&set), share.most(), changed));
    }
}

/// Figures that no plan has: each law violated, and by how much.
fn faults(to: &mut Numbers, plan: &Plan, of: Time) {
    let (memory, traffic) = (memory(plan), traffic(plan));
    to.add("as it is", &fault(plan, &of, &memory, &traffic));
    let free = Time { mfu: 0.0, lower_bound: Seconds::ZERO, ..of.clone() };
    let short = Seconds::new(of.step.get() * 1e-4);
    for broken in [
        Time { mfu: 40.0 * of.mfu, ..of.clone() },
        Time { lower_bound: of.step * 1.01, ..of.clone() },
        Time { lower_bound: of.step * 3.0, ..of.clone() },
        Time { step: short, ..free.clone() },
        Time { step: short, ..of },
        Time { mfu: f64::NAN, ..free },
    ] {
        let law = fault(plan, &broken, &memory, &traffic);
        to.add("broken", &(law, time_fault(&broken)));
    }
    for times in [1.0, 0.9, 0.1, 0.001] {
        to.add("a step", &step_fault(plan, short * (1e4 * times)));
    }
}

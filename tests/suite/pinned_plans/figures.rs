//! All figures of a plan, section by section.

use shardscope::estimate::compute::{Device, calibration, passes};
use shardscope::estimate::time::{
    Draft, Sections, exact_step_seconds, measured_factor, step_seconds, time, unknowns,
};
use shardscope::estimate::traffic::{Traffic, all_buffers, traffic, warnings};
use shardscope::estimate::{
    cached_token, fault, flops, kept_by_chunk, memory, memory_doubts, memory_totals, parameters,
    sent_by_modules, sent_to_host, utilisation,
};
use shardscope::operators::{
    Creation, SectionKind, Symbols, Work, frozen_counts, layers_backward, messages_of, section_counts,
    sections, work_of,
};
use shardscope::plan::Plan;
use shardscope::schedule::{ChunkTime, Order, Rehearsal, Shape, StageDurations, timeline};
use shardscope::topology::{Groups, Rank, notation};
use shardscope::units::Seconds;

use super::numbers::Numbers;

/// Takes in one section's figures of a plan.
type Section = fn(&mut Numbers, &Plan);

/// The sections, in the order of the table's columns.
pub(super) const SECTIONS: [(&str, Section); 8] = [
    ("params", params),
    ("operators", operators),
    ("memory", of_memory),
    ("traffic", of_traffic),
    ("groups", groups),
    ("flops", of_flops),
    ("schedule", schedule),
    ("time", of_time),
];

/// A hash for each section.
pub(super) fn hashes(plan: &Plan) -> Vec<u32> {
    let hash = |(_, section): (&str, Section)| {
        let mut numbers = Numbers::new(false);
        section(&mut numbers, plan);
        numbers.hash()
    };
    SECTIONS.into_iter().map(hash).collect()
}

/// All that the hashes are of, to be read.
pub(super) fn told(plan: &Plan) -> String {
    let mut all = String::new();
    for (name, section) in SECTIONS {
        let mut numbers = Numbers::new(true);
        section(&mut numbers, plan);
        all = format!("{all}\n\n{name}{}", numbers.told());
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

/// What each kind of section is made of: weights, what is kept, allocated, computed and sent.
fn operators(to: &mut Numbers, plan: &Plan) {
    let x = Symbols::of(plan);
    let variants = [x, x.unsharded(), x.recomputed(), x.in_first_trained_layer()];
    let mut seen = Vec::new();
    for stage in &plan.layout().stages.stages {
        for chunk in &stage.chunks {
            to.add(
                "counts",
                &(section_counts(&x, chunk), frozen_counts(&x, chunk), layers_backward(&x, chunk).len()),
            );
            let created = Creation::of(&x, chunk);
            to.add("backwards", &created.backwards().map(|weight| weight.count()).collect::<Vec<_>>());
            for section in sections(&x, chunk) {
                if !seen.contains(&section.kind) {
                    seen.push(section.kind);
                }
            }
        }
    }
    for kind in seen {
        of_kind(to, &x, kind);
        for x in &variants {
            for operator in kind.operators(x) {
                to.add("weights", &operator.weights(x));
                to.add("saved", &operator.saved(x));
                to.add("beside", &operator.sent_beside(x));
                to.add("forward", &operator.forward_points(x));
                to.add("allocated", &operator.transients(x));
            }
        }
    }
}

fn of_kind(to: &mut Numbers, x: &Symbols<'_>, kind: SectionKind) {
    let operators = kind.operators(x);
    to.add(kind.in_pass(shardscope::operators::Pass::Forward), &operators);
    to.add("asked", &(kind.has_no_backward(x), kind.routes(x), kind.offloaded(x), kind.kept_operators(x)));
    to.add("gradients", &kind.gradients_made(x));
    to.add("weights", &kind.weights(x));
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
    let bytes: Vec<_> = messages.iter().map(|message| message.bytes()).collect();
    to.add("messages", &(messages, bytes));
    let device = Device::with(calibration(&x.plan.cluster().accelerator), x.plan.cluster(), x.recipe());
    to.add("passes", &passes(&device, x, &operators));
}

fn of_memory(to: &mut Numbers, plan: &Plan) {
    let of = memory(plan);
    to.add("memory", &of);
    for rank in &of.ranks {
        let totals = &rank.totals;
        to.add("shown", &(totals.shown_on(of.capacity), totals.cached_on(of.capacity), totals.columns()));
    }
    to.add("totals", &memory_totals(plan));
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
    to.add("buffers", &all_buffers(plan));
    to.add("warnings", &warnings(plan, &of));
    to.add("cluster", &(of.cluster(), of.stages()));
    wires(to, plan, &of);
}

fn wires(to: &mut Numbers, plan: &Plan, of: &Traffic) {
    use shardscope::estimate::collective::Algorithm;
    let x = Symbols::of(plan);
    for dimension in &of.dimensions {
        to.add("dimension", &(dimension.busiest(), dimension.per_gpu()));
        for operation in &dimension.operations {
            let wires = Algorithm::ALL.map(|algorithm| operation.wire(algorithm));
            let stages = 0..plan.layout().stages.stages.len();
            let calls: Vec<_> = stages.map(|stage| operation.calls(stage)).collect();
            let most = (operation.most_calls(), operation.most_calls_per_micro_batch());
            to.add("operation", &(operation.bytes(), wires, calls, most));
            let why = operation.explain(&x);
            to.add("why", &why.symbols.iter().map(|symbol| symbol.value).collect::<Vec<_>>());
        }
    }
}

/// Groups of a kind and ranks that are looked at one by one: the first, and the last.
const LOOKED_AT: usize = 6;

fn groups(to: &mut Numbers, plan: &Plan) {
    let (layout, cluster) = (plan.layout(), plan.cluster());
    let groups = Groups::of(layout);
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
    to.add("utilisation", &utilisation(plan));
}

/// Micro-batches of an order that is written down whole.
const WRITTEN: u32 = 24;

fn schedule(to: &mut Numbers, plan: &Plan) {
    let shape = Shape::of(plan);
    to.add("shape", &(shape, shape.placement(), shape.parts(), shape.splits_backward(), shape.steps()));
    let even =
        ChunkTime { forward: Seconds::new(1.0), backward: Seconds::new(1.25), weight: Seconds::new(0.75) };
    let mut uneven = StageDurations::even(&shape, even, Seconds::new(0.125));
    for (stage, chunks) in (0_u32..).zip(&mut uneven.chunks) {
        for (chunk, time) in (0_u32..).zip(chunks) {
            let factor = 1.0 + f64::from((7 * stage + 3 * chunk) % 5) / 8.0;
            time.forward = Seconds::new(factor);
            time.backward = Seconds::new(1.5 * factor);
        }
    }
    for stage in 0..shape.stages {
        to.add("stage", &(shape.warmup(stage), shape.in_flight(stage)));
        for chunk in 0..shape.chunks {
            let part = shape.part(stage, chunk);
            to.add("part", &(part, shape.holder(part, 0), shape.holder(part, 1)));
        }
    }
    for rehearsal in [Rehearsal::of(shape), Rehearsal::quick(shape, 5), Rehearsal::quick(shape, 2)] {
        to.add("rehearsal", &(rehearsal.micro_batches(), rehearsal.is_exact(), rehearsal.totals([&uneven])));
    }
    let blocking = StageDurations { blocking: true, ..uneven.clone() };
    to.add("least", &(shape.least(&uneven), shape.least(&blocking)));
    let short = Shape { micro_batches: shape.micro_batches.min(WRITTEN), ..shape };
    let order = Order::of(short);
    for stage in 0..order.shape().stages {
        let ones = vec![1; order.shape().chunks as usize];
        let events: Vec<_> = order.events(stage).collect();
        to.add("order", &(events, order.peak(stage, &ones), order.fullest(stage)));
    }
    to.add("line", &timeline(&order, &uneven));
    to.add("blocking", &timeline(&order, &blocking));
}

fn of_time(to: &mut Numbers, plan: &Plan) {
    let of = time(plan);
    to.add("time", &of);
    to.add("waits", &of.breakdown.children().iter().map(|part| of.waits(part.label())).collect::<Vec<_>>());
    to.add("steps", &(exact_step_seconds(plan), step_seconds(plan), measured_factor(plan)));
    to.add("unknown", &unknowns(plan, &of));
    let draft = Draft::of(plan, &mut Sections::default());
    let least = [draft.least(), draft.least_before_reduction(), draft.least_over(24, 3), draft.exact()];
    to.add("draft", &least);
    to.add("fault", &fault(plan, &of, &memory(plan), &traffic(plan)).is_some());
}

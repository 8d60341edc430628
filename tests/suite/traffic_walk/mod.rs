//! A simulation that shares no code with the engine: it walks every rank of a random plan through its schedule, emits
//! each message as Megatron's code does, and sums up. The sums must equal the ledger's, its groups the engine's, its orders
//! those of the engine's schedules. Sends must equal receives, groups must agree on their operations, and degrees must
//! multiply to the world size.

mod places;
mod replicas;
mod run;
mod walker;

use super::drawn;
use places::{Kind, Places, passes};
use run::Run;
use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::plan::Plan;
use shardscope::schedule::{Action, Order, Shape};
use shardscope::topology::{GroupKind, Groups, Rank};
use std::collections::BTreeMap;
use walker::{Log, Walker};

/// A plan with this seed.
#[track_caller]
pub(crate) fn random_plan(seed: u64) -> Plan {
    Run::random(seed).plan()
}

fn walk(run: &Run, places: &Places) -> Vec<Log> {
    (0..run.world())
        .map(|rank| {
            let stage = places.stage(rank);
            let mut walker = Walker { run, places, rank, log: Log::default() };
            for (forward, chunk) in passes(run, stage) {
                walker.pass(stage, forward, chunk);
            }
            walker.step(stage);
            walker.log
        })
        .collect()
}

/// The engine's groups have the members that they have here.
fn same_groups(run: &Run, plan: &Plan, places: &Places) {
    let groups = Groups::new(plan.layout());
    for (kind, members) in places.groups() {
        let same = match kind {
            Kind::Tensor => GroupKind::Tensor,
            Kind::Context => GroupKind::Context,
            Kind::Pipeline => GroupKind::Pipeline,
            Kind::DataContext => GroupKind::DataContext,
            Kind::DataContextInstance => GroupKind::DataContextInstance,
            Kind::Expert => GroupKind::Expert,
            Kind::ExpertTensor => GroupKind::ExpertTensor,
            Kind::TensorExpert => GroupKind::TensorExpert,
            Kind::ExpertData => GroupKind::ExpertData,
            Kind::ExpertDataInstance => GroupKind::ExpertDataInstance,
            Kind::ExpertDataAcross => GroupKind::ExpertDataAcross,
            // Stages between the ends are in none.
            Kind::Embedding if members.len() == 1 => continue,
            Kind::Embedding => GroupKind::Embedding,
        };
        let mut own: Vec<u64> =
            groups.group_of(same, Rank::new(members[0])).iter().map(|rank| rank.get()).collect();
        own.sort_unstable();
        assert_eq!(own, members, "{kind:?} of {run:?}");
    }
}

/// So do its stages run the same passes in the same order.
fn same_order(run: &Run, plan: &Plan) {
    let order = Order::new(Shape::from_plan(plan));
    for stage in 0..run.p {
        let events = order.events(stage as u32);
        let own: Vec<_> =
            events.map(|event| (event.action == Action::Forward, u64::from(event.chunk))).collect();
        assert_eq!(own, passes(run, stage), "stage {stage} of {run:?}");
    }
}

/// Runs in a normal test; `SHARDSCOPE_PLANS=100000` requests more.
const RUNS: u64 = 500;
/// Runs per thread at a time.
const AT_ONCE: u64 = 50;

/// How often each dimension sent something, and how many runs had each feature.
#[derive(Default)]
struct Met {
    sent: BTreeMap<&'static str, u64>,
    features: BTreeMap<&'static str, u64>,
}

impl Met {
    fn and(mut self, other: Self) -> Self {
        for (all, one) in [(&mut self.sent, other.sent), (&mut self.features, other.features)] {
            for (name, times) in one {
                *all.entry(name).or_default() += times;
            }
        }
        self
    }
}

#[test]
fn the_ledger_is_what_a_walk_through_the_schedule_adds_up_to() {
    let wanted = drawn::wanted(RUNS);
    let parts = drawn::on_all_processors(wanted.div_ceil(AT_ONCE), |part| {
        let mut met = Met::default();
        for seed in part * AT_ONCE..wanted.min((part + 1) * AT_ONCE) {
            walked_as_counted(seed, &mut met);
        }
        met
    });
    let met = parts.into_iter().fold(Met::default(), Met::and);
    println!("{wanted} plans; {:?}", met.features);
    for (name, times) in met.sent {
        assert!(times > 100, "{name} only {times} times");
    }
    assert_eq!(met.features.len(), Run::FEATURES);
    for (name, times) in met.features {
        assert!(times * 200 >= wanted, "{name} in {times} of {wanted} plans");
    }
}

fn walked_as_counted(seed: u64, met: &mut Met) {
    let run = Run::random(seed);
    for feature in run.features() {
        *met.features.entry(feature).or_default() += 1;
    }
    let plan = run.plan();
    let places = Places::new(&run);
    same_groups(&run, &plan, &places);
    same_order(&run, &plan);
    let logs = walk(&run, &places);
    same_sums(&run, &plan, &places, &logs, &mut met.sent);
    same_on_both_ends(&run, &logs);
    agreed(&run, &places, &logs);
    let layout = plan.layout();
    let product = layout.data * layout.tensor * layout.pipeline * layout.context;
    assert_eq!(product, layout.world_size);
    let product = layout.expert_data * layout.expert_tensor * layout.expert * layout.pipeline;
    assert_eq!(product, layout.world_size);
}

fn same_sums(run: &Run, plan: &Plan, places: &Places, logs: &[Log], sent: &mut BTreeMap<&'static str, u64>) {
    let ledger = traffic(plan);
    for of in [
        Parallelism::Tensor,
        Parallelism::Pipeline,
        Parallelism::Data,
        Parallelism::Context,
        Parallelism::Expert,
        Parallelism::Embedding,
    ] {
        let mut cluster = (0, 0);
        for (rank, log) in (0..).zip(logs) {
            let stage = places.stage(rank) as usize;
            let own = log.sums.iter().filter(|((name, _), _)| *name == of.name()).map(|(_, sum)| *sum);
            let walked = own.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
            let totals = ledger.dimension(of).map(|dimension| dimension.stages[stage]).unwrap_or_default();
            assert_eq!((totals.calls, totals.bytes.get()), walked, "{of:?} rank {rank} of {run:?}");
            cluster = (cluster.0 + walked.0, cluster.1 + walked.1);
            if walked.0 > 0 {
                *sent.entry(of.name()).or_default() += 1;
            }
        }
        let totals = ledger.dimension(of).map(|dimension| dimension.cluster).unwrap_or_default();
        assert_eq!((totals.calls, totals.bytes.get()), cluster, "{of:?} of {run:?}");
    }
}

/// Everything sent is received, by the rank it was sent to.
fn same_on_both_ends(run: &Run, logs: &[Log]) {
    let mut sent = Vec::new();
    let mut received = Vec::new();
    for (rank, log) in (0_u64..).zip(logs) {
        sent.extend(log.sent.iter().map(|&(to, bytes)| (rank, to, bytes)));
        received.extend(log.received.iter().map(|&(from, bytes)| (from, rank, bytes)));
    }
    sent.sort_unstable();
    received.sort_unstable();
    assert_eq!(sent, received, "{run:?}");
}

/// Members of a group run the same collectives with the same sizes in the same order.
fn agreed(run: &Run, places: &Places, logs: &[Log]) {
    for (kind, ranks) in places.groups() {
        let mut members = ranks.iter().map(|rank| logs[*rank as usize].order.get(&kind));
        let first = members.next().unwrap();
        assert!(members.all(|other| other == first), "{kind:?} {ranks:?} of {run:?}");
    }
}

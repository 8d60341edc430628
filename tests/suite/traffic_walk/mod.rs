//! A simulation that shares nothing with the ledger: it walks every rank of a random plan through its schedule, emits
//! each message as Megatron's code does, and sums up. The sums must equal the ledger's. Sends must equal receives,
//! groups must agree on their operations, and degrees must multiply to the world size.

mod replicas;
mod run;
mod walker;

use super::drawn;
use run::Run;
use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::plan::Plan;
use shardscope::schedule::{Order, Shape};
use shardscope::topology::{GroupKind, Groups, Rank};
use std::collections::BTreeMap;
use walker::{Log, Walker};

/// A plan with this seed.
#[track_caller]
pub(crate) fn random_plan(seed: u64) -> Plan {
    Run::random(seed).plan()
}

fn walk(run: &Run, plan: &Plan) -> Vec<Log> {
    let groups = Groups::new(plan.layout());
    let order = Order::new(Shape::from_plan(plan));
    (0..run.world())
        .map(|rank| {
            let stage = groups.coordinates(Rank::new(rank)).pipeline;
            let mut walker = Walker { run, groups: &groups, rank, log: Log::default() };
            for event in order.events(stage as u32) {
                walker.event(stage, event.action, u64::from(event.chunk));
            }
            walker.step(stage);
            walker.log
        })
        .collect()
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
    let groups = Groups::new(plan.layout());
    let logs = walk(&run, &plan);
    same_sums(&run, &plan, &groups, &logs, &mut met.sent);
    same_on_both_ends(&run, &logs);
    agreed(&run, &groups, &logs);
    let layout = plan.layout();
    let product = layout.data * layout.tensor * layout.pipeline * layout.context;
    assert_eq!(product, layout.world_size);
    let product = layout.expert_data * layout.expert_tensor * layout.expert * layout.pipeline;
    assert_eq!(product, layout.world_size);
}

fn same_sums(run: &Run, plan: &Plan, groups: &Groups, logs: &[Log], sent: &mut BTreeMap<&'static str, u64>) {
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
            let stage = groups.coordinates(Rank::new(rank)).pipeline as usize;
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
fn agreed(run: &Run, groups: &Groups, logs: &[Log]) {
    for kind in GroupKind::ALWAYS {
        for group in groups.all(kind) {
            let mut members = group.ranks().map(|rank| logs[rank.get() as usize].order.get(&kind));
            let first = members.next().unwrap();
            assert!(members.all(|other| other == first), "{kind:?} {} of {run:?}", group.index());
        }
    }
}

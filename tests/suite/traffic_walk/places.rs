//! Who works together, and in which order: Megatron's `parallel_state.py` and `schedules.py` written out rank by rank. Nothing
//! of the engine is used, so that its groups and orders are held against these.

use super::run::{Run, Share};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A kind of process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Tensor,
    Context,
    Pipeline,
    /// The first and the last stage, which share the embedding.
    Embedding,
    /// Replicas, context ranks included.
    DataContext,
    /// The part of them within which states are shared.
    DataContextInstance,
    Expert,
    ExpertTensor,
    TensorExpert,
    ExpertData,
    ExpertDataInstance,
    /// The same shard in every part.
    ExpertDataAcross,
}

/// The members of each rank's groups.
pub(super) struct Places {
    /// By kind and rank.
    members: BTreeMap<Kind, Vec<Rc<[u64]>>>,
    stages: Vec<u64>,
}

/// Numbers a rank along axes of these sizes, the first one fastest.
fn along<const N: usize>(rank: u64, sizes: [u64; N]) -> [u64; N] {
    let mut left = rank;
    sizes.map(|size| {
        let place = left % size;
        left /= size;
        place
    })
}

/// The ranks with the same key, for each rank.
fn grouped(world: u64, key: impl Fn(u64) -> Vec<u64>) -> Vec<Rc<[u64]>> {
    let mut all: BTreeMap<Vec<u64>, Vec<u64>> = BTreeMap::new();
    for rank in 0..world {
        all.entry(key(rank)).or_default().push(rank);
    }
    let all: BTreeMap<_, Rc<[u64]>> = all.into_iter().map(|(key, ranks)| (key, ranks.into())).collect();
    (0..world).map(|rank| all[&key(rank)].clone()).collect()
}

/// Each group cut into `count` parts of neighbours; or, `across` them, the members in the same place of each part.
fn parts(groups: &[Rc<[u64]>], count: u64, across: bool) -> Vec<Rc<[u64]>> {
    let one = |(rank, members): (usize, &Rc<[u64]>)| {
        let size = members.len() / count as usize;
        let own = members.iter().position(|member| *member == rank as u64).unwrap();
        let same =
            |place: &usize| if across { place % size == own % size } else { place / size == own / size };
        (0..members.len()).filter(same).map(|place| members[place]).collect()
    };
    groups.iter().enumerate().map(one).collect()
}

impl Places {
    pub(super) fn new(run: &Run) -> Self {
        let world = run.world();
        let (et, e) = run.moe.map_or((run.t, 1), |moe| (moe.et, moe.e));
        let ed = world / (et * e * run.p);
        // `RankGenerator`: tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp by --use-tp-pp-dp-mapping. Dense layers have no expert ranks, experts no
        // context ranks.
        let dense = |rank: u64| match run.pipeline_inside {
            false => along(rank, [run.t, run.c, run.d, run.p]),
            true => {
                let [tensor, context, pipeline, data] = along(rank, [run.t, run.c, run.p, run.d]);
                [tensor, context, data, pipeline]
            }
        };
        let sparse = |rank: u64| match run.pipeline_inside {
            false => along(rank, [et, e, ed, run.p]),
            true => {
                let [tensor, expert, pipeline, data] = along(rank, [et, e, run.p, ed]);
                [tensor, expert, data, pipeline]
            }
        };
        let same = |of: &dyn Fn(u64) -> [u64; 4], axes: &[usize]| {
            grouped(world, |rank| axes.iter().map(|axis| of(rank)[*axis]).collect())
        };
        let ends = grouped(world, |rank| {
            let [tensor, context, data, pipeline] = dense(rank);
            let is_end = pipeline == 0 || pipeline + 1 == run.p;
            vec![tensor, context, data, if is_end { 0 } else { pipeline }]
        });
        let instances = match run.share {
            Share::Nothing => 1,
            Share::States(count) | Share::Gradients(count) | Share::Weights(count) => count,
        };
        let (replicas, experts) = (same(&dense, &[0, 3]), same(&sparse, &[0, 1, 3]));
        let members = BTreeMap::from([
            (Kind::Tensor, same(&dense, &[1, 2, 3])),
            (Kind::Context, same(&dense, &[0, 2, 3])),
            (Kind::Pipeline, same(&dense, &[0, 1, 2])),
            (Kind::Embedding, ends),
            (Kind::DataContextInstance, parts(&replicas, instances, false)),
            (Kind::DataContext, replicas),
            (Kind::Expert, same(&sparse, &[0, 2, 3])),
            (Kind::ExpertTensor, same(&sparse, &[1, 2, 3])),
            (Kind::TensorExpert, same(&sparse, &[2, 3])),
            (Kind::ExpertDataInstance, parts(&experts, instances, false)),
            (Kind::ExpertDataAcross, parts(&experts, instances, true)),
            (Kind::ExpertData, experts),
        ]);
        Self { members, stages: (0..world).map(|rank| dense(rank)[3]).collect() }
    }

    /// The stage of a rank.
    pub(super) fn stage(&self, rank: u64) -> u64 {
        self.stages[rank as usize]
    }

    /// The ranks with which `rank` works together, itself included.
    pub(super) fn of(&self, kind: Kind, rank: u64) -> &[u64] {
        &self.members[&kind][rank as usize]
    }

    /// Every group, once.
    pub(super) fn groups(&self) -> impl Iterator<Item = (Kind, &[u64])> {
        let all =
            self.members.iter().flat_map(|(kind, groups)| (0_u64..).zip(groups).map(move |one| (*kind, one)));
        all.filter(|(_, (rank, members))| members.first() == Some(rank))
            .map(|(kind, (_, members))| (kind, &**members))
    }
}

/// Passes of a stage, in order: whether forward, and the chunk. 1F1B and its interleaved form (`schedules.py`).
pub(super) fn passes(run: &Run, stage: u64) -> Vec<(bool, u64)> {
    let (p, v) = (run.p, run.v);
    let all = run.m * v;
    // Micro-batches go through a chunk in groups of as many as there are stages.
    let forward = |pass: u64| (true, pass % (p * v) / p);
    let backward = |pass: u64| (false, v - 1 - pass % (p * v) / p);
    let warmup = if v == 1 { p - 1 - stage } else { 2 * (p - 1 - stage) + (v - 1) * p }.min(all);
    let mut passes: Vec<(bool, u64)> = (0..warmup).map(forward).collect();
    for steady in 0..all - warmup {
        passes.extend([forward(warmup + steady), backward(steady)]);
    }
    passes.extend((all - warmup..all).map(backward));
    passes
}

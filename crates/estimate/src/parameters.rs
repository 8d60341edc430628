//! How many parameters the model has, and how many each rank holds.

use shardscope_operators::{
    Account, SectionKind, Symbols, Weight, WeightGroup, WeightPart, WeightRole, frozen_counts,
    section_counts, sections,
};
use shardscope_plan::{Chunk, EndsGathered, Plan, Stage};
use shardscope_units::Count;

/// Accounts that few models have: listed where there is something in them.
const BESIDE: [Account; 2] = [Account::VisionTower, Account::Encoder];

/// Parameters by account. Unit: parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountCounts([Count; Account::ALL.len()]);

impl AccountCounts {
    /// The parameters of `account`.
    #[must_use]
    pub fn get(&self, account: Account) -> Count {
        self.0[account as usize]
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> Count {
        self.0.iter().copied().sum()
    }

    /// Accounts with their parameters, in the report's order; those that few models have only where there is something in them.
    pub fn iter(&self) -> impl Iterator<Item = (Account, Count)> + '_ {
        let all = Account::ALL.iter().copied().map(|account| (account, self.get(account)));
        all.filter(|(account, count)| !BESIDE.contains(account) || *count > Count::ZERO)
    }

    fn add(&mut self, account: Account, count: Count) {
        self.0[account as usize] += count;
    }
}

/// Parameters of the model and of each distinct shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The full, unsharded model; a tied output layer counts once.
    pub total: Count,
    /// Those that one token passes through: unselected experts do not count, nor does a vision tower.
    pub active_per_token: Count,
    /// Trainable ones: all of them, or those that are not frozen plus those of adapters.
    pub trained: Count,
    /// The unsharded model by account.
    pub accounts: AccountCounts,
    /// One per pipeline rank. Tensor and expert ranks of a stage hold equal counts; rank 0 represents them.
    pub ranks: Vec<RankParameters>,
}

/// The parameters that a training process on one rank would count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankParameters {
    /// Pipeline rank.
    pub pipeline_rank: u64,
    /// Tensor rank that represents all equal ones.
    pub tensor_rank: u64,
    /// Expert rank that represents all equal ones.
    pub expert_rank: u64,
    /// All parameters of the rank, including adapters.
    pub count: Count,
    /// The trainable ones among them.
    pub trained: Count,
    /// Trainable ones whose gradient is reduced over the expert data-parallel group.
    pub expert_trained: Count,
    /// Adapters among the trainable ones, and among those of experts.
    pub adapters: [Count; 2],
    /// Those whose gradient is reduced over the expert data-parallel group.
    pub expert_count: Count,
    /// Those that backward need not gather again if weights are sharded: they stay gathered from forward on.
    pub gathered_once: Count,
    /// Those that are gathered in 8 bits if weights are sharded.
    pub gathered_in_fp8: Count,
    /// The same parameters by account.
    pub breakdown: AccountCounts,
}

impl RankParameters {
    /// Parameters whose gradient is reduced over the data (and context) parallel group.
    #[must_use]
    pub fn dense_count(&self) -> Count {
        Count::new(self.count.get().saturating_sub(self.expert_count.get()))
    }

    /// Parameters that do not train.
    #[must_use]
    pub fn frozen(&self) -> Count {
        Count::new(self.count.get().saturating_sub(self.trained.get()))
    }

    /// The trainable ones of [`Self::dense_count`].
    #[must_use]
    pub fn dense_trained(&self) -> Count {
        Count::new(self.trained.get().saturating_sub(self.expert_trained.get()))
    }
}

/// The parameters of `plan`.
#[must_use]
pub fn parameters(plan: &Plan) -> Parameters {
    let x = Symbols::new(plan);
    let mut accounts = AccountCounts::default();
    let mut idle = Count::ZERO;
    let mut ranks = Vec::with_capacity(plan.layout().stages.stages.len());
    let mut known = Vec::new();
    for (pipeline_rank, stage) in (0..).zip(&plan.layout().stages.stages) {
        ranks.push(rank_parameters(&x, pipeline_rank, stage, &mut known));
    }
    let mut trained = Count::ZERO;
    for_each_weight(&x, &mut plan.layout().model_chunks(), &mut |weight, [times, trains]| {
        // A copy (a tied output layer on another stage) takes memory there but is not another parameter of the model.
        if weight.copy {
            return;
        }
        if weight.role.trains() {
            trained += weight.full_count() * trains;
        }
        if weight.role.is_of_the_model() {
            let count = weight.full_count() * times;
            accounts.add(weight.account, count);
            idle += unmet(plan, weight, count);
        }
    });
    let total = accounts.total();
    let active_per_token = Count::new(total.get().saturating_sub(idle.get()));
    Parameters { total, active_per_token, trained, accounts, ranks }
}

/// Whether sharded weights of `kind` that forward gathered are still there when backward comes to them.
pub(crate) fn stays_gathered(x: &Symbols<'_>, kind: SectionKind) -> bool {
    let apart = &x.recipe().transformers;
    let unit_of_its_own = kind.is_before_layers() && (apart.ends_apart || apart.embedding_apart)
        || kind.projects_vocabulary() && apart.ends_apart;
    x.plan.stays_gathered()
        || match x.plan.ends_gathered() {
            EndsGathered::Nothing => false,
            EndsGathered::AfterLayers => kind.is_after_layers() || kind.is_before_layers() && x.tied(),
            EndsGathered::Root => !kind.is_gathered_alone() && !unit_of_its_own,
        }
}

/// The parameters of one section on a rank, the same wherever the section is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SectionParameters {
    accounts: AccountCounts,
    expert: Count,
    /// The trainable ones if the section trains, and those of routed experts among them.
    trains: Count,
    expert_trains: Count,
    /// Adapters among both.
    adapters: [Count; 2],
    /// Those gathered in 8 bits.
    in_fp8: Count,
}

impl SectionParameters {
    fn new(x: &Symbols<'_>, kind: SectionKind) -> Self {
        let mut out = Self::default();
        for weight in kind.weights(x) {
            let (count, expert) = (weight.count(), weight.group == WeightGroup::Expert);
            out.accounts.add(weight.account, count);
            if kind.gathers_in_fp8(x, &weight) {
                out.in_fp8 += count;
            }
            if expert {
                out.expert += count;
            }
            if weight.role.trains() {
                let adapter = if weight.role == WeightRole::Adapter { count } else { Count::ZERO };
                out.trains += count;
                out.adapters[0] += adapter;
                if expert {
                    out.expert_trains += count;
                    out.adapters[1] += adapter;
                }
            }
        }
        out
    }
}

/// The parameters of a rank of one stage, reusing and extending the sections in `known`.
#[must_use]
pub(super) fn rank_parameters(
    x: &Symbols<'_>,
    pipeline_rank: u64,
    stage: &Stage,
    known: &mut Vec<(SectionKind, SectionParameters)>,
) -> RankParameters {
    let mut breakdown = AccountCounts::default();
    let (mut expert_count, mut trained, mut expert_trained) = (Count::ZERO, Count::ZERO, Count::ZERO);
    let mut adapters = [Count::ZERO; 2];
    let (units, mut gathered_once, mut gathered_in_fp8) = (x.plan.gathers_units(), Count::ZERO, Count::ZERO);
    for chunk in &stage.chunks {
        let counts = section_counts(x, chunk).into_iter().zip(frozen_counts(x, chunk));
        for (kind, (times, frozen)) in
            SectionKind::ALL.into_iter().zip(counts).filter(|(_, (times, _))| *times > 0)
        {
            let one = match known.iter().find(|(known, _)| *known == kind) {
                Some((_, one)) => *one,
                None => {
                    let one = SectionParameters::new(x, kind);
                    known.push((kind, one));
                    one
                }
            };
            // Among the sections of a kind, those before the first trainable one are frozen.
            let trains = times.saturating_sub(frozen);
            for (account, count) in one.accounts.iter() {
                breakdown.add(account, count * times);
            }
            if units && stays_gathered(x, kind) {
                gathered_once += one.accounts.total() * times;
            }
            gathered_in_fp8 += one.in_fp8 * times;
            expert_count += one.expert * times;
            trained += one.trains * trains;
            expert_trained += one.expert_trains * trains;
            adapters[0] += one.adapters[0] * trains;
            adapters[1] += one.adapters[1] * trains;
        }
    }
    let count = breakdown.total();
    RankParameters {
        pipeline_rank,
        tensor_rank: 0,
        expert_rank: 0,
        count,
        trained,
        expert_trained,
        adapters,
        expert_count,
        gathered_once,
        gathered_in_fp8,
        breakdown,
    }
}

fn for_each_weight(
    x: &Symbols<'_>,
    chunks: &mut dyn Iterator<Item = &Chunk>,
    visit: &mut dyn FnMut(&Weight, [u64; 2]),
) {
    for chunk in chunks {
        let frozen = frozen_counts(x, chunk);
        for section in sections(x, chunk) {
            // Among the sections of a kind, those before the first trainable one are frozen.
            let trains = section.times.saturating_sub(frozen[section.kind.index()]);
            for weight in section.weights(x) {
                visit(&weight, [section.times, trains]);
            }
        }
    }
}

/// How many of a weight's `count` parameters a token does not pass through: all of a vision tower's, and those of
/// experts that are not selected.
fn unmet(plan: &Plan, weight: &Weight, count: Count) -> Count {
    if weight.part == WeightPart::VisionTower {
        return count;
    }
    let Some(experts) = &plan.model().experts else { return Count::ZERO };
    if !weight.is_routed() {
        return Count::ZERO;
    }
    let idle = experts.num_experts.saturating_sub(experts.router_topk);
    Count::new((count.get() / experts.num_experts.max(1)).saturating_mul(idle))
}

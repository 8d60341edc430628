//! Layouts of one model on one machine: whether the engine orders them correctly, what its choice costs, and how much
//! one measured step improves the other predictions.

use std::collections::{BTreeMap, BTreeSet};

use shardscope::estimate::time::{FAMILIES, Family};

use super::compared::Compared;
use super::entry::release;
use super::figures::Figures;

/// Pairs that differ by less are ignored: repeated runs differ by half as much.
const APART: f64 = 0.05;

/// How well the layouts within groups are ordered.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Groups of runs of one model, batch and machine in one source.
    pub groups: usize,
    /// Pairs within a group that were measured more than 5 % apart.
    pub pairs: usize,
    /// Those of them that are ordered as measured.
    pub right: usize,
    /// For each group, how much slower the engine's fastest layout is than the one measured fastest.
    pub regrets: Vec<f64>,
}

impl Ranking {
    /// Share of pairs ordered as measured.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.right as f64 / self.pairs.max(1) as f64
    }

    /// Share of groups in which the engine's choice is within 3 % of the best.
    #[must_use]
    pub fn picked(&self) -> f64 {
        self.regrets.iter().filter(|regret| **regret <= 0.03).count() as f64 / self.groups.max(1) as f64
    }
}

/// Which error of a row is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The engine as it is.
    Fitted,
    /// Constants fitted without the row's own source.
    Unseen,
}

fn predicted(one: &Compared, seen: Seen) -> f64 {
    let error = if seen == Seen::Fitted { one.error } else { one.unseen };
    one.row.measured() * (1.0 + error)
}

/// The columns that the runs of a group have in common.
const SAME: [&str; 12] = [
    "family", "gpu", "layers", "hidden", "ffn", "heads", "seq", "experts", "compute", "vocab", "year", "gpus",
];

/// Runs of one source and release that agree in the columns `same` and differ only in layout and recipe; times are
/// per sequence. A run with an unmodified router does different work from one whose router is forced to balance.
fn groups<'a>(compared: &'a [Compared], same: &[&str]) -> Vec<Vec<&'a Compared>> {
    let mut all: BTreeMap<Vec<&str>, Vec<&Compared>> = BTreeMap::new();
    for one in compared {
        let columns = same.iter().map(|column| one.row.text(column));
        let router = if one.row.is_unbalanced() { "unbalanced" } else { "" };
        all.entry(columns.chain([release(one.row.text("id")), router]).collect()).or_default().push(one);
    }
    let plan = |one: &Compared| one.resolution.plan.clone();
    all.into_values()
        .map(|group| {
            // Runs of the same plan count as one layout.
            let mut distinct: Vec<&Compared> = Vec::new();
            for one in group {
                if !distinct.iter().any(|other| plan(other) == plan(one)) {
                    distinct.push(one);
                }
            }
            distinct
        })
        // A single run has no order.
        .filter(|group| group.len() > 1)
        .collect()
}

/// Seconds per sequence.
fn each(one: &Compared, seconds: f64) -> f64 {
    let batch: f64 = one.row.text("gbs").parse().unwrap_or(1.0);
    seconds / batch
}

/// Compares the order of predictions with that of measurements, group by group.
#[must_use]
pub fn ranking(compared: &[Compared], seen: Seen) -> Ranking {
    let mut out = Ranking::default();
    for group in groups(compared, &SAME) {
        // Per sequence, because batches within a group may differ.
        let times: Vec<(f64, f64)> = group
            .iter()
            .map(|one| (each(one, one.row.measured()), each(one, predicted(one, seen))))
            .collect();
        out.groups += 1;
        for (place, one) in times.iter().enumerate() {
            for other in &times[..place] {
                if (one.0 / other.0).ln().abs() > APART {
                    out.pairs += 1;
                    out.right += usize::from((one.0 > other.0) == (one.1 > other.1));
                }
            }
        }
        let best = times.iter().map(|(measured, _)| *measured).fold(f64::INFINITY, f64::min);
        let pick = times.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        out.regrets.push(pick.map_or(0.0, |(measured, _)| measured / best - 1.0));
    }
    out.regrets.sort_by(f64::total_cmp);
    out
}

/// How much one measured step improves the predictions for other layouts of its run.
#[derive(Clone, Debug)]
pub struct Anchored {
    /// The family.
    pub family: Family,
    /// The common part as determined from all its groups; equals [`Family::common`] if that helps.
    pub common: f64,
    /// Errors of the other layouts as predicted by the engine.
    pub alone: Figures,
    /// The same if the measured layout's residual is applied in full.
    pub scaled: Figures,
    /// The same if the share of it is applied that the groups of the other sources determine.
    pub shared: Figures,
}

/// One layout measured, another predicted: log of predicted over measured for both, unseen, and the weight of the
/// pair.
struct Pair {
    source: &'static str,
    anchor: f64,
    other: f64,
    weight: f64,
}

/// For each family: every run of a group serves once as the measured one, and all others of the group are predicted,
/// including those on other numbers of accelerators. Neither the constants nor the common part have seen their
/// source.
#[must_use]
pub fn anchored(compared: &[Compared]) -> Vec<Anchored> {
    // Without the last column, the number of GPUs.
    let groups = groups(compared, &SAME[..SAME.len() - 1]);
    FAMILIES.into_iter().map(|family| anchored_of(&groups, family)).collect()
}

fn anchored_of(groups: &[Vec<&Compared>], family: Family) -> Anchored {
    let holds = |one: &Compared| {
        one.resolution.plan.as_ref().is_some_and(|plan| Family::from_plan(plan).name == family.name)
    };
    let mut pairs = Vec::new();
    for group in groups {
        for (place, one) in group.iter().enumerate().filter(|(_, one)| holds(one)) {
            let anchors = group.iter().enumerate().filter(|(other, _)| *other != place);
            pairs.extend(anchors.map(|(_, anchor)| Pair {
                source: one.row.family(),
                anchor: anchor.unseen.ln_1p(),
                other: one.unseen.ln_1p(),
                // The pairs of a run weigh one in total, so that a large group counts no more than a small one.
                weight: 1.0 / (group.len() - 1) as f64,
            }));
        }
    }
    let errors = |taken: &dyn Fn(&Pair) -> f64| {
        let off = |pair: &Pair| (pair.other - taken(pair) * pair.anchor).exp_m1();
        Figures::new(pairs.iter().map(off).collect())
    };
    let sources: BTreeSet<&str> = pairs.iter().map(|pair| pair.source).collect();
    // The common part is determined without the source whose pairs it is applied to.
    let without: BTreeMap<&str, f64> =
        sources.into_iter().map(|source| (source, common(&pairs, Some(source)))).collect();
    Anchored {
        family,
        common: common(&pairs, None),
        alone: errors(&|_| 0.0),
        scaled: errors(&|_| 1.0),
        shared: errors(&|pair| without.get(pair.source).copied().unwrap_or(0.0)),
    }
}

/// The common part, in tenths, that minimizes the mean residual of `pairs`, excluding one source.
fn common(pairs: &[Pair], left_out: Option<&str>) -> f64 {
    let mean = |part: f64| -> f64 {
        let others = pairs.iter().filter(|pair| Some(pair.source) != left_out);
        others.map(|pair| pair.weight * (pair.other - part * pair.anchor).abs()).sum()
    };
    // If several do equally well, the smallest is taken, because it comes first.
    let parts = (0..=10_u32).map(|tenths| f64::from(tenths) / 10.0);
    parts.min_by(|one, other| mean(*one).total_cmp(&mean(*other))).unwrap_or(0.0)
}

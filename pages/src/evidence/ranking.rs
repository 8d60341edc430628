//! Layouts of one model on one machine: whether the engine puts them in the right order, what its pick costs, and what one
//! measured step makes of the others.

use std::collections::BTreeMap;

use shardscope::estimate::time::Family;

use super::compared::Compared;
use super::figures::Figures;

/// Pairs that differ by less say nothing: repeated runs differ by half of it.
const APART: f64 = 0.05;

/// How a set of groups is ordered.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Groups of runs of one model, batch and machine in one source.
    pub groups: usize,
    /// Pairs of a group that were measured more than 5 % apart.
    pub pairs: usize,
    /// Of them, those ordered as measured.
    pub right: usize,
    /// For each group, how much slower the layout is that the engine finds fastest than the one that was.
    pub regrets: Vec<f64>,
}

impl Ranking {
    /// Share of pairs ordered as measured.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.right as f64 / self.pairs.max(1) as f64
    }

    /// Share of groups whose pick is within 3 % of the best.
    #[must_use]
    pub fn picked(&self) -> f64 {
        self.regrets.iter().filter(|regret| **regret <= 0.03).count() as f64 / self.groups.max(1) as f64
    }
}

/// Which error of a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The engine as it is.
    Fitted,
    /// Constants that the row's own source had no part in.
    Unseen,
}

fn predicted(one: &Compared, seen: Seen) -> f64 {
    let error = if seen == Seen::Fitted { one.error } else { one.unseen };
    one.row.measured() * (1.0 + error)
}

/// Runs of one source that differ in layout and recipe alone: same model, sequence, machine and number of accelerators; times
/// are those of a sequence.
fn groups(compared: &[Compared]) -> Vec<Vec<&Compared>> {
    const SAME: [&str; 12] = [
        "family", "gpu", "gpus", "layers", "hidden", "ffn", "heads", "seq", "experts", "compute", "vocab",
        "year",
    ];
    let mut all: BTreeMap<Vec<&str>, Vec<&Compared>> = BTreeMap::new();
    for one in compared {
        all.entry(SAME.map(|column| one.row.text(column)).into()).or_default().push(one);
    }
    let plan = |one: &Compared| one.resolution.plan.clone();
    all.into_values()
        .map(|group| {
            // Runs of the same plan are one layout.
            let mut kept: Vec<&Compared> = Vec::new();
            for one in group {
                if !kept.iter().any(|other| plan(other) == plan(one)) {
                    kept.push(one);
                }
            }
            kept
        })
        .filter(|group| group.len() > 1)
        .collect()
}

/// Seconds of a sequence.
fn each(one: &Compared, seconds: f64) -> f64 {
    let batch: f64 = one.row.text("gbs").parse().unwrap_or(1.0);
    seconds / batch
}

/// How the groups are ordered.
#[must_use]
pub fn ranking(compared: &[Compared], seen: Seen) -> Ranking {
    let mut out = Ranking::default();
    for group in groups(compared) {
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

/// Errors of the other layouts of a group as the engine gives them, and when one of the group was measured and the others scaled
/// by it: every row of a group is the measured one once. Only rows whose part is known from one fitted source, which is left out
/// here, count: there the whole of the factor says something. Where constants are known well, what is left of the error is a
/// layout's own, and one measured layout tells nothing of the next.
#[must_use]
pub fn anchored(compared: &[Compared]) -> [Figures; 2] {
    let (mut alone, mut with) = (Vec::new(), Vec::new());
    for group in groups(compared) {
        let strange = group
            .iter()
            .all(|one| one.resolution.plan.as_ref().is_some_and(|plan| Family::of(plan).is_of_few_sources()));
        for one in group.iter().filter(|_| strange) {
            let factor = one.row.measured() / predicted(one, Seen::Unseen);
            for other in group.iter().filter(|other| other.row.text("id") != one.row.text("id")) {
                let error = predicted(other, Seen::Unseen) / other.row.measured();
                alone.push(error - 1.0);
                with.push(error * factor - 1.0);
            }
        }
    }
    [Figures::of(alone), Figures::of(with)]
}

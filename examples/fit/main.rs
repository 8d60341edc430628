//! Finds the constants of each pool of generations on the fitted rows, and the same with one source left out at a time.
//!
//! `cargo run --example fit` prints the constants of every pool beside those in the code; `-- --left-out` writes
//! `tests/data/measured/left_out.tsv`, on which the evidence's never-seen errors and the intervals rest; `-- --sensitivity`
//! writes `sensitivity.tsv`, which the guide shows; `-- --hosts` tells how steps that only the host bounds come out.
//!
//! The objective is the sum over rows of the size of log(predicted / measured), flattened beyond 15 % so that a broken row
//! pulls no constant, each source weighing as the square root of its rows; a constant that no row can tell stays where it is,
//! for leaving its published or assumed value costs a little. Constants move one at a time, in steps that shrink.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation, clippy::print_stdout)]

mod pools;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use pages::evidence::Row;
use shardscope::estimate::compute::{CALIBRATIONS, Calibration, Share};
use shardscope::estimate::time::step_seconds_with;
use shardscope::plan::Plan;

use pools::{POOLS, Pool};
use tables::{computed, hosts, sensitivity};

/// Errors up to here count in full.
const FULL: f64 = 0.15;
/// And this much of what is beyond.
const BEYOND: f64 = 0.25;
/// What it costs to move a constant by a factor of e, in rows' worth of error, for each source that the pool has.
const STAY: f64 = 0.03;
/// Steps of a constant's logarithm.
const STEPS: [f64; 4] = [0.12, 0.05, 0.02, 0.008];

/// The steps where one source is left out: what it moved is less than all.
const SHORT_STEPS: [f64; 2] = [0.04, 0.01];
/// Turns over all constants with one step, at most.
const TURNS: usize = 3;

/// A row of a pool.
struct Case {
    source: &'static str,
    plan: Plan,
    measured: f64,
}

/// One set for each generation of a pool.
type Sets = Vec<Calibration>;

fn sets(pool: &Pool) -> Sets {
    let of = |name: &&str| *CALIBRATIONS.iter().find(|set| set.generation.name() == *name).expect("a set");
    pool.generations.iter().map(of).collect()
}

fn cases(pool: &Pool) -> Vec<Case> {
    let rows = Row::all().into_iter().filter(Row::is_fitted);
    rows.filter_map(|row| {
        let plan = row.try_plan().ok()?;
        let generation = plan.cluster().accelerator.generation.name();
        pool.generations.contains(&generation).then(|| Case {
            source: row.family(),
            measured: row.measured(),
            plan,
        })
    })
    .collect()
}

fn weights(cases: &[Case], left_out: Option<&str>) -> BTreeMap<&'static str, f64> {
    let mut counts: BTreeMap<&'static str, f64> = BTreeMap::new();
    for case in cases.iter().filter(|case| Some(case.source) != left_out) {
        *counts.entry(case.source).or_default() += 1.0;
    }
    counts.values_mut().for_each(|count| *count = 1.0 / count.sqrt());
    counts
}

fn size(error: f64) -> f64 {
    let size = error.abs();
    size.min(FULL) + BEYOND * (size - FULL).max(0.0)
}

struct Fit<'a> {
    pool: &'a Pool,
    cases: &'a [Case],
    weights: BTreeMap<&'static str, f64>,
    start: Sets,
}

impl Fit<'_> {
    fn cost(&self, sets: &Sets) -> f64 {
        let mut cost = 0.0;
        for case in self.cases {
            let Some(weight) = self.weights.get(case.source) else { continue };
            let generation = case.plan.cluster().accelerator.generation;
            let set = sets.iter().find(|set| set.generation == generation).expect("a set");
            let predicted = step_seconds_with(&case.plan, *set).get();
            cost += weight * size((predicted / case.measured).ln());
        }
        let mut moved = 0.0;
        for (share, generations) in self.free() {
            for &at in &generations {
                let by = (share.value(&sets[at]) / share.value(&self.start[at])).ln();
                moved += by.abs().min(4.0 * by * by) / generations.len() as f64;
            }
        }
        cost + STAY * moved * self.weights.len() as f64
    }

    /// Constants to move, each with the generations that have it in common.
    fn free(&self) -> Vec<(Share, Vec<usize>)> {
        let all: Vec<usize> = (0..self.pool.generations.len()).collect();
        let mut free: Vec<(Share, Vec<usize>)> =
            self.pool.shared.iter().map(|share| (*share, all.clone())).collect();
        for share in self.pool.own {
            free.extend(all.iter().map(|&at| (*share, vec![at])));
        }
        free.retain(|(share, at)| share.value(&self.start[at[0]]) > 0.0);
        free
    }

    fn run(&self, steps: &[f64]) -> (Sets, f64) {
        let mut sets = self.start.clone();
        // What a pool shares begins at the mean of its generations.
        for (share, at) in self.free() {
            let mean = at.iter().map(|&at| share.value(&sets[at]).ln()).sum::<f64>() / at.len() as f64;
            at.iter().for_each(|&at| share.set(&mut sets[at], mean.exp()));
        }
        let mut cost = self.cost(&sets);
        for &step in steps {
            for _ in 0..TURNS {
                let before = cost;
                for (share, at) in self.free() {
                    for direction in [step, -step] {
                        loop {
                            let mut tried = sets.clone();
                            for &at in &at {
                                let value = share.value(&tried[at]) * f64::exp(direction);
                                share.set(&mut tried[at], value.min(share.most()));
                            }
                            let next = self.cost(&tried);
                            if next >= cost - 1e-6 {
                                break;
                            }
                            (sets, cost) = (tried, next);
                        }
                    }
                }
                if before - cost < 1e-4 {
                    break;
                }
            }
        }
        (sets, cost)
    }
}

fn fit(pool: &Pool, cases: &[Case], left_out: Option<&str>) -> (Sets, f64) {
    let steps = if left_out.is_some() { &SHORT_STEPS[..] } else { &STEPS[..] };
    Fit { pool, cases, weights: weights(cases, left_out), start: sets(pool) }.run(steps)
}

fn main() {
    if std::env::args().any(|word| word == "--sensitivity") {
        return sensitivity();
    }
    if std::env::args().any(|word| word == "--hosts") {
        return hosts();
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let left_out = wanted.iter().any(|word| word == "--left-out");
    let named = |pool: &&Pool| {
        let mut names = wanted.iter().filter(|word| !word.starts_with("--")).peekable();
        names.peek().is_none() || names.any(|name| name == pool.name)
    };
    let mut table = "source\tgeneration\tconstant\tvalue\n".to_owned();
    for pool in POOLS.iter().filter(named) {
        let cases = cases(pool);
        let sources: BTreeSet<&str> = cases.iter().map(|case| case.source).collect();
        if !left_out {
            let (found, cost) = fit(pool, &cases, None);
            println!("{}: {} rows of {} sources, cost {cost:.3}", pool.name, cases.len(), sources.len());
            report(pool, &cases, &found);
            if wanted.iter().any(|word| word == "--sets") {
                for set in &found {
                    for share in Share::ALL {
                        println!("set\t{}\t{}\t{:.3}", set.generation.name(), share.name(), share.value(set));
                    }
                }
            }
            continue;
        }
        let alone = sources.len() == 1;
        for source in sources {
            let (without, _) = if alone { (strangers(pool), 0.0) } else { fit(pool, &cases, Some(source)) };
            let fit = Fit { pool, cases: &cases, weights: BTreeMap::new(), start: sets(pool) };
            let free: Vec<(Share, Vec<usize>)> = match alone {
                true => Share::ALL.map(|share| (share, (0..pool.generations.len()).collect())).into(),
                false => fit.free(),
            };
            for (share, at) in free {
                for at in at {
                    let value = share.value(&without[at]);
                    writeln!(table, "{source}\t{}\t{}\t{value:.4}", pool.generations[at], share.name())
                        .unwrap();
                }
            }
        }
    }
    if left_out {
        std::fs::write("tests/data/measured/left_out.tsv", table).unwrap();
        computed("left_out.tsv");
    }
}

/// A generation that only one source knows is without it what an accelerator without a set is: the nearest one with its own
/// data sheet.
fn strangers(pool: &Pool) -> Sets {
    let nearest = if pool.name.starts_with("H100") { "H100" } else { "A100" };
    let nearest = *CALIBRATIONS.iter().find(|set| set.generation.name() == nearest).expect("the set");
    sets(pool).into_iter().map(|set| Calibration { generation: set.generation, ..nearest }).collect()
}

fn report(pool: &Pool, cases: &[Case], found: &Sets) {
    let fit = Fit { pool, cases, weights: weights(cases, None), start: sets(pool) };
    let cost = fit.cost(found);
    for (share, at) in fit.free() {
        let now: Vec<String> = at.iter().map(|&at| format!("{:.3}", share.value(&fit.start[at]))).collect();
        // What a tenth more or less costs, in rows' worth of per cent.
        let worse: Vec<String> = [0.9, 1.1]
            .iter()
            .map(|factor| {
                let mut tried = found.clone();
                at.iter().for_each(|&at| share.set(&mut tried[at], share.value(&found[at]) * factor));
                format!("{:+.2}", 100.0 * (fit.cost(&tried) - cost))
            })
            .collect();
        println!(
            "  {:18} {:.3}  was {}  a tenth less, more: {}",
            share.name(),
            share.value(&found[at[0]]),
            now.join(" "),
            worse.join(" ")
        );
    }
    let mut by_source: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for case in cases {
        let generation = case.plan.cluster().accelerator.generation.name();
        let set = found.iter().find(|set| set.generation.name() == generation).expect("a set");
        let error = step_seconds_with(&case.plan, *set).get() / case.measured - 1.0;
        by_source.entry((generation, case.source)).or_default().push(error);
    }
    for ((generation, source), mut errors) in by_source {
        errors.sort_by(f64::total_cmp);
        let signed = errors[errors.len() / 2];
        errors.iter_mut().for_each(|error| *error = error.abs());
        errors.sort_by(f64::total_cmp);
        println!(
            "    {generation:10} {source:26} {:3} rows, median {:4.1} %, 90 % within {:4.1} %, bias {:+.1} %",
            errors.len(),
            100.0 * errors[errors.len() / 2],
            100.0 * errors[(errors.len() * 9 / 10).min(errors.len() - 1)],
            100.0 * signed
        );
    }
}

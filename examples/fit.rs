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

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use pages::evidence::{Row, compared, digest};
use shardscope::estimate::compute::{CALIBRATIONS, Calibration, Share};
use shardscope::estimate::time::step_seconds_with;
use shardscope::plan::Plan;

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

/// A pool of generations with constants in common.
struct Pool {
    name: &'static str,
    generations: &'static [&'static str],
    /// Constants that the pool shares.
    shared: &'static [Share],
    /// Constants of each generation.
    own: &'static [Share],
}

use Share::{
    AttentionBackward, AttentionForward, AttentionPytorch, AttentionTriton, Contention, Eager, Exchange,
    FastLink, Fp4, Fp8, Grouped, Half, Memory, Network, Straggling, UserBuffers, Wave,
};

const POOLS: [Pool; 7] = [
    Pool { name: "V100", generations: &["V100"], shared: &[Half, Memory, FastLink], own: &[] },
    Pool {
        name: "A100",
        generations: &["A100", "A100-40"],
        shared: &[
            Half,
            Wave,
            Memory,
            Network,
            Contention,
            AttentionTriton,
            AttentionForward,
            AttentionBackward,
        ],
        own: &[],
    },
    Pool {
        name: "H100",
        generations: &["H100"],
        shared: &[
            Half,
            Fp8,
            Eager,
            Wave,
            Memory,
            Network,
            Contention,
            UserBuffers,
            Straggling,
            Grouped,
            Exchange,
            AttentionTriton,
            AttentionForward,
            AttentionBackward,
        ],
        own: &[],
    },
    // Torchtitan's part: an H100 of less power and slower memory, known from that software alone.
    Pool {
        name: "H100-HBM2e",
        generations: &["H100-HBM2e"],
        shared: &[Half, Fp8, AttentionPytorch, Network, UserBuffers],
        own: &[],
    },
    Pool {
        name: "Blackwell",
        generations: &["B200", "GB200", "GB300"],
        shared: &[
            Fp4,
            Wave,
            Memory,
            Network,
            Contention,
            UserBuffers,
            Straggling,
            Grouped,
            Exchange,
            AttentionForward,
            AttentionBackward,
        ],
        // Clocks under power: 1,000 W of air or water in an HGX B200, 1,200 in a GB200, 1,400 in a GB300.
        own: &[Half, Fp8],
    },
    // Three runs on one part tell what products reach; attention, memory and contention stay assumed.
    Pool { name: "CDNA3", generations: &["MI300X"], shared: &[Half, Fp8], own: &[] },
    Pool {
        name: "Ascend-910B",
        generations: &["Ascend-910B"],
        shared: &[Half, Memory, AttentionForward, AttentionBackward, FastLink, Network],
        own: &[],
    },
];

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
                let by = (share.of(&sets[at]) / share.of(&self.start[at])).ln();
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
        free.retain(|(share, at)| share.of(&self.start[at[0]]) > 0.0);
        free
    }

    fn run(&self, steps: &[f64]) -> (Sets, f64) {
        let mut sets = self.start.clone();
        // What a pool shares begins at the mean of its generations.
        for (share, at) in self.free() {
            let mean = at.iter().map(|&at| share.of(&sets[at]).ln()).sum::<f64>() / at.len() as f64;
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
                                let value = share.of(&tried[at]) * f64::exp(direction);
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

/// Steps that only the host bounds, by machine.
fn hosts() {
    let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in include_str!("../tests/data/measured/launch_bound.tsv").lines().skip(1) {
        let [id, kind, seconds] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let run = pages::evidence::runs().iter().find(|run| run.id == id).expect("a launch");
        let Some(plan) = &run.resolution.plan else { continue };
        let predicted = shardscope::estimate::time::step_seconds(plan).get();
        let layout = plan.layout();
        let name = format!("{} {kind} TP {} PP {}", run.accelerator, layout.tensor, layout.pipeline);
        errors.entry(name).or_default().push(predicted / seconds.parse::<f64>().unwrap() - 1.0);
    }
    for (name, mut errors) in errors {
        errors.sort_by(f64::total_cmp);
        println!("{name}: {} rows, median {:+.2}", errors.len(), errors[errors.len() / 2]);
    }
}

/// Rows of a generation that feel a constant: a tenth more or less of it moves their step by more than this.
const FELT: f64 = 0.005;

/// Writes for each constant of each set how many rows of how many sources feel it.
fn sensitivity() {
    let mut table = "generation\tconstant\trows\tsources\tof_rows\tmoves\n".to_owned();
    for set in &CALIBRATIONS {
        let rows = Row::all().into_iter().filter(Row::is_fitted).filter_map(|row| {
            let plan = row.try_plan().ok()?;
            (plan.cluster().accelerator.generation == set.generation).then(|| (row.family(), plan))
        });
        let rows: Vec<(&str, Plan)> = rows.collect();
        let base: Vec<f64> = rows.iter().map(|(_, plan)| step_seconds_with(plan, *set).get()).collect();
        for share in Share::ALL {
            let mut moved = Vec::new();
            let mut sources = BTreeSet::new();
            for ((source, plan), base) in rows.iter().zip(&base) {
                let mut tried = *set;
                share.set(&mut tried, share.of(set) * 0.9);
                let by = (step_seconds_with(plan, tried).get() / base - 1.0).abs();
                if by > FELT {
                    moved.push(by);
                    sources.insert(*source);
                }
            }
            moved.sort_by(f64::total_cmp);
            let middle = moved.get(moved.len() / 2).copied().unwrap_or(0.0);
            writeln!(
                table,
                "{}\t{}\t{}\t{}\t{}\t{middle:.3}",
                set.generation.name(),
                share.name(),
                moved.len(),
                sources.len(),
                rows.len()
            )
            .unwrap();
        }
    }
    std::fs::write("tests/data/measured/sensitivity.tsv", table).unwrap();
    computed("sensitivity.tsv");
}

/// Notes what `table` was computed from: `tests/suite/interval.rs` fails where that has changed.
fn computed(table: &str) {
    let path = "tests/data/measured/computed.tsv";
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let others = before.lines().skip(1).filter(|line| !line.starts_with(table));
    let mut lines: Vec<String> = others.map(str::to_owned).collect();
    lines.push(format!("{table}\t{}", digest(compared())));
    lines.sort();
    std::fs::write(path, format!("table\tdigest\n{}\n", lines.join("\n"))).unwrap();
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
                        println!("set\t{}\t{}\t{:.3}", set.generation.name(), share.name(), share.of(set));
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
                    let value = share.of(&without[at]);
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
        let now: Vec<String> = at.iter().map(|&at| format!("{:.3}", share.of(&fit.start[at]))).collect();
        // What a tenth more or less costs, in rows' worth of per cent.
        let worse: Vec<String> = [0.9, 1.1]
            .iter()
            .map(|factor| {
                let mut tried = found.clone();
                at.iter().for_each(|&at| share.set(&mut tried[at], share.of(&found[at]) * factor));
                format!("{:+.2}", 100.0 * (fit.cost(&tried) - cost))
            })
            .collect();
        println!(
            "  {:18} {:.3}  was {}  a tenth less, more: {}",
            share.name(),
            share.of(&found[at[0]]),
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

//! What the fitted constants rest on: steps that the host bounds, and how many rows feel each constant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use pages::evidence::{Row, compared, digest};
use shardscope::estimate::compute::{CALIBRATIONS, Share};
use shardscope::estimate::time::step_seconds_with;
use shardscope::plan::Plan;

/// Steps that only the host bounds, by machine.
pub(crate) fn hosts() {
    let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in include_str!("../../tests/data/measured/launch_bound.tsv").lines().skip(1) {
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
pub(crate) fn sensitivity() {
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
                share.set(&mut tried, share.value(set) * 0.9);
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
pub(crate) fn computed(table: &str) {
    let path = "tests/data/measured/computed.tsv";
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let others = before.lines().skip(1).filter(|line| !line.starts_with(table));
    let mut lines: Vec<String> = others.map(str::to_owned).collect();
    lines.push(format!("{table}\t{}", digest(compared())));
    lines.sort();
    std::fs::write(path, format!("table\tdigest\n{}\n", lines.join("\n"))).unwrap();
}
